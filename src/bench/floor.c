/*
 * floor.c - the floor of SQLite: what plain SQLite does with the library's tables (floor.h).
 *
 * The tables come from the migrations that the library itself runs, so the two cannot differ. What
 * must stay true for the comparison: WAL, synchronous FULL, and the library's sizes of page cache
 * and WAL.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/floor.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/world.h"
#include "model/call.h"
#include "sql_names.h"

/* One lane is enough, because the figure is how fast it drains. */
#define LANE 1
#define TRACK (LANE * 2)
/* Calls in one transaction of a fill. */
#define FILL_BATCH 20000
#define NODE "floor"

const char bench_input[] = "{\"to\":\"someone@example.org\",\"subject\":\"Your order has shipped\","
                           "\"order\":1234567,\"retry\":false}";
const size_t bench_input_len = sizeof bench_input - 1;

enum {
    Q_BEGIN,
    Q_COMMIT,
    Q_ID,
    Q_GONE_HAS,
    Q_CALL,
    Q_READY,
    Q_SEQ,
    Q_DUE,
    Q_TAKE,
    Q_READ,
    Q_LEASE,
    Q_RELEASE,
    Q_OUTCOME,
    Q_OLD,
    Q_GONE,
    Q_OUTCOME_DROP,
    Q_CALL_DROP,
    Q_COUNT
};

static const char *const text_common[Q_COUNT] = {
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
    [Q_READY] = "INSERT INTO pawl_ready (seq, track, rank, run_at, attempts, lost, redrives) "
                "VALUES (?1, ?2, 0, ?3, 0, 0, 0)",
    [Q_SEQ] = "UPDATE pawl_meta SET value = ?1 WHERE name = 'seq'",
    [Q_DUE] = "SELECT seq FROM pawl_ready INDEXED BY pawl_ready_due "
              "WHERE track = ?1 AND rank = 0 AND run_at <= ?2 ORDER BY run_at, seq LIMIT ?3",
    [Q_TAKE] = "DELETE FROM pawl_ready WHERE seq = ?1",
    [Q_READ] = "SELECT id, method, form, input FROM pawl_call WHERE seq = ?1",
    [Q_LEASE] = "INSERT INTO pawl_lease (token, node, boot, claimed_at, rev, low, high, held) "
                "VALUES (?1, '" NODE "', 'boot', ?2, 0, ?3, ?4, ?5)",
    [Q_RELEASE] = "DELETE FROM pawl_lease WHERE token = ?1",
    [Q_OUTCOME] = "INSERT INTO pawl_outcome (seq, status, form, attempts, lost, redrives, key_no, "
                  "token, node, claimed_at, started_at, finished_at, keep_until) "
                  "VALUES (?1, 3, 0, 0, 0, 0, 0, ?2, '" NODE "', ?3, ?3, ?3, ?4)",
    [Q_OLD] = "SELECT seq FROM pawl_outcome INDEXED BY pawl_outcome_keep "
              "WHERE keep_until <= ?1 ORDER BY keep_until, seq LIMIT ?2",
    [Q_OUTCOME_DROP] = "DELETE FROM pawl_outcome WHERE seq = ?1",
    [Q_CALL_DROP] = "DELETE FROM pawl_call WHERE seq = ?1",
};

#define GONE_COLUMNS "seq, id, status, created_at, finished_at, forget_at"
#define CALL_COLUMNS "seq, id, lane, method, form, input, priority, created_at, run_at"

#define CALL_ADD(more, value)                                                                      \
    "INSERT INTO pawl_call (" CALL_COLUMNS more                                                    \
    ") VALUES (?1, ?2, ?3, 'run', 1, ?4, 0, ?5, ?5" value ")"
#define GONE_ADD(more, value)                                                                      \
    "INSERT INTO pawl_gone (" GONE_COLUMNS more ") SELECT c.seq, c.id, o.status, c.created_at, "   \
    "o.finished_at, o.keep_until + 1" value                                                        \
    " FROM pawl_call c JOIN pawl_outcome o ON o.seq = c.seq WHERE c.seq = ?1"
#define PRINT_ON_CALL                                                                              \
    "ALTER TABLE pawl_call ADD COLUMN fingerprint BLOB;"                                           \
    "ALTER TABLE pawl_gone ADD COLUMN fingerprint BLOB;"

/* The statements that differ between the kinds of ids, and the changes to the tables of the
 * migration. */
static const struct variant {
    const char *tables;
    const char *id, *gone_has, *call, *gone;
} variants[FLOOR_IDS_COUNT] = {
    [FLOOR_IDS_OWN] = {
        .tables = "",
        .id = "INSERT INTO pawl_id (id, seq, fingerprint) VALUES (?1, ?2, ?3) "
              "ON CONFLICT DO NOTHING",
        .call = CALL_ADD("", ""),
        .gone = GONE_ADD("", ""),
    },
    [FLOOR_IDS_SLIM] = {
        .tables = "DROP TABLE pawl_id;"
                  "CREATE TABLE pawl_id (id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;"
                  PRINT_ON_CALL,
        .id = "INSERT INTO pawl_id (id, seq) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        .call = CALL_ADD(", fingerprint", ", ?6"),
        .gone = GONE_ADD(", fingerprint", ", c.fingerprint"),
    },
    [FLOOR_IDS_ON_CALL] = {
        .tables = "DROP TABLE pawl_id;"
                  "CREATE UNIQUE INDEX pawl_call_id ON pawl_call (id);"
                  "CREATE UNIQUE INDEX pawl_gone_id ON pawl_gone (id);"
                  PRINT_ON_CALL,
        .gone_has = "SELECT 1 FROM pawl_gone WHERE id = ?1",
        .call = CALL_ADD(", fingerprint", ", ?6") " ON CONFLICT DO NOTHING",
        .gone = GONE_ADD(", fingerprint", ", c.fingerprint"),
    },
};

struct floor {
    sqlite3 *db;
    sqlite3_stmt *q[Q_COUNT];
    enum floor_ids ids;
    int64_t seq;
    bool failed;
    struct pawl_err err;
};

/* ---- Statements that remember failure -------------------------------------------------------- */

static void fail(struct floor *f, const char *doing)
{
    if (f->failed)
        return;
    f->failed = true;
    err_set(&f->err, PAWL_BUSY, "straight SQLite: %s: %s", doing,
            f->db ? sqlite3_errmsg(f->db) : "no memory");
}

enum pawl_status floor_ok(const struct floor *f, struct pawl_err *err)
{
    if (!f->failed)
        return PAWL_OK;
    if (err)
        *err = f->err;
    return f->err.status;
}

static void bind_int(struct floor *f, int q, int at, int64_t value)
{
    if (!f->failed && sqlite3_bind_int64(f->q[q], at, value) != SQLITE_OK)
        fail(f, "binding");
}

static void bind_text(struct floor *f, int q, int at, const char *text, size_t len)
{
    if (!f->failed && sqlite3_bind_text(f->q[q], at, text, (int)len, SQLITE_STATIC) != SQLITE_OK)
        fail(f, "binding");
}

static void bind_blob(struct floor *f, int q, int at, const void *data, size_t len)
{
    if (!f->failed && sqlite3_bind_blob(f->q[q], at, data, (int)len, SQLITE_STATIC) != SQLITE_OK)
        fail(f, "binding");
}

static bool row(struct floor *f, int q)
{
    if (f->failed)
        return false;
    int rc = sqlite3_step(f->q[q]);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        fail(f, sqlite3_sql(f->q[q]));
    return rc == SQLITE_ROW;
}

static void done(struct floor *f, int q)
{
    sqlite3_reset(f->q[q]);
}

static void run(struct floor *f, int q)
{
    row(f, q);
    done(f, q);
}

static void script(struct floor *f, const char *sql)
{
    if (!f->failed && sqlite3_exec(f->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(f, sql);
}

int64_t floor_number(struct floor *f, const char *sql)
{
    sqlite3_stmt *q = NULL;
    int64_t n = -1;
    if (f->failed)
        return n;
    if (sqlite3_prepare_v2(f->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        n = sqlite3_column_int64(q, 0);
    else
        fail(f, sql);
    sqlite3_finalize(q);
    return n;
}

void floor_checkpoint(struct floor *f)
{
    script(f, "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* ---- Opening --------------------------------------------------------------------------------- */

static const char *text_of(enum floor_ids ids, int q)
{
    const struct variant *v = &variants[ids];
    switch (q) {
    case Q_ID:
        return v->id;
    case Q_GONE_HAS:
        return v->gone_has;
    case Q_CALL:
        return v->call;
    case Q_GONE:
        return v->gone;
    default:
        return text_common[q];
    }
}

static void prepare_all(struct floor *f)
{
    for (int q = 0; q < Q_COUNT && !f->failed; q++) {
        const char *text = text_of(f->ids, q);
        if (text && sqlite3_prepare_v3(f->db, text, -1, SQLITE_PREPARE_PERSISTENT, &f->q[q],
                                       NULL) != SQLITE_OK)
            fail(f, text);
    }
}

static void make_tables(struct floor *f)
{
    script(f, "BEGIN");
    for (const struct sql_migration *m = sql_sqlite_migrations; m->number; m++) {
        script(f, m->expand);
        script(f, m->finish);
    }
    script(f, variants[f->ids].tables);
    script(f, "INSERT INTO pawl_lane (lane, queue, type) VALUES (1, 'default', 'noop')");
    script(f, "COMMIT");
}

enum pawl_status floor_open(const struct floor_conf *conf, struct floor **out, struct pawl_err *err)
{
    struct floor *f = calloc(1, sizeof *f);
    if (!f)
        return err_no_memory(err, "the floor");
    f->ids = conf->ids;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(conf->path, &f->db, flags, NULL) != SQLITE_OK)
        fail(f, "opening");
    script(f, "PRAGMA journal_mode = WAL");
    /* The library's own settings, so that the difference is the library: 64 MiB of cache, and a WAL
     * of at most 32 MiB. A longer WAL would be faster, but only until it has to be copied. */
    script(f,
           "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8192;"
           "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = OFF; PRAGMA busy_timeout = 5000;");
    /* While a million random ids are inserted, their whole B-tree should fit in memory. */
    script(f, conf->unsafe ? "PRAGMA synchronous = OFF; PRAGMA cache_size = -524288;"
                           : "PRAGMA synchronous = FULL");
    if (!conf->attach)
        make_tables(f);
    prepare_all(f);
    f->seq = floor_number(f, "SELECT value FROM pawl_meta WHERE name = 'seq'");
    enum pawl_status st = floor_ok(f, err);
    if (st == PAWL_OK)
        *out = f;
    else
        floor_close(f);
    return st;
}

void floor_close(struct floor *f)
{
    if (!f)
        return;
    for (int q = 0; q < Q_COUNT; q++)
        sqlite3_finalize(f->q[q]);
    sqlite3_close(f->db);
    free(f);
}

/* ---- Ids ------------------------------------------------------------------------------------- */

void bench_ids_make(enum bench_ids kind, struct bench_id *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (kind == BENCH_IDS_ORDERED) {
            uuid7_make(&world_real, out[i].text);
            continue;
        }
        unsigned long long a = world_dice(&world_real), b = world_dice(&world_real);
        snprintf(out[i].text, sizeof out[i].text, "%08llx-%04llx-4%03llx-a%03llx-%012llx", a >> 32,
                 a >> 16 & 0xffff, a & 0xfff, b >> 48 & 0xfff, b & 0xffffffffffff);
    }
}

/* ---- The work -------------------------------------------------------------------------------- */

/* As long as a real fingerprint; nothing compares them here. */
static const unsigned char print[FINGERPRINT_LEN] = { 1, 2, 3, 4, 5, 6, 7, 8 };

struct accept {
    const struct bench_id *ids;
    size_t n;
    int lane;
    bool ready; /* else they get a lease or an outcome next */
    int64_t now_us;
};

static void write_id(struct floor *f, const char *id, int64_t seq)
{
    int q = f->ids == FLOOR_IDS_ON_CALL ? Q_GONE_HAS : Q_ID;
    bind_text(f, q, 1, id, 36);
    if (q == Q_ID)
        bind_int(f, Q_ID, 2, seq);
    if (f->ids == FLOOR_IDS_OWN)
        bind_blob(f, Q_ID, 3, print, sizeof print);
    else
        bind_blob(f, Q_CALL, 6, print, sizeof print);
    run(f, q);
}

static void accept_rows(struct floor *f, const struct accept *a)
{
    for (size_t i = 0; i < a->n && !f->failed; i++) {
        int64_t seq = ++f->seq;
        write_id(f, a->ids[i].text, seq);
        bind_int(f, Q_CALL, 1, seq);
        bind_text(f, Q_CALL, 2, a->ids[i].text, 36);
        bind_int(f, Q_CALL, 3, a->lane);
        bind_blob(f, Q_CALL, 4, bench_input, bench_input_len);
        bind_int(f, Q_CALL, 5, a->now_us);
        run(f, Q_CALL);
        if (!a->ready)
            continue;
        bind_int(f, Q_READY, 1, seq);
        bind_int(f, Q_READY, 2, a->lane * 2);
        bind_int(f, Q_READY, 3, a->now_us);
        run(f, Q_READY);
    }
    bind_int(f, Q_SEQ, 1, f->seq);
    run(f, Q_SEQ);
}

void floor_accept(struct floor *f, const struct bench_id *ids, size_t n)
{
    run(f, Q_BEGIN);
    accept_rows(f, &(struct accept){ ids, n, LANE, true, world_now(&world_real) });
    run(f, Q_COMMIT);
}

static void read_call(struct floor *f, int64_t seq)
{
    bind_int(f, Q_READ, 1, seq);
    if (row(f, Q_READ)) {
        (void)sqlite3_column_text(f->q[Q_READ], 0);
        (void)sqlite3_column_text(f->q[Q_READ], 1);
        (void)sqlite3_column_blob(f->q[Q_READ], 3);
    }
    done(f, Q_READ);
}

static void write_lease(struct floor *f, struct floor_lease *l, int64_t now_us)
{
    uint64_t dice[2] = { world_dice(&world_real), world_dice(&world_real) };
    memcpy(l->token, dice, sizeof l->token);
    if (l->n == 0)
        return;
    bind_blob(f, Q_LEASE, 1, l->token, sizeof l->token);
    bind_int(f, Q_LEASE, 2, now_us);
    bind_int(f, Q_LEASE, 3, l->seqs[0]);
    bind_int(f, Q_LEASE, 4, l->seqs[l->n - 1]);
    bind_blob(f, Q_LEASE, 5, l->seqs, l->n * sizeof l->seqs[0]);
    run(f, Q_LEASE);
}

static void claim_rows(struct floor *f, size_t max, bool with_input, struct floor_lease *out)
{
    int64_t now_us = world_now(&world_real);
    out->n = 0;
    bind_int(f, Q_DUE, 1, TRACK);
    bind_int(f, Q_DUE, 2, now_us);
    bind_int(f, Q_DUE, 3, (int64_t)MIN(max, FLOOR_BATCH_MAX));
    while (row(f, Q_DUE))
        out->seqs[out->n++] = sqlite3_column_int64(f->q[Q_DUE], 0);
    done(f, Q_DUE);
    for (size_t i = 0; i < out->n && !f->failed; i++) {
        bind_int(f, Q_TAKE, 1, out->seqs[i]);
        run(f, Q_TAKE);
        if (with_input)
            read_call(f, out->seqs[i]);
    }
    write_lease(f, out, now_us);
}

void floor_claim(struct floor *f, size_t max, bool with_input, struct floor_lease *out)
{
    run(f, Q_BEGIN);
    claim_rows(f, max, with_input, out);
    run(f, Q_COMMIT);
}

static void outcome_row(struct floor *f, int64_t seq, int64_t now_us, int64_t keep_us)
{
    bind_int(f, Q_OUTCOME, 1, seq);
    bind_int(f, Q_OUTCOME, 3, now_us);
    bind_int(f, Q_OUTCOME, 4, keep_us);
    run(f, Q_OUTCOME);
}

static void finish_rows(struct floor *f, const struct floor_lease *l)
{
    int64_t now_us = world_now(&world_real);
    bind_blob(f, Q_OUTCOME, 2, l->token, sizeof l->token);
    for (size_t i = 0; i < l->n && !f->failed; i++)
        outcome_row(f, l->seqs[i], now_us, now_us + 7 * 86400 * SEC_US);
    bind_blob(f, Q_RELEASE, 1, l->token, sizeof l->token);
    run(f, Q_RELEASE);
}

void floor_finish(struct floor *f, const struct floor_lease *l)
{
    run(f, Q_BEGIN);
    finish_rows(f, l);
    run(f, Q_COMMIT);
}

void floor_finish_claim(struct floor *f, size_t max, bool with_input, struct floor_lease *l)
{
    run(f, Q_BEGIN);
    finish_rows(f, l);
    claim_rows(f, max, with_input, l);
    run(f, Q_COMMIT);
}

void floor_accept_claim(struct floor *f, const struct bench_id *ids, size_t n,
                        struct floor_lease *out)
{
    run(f, Q_BEGIN);
    accept_rows(f, &(struct accept){ ids, n, LANE, true, world_now(&world_real) });
    claim_rows(f, n, true, out);
    run(f, Q_COMMIT);
}

/* ---- Filling and dropping -------------------------------------------------------------------- */

/* The number of the lane of this type in the queue "default"; it is made when there is none. */
static int lane_of(struct floor *f, const char *type)
{
    char sql[512], where[200];
    snprintf(where, sizeof where, "queue = 'default' AND type = '%s' AND needs = ''", type);
    snprintf(sql, sizeof sql,
             "INSERT INTO pawl_lane (lane, queue, type) "
             "SELECT (SELECT coalesce(max(lane), 0) + 1 FROM pawl_lane), 'default', '%s' "
             "WHERE NOT EXISTS (SELECT 1 FROM pawl_lane WHERE %s)",
             type, where);
    script(f, sql);
    snprintf(sql, sizeof sql, "SELECT lane FROM pawl_lane WHERE %s", where);
    return (int)floor_number(f, sql);
}

static void fill_batch(struct floor *f, const struct floor_fill *fill, struct accept *a)
{
    int64_t first = f->seq + 1;
    run(f, Q_BEGIN);
    accept_rows(f, a);
    bind_blob(f, Q_OUTCOME, 2, print, sizeof print);
    for (size_t i = 0; i < a->n && !fill->pending && !f->failed; i++)
        outcome_row(f, first + (int64_t)i, a->now_us, fill->keep_until_us);
    run(f, Q_COMMIT);
}

void floor_fill(struct floor *f, const struct floor_fill *fill)
{
    struct bench_id *ids = malloc(FILL_BATCH * sizeof *ids);
    size_t step = fill->n_out ? fill->n / fill->n_out : 0, kept = 0;
    if (!ids)
        fail(f, "filling");
    f->seq = floor_number(f, "SELECT value FROM pawl_meta WHERE name = 'seq'");
    struct accept a = { ids, 0, lane_of(f, fill->type), fill->pending, world_now(&world_real) };
    for (size_t at = 0; at < fill->n && !f->failed; at += a.n) {
        a.n = MIN(fill->n - at, FILL_BATCH);
        bench_ids_make(fill->ids, ids, a.n);
        fill_batch(f, fill, &a);
        for (; step && kept < fill->n_out && kept * step < at + a.n; kept++)
            fill->out[kept] = ids[kept * step - at];
    }
    free(ids);
}

size_t floor_drop(struct floor *f, int64_t now_us, size_t max)
{
    int64_t seqs[FLOOR_BATCH_MAX];
    size_t n = 0;
    run(f, Q_BEGIN);
    bind_int(f, Q_OLD, 1, now_us);
    bind_int(f, Q_OLD, 2, (int64_t)MIN(max, FLOOR_BATCH_MAX));
    while (row(f, Q_OLD))
        seqs[n++] = sqlite3_column_int64(f->q[Q_OLD], 0);
    done(f, Q_OLD);
    static const int steps[] = { Q_GONE, Q_OUTCOME_DROP, Q_CALL_DROP };
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT_OF(steps); k++) {
            bind_int(f, steps[k], 1, seqs[i]);
            run(f, steps[k]);
        }
    run(f, Q_COMMIT);
    return n;
}
