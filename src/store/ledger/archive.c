/*
 * archive.c - reading a call back from the archive (sweep.c fills it).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/ledger/cache.h"

enum pawl_status led_archived(struct store *s, struct arena *a, struct bytes id,
                              struct archived *out, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct led_rows *rows = NULL;
    struct led_params p = { 0 };
    struct archive_row r;
    enum pawl_status st = led_begin_autocommit(c, err);
    AUTO(led_undo) struct ledger *tx = st == PAWL_OK ? c : NULL;
    led_text(&p, id);
    if (st == PAWL_OK)
        st = led_query(c, SQL_ARCHIVE_READ, &p, &rows, err);
    if (st != PAWL_OK)
        return st;
    if (!rows->n)
        return PAWL_NOT_FOUND;
    st = led_number_check(led_get_int(rows, 0, ARCHIVE_TEXTS), "an archived call", err);
    if (st != PAWL_OK)
        return st;
    for (int i = 0; i < ARCHIVE_TEXTS; i++)
        r.text[i] = led_get(rows, 0, i);
    for (int i = 0; i < ARCHIVE_NUMBERS; i++)
        r.number[i] = led_get_int(rows, 0, ARCHIVE_TEXTS + i);
    return archived_read(a, &r, out, err);
}
