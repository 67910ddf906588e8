/*
 * floor_pg.c - the floor of PostgreSQL: plain libpq on the engine's tables (engine.h).
 *
 * What one would write by hand for this one shape of work: prepared statements, plans pinned as the
 * engine pins them, columns as arrays where calls differ and as one value where they do not, claims
 * by ctid, and a round trip only where a statement needs the answer of the one before. It checks
 * nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ident.h"
#include "bench/engine.h"
#include "model/lease.h"

#define LANE 1

/* ---- Statements ------------------------------------------------------------------------------ */

enum {
    Q_BEGIN,
    Q_COMMIT,
    Q_SEQ,
    Q_ID,
    Q_CALL,
    Q_READY,
    Q_CLAIM,
    Q_LEASE,
    Q_READ,
    Q_OUTCOME,
    Q_RELEASE,
    Q_COUNT
};

static const struct {
    const char *name, *text;
} statements[Q_COUNT] = {
    [Q_BEGIN] = { "f_begin", "BEGIN" },
    [Q_COMMIT] = { "f_commit", "COMMIT" },
    [Q_SEQ] = { "f_seq", "SELECT nextval('pawl.seq') FROM generate_series(1, $1::bigint)" },
    [Q_ID] = { "f_id", "INSERT INTO pawl.id (id, seq, fingerprint) "
                       "SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[]) "
                       "ON CONFLICT DO NOTHING" },
    [Q_CALL] = { "f_call",
                 "INSERT INTO pawl.call (seq, id, lane, method, form, input, priority, created_at, "
                 "run_at) SELECT u.seq, u.id, $4::bigint, 'run', 1, u.input, 0, $5::bigint, "
                 "$5::bigint FROM unnest($1::bigint[], $2::text[], $3::bytea[]) "
                 "u (seq, id, input)" },
    [Q_READY] = { "f_ready",
                  "INSERT INTO pawl.ready (seq, track, rank, run_at, attempts, lost, redrives) "
                  "SELECT s, $2::bigint, 0, $3::bigint, 0, 0, 0 FROM unnest($1::bigint[]) s" },
    [Q_CLAIM] = { "f_claim",
                  "DELETE FROM pawl.ready WHERE ctid = ANY (ARRAY(SELECT ctid FROM pawl.ready "
                  "WHERE track = $1::bigint AND rank = 0 AND run_at <= $2::bigint "
                  "ORDER BY track, rank, run_at, seq LIMIT $3::bigint FOR UPDATE SKIP LOCKED)) "
                  "RETURNING seq, run_at, attempts, lost, redrives" },
    [Q_LEASE] = { "f_lease",
                  "INSERT INTO pawl.lease (token, node, boot, claimed_at, rev, low, high, held) "
                  "VALUES ($1::bytea, 'floor', 'boot', $2::bigint, 1, $3::bigint, $4::bigint, "
                  "$5::bytea)" },
    [Q_READ] = { "f_read", "SELECT seq, id, method, form, input FROM pawl.call "
                           "WHERE seq = ANY ($1::bigint[])" },
    [Q_OUTCOME] = { "f_outcome",
                    "INSERT INTO pawl.outcome (seq, status, form, result, attempts, lost, "
                    "redrives, key_no, token, node, claimed_at, started_at, finished_at, "
                    "keep_until) SELECT u.seq, 3, 1, u.result, 0, 0, 0, 0, $3::bytea, 'floor', "
                    "$4::bigint, $4::bigint, $5::bigint, $6::bigint "
                    "FROM unnest($1::bigint[], $2::bytea[]) u (seq, result)" },
    [Q_RELEASE] = { "f_release", "DELETE FROM pawl.lease WHERE token = $1::bytea" },
};

/* The same settings as the engine has. */
static const char settings[] =
    "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;"
    "SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan";

/* ---- A connection ---------------------------------------------------------------------------- */

/* ndim, flags, element type, length, lower bound. */
#define ARRAY_HEAD 20
enum { OID_BYTEA = 17, OID_BIGINT = 20, OID_TEXT = 25 };
#define PARAMS_MAX 6

/* The size of the largest column: every input with its length. */
struct column {
    char data[ARRAY_HEAD + BENCH_BATCH * 160];
    size_t len;
    uint32_t n;
};

struct conn {
    PGconn *db;
    const struct bench_id *ids; /* borrowed */
    struct column a, b, c;
    int64_t seqs[BENCH_BATCH];
    struct held held[BENCH_BATCH];
    size_t n; /* the calls of the lease */
    int64_t claimed_us;
    struct token token;
    struct arena pack;
    /* The parameters of the statement that is being built. */
    const char *values[PARAMS_MAX];
    int lens[PARAMS_MAX], binary[PARAMS_MAX], n_params;
    uint64_t numbers[PARAMS_MAX];
    size_t sent; /* statements sent, not answered */
};

static enum pawl_status fail(const struct conn *c, const PGresult *r, struct pawl_err *err)
{
    const char *text = r ? PQresultErrorMessage(r) : "";
    text = *text ? text : PQerrorMessage(c->db);
    return err_set(err, PAWL_BUSY, "straight libpq: %.*s", (int)strcspn(text, "\n"), text);
}

static void column_begin(struct column *k)
{
    k->len = ARRAY_HEAD;
    k->n = 0;
}

static void put32(char *at, uint32_t v)
{
    v = htonl(v);
    memcpy(at, &v, sizeof v);
}

static void column_add(struct column *k, const void *data, size_t len)
{
    CHECK(k->len + 4 + len <= sizeof k->data);
    put32(k->data + k->len, (uint32_t)len);
    memcpy(k->data + k->len + 4, data, len);
    k->len += 4 + len;
    k->n++;
}

static void param(struct conn *c, const void *data, size_t len)
{
    CHECK(c->n_params < PARAMS_MAX);
    c->values[c->n_params] = data;
    c->lens[c->n_params] = (int)len;
    c->binary[c->n_params++] = 1;
}

static void param_int(struct conn *c, int64_t v)
{
    uint64_t *at = &c->numbers[c->n_params];
    *at = htobe64((uint64_t)v);
    param(c, at, sizeof *at);
}

static void param_column(struct conn *c, struct column *k, uint32_t type)
{
    const uint32_t head[] = { 1, 0, type, k->n, 1 };
    for (size_t i = 0; i < COUNT_OF(head); i++)
        put32(k->data + i * 4, head[i]);
    param(c, k->data, k->len);
}

static void seqs_column(struct column *k, const int64_t *seqs, size_t n)
{
    column_begin(k);
    for (size_t i = 0; i < n; i++) {
        uint64_t raw = htobe64((uint64_t)seqs[i]);
        column_add(k, &raw, sizeof raw);
    }
}

static enum pawl_status send_one(struct conn *c, int q, struct pawl_err *err)
{
    int n = c->n_params;
    c->n_params = 0;
    c->sent++;
    return PQsendQueryPrepared(c->db, statements[q].name, n, c->values, c->lens, c->binary, 1)
               ? PAWL_OK
               : fail(c, NULL, err);
}

/* Flush the pipeline and read all answers. *out: the rows of the only statement that has some; the
 * caller clears it. */
static enum pawl_status answers(struct conn *c, PGresult **out, struct pawl_err *err)
{
    enum pawl_status st = PQpipelineSync(c->db) ? PAWL_OK : fail(c, NULL, err);
    for (; c->sent > 0; c->sent--) {
        PGresult *r;
        while ((r = PQgetResult(c->db))) {
            ExecStatusType is = PQresultStatus(r);
            if (st == PAWL_OK && is != PGRES_TUPLES_OK && is != PGRES_COMMAND_OK)
                st = fail(c, r, err);
            if (is == PGRES_TUPLES_OK && out && !*out)
                *out = r;
            else
                PQclear(r);
        }
    }
    PQclear(PQgetResult(c->db));
    return st;
}

static int64_t number(const PGresult *r, int row, int column)
{
    uint64_t raw;
    memcpy(&raw, PQgetvalue(r, row, column), sizeof raw);
    return (int64_t)be64toh(raw);
}

/* ---- The work -------------------------------------------------------------------------------- */

static enum pawl_status numbers_read(struct conn *c, size_t n, struct pawl_err *err)
{
    PGresult *r = NULL;
    enum pawl_status st = send_one(c, Q_BEGIN, err);
    param_int(c, (int64_t)n);
    if (st == PAWL_OK)
        st = send_one(c, Q_SEQ, err);
    if (st == PAWL_OK)
        st = answers(c, &r, err);
    for (int i = 0; st == PAWL_OK && i < PQntuples(r); i++)
        c->seqs[i] = number(r, i, 0);
    PQclear(r);
    return st;
}

static enum pawl_status send_id(struct conn *c, const struct bench_id *ids, size_t n,
                                struct pawl_err *err)
{
    static const unsigned char print[FINGERPRINT_LEN] = { 1, 2, 3 };
    column_begin(&c->a);
    column_begin(&c->c);
    seqs_column(&c->b, c->seqs, n);
    for (size_t i = 0; i < n; i++) {
        column_add(&c->a, ids[i].text, UUID_TEXT_LEN);
        column_add(&c->c, print, sizeof print);
    }
    param_column(c, &c->a, OID_TEXT);
    param_column(c, &c->b, OID_BIGINT);
    param_column(c, &c->c, OID_BYTEA);
    return send_one(c, Q_ID, err);
}

/* libpq has copied what was sent; a and b still hold ids and numbers. */
static enum pawl_status send_call(struct conn *c, size_t n, int64_t now_us, struct pawl_err *err)
{
    column_begin(&c->c);
    for (size_t i = 0; i < n; i++)
        column_add(&c->c, bench_input, bench_input_len);
    param_column(c, &c->b, OID_BIGINT);
    param_column(c, &c->a, OID_TEXT);
    param_column(c, &c->c, OID_BYTEA);
    param_int(c, LANE);
    param_int(c, now_us);
    enum pawl_status st = send_one(c, Q_CALL, err);
    param_column(c, &c->b, OID_BIGINT);
    param_int(c, LANE * 2);
    param_int(c, now_us);
    return st == PAWL_OK ? send_one(c, Q_READY, err) : st;
}

static enum pawl_status floor_pg_accept(void *conn, size_t at, size_t n, struct pawl_err *err)
{
    struct conn *c = conn;
    enum pawl_status st = numbers_read(c, n, err);
    if (st == PAWL_OK)
        st = send_id(c, c->ids + at, n, err);
    if (st == PAWL_OK)
        st = send_call(c, n, world_now(&world_real), err);
    if (st == PAWL_OK)
        st = send_one(c, Q_COMMIT, err);
    return st == PAWL_OK ? answers(c, NULL, err) : st;
}

static int compare_held(const void *a, const void *b)
{
    const struct held *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static enum pawl_status send_lease(struct conn *c, struct pawl_err *err)
{
    struct bytes packed;
    arena_reset(&c->pack);
    enum pawl_status st = lease_pack(&c->pack, c->held, c->n, BYTES_NONE, &packed, err);
    if (st != PAWL_OK)
        return st;
    c->token = token_make(&world_real);
    param(c, c->token.b, sizeof c->token.b);
    param_int(c, c->claimed_us);
    param_int(c, c->held[0].seq);
    param_int(c, c->held[c->n - 1].seq);
    param(c, packed.data, packed.len);
    st = send_one(c, Q_LEASE, err);
    for (size_t i = 0; i < c->n; i++)
        c->seqs[i] = c->held[i].seq;
    seqs_column(&c->a, c->seqs, c->n);
    param_column(c, &c->a, OID_BIGINT);
    return st == PAWL_OK ? send_one(c, Q_READ, err) : st;
}

/* Inside a transaction, which it commits. */
static enum pawl_status claim_rest(struct conn *c, size_t max, size_t *out_n, struct pawl_err *err)
{
    PGresult *r = NULL, *inputs = NULL;
    c->claimed_us = world_now(&world_real);
    param_int(c, LANE * 2);
    param_int(c, c->claimed_us);
    param_int(c, (int64_t)max);
    enum pawl_status st = send_one(c, Q_CLAIM, err);
    if (st == PAWL_OK)
        st = answers(c, &r, err);
    c->n = st == PAWL_OK ? (size_t)PQntuples(r) : 0;
    for (size_t i = 0; i < c->n; i++)
        c->held[i] = (struct held){ .seq = number(r, (int)i, 0),
                                    .run_at_us = number(r, (int)i, 1),
                                    .lane = LANE };
    PQclear(r);
    qsort(c->held, c->n, sizeof *c->held, compare_held);
    if (st == PAWL_OK && c->n)
        st = send_lease(c, err);
    if (st == PAWL_OK)
        st = send_one(c, Q_COMMIT, err);
    if (st == PAWL_OK)
        st = answers(c, &inputs, err);
    if (st == PAWL_OK && c->n && (size_t)PQntuples(inputs) != c->n)
        st = err_set(err, PAWL_BROKEN, "straight libpq: %d inputs of %zu", PQntuples(inputs), c->n);
    PQclear(inputs);
    *out_n = c->n;
    return st;
}

static enum pawl_status floor_pg_claim(void *conn, size_t max, size_t *out_n, struct pawl_err *err)
{
    enum pawl_status st = send_one(conn, Q_BEGIN, err);
    return st == PAWL_OK ? claim_rest(conn, max, out_n, err) : st;
}

static enum pawl_status send_finish(struct conn *c, struct pawl_err *err)
{
    int64_t now_us = world_now(&world_real);
    enum pawl_status st = send_one(c, Q_BEGIN, err);
    seqs_column(&c->a, c->seqs, c->n);
    column_begin(&c->b);
    for (size_t i = 0; i < c->n; i++)
        column_add(&c->b, bench_result, bench_result_len);
    param_column(c, &c->a, OID_BIGINT);
    param_column(c, &c->b, OID_BYTEA);
    param(c, c->token.b, sizeof c->token.b);
    param_int(c, c->claimed_us);
    param_int(c, now_us);
    param_int(c, now_us + 7 * 86400 * SEC_US);
    if (st == PAWL_OK)
        st = send_one(c, Q_OUTCOME, err);
    param(c, c->token.b, sizeof c->token.b);
    return st == PAWL_OK ? send_one(c, Q_RELEASE, err) : st;
}

static enum pawl_status floor_pg_finish(void *conn, struct pawl_err *err)
{
    enum pawl_status st = send_finish(conn, err);
    if (st == PAWL_OK)
        st = send_one(conn, Q_COMMIT, err);
    return st == PAWL_OK ? answers(conn, NULL, err) : st;
}

static enum pawl_status floor_pg_finish_claim(void *conn, size_t max, size_t *out_n,
                                              struct pawl_err *err)
{
    enum pawl_status st = send_finish(conn, err);
    return st == PAWL_OK ? claim_rest(conn, max, out_n, err) : st;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static enum pawl_status plain(PGconn *db, const char *text, struct pawl_err *err)
{
    PGresult *r = PQexec(db, text);
    ExecStatusType is = PQresultStatus(r);
    enum pawl_status st = PAWL_OK;
    if (is != PGRES_COMMAND_OK && is != PGRES_TUPLES_OK)
        st = err_set(err, PAWL_BUSY, "straight libpq: %.*s", (int)strcspn(PQerrorMessage(db), "\n"),
                     PQerrorMessage(db));
    PQclear(r);
    return st;
}

static void floor_pg_close(void *conn)
{
    struct conn *c = conn;
    if (!c)
        return;
    PQfinish(c->db);
    arena_release(&c->pack);
    free(c);
}

/* The statement with the schema's name in place of "pawl"; the caller releases it. */
static char *own_names(struct buf *b, const struct bench_place *place, const char *text)
{
    static const char ours[] = "pawl.";
    buf_init(b, 4096);
    for (const char *at; (at = strstr(text, ours)); text = at + sizeof ours - 1) {
        buf_add(b, text, (size_t)(at - text));
        buf_addf(b, "%s.", place->schema ? place->schema : "pawl");
    }
    buf_add(b, text, strlen(text) + 1);
    CHECK(!b->failed);
    return b->data;
}

static enum pawl_status prepare_all(struct conn *c, const struct bench_place *place,
                                    struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < Q_COUNT && st == PAWL_OK; i++) {
        struct buf text;
        PGresult *r = PQprepare(c->db, statements[i].name,
                                own_names(&text, place, statements[i].text), 0, NULL);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            st = fail(c, r, err);
        PQclear(r);
        buf_release(&text);
    }
    return st;
}

/* One lane is enough, because the figure is how fast it drains. */
static enum pawl_status make_lane(struct conn *c, const struct bench_place *place,
                                  struct pawl_err *err)
{
    struct buf text;
    enum pawl_status st =
        plain(c->db,
              own_names(&text, place,
                        "INSERT INTO pawl.lane (lane, queue, type) VALUES (1, 'default', 'noop') "
                        "ON CONFLICT DO NOTHING"),
              err);
    buf_release(&text);
    return st;
}

static enum pawl_status floor_pg_open(const struct bench_place *place, void **out,
                                      struct pawl_err *err)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c)
        return err_no_memory(err, "a connection");
    arena_init(&c->pack, 1 << 20);
    c->db = PQconnectdb(place->url);
    enum pawl_status st = plain(c->db, settings, err);
    if (st == PAWL_OK)
        st = make_lane(c, place, err);
    if (st == PAWL_OK)
        st = prepare_all(c, place, err);
    if (st == PAWL_OK && !PQenterPipelineMode(c->db))
        st = fail(c, NULL, err);
    if (st == PAWL_OK)
        *out = c;
    else
        floor_pg_close(c);
    return st;
}

static enum pawl_status floor_pg_load(void *conn, const struct bench_id *ids, size_t n,
                                      struct pawl_err *err)
{
    (void)n, (void)err;
    ((struct conn *)conn)->ids = ids;
    return PAWL_OK;
}

const struct bench_side bench_floor_pg = {
    .open = floor_pg_open,
    .close = floor_pg_close,
    .load = floor_pg_load,
    .accept = floor_pg_accept,
    .claim = floor_pg_claim,
    .finish = floor_pg_finish,
    .finish_claim = floor_pg_finish_claim,
};
