/*
 * cli_db.c - the commands of `pawl` that open a database: migrate, doctor, gc, archive,
 * requeue-stuck, backup; and their progress on a terminal.
 *
 * The content of the databases is made with the library or with SQLite itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_fixture.h"
#include "store/store.h"

#define SECOND INT64_C(1000000)

/* The level of a check in doctor's answer; NULL when it is missing. */
static const char *level_of(const char *check)
{
    for (struct json *c = json_member(cli_answer(), "checks")->first; c; c = c->next)
        if (strcmp(cli_text(c, "check"), check) == 0)
            return cli_text(c, "level");
    return NULL;
}

/* How often the answer shows this check. */
static int times_of(const char *check)
{
    int n = 0;
    for (struct json *c = json_member(cli_answer(), "checks")->first; c; c = c->next)
        n += strcmp(cli_text(c, "check"), check) == 0;
    return n;
}

/* ---- migrate --------------------------------------------------------------------------------- */

TEST(migrate_makes_the_schema_once)
{
    EQ_INT(cli_run("migrate up --db sqlite:a.db --json"), 0);
    EQ_STR(json_member(cli_answer(), "changed")->raw.data[0] == 't' ? "yes" : "no", "yes");
    int64_t wanted = cli_number(cli_answer(), "wanted");
    EQ_INT(cli_number(cli_answer(), "version"), wanted);
    EQ_INT(json_member(cli_answer(), "steps")->count, wanted);
    EQ_INT(cli_run("migrate up --db sqlite:a.db --json"), 0);
    EQ_INT(json_member(cli_answer(), "changed")->kind, JSON_FALSE);
    EQ_INT(cli_run("migrate finish --db sqlite:a.db"), 0);
    EQ_INT(cli_run_with("PAWL_DB=sqlite:a.db", "migrate status"), 0);
    HAS_STR(cli_out, "up to date");
}

TEST(migrate_tells_an_empty_database)
{
    cli_sql("empty.db", "CREATE TABLE mine (x)");
    EQ_INT(cli_run("migrate --db sqlite:empty.db"), 0);
    HAS_STR(cli_out, "empty: pawl migrate up creates the tables");
    EQ_INT(cli_run("migrate --db sqlite:empty.db --json"), 0);
    EQ_INT(cli_number(cli_answer(), "version"), 0);
    EQ_INT(cli_run("gc --db sqlite:empty.db"), 13);
    EQ_INT(cli_run("doctor --db sqlite:empty.db --json"), 0);
    EQ_STR(level_of("schema"), "warn");
}

TEST(a_newer_database_is_used_or_refused)
{
    EQ_INT(cli_run("migrate up --db sqlite:n.db --json"), 0);
    char add[400];
    snprintf(add, sizeof(add), "INSERT INTO pawl_migration VALUES (%d, 'later', X'00', 0, 1)",
             (int)cli_number(cli_answer(), "wanted") + 1);
    cli_sql("n.db", add);
    EQ_INT(cli_run("migrate --db sqlite:n.db"), 0);
    HAS_STR(cli_out, "newer than this program, but compatible with it");
    EQ_INT(cli_run("doctor --db sqlite:n.db"), 0);
    cli_sql("n.db", "UPDATE pawl_meta SET value = 99 WHERE name = 'min_version'");
    EQ_INT(cli_run("migrate --db sqlite:n.db"), 0);
    HAS_STR(cli_out, "too new for this program");
    EQ_INT(cli_run("migrate up --db sqlite:n.db"), 13);
    HAS_STR(cli_err_out, "n.db");
    EQ_INT(cli_run("doctor --db sqlite:n.db --json"), 9);
    EQ_STR(level_of("schema"), "bad");
}

TEST(the_printed_script_makes_the_same_schema)
{
    EQ_INT(cli_run("migrate up --print --schema shop --db sqlite:none.db"), 0);
    NE_INT(access("none.db", F_OK), 0);
    static char script[CLI_TEXT_MAX];
    snprintf(script, sizeof(script), "%s", cli_out);
    FALSE(strstr(script, "pawl_"));
    cli_sql("hand.db", script);
    EQ_INT(cli_run("migrate up --schema shop --db sqlite:hand.db --json"), 0);
    EQ_INT(json_member(cli_answer(), "changed")->kind, JSON_FALSE);
    EQ_STR(cli_text(cli_answer(), "state"),
           "up to date; run pawl migrate finish when no older program runs");
    EQ_INT(cli_run("migrate finish --print --schema shop --db sqlite:none.db"), 0);
    snprintf(script, sizeof(script), "%s", cli_out);
    cli_sql("hand.db", script);
    EQ_INT(cli_run("migrate up --schema shop --db sqlite:hand.db --json"), 0);
    EQ_INT(json_member(cli_answer(), "changed")->kind, JSON_FALSE);
    EQ_STR(cli_text(cli_answer(), "state"), "up to date");
    EQ_INT(cli_run("migrate --print --json"), 0);
    EQ_INT(cli_number(json_member(cli_answer(), "steps")->first, "number"), 1);
    EQ_INT(cli_run("migrate finish --print"), 0);
    EQ_INT(cli_run("migrate --print --db trace+sqlite:none.db"), 0);
    HAS_STR(cli_out, "CREATE TABLE pawl_call");
    EQ_INT(cli_run("migrate --print --db mem:x"), 0);
    EQ_STR(cli_out, "");
}

/* ---- doctor ---------------------------------------------------------------------------------- */

TEST(doctor_says_where_each_setting_came_from)
{
    EQ_INT(cli_run("migrate up --db sqlite:d.db"), 0);
    EQ_INT(
        cli_run_with("PAWL_RETENTION=2d U=sqlite:d.db", "doctor --db env:U --pool-size 3 --json"),
        0);
    EQ_STR(cli_text(cli_answer(), "verdict"), "ok");
    int seen = 0;
    for (struct json *s = json_member(cli_answer(), "settings")->first; s; s = s->next) {
        const char *name = cli_text(s, "setting"), *from = cli_text(s, "from"),
                   *value = cli_text(s, "value");
        seen++;
        if (strcmp(name, "db") == 0)
            TRUE(!strcmp(value, "sqlite:d.db") && !strcmp(from, "command line, env:U"));
        else if (strcmp(name, "pool_size") == 0)
            TRUE(!strcmp(value, "3") && !strcmp(from, "command line"));
        else if (strcmp(name, "retention") == 0)
            TRUE(!strcmp(value, "2d") && !strcmp(from, "environment"));
        else
            EQ_STR(from, "default");
    }
    GE_INT(seen, 10);
    EQ_INT(cli_run_with("PAWL_RETENTON=2d", "doctor --db sqlite:d.db"), 0);
    HAS_STR(cli_out, "PAWL_RETENTON is not a setting; did you mean PAWL_RETENTION?");
}

TEST(doctor_looks_at_the_engine)
{
    EQ_INT(cli_run("migrate up --db sqlite:d.db"), 0);
    EQ_INT(cli_run("doctor --db sqlite:d.db --json"), 0);
    const char *const checks[] = { "engine",    "sqlite",    "journal_mode", "synchronous",
                                   "page_size", "isolation", "file",         "log",
                                   "disk",      "integrity", "schema",       "clock",
                                   "queues",    "nodes" };
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        EQ_STR(level_of(checks[i]), "ok");
        EQ_INT(times_of(checks[i]), 1);
    }
    EQ_INT(cli_run("doctor --db trace+sqlite:d.db --json"), 0);
    EQ_STR(level_of("integrity"), "ok");
    EQ_INT(cli_run("doctor --db fault+sqlite:d.db --json"), 0);
    EQ_STR(level_of("integrity"), "ok");
    EQ_INT(cli_run("migrate --print --db fault+sqlite:d.db"), 0);
    HAS_STR(cli_out, "CREATE TABLE pawl_call");
    EQ_INT(cli_run("doctor --db mem:x --json"), 0);
    EQ_STR(level_of("engine"), "warn");
    EQ_STR(cli_text(cli_answer(), "verdict"), "warn");
}

TEST(doctor_finds_what_is_bad)
{
    cli_write_file("bad.db", "this is not a database, however long one looks at it; not at all.\n");
    EQ_INT(cli_run("doctor --db sqlite:bad.db --json"), 9);
    EQ_STR(level_of("database"), "bad");
    EQ_INT(cli_run("migrate up --db sqlite:bad.db"), 9);
    EQ_INT(cli_run("doctor --db sqlite:no/such/folder/x.db"), 9);
}

/* A page of the file is overwritten: the header is still valid, but SQLite's own check fails. */
TEST(doctor_finds_a_damaged_page)
{
    EQ_INT(cli_run("migrate up --db sqlite:d.db"), 0);
    cli_sql("d.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    FILE *f = fopen("d.db", "r+");
    TRUE(f && fseek(f, 2 * 4096, SEEK_SET) == 0);
    for (int i = 0; i < 4096; i++)
        fputc(0x5a, f);
    fclose(f);
    EQ_INT(cli_run("doctor --db sqlite:d.db --json"), 9);
    EQ_STR(level_of("integrity"), "bad");
}

static int nothing(struct pawl_call *c)
{
    (void)c;
    return 0;
}

static struct pawl *open_work(const char *db)
{
    struct pawl *p = NULL;
    struct pawl_err err;
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = db, .node = "worker", .gc_interval_us = -1 };
    OK(pawl_open(&o, &p, &err), &err);
    OK(pawl_on(pawl_program(p), "no", "op", nothing), NULL);
    return p;
}

TEST(doctor_names_paused_queues_and_silent_nodes)
{
    struct pawl_err err;
    int status;
    pid_t child = fork();
    if (child == 0) { /* a process that ends without leaving */
        struct pawl *p = open_work("sqlite:d.db");
        OK(pawl_pause(p, "mail", true, &err), &err);
        OK(pawl_start(p, NULL, &err), &err);
        _exit(0);
    }
    EQ_INT(waitpid(child, &status, 0), child);
    EQ_INT(cli_run("doctor --db sqlite:d.db --heartbeat-interval 1ms --heartbeat-grace 2ms"), 0);
    HAS_STR(cli_out, "\"mail\" is paused");
    HAS_STR(cli_out, "\"worker\" has sent no heartbeat");
    HAS_STR(cli_out, "1 known, 0 alive, 1 silent, 0 dead");
}

TEST(doctor_warns_of_dead_nodes)
{
    struct pawl *p = open_work("sqlite:d.db");
    struct pawl_err err;
    sqlite3 *db;
    OK(pawl_start(p, NULL, &err), &err);
    EQ_INT(sqlite3_open("d.db", &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000); /* the node itself writes too */
    EQ_INT(sqlite3_exec(db,
                        "INSERT INTO pawl_node (node, boot, dead, slots, busy, beats, started_at, "
                        "beat_at) SELECT 'fallen', 'b', 1, 0, 0, 1, beat_at, beat_at - 60000000 "
                        "FROM pawl_node; "
                        "INSERT INTO pawl_node (node, boot, dead, slots, busy, beats, started_at, "
                        "beat_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                        "LIMIT 25) SELECT 'ancient' || i, 'b', 1, 0, 0, 1, 1, 1 FROM n",
                        NULL, NULL, NULL),
           SQLITE_OK);
    sqlite3_close(db);
    EQ_INT(cli_run("doctor --db sqlite:d.db"), 0);
    HAS_STR(cli_out, "\"fallen\" is dead: its last heartbeat was 1m");
    HAS_STR(cli_out, "27 known, 1 alive, 0 silent, 26 dead");
    TRUE(!strstr(cli_out, "ancient")); /* longer ago than the retention */
    EQ_INT(cli_run("doctor --db sqlite:d.db --json"), 0);
    EQ_STR(level_of("node"), "warn");
    pawl_close(p);
}

/* ---- gc -------------------------------------------------------------------------------------- */

/* Make n ended calls whose retention has passed, and one pending call. */
static void fill(const char *db, size_t n)
{
    struct pawl *p = open_work(db);
    struct pawl_err err;
    struct pawl_shown *shown = NULL;
    struct pawl_spec *v = calloc(n, sizeof(*v));
    struct pawl_receipt *receipts = calloc(n, sizeof(*receipts));
    for (size_t i = 0; i < n; i++)
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = "no", .method = "op", .keep_us = 1 };
    OK(pawl_submit(p, v, n, 0, receipts, &err), &err);
    OK(pawl_start(p, NULL, &err), &err);
    for (size_t i = 0; i < n; i++) {
        OK(pawl_get(p, receipts[i].id, 20 * SECOND, &shown, &err), &err);
        EQ_INT(pawl_shown_view(shown)->state, PAWL_COMPLETED);
        pawl_shown_free(shown);
    }
    struct pawl_spec pending = { PAWL_SPEC_INIT, .id = "waits", .type = "nobody", .keep_us = 1 };
    OK(pawl_submit(p, &pending, 1, 0, receipts, &err), &err);
    free(v);
    free(receipts);
    pawl_close(p);
}

TEST(gc_removes_ended_calls_and_nothing_else)
{
    fill("sqlite:g.db", 30);
    EQ_INT(cli_run("gc --db sqlite:g.db --max 10 --json"), 0);
    EQ_INT(cli_number(cli_answer(), "removed"), 10);
    EQ_INT(cli_run("gc --db sqlite:g.db"), 0);
    HAS_STR(cli_out, "20 calls removed, 0 ids forgotten");
    EQ_STR(cli_err_out, "");
    EQ_INT(cli_run("gc --db sqlite:g.db --json"), 0);
    EQ_INT(cli_number(cli_answer(), "removed"), 0);
    struct pawl *p = open_work("sqlite:g.db");
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    OK(pawl_get(p, "waits", 0, &shown, &err), &err);
    EQ_INT(pawl_shown_view(shown)->state, PAWL_PENDING);
    pawl_shown_free(shown);
    pawl_close(p);
}

/* ---- archive and requeue-stuck --------------------------------------------------------------- */

static int64_t count_in(const char *path, const char *statement)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    EQ_INT(sqlite3_open(path, &db), SQLITE_OK);
    EQ_INT(sqlite3_prepare_v2(db, statement, -1, &q, NULL), SQLITE_OK);
    EQ_INT(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

TEST(archive_moves_old_ended_calls_and_nothing_else)
{
    fill("sqlite:a.db", 450); /* several steps */
    EQ_INT(cli_run("archive --db sqlite:a.db --json"), 0);
    EQ_INT(cli_number(cli_answer(), "archived"), 0); /* they are not that old */
    EQ_INT(cli_run("archive --db sqlite:a.db --older-than 0s --json"), 0);
    EQ_INT(cli_number(cli_answer(), "archived"), 450);
    EQ_INT(count_in("a.db", "SELECT count(*) FROM pawl_archive WHERE status = 'completed'"), 450);
    EQ_INT(count_in("a.db", "SELECT count(*) FROM pawl_call"), 1);
    EQ_INT(count_in("a.db", "SELECT count(*) FROM pawl_gone"), 450);
    EQ_INT(cli_run("archive --db sqlite:a.db --older-than 0s"), 0);
    HAS_STR(cli_out, "0 calls that ended before 2");
    EQ_STR(cli_err_out, "");
    EQ_INT(cli_run("archive --db sqlite:a.db --older-than soon"), 2);
    HAS_STR(cli_err_out, "option --older-than: \"soon\" is not a duration");
    EQ_INT(cli_run("archive --db sqlite:none.db"), 3);
    NE_INT(access("none.db", F_OK), 0);
}

TEST(requeue_stuck_ends_what_lasts_too_long)
{
    EQ_INT(cli_run("migrate up --db sqlite:r.db"), 0);
    struct store *s = NULL;
    struct pawl_err err;
    struct arena a;
    arena_init(&a, 1 << 20);
    OK(store_open(&(struct store_conf){ .url = "sqlite:r.db" }, &s, &err), &err);
    struct call_spec spec;
    call_spec_init(&spec);
    spec.id = BYTES("stuck");
    spec.type = BYTES("t");
    OK(call_spec_settle(&a, &world_real, &spec, &err), &err);
    struct op accept = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &spec, .n = 1 } };
    struct op claim = { .kind = OP_CLAIM,
                        .a = &a,
                        .claim = { .token = { { 1 } },
                                   .node = BYTES("n"),
                                   .boot = BYTES("b"),
                                   .max = 1,
                                   .lease_us = 3600 * SECOND } };
    OK(store_commit(s, (struct op *[]){ &accept, &claim }, 2), &err);
    EQ_INT(claim.claim.n, 1);
    EQ_INT(cli_run("requeue-stuck --db sqlite:r.db --json"), 0);
    EQ_INT(cli_number(cli_answer(), "leases"), 0); /* ten minutes have not passed */
    EQ_INT(cli_run("requeue-stuck --db sqlite:r.db --older-than 0s --json"), 0);
    EQ_INT(cli_number(cli_answer(), "leases"), 1);
    EQ_INT(cli_number(cli_answer(), "calls"), 1);
    EQ_INT(cli_number(cli_answer(), "ended"), 0);
    struct finish_item item = { .id = BYTES("stuck"), .how = END_RESULT };
    struct op finish = { .kind = OP_FINISH,
                         .a = &a,
                         .finish = { .token = { { 1 } }, .v = &item, .n = 1 } };
    OK(store_commit(s, &(struct op *){ &finish }, 1), &err);
    EQ_STATUS(finish.status, PAWL_LOST_LEASE, &finish.err);
    claim.claim.token.b[0] = 2;
    OK(store_commit(s, &(struct op *){ &claim }, 1), &err);
    store_close(s);
    EQ_INT(cli_run("requeue-stuck --db sqlite:r.db --older-than 0s --reclaim-action fail"), 0);
    HAS_STR(cli_out, "1 lease ended in ");
    HAS_STR(cli_out, ": 0 calls pending again, 1 ended");
    arena_release(&a);
}

/* ---- backup ---------------------------------------------------------------------------------- */

TEST(backup_makes_a_file_that_works)
{
    fill("sqlite:b.db", 20);
    EQ_INT(cli_run("backup copy.db --db sqlite:b.db --json"), 0);
    EQ_STR(cli_text(cli_answer(), "file"), "copy.db");
    GT_INT(cli_number(cli_answer(), "bytes"), 4096);
    NE_INT(access("copy.db.partial", F_OK), 0);
    EQ_INT(count_in("copy.db", "SELECT count(*) FROM pawl_call"), 21);
    EQ_INT(cli_run("doctor --db sqlite:copy.db"), 0);
    EQ_INT(cli_run("backup copy.db --db sqlite:b.db"), 2);
    HAS_STR(cli_err_out, "\"copy.db\" exists already");
    EQ_INT(cli_run("backup --db sqlite:b.db"), 2);
    EQ_INT(cli_run("backup no/such/folder/x --db sqlite:b.db"), 2);
    HAS_STR(cli_err_out, "No such file");
    EQ_INT(cli_run("backup x.db --db sqlite:none.db"), 3);
    EQ_INT(cli_run("backup x.db --db mem:x"), 2);
    NE_INT(access("x.db", F_OK), 0);
    cli_write_file("x.db.partial", "not ours");
    EQ_INT(cli_run("backup x.db --db sqlite:b.db"), 2);
    HAS_STR(cli_err_out, "\"x.db.partial\" exists");
}

TEST(backup_asks_the_servers_own_program)
{
    cli_write_file("pg_dump", "#!/bin/sh\necho \"$PGPASSWORD $*\"\n");
    EQ_INT(system("chmod +x pg_dump"), 0);
    EQ_INT(cli_run_with("PATH=.:$PATH",
                        "backup x.dump --db postgres://ann:hush@host/db --schema shop"),
           0);
    HAS_STR(cli_out, "x.dump: ");
    FALSE(strstr(cli_out, "hush"));
    EQ_INT(system("grep -q '^hush .*--schema=\"shop\" --dbname=postgres://ann@host/db$' x.dump"),
           0);
    EQ_INT(cli_run_with("PATH=/nowhere", "backup y.dump --db postgres://ann:hush@host/db"), 3);
    EQ_STR(cli_err_out,
           "pawl backup: pg_dump is not in PATH: install PostgreSQL's client programs\n");
}

/* The backup file was opened as fd 0, and pg_dump then had no stdin. */
TEST(a_closed_stream_is_not_taken_by_a_file)
{
    cli_write_file("pg_dump", "#!/bin/sh\necho dumped\n");
    EQ_INT(system("chmod +x pg_dump"), 0);
    EQ_INT(cli_run_with("PATH=.:$PATH", "backup x.dump --db postgres://ann@host/db <&-"), 0);
    EQ_INT(system("test \"$(cat x.dump)\" = dumped"), 0);
    int status = system(CLI_PROGRAM " version >&- 2>err.txt"); /* a failed write is an error */
    EQ_INT(WEXITSTATUS(status), 6);
    status = system(CLI_PROGRAM " migrate up --db sqlite:s.db >/dev/null <&- 2>&-");
    EQ_INT(WEXITSTATUS(status), 0);
    EQ_INT(cli_run("doctor --db sqlite:s.db"), 0);
}

/* ---- Schemas, releases and roles ------------------------------------------------------------- */

TEST(schemas_in_one_file_do_not_see_each_other)
{
    EQ_INT(cli_run("migrate up --db sqlite:s.db"), 0);
    EQ_INT(cli_run("gc --db sqlite:s.db --schema shop"), 13); /* it does not exist yet */
    HAS_STR(cli_err_out, "has version 0");
    struct pawl_err err;
    const char *const schemas[] = { "pawl", "shop", "pawl2" };
    struct pawl *p[3] = { NULL };
    for (int i = 0; i < 3; i++) {
        struct pawl_options o = { PAWL_OPTIONS_INIT, .db = "sqlite:s.db", .schema = schemas[i],
                                  .node = "n", .gc_interval_us = -1 };
        OK(pawl_open(&o, &p[i], &err), &err);
    }
    struct pawl_spec spec = { PAWL_SPEC_INIT, .id = "same", .type = "no", .method = "op" };
    struct pawl_shown *shown = NULL;
    for (int i = 0; i < 3; i++) {
        struct pawl_receipt receipt;
        EQ_STATUS(pawl_get(p[i], "same", 0, &shown, &err), PAWL_NOT_FOUND, &err);
        OK(pawl_submit(p[i], &spec, 1, 0, &receipt, &err), &err);
        FALSE(receipt.duplicate);
    }
    OK(pawl_cancel(p[1], "same", NULL, &err), &err);
    for (int i = 0; i < 3; i++) {
        OK(pawl_get(p[i], "same", 0, &shown, &err), &err);
        EQ_INT(pawl_shown_view(shown)->state, i == 1 ? PAWL_CANCELLED : PAWL_PENDING);
        pawl_shown_free(shown);
        pawl_close(p[i]);
    }
    EQ_INT(cli_run("archive --db sqlite:s.db --older-than 0s --json"), 0);
    EQ_INT(cli_number(cli_answer(), "archived"), 0);
    EQ_INT(cli_run("archive --db sqlite:s.db --schema shop --older-than 0s --json"), 0);
    EQ_INT(cli_number(cli_answer(), "archived"), 1);
    EQ_INT(count_in("s.db", "SELECT count(*) FROM shop_archive"), 1);
    EQ_INT(count_in("s.db", "SELECT count(*) FROM pawl_archive"), 0);
    EQ_INT(cli_run("doctor --db sqlite:s.db --schema pawl2"), 0);
}

TEST(a_program_below_min_version_says_both)
{
    char knows[40];
    EQ_INT(cli_run("migrate up --db sqlite:m.db --json"), 0);
    snprintf(knows, sizeof(knows), "knows %d", (int)cli_number(cli_answer(), "wanted"));
    cli_sql("m.db", "UPDATE pawl_meta SET value = 99 WHERE name = 'min_version'");
    const char *const commands[] = { "gc", "archive", "requeue-stuck", "migrate up",
                                     "migrate finish" };
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        char line[128];
        snprintf(line, sizeof(line), "%s --db sqlite:m.db", commands[i]);
        EQ_INT(cli_run(line), 13);
        HAS_STR(cli_err_out, "99 or later");
        HAS_STR(cli_err_out, knows);
    }
}

/* The second half of a step is left to run, and a node of the previous release is alive. */
TEST(finish_waits_for_older_nodes)
{
    EQ_INT(cli_run("migrate up --db sqlite:f.db"), 0);
    cli_sql("f.db", "UPDATE pawl_migration SET finished = 0 WHERE number = 2");
    cli_sql("f.db", "INSERT INTO pawl_node (node, boot, host, version, dead, slots, busy, beats, "
                    "started_at, beat_at) VALUES ('old-one', 'b', 'h', '0.0.9', 0, 1, 0, 1, 0, "
                    "CAST(strftime('%s', 'now') AS INTEGER) * 1000000)");
    EQ_INT(cli_run("migrate finish --db sqlite:f.db"), 13);
    HAS_STR(cli_err_out, "node \"old-one\" runs the older pawl 0.0.9 (this is " PAWL_VERSION ")");
    EQ_INT(cli_run("migrate --db sqlite:f.db"), 0);
    HAS_STR(cli_out, "run pawl migrate finish when no older program runs");
    cli_sql("f.db", "UPDATE pawl_node SET version = '" PAWL_VERSION "'");
    EQ_INT(cli_run("migrate finish --db sqlite:f.db --json"), 0);
    EQ_INT(json_member(cli_answer(), "changed")->kind, JSON_TRUE);
    cli_sql("f.db", "UPDATE pawl_migration SET finished = 0 WHERE number = 2");
    cli_sql("f.db", "UPDATE pawl_node SET version = '0.0.9'");
    EQ_INT(cli_run("migrate finish --db sqlite:f.db --force"), 0);
    cli_sql("f.db", "UPDATE pawl_migration SET finished = 0 WHERE number = 2");
    cli_sql("f.db", "UPDATE pawl_node SET beat_at = 1"); /* no heartbeat for long */
    EQ_INT(cli_run("migrate finish --db sqlite:f.db"), 0);
}

TEST(grants_are_for_servers)
{
    EQ_INT(cli_run("migrate grants --db sqlite:x.db"), 2);
    EQ_STR(cli_err_out, "pawl migrate: engine \"sqlite\" has no roles\n");
    EQ_INT(cli_run("migrate grants --apply --db mem:x"), 2);
    EQ_INT(cli_run("migrate grants --app 'a b' --db sqlite:x.db"), 2);
    HAS_STR(cli_err_out, "role \"a b\"");
    EQ_INT(cli_run("migrate up --apply --db sqlite:x.db"), 2);
    NE_INT(access("x.db", F_OK), 0);
}

/* ---- On a terminal --------------------------------------------------------------------------- */

TEST(colour_is_for_terminals_without_no_color)
{
    EQ_INT(cli_run("migrate up --db sqlite:c.db"), 0);
    FALSE(strchr(cli_out, '\033'));
    EQ_INT(cli_on_terminal("unset NO_COLOR; " CLI_PROGRAM " doctor --db sqlite:c.db"), 0);
    HAS_STR(cli_out, "\033[32mok\033[0m");
    EQ_INT(cli_on_terminal("NO_COLOR=1 " CLI_PROGRAM " doctor --db sqlite:c.db"), 0);
    FALSE(strchr(cli_out, '\033'));
    EQ_INT(cli_on_terminal("unset NO_COLOR; " CLI_PROGRAM " doctor --db sqlite:c.db --json"), 0);
    FALSE(strchr(cli_out, '\033'));
}

TEST(gc_draws_its_progress_on_a_terminal)
{
    fill("sqlite:g.db", 4100);
    EQ_INT(cli_on_terminal(CLI_PROGRAM " gc --db sqlite:g.db"), 0);
    HAS_STR(cli_out, "gc: 2000 calls removed");
    HAS_STR(cli_out, "4100 calls removed, 0 ids forgotten");
}

TEST(backup_and_archive_draw_their_progress_on_a_terminal)
{
    fill("sqlite:g.db", 300);
    EQ_INT(cli_on_terminal(CLI_PROGRAM " backup copy.db --db sqlite:g.db"), 0);
    HAS_STR(cli_out, "backup: ");
    HAS_STR(cli_out, " pages");
    HAS_STR(cli_out, "copy.db: ");
    EQ_INT(cli_on_terminal(CLI_PROGRAM " archive --older-than 0s --db sqlite:g.db"), 0);
    HAS_STR(cli_out, "archive: 200 calls");
    HAS_STR(cli_out, "300 calls that ended before ");
}
