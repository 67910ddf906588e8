/*
 * floor_maria.c - the floor of MariaDB: plain libmariadb on the engine's tables (engine.h).
 *
 * What one would write by hand for this one shape of work: statements as text, many in one round
 * trip, one list of rows for each table, claims by primary key. It checks nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ident.h"
#include "bench/engine.h"
#include "model/lease.h"
#include "store/mysql/mydb.h"

#define LANE 1
#define KEEP_US (7 * 86400 * SEC_US)

/* ---- A connection ---------------------------------------------------------------------------- */

struct conn {
    struct store *s; /* owned; holds the connection */
    MYSQL *db;       /* inside `s` */
    char schema[SCHEMA_LEN_MAX + 1];
    const struct bench_id *ids; /* borrowed */
    struct buf text;            /* statements to be sent next */
    struct held held[BENCH_BATCH];
    size_t n; /* calls of the lease */
    int64_t claimed_us;
    struct token token;
    struct arena pack;
};

static enum pawl_status fail(const struct conn *c, struct pawl_err *err)
{
    return err_set(err, PAWL_BUSY, "straight libmariadb: %s", mysql_error(c->db));
}

/* Read one result set: numbers by column, at most `columns` of them. */
static size_t rows_take(MYSQL_RES *r, int64_t *out, size_t max, unsigned columns)
{
    size_t n = 0;
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(r)))
        for (unsigned i = 0; i < columns && i < mysql_num_fields(r) && n < max; i++)
            out[n++] = row[i] ? strtoll(row[i], NULL, 10) : 0;
    return n;
}

/* Send the collected statements and read all answers. out: the numbers of all result sets,
 * `columns` in a row. */
static enum pawl_status answers(struct conn *c, int64_t *out, size_t max, unsigned columns,
                                size_t *out_n, struct pawl_err *err)
{
    size_t n = 0;
    CHECK(!c->text.failed);
    if (mysql_real_query(c->db, c->text.data, c->text.len))
        return fail(c, err);
    for (int more = 0; more == 0; more = mysql_next_result(c->db)) {
        MYSQL_RES *r = mysql_store_result(c->db);
        if (r)
            n += rows_take(r, out + n, max - n, columns);
        else if (mysql_field_count(c->db))
            return fail(c, err);
        mysql_free_result(r);
    }
    buf_reset(&c->text);
    if (mysql_errno(c->db))
        return fail(c, err);
    if (out_n)
        *out_n = n;
    return PAWL_OK;
}

static void put_hex(struct buf *b, const void *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = data;
    buf_add_text(b, "x'");
    for (size_t i = 0; i < len; i++) {
        buf_add_char(b, digits[at[i] >> 4]);
        buf_add_char(b, digits[at[i] & 15]);
    }
    buf_add_char(b, '\'');
}

/* Append a statement; "pawl" in the names of its tables is replaced by the schema. */
static void put(struct conn *c, const char *text)
{
    static const char ours[] = "pawl_";
    for (const char *at; (at = strstr(text, ours)); text = at + sizeof ours - 1) {
        buf_add(&c->text, text, (size_t)(at - text));
        buf_addf(&c->text, "%s_", c->schema);
    }
    buf_add_text(&c->text, text);
}

static void comma(struct buf *b, size_t i)
{
    if (i)
        buf_add_char(b, ',');
}

/* ---- The work -------------------------------------------------------------------------------- */

/* Reserve consecutive numbers, as the engine does: a counter that only rises. */
static enum pawl_status numbers(struct conn *c, size_t n, int64_t *first, struct pawl_err *err)
{
    struct buf *b = &c->text;
    put(c, "BEGIN;SAVEPOINT s;INSERT IGNORE INTO pawl_number (n, kept) VALUES ");
    for (size_t i = 0; i < n; i++) {
        comma(b, i);
        buf_add_text(b, i ? "(NULL,0)" : "(NULL,1)");
    }
    buf_add_text(b, ";SELECT LAST_INSERT_ID();ROLLBACK TO SAVEPOINT s");
    return answers(c, first, 1, 1, NULL, err);
}

static enum pawl_status maria_accept(void *conn, size_t at, size_t n, struct pawl_err *err)
{
    struct conn *c = conn;
    struct buf *b = &c->text;
    int64_t first = 0, now = world_now(&world_real);
    enum pawl_status st = numbers(c, n, &first, err);
    if (st != PAWL_OK)
        return st;
    put(c, "INSERT INTO pawl_id (id, seq, fingerprint) VALUES ");
    for (size_t i = 0; i < n; i++) {
        comma(b, i);
        buf_addf(b, "('%.*s',%lld,'fingerprint-of-thirty-two-bytes-')", UUID_TEXT_LEN,
                 c->ids[at + i].text, (long long)first + (long long)i);
    }
    put(c, ";INSERT INTO pawl_call (seq, id, lane, method, form, input, priority, "
           "created_at, run_at) VALUES ");
    for (size_t i = 0; i < n; i++) {
        comma(b, i);
        buf_addf(b, "(%lld,'%.*s',%d,'run',1,'", (long long)first + (long long)i, UUID_TEXT_LEN,
                 c->ids[at + i].text, LANE);
        buf_add(b, bench_input, bench_input_len);
        buf_addf(b, "',0,%lld,%lld)", (long long)now, (long long)now);
    }
    put(c, ";INSERT INTO pawl_ready (seq, track, `rank`, run_at, attempts, lost, redrives)"
           " VALUES ");
    for (size_t i = 0; i < n; i++) {
        comma(b, i);
        buf_addf(b, "(%lld,%d,0,%lld,0,0,0)", (long long)first + (long long)i, LANE * 2,
                 (long long)now);
    }
    buf_add_text(b, ";COMMIT");
    return answers(c, NULL, 0, 0, NULL, err);
}

static int compare_held(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void put_seqs(struct conn *c)
{
    for (size_t i = 0; i < c->n; i++) {
        comma(&c->text, i);
        buf_add_int(&c->text, c->held[i].seq);
    }
    buf_add_char(&c->text, ')');
}

/* Delete the ready rows, write the lease, read the inputs. */
static enum pawl_status put_lease(struct conn *c, struct pawl_err *err)
{
    struct bytes packed;
    struct buf *b = &c->text;
    arena_reset(&c->pack);
    enum pawl_status st = lease_pack(&c->pack, c->held, c->n, BYTES_NONE, &packed, err);
    if (st != PAWL_OK)
        return st;
    c->token = token_make(&world_real);
    put(c, "DELETE FROM pawl_ready WHERE seq IN (");
    put_seqs(c);
    put(c, ";INSERT INTO pawl_lease (token, node, boot, claimed_at, rev, low, high, held)"
           " VALUES (");
    put_hex(b, c->token.b, sizeof c->token.b);
    buf_addf(b, ",'floor','boot',%lld,1,%lld,%lld,", (long long)c->claimed_us,
             (long long)c->held[0].seq, (long long)c->held[c->n - 1].seq);
    put_hex(b, packed.data, packed.len);
    put(c, ");SELECT seq, id, method, form, input FROM pawl_call WHERE seq IN (");
    put_seqs(c);
    buf_add_char(b, ';');
    return PAWL_OK;
}

/* Inside a transaction, which it commits; the statements collected before are sent first. */
static enum pawl_status claim_rest(struct conn *c, size_t max, size_t *out_n, struct pawl_err *err)
{
    int64_t rows[2 * BENCH_BATCH];
    size_t n = 0, inputs = 0;
    c->claimed_us = world_now(&world_real);
    buf_addf(&c->text,
             "SELECT seq, run_at FROM %s_ready FORCE INDEX (ready_due) WHERE track = %d AND "
             "`rank` = 0 AND run_at <= %lld ORDER BY run_at, seq LIMIT %zu FOR UPDATE SKIP LOCKED",
             c->schema, LANE * 2, (long long)c->claimed_us, max);
    enum pawl_status st = answers(c, rows, COUNT_OF(rows), 2, &n, err);
    c->n = n / 2;
    for (size_t i = 0; i < c->n; i++)
        c->held[i] =
            (struct held){ .seq = rows[2 * i], .run_at_us = rows[2 * i + 1], .lane = LANE };
    qsort(c->held, c->n, sizeof *c->held, compare_held);
    if (st == PAWL_OK && c->n)
        st = put_lease(c, err);
    buf_add_text(&c->text, "COMMIT");
    if (st == PAWL_OK)
        st = answers(c, rows, COUNT_OF(rows), 1, &inputs, err);
    if (st == PAWL_OK && inputs != c->n)
        st = err_set(err, PAWL_BROKEN, "straight libmariadb: %zu inputs of %zu", inputs, c->n);
    *out_n = c->n;
    return st;
}

/* Deletes of many rows deadlock now and then: retry the transaction. */
#define DEADLOCKS_MAX 20
static bool deadlock(struct conn *c, enum pawl_status st, int *n)
{
    buf_reset(&c->text);
    return st != PAWL_OK && mysql_errno(c->db) == 1213 && ++*n < DEADLOCKS_MAX;
}

static enum pawl_status maria_claim(void *conn, size_t max, size_t *out_n, struct pawl_err *err)
{
    struct conn *c = conn;
    enum pawl_status st;
    int n = 0;
    do {
        buf_add_text(&c->text, "BEGIN;");
        st = claim_rest(c, max, out_n, err);
    } while (deadlock(c, st, &n));
    return st;
}

static void put_finish(struct conn *c)
{
    struct buf *b = &c->text;
    long long now = (long long)world_now(&world_real);
    put(c, "BEGIN;INSERT INTO pawl_outcome (seq, status, form, result, attempts, lost, "
           "redrives, key_no, token, node, claimed_at, started_at, finished_at, "
           "keep_until) VALUES ");
    for (size_t i = 0; i < c->n; i++) {
        comma(b, i);
        buf_addf(b, "(%lld,3,1,'%.*s',0,0,0,0,", (long long)c->held[i].seq, (int)bench_result_len,
                 bench_result);
        put_hex(b, c->token.b, sizeof c->token.b);
        buf_addf(b, ",'floor',%lld,%lld,%lld,%lld)", (long long)c->claimed_us,
                 (long long)c->claimed_us, now, now + KEEP_US);
    }
    put(c, ";DELETE FROM pawl_lease WHERE token = ");
    put_hex(b, c->token.b, sizeof c->token.b);
    buf_add_char(b, ';');
}

static enum pawl_status maria_finish(void *conn, struct pawl_err *err)
{
    struct conn *c = conn;
    put_finish(c);
    buf_add_text(&c->text, "COMMIT");
    return answers(c, NULL, 0, 0, NULL, err);
}

static enum pawl_status maria_finish_claim(void *conn, size_t max, size_t *out_n,
                                           struct pawl_err *err)
{
    struct conn *c = conn;
    struct conn was = *c; /* the lease that this finish ends */
    enum pawl_status st;
    int n = 0;
    do {
        memcpy(c->held, was.held, sizeof c->held);
        c->n = was.n;
        c->token = was.token;
        c->claimed_us = was.claimed_us;
        put_finish(c);
        st = claim_rest(c, max, out_n, err);
    } while (deadlock(c, st, &n));
    return st;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void maria_close(void *conn)
{
    struct conn *c = conn;
    if (!c)
        return;
    store_close(c->s);
    arena_release(&c->pack);
    buf_release(&c->text);
    free(c);
}

static enum pawl_status maria_open(const struct bench_place *place, void **out,
                                   struct pawl_err *err)
{
    struct conn *c = calloc(1, sizeof *c);
    struct store_conf conf = { .url = place->url, .role = STORE_DRIVER_ONLY };
    if (!c)
        return err_no_memory(err, "a connection");
    arena_init(&c->pack, 1 << 20);
    buf_init(&c->text, 16 << 20);
    snprintf(c->schema, sizeof c->schema, "%s", place->schema ? place->schema : "pawl");
    /* Connect as the engine does, with everything that a URL can say; then use the connection
     * directly. */
    enum pawl_status st = store_open(&conf, &c->s, err);
    if (st == PAWL_OK)
        c->db = mydb_of(led_of(c->s))->db;
    /* One lane is enough, because the figure is how fast it drains. */
    put(c, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
           "INSERT IGNORE INTO pawl_lane (lane, queue, type) "
           "VALUES (1, 'default', 'noop')");
    if (st == PAWL_OK)
        st = answers(c, NULL, 0, 0, NULL, err);
    if (st == PAWL_OK)
        *out = c;
    else
        maria_close(c);
    return st;
}

static enum pawl_status maria_load(void *conn, const struct bench_id *ids, size_t n,
                                   struct pawl_err *err)
{
    (void)n, (void)err;
    ((struct conn *)conn)->ids = ids;
    return PAWL_OK;
}

const struct bench_side bench_floor_maria = {
    .open = maria_open,
    .close = maria_close,
    .load = maria_load,
    .accept = maria_accept,
    .claim = maria_claim,
    .finish = maria_finish,
    .finish_claim = maria_finish_claim,
};
