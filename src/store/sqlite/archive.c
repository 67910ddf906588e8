/*
 * archive.c - reading a call back from the archive (sweep.c fills it).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/sqlite/engine.h"

enum pawl_status lite_archived(struct store *s, struct arena *a, struct bytes id,
                               struct archived *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    struct archive_row r;
    bool found = false;
    AUTO(lite_undo) struct lite *tx = NULL;
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lite_query(c, SQL_ARCHIVE_READ, ARGS(TEXT(id)), &q, err);
    if (st == PAWL_OK)
        st = lite_next(c, q, &found, err);
    if (st != PAWL_OK || !found)
        return st == PAWL_OK ? PAWL_NOT_FOUND : st;
    for (int i = 0; i < ARCHIVE_TEXTS; i++)
        r.text[i] = lite_column(q, i);
    for (int i = 0; i < ARCHIVE_NUMBERS; i++)
        r.number[i] = lite_int(q, ARCHIVE_TEXTS + i);
    return archived_read(a, &r, out, err);
}
