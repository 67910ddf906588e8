/*
 * cron_rows.c - the rows of schedules and ticks in a transaction (cron_inside.h). Store thread.
 *
 * What must stay true: a row that is changed was locked in this transaction, or is new; and no two
 * changes of one row are in the buffer together, because a statement changes all its rows at once.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "feature/cron_inside.h"

#include <stdlib.h>
#include <string.h>

/* Columns of cron_lock, cron_read and cron_list. */
enum {
    C_NAME,
    C_SPEC,
    C_VERSION,
    C_PAUSED,
    C_ZONE_DATA,
    C_DUE_AT,
    C_NEXT_AT,
    C_NEXT_LOCAL,
    C_LAST_AT,
    C_LAST_LOCAL,
    C_LAST_ID,
    C_LAST_SEQ,
    C_WAITING_AT,
    C_CREATED_AT,
    C_UPDATED_AT,
};

struct memory *cron_memory(struct ledger *d)
{
    return feature_memory(d, &feature_cron, sizeof(struct memory));
}

static struct row **bucket(struct memory *m, struct bytes name)
{
    size_t h = 5381;
    for (size_t i = 0; i < name.len; i++)
        h = h * 33 + (unsigned char)name.data[i];
    return &m->rows[h % ROW_BUCKETS];
}

static struct row *find(struct memory *m, struct bytes name)
{
    struct row *r = *bucket(m, name);
    while (r && !bytes_eq(r->name, name))
        r = r->same;
    return r;
}

struct row *row_find(struct ledger *d, struct bytes name)
{
    struct memory *m = cron_memory(d);
    return m ? find(m, name) : NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct row row_read(const struct led_rows *rows, int i)
{
    struct row r = {
        .name = led_get(rows, i, C_NAME),
        .spec = led_get(rows, i, C_SPEC),
        .stored = true,
        .version = led_get_int(rows, i, C_VERSION),
        .pause = (enum cron_pause)led_get_int(rows, i, C_PAUSED),
        .zone_data = led_get(rows, i, C_ZONE_DATA),
        .next = { led_get_int(rows, i, C_NEXT_AT), led_get_int(rows, i, C_NEXT_LOCAL) },
        .last = { led_get_int(rows, i, C_LAST_AT), led_get_int(rows, i, C_LAST_LOCAL) },
        .due_us = led_get_int(rows, i, C_DUE_AT),
        .last_id = led_get(rows, i, C_LAST_ID),
        .last_seq = led_get_int(rows, i, C_LAST_SEQ),
        .waiting_us = led_get_int(rows, i, C_WAITING_AT),
        .created_us = led_get_int(rows, i, C_CREATED_AT),
        .updated_us = led_get_int(rows, i, C_UPDATED_AT),
    };
    CHECK(r.name.len > 0 && r.version > 0);
    CHECK(r.pause >= PAUSE_NO && r.pause <= PAUSE_OVER);
    CHECK(r.due_us >= 0 && r.next.at_us >= 0 && r.last.at_us >= 0 && r.created_us > 0);
    /* What a call's end is found by, and what is waited for. */
    CHECK(r.last_id.data ? r.last_seq > 0 : r.last_seq == 0);
    CHECK(r.waiting_us == 0 || (r.waiting_us > 0 && r.last_seq > 0));
    return r;
}

static int compare_names(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Enter a row that was not in memory. */
static struct row *enter(struct ledger *d, struct memory *m, const struct row *from)
{
    struct row *r = arena_alloc(feature_arena(d), sizeof *r);
    struct row **at = bucket(m, from->name);
    if (!r)
        return NULL;
    *r = *from;
    r->same = *at;
    *at = r;
    return r;
}

/* Those of the names that the transaction has not, sorted, each once. NULL without memory. */
static struct bytes *missing(struct ledger *d, struct memory *m, const struct bytes *names,
                             size_t n, size_t *out_n)
{
    struct bytes *out = arena_alloc(feature_arena(d), (n + 1) * sizeof *out);
    size_t some = 0, once = 0;
    for (size_t i = 0; out && i < n; i++)
        if (!find(m, names[i]))
            out[some++] = names[i];
    if (some)
        qsort(out, some, sizeof *out, compare_names);
    for (size_t i = 0; i < some; i++)
        if (once == 0 || !bytes_eq(out[once - 1], out[i]))
            out[once++] = out[i];
    *out_n = once;
    return out;
}

enum pawl_status rows_lock(struct ledger *d, const struct bytes *names, size_t n,
                           struct pawl_err *err)
{
    struct memory *m = cron_memory(d);
    struct led_params p = { 0 };
    struct led_rows *rows;
    size_t some = 0;
    struct bytes *ask = m ? missing(d, m, names, n, &some) : NULL;
    if (!ask)
        return err_no_memory(err, "schedules");
    if (some == 0)
        return PAWL_OK;
    led_texts(d, &p, ask, some);
    enum pawl_status st = feature_query(d, SQL_CRON_LOCK, &p, &rows, err);
    for (int i = 0; st == PAWL_OK && i < rows->n; i++) {
        struct row r = row_read(rows, i);
        if (!enter(d, m, &r))
            st = err_no_memory(err, "schedules");
    }
    for (size_t i = 0; i < some && st == PAWL_OK; i++)
        if (!find(m, ask[i]) && !enter(d, m, &(struct row){ .name = ask[i] }))
            st = err_no_memory(err, "schedules");
    return st;
}

/* ---- Writing --------------------------------------------------------------------------------- */

#define I(x) ((union feature_value){ .i = (x) })
#define B(x) ((union feature_value){ .b = (x) })

/* Before a row is buffered again, write what is buffered. */
static enum pawl_status alone(struct ledger *d, struct row *r, struct pawl_err *err)
{
    struct led_rows *rows;
    bool again = r->written;
    r->written = true;
    return again ? feature_query(d, SQL_CRON_NEXT, NULL, &rows, err) : PAWL_OK;
}

static enum pawl_status write_all(struct ledger *d, enum sql_name name, struct row *r,
                                  enum feature_count count, struct pawl_err *err)
{
    const union feature_value v[] = {
        B(r->name),       B(r->spec),          I(r->version),    I((int64_t)r->pause),
        B(r->zone_data),  I(r->due_us),        I(r->next.at_us), I(r->next.local_us),
        I(r->last.at_us), I(r->last.local_us), B(r->last_id),    I(r->last_seq),
        I(r->waiting_us), I(r->created_us),    I(r->updated_us),
    };
    enum pawl_status st = alone(d, r, err);
    r->stored = true;
    return st == PAWL_OK ? feature_row(d, name, "ttiitzzzzztzzii", v, count, err) : st;
}

enum pawl_status row_add(struct ledger *d, struct row *r, struct pawl_err *err)
{
    return write_all(d, SQL_CRON_ADD, r, FEATURE_NEW, err);
}

enum pawl_status row_put(struct ledger *d, struct row *r, struct pawl_err *err)
{
    return write_all(d, SQL_CRON_PUT, r, FEATURE_EXACT, err);
}

enum pawl_status row_move(struct ledger *d, struct row *r, struct pawl_err *err)
{
    const union feature_value v[] = {
        B(r->name),          B(r->zone_data),  I(r->due_us),         I(r->next.at_us),
        I(r->next.local_us), I(r->last.at_us), I(r->last.local_us),  B(r->last_id),
        I(r->last_seq),      I(r->waiting_us), I((int64_t)r->pause),
    };
    enum pawl_status st = alone(d, r, err);
    return st == PAWL_OK ? feature_row(d, SQL_CRON_MOVE, "ttzzzzztzzi", v, FEATURE_EXACT, err) : st;
}

enum pawl_status row_remove(struct ledger *d, struct row *r, struct pawl_err *err)
{
    const union feature_value v[] = { B(r->name) };
    enum pawl_status st = alone(d, r, err);
    r->stored = false;
    return st == PAWL_OK ? feature_row(d, SQL_CRON_REMOVE, "t", v, FEATURE_EXACT, err) : st;
}

enum pawl_status tick_add(struct ledger *d, struct bytes name, const struct tick_row *t,
                          struct pawl_err *err)
{
    const union feature_value v[] = {
        B(name),
        I(t->at_us),
        I(t->no),
        I((int64_t)t->kind),
        B(bytes_of(cron_reason_name(t->reason))),
        B(t->zone),
        I(t->count ? t->count : 1),
        B(t->call_id),
        B(t->node),
        I(feature_now(d)),
    };
    return feature_row(d, SQL_TICK_ADD, "tiiittitti", v, FEATURE_ANY, err);
}

const char *cron_reason_name(enum cron_reason reason)
{
    static const char *const names[CRON_REASONS] = {
        [CRON_OVERLAP] = "overlap",   [CRON_REPLACED] = "replaced", [CRON_CHANGED] = "changed",
        [CRON_CONFLICT] = "conflict", [CRON_GONE] = "gone",         [CRON_FULL] = "full",
        [CRON_BAD_CALL] = "invalid",
    };
    return names[reason];
}
