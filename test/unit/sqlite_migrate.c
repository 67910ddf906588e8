/*
 * sqlite_migrate.c - migration steps on a file: several processes at once, foreign steps, other
 * schemas in the same file, and every statement prepared against the result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain_store.h"
#include "check.h"
#include "store/sqlite/engine.h"

#define PROCESSES 6

static void run_sql(struct store *s, const char *sql)
{
    EQ_INT(sqlite3_exec(lite_of(s)->db, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* At the same time, on a file that does not exist yet. */
TEST(processes_that_start_together_all_succeed)
{
    struct pawl_err err;
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        TRUE(child >= 0);
        if (child == 0) {
            AUTO(store_end) struct store *s = plain_open("sqlite:together.db", NULL);
            OK(store_migrate(s, true, &err), &err);
            store_end(&s);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        TRUE(wait(&status) > 0);
        EQ_INT(status, 0);
    }
    AUTO(store_end) struct store *s = plain_open("sqlite:together.db", NULL);
    struct schema schema;
    OK(store_schema(s, &schema, &err), &err);
    EQ_INT(schema.version, schema.wanted);
    FALSE(schema.finish_due);
}

TEST(an_empty_file_is_version_0)
{
    AUTO(store_end) struct store *s = plain_open("sqlite:empty.db", NULL);
    struct pawl_err err;
    struct schema schema;
    OK(store_schema(s, &schema, &err), &err);
    EQ_INT(schema.version, 0);
    GT_INT(schema.wanted, 0);
}

TEST(a_step_that_is_not_ours_is_refused)
{
    AUTO(store_end) struct store *s = plain_open("sqlite:other.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    run_sql(s, "UPDATE pawl_migration SET checksum = x'00' WHERE number = 1");
    EQ_STATUS(store_migrate(s, true, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "step 1 (ledger)");
}

TEST(a_newer_schema_says_which_program_can)
{
    AUTO(store_end) struct store *s = plain_open("sqlite:newer.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    run_sql(s, "INSERT INTO pawl_migration SELECT 1 + max(number), 'later', x'00', 0, 1 "
               "FROM pawl_migration");
    OK(store_migrate(s, true, &err), &err); /* a step that old programs can live with */
    run_sql(s, "UPDATE pawl_meta SET value = 99 WHERE name = 'min_version'");
    EQ_STATUS(store_migrate(s, true, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "knows schema 99");
}

TEST(schemas_stand_side_by_side)
{
    AUTO(store_end) struct store *one = plain_open("sqlite:two.db", NULL);
    AUTO(store_end) struct store *two = plain_open("sqlite:two.db", "shop_1");
    struct pawl_err err;
    OK(store_migrate(one, true, &err), &err);
    OK(store_migrate(two, true, &err), &err);
    run_sql(two, "DROP TABLE pawl_call");
    run_sql(two, "SELECT count(*) FROM shop_1_call");
}

/* A connection for events has its own setting. */
static void no_function(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    (void)ctx, (void)n, (void)v;
}

static void prepare_all(struct store *s)
{
    struct lite *c = lite_of(s);
    struct arena a;
    arena_init(&a, 1 << 20);
    /* Tables of the event service, which are not part of the schema. */
    EQ_INT(sqlite3_exec(c->db, sql_sqlite[SQL_EVENTS_MAKE_STATUS], NULL, NULL, NULL), SQLITE_OK);
    EQ_INT(sqlite3_exec(c->db, sql_sqlite[SQL_EVENTS_MAKE_EVENTS], NULL, NULL, NULL), SQLITE_OK);
    /* And those of the tests' features. */
    EQ_INT(sqlite3_exec(c->db,
                        "CREATE TABLE IF NOT EXISTS counter (name, value);"
                        "CREATE TABLE IF NOT EXISTS counter_op (id, value);"
                        "CREATE TABLE IF NOT EXISTS counter_moved (seq, id, was, state, watch);"
                        "CREATE TABLE IF NOT EXISTS flow (seq PRIMARY KEY, steps, undoing, waits, "
                        "kept, pass);"
                        "CREATE TABLE IF NOT EXISTS flow_moved (seq, was, state)",
                        NULL, NULL, NULL),
           SQLITE_OK);
    EQ_INT(
        sqlite3_create_function(c->db, "patience", 1, SQLITE_UTF8, NULL, no_function, NULL, NULL),
        SQLITE_OK);
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_stmt *q = NULL;
        if (!sql_sqlite[i])
            continue; /* only in another engine */
        const char *text = lite_own_names(c->ledger.schema, &a, sql_sqlite[i]);
        if (sqlite3_prepare_v2(c->db, text, -1, &q, NULL) != SQLITE_OK)
            FAIL("%s: %s", sql_name_text[i], sqlite3_errmsg(c->db));
        sqlite3_finalize(q);
    }
    arena_release(&a);
}

TEST(every_statement_fits_the_schema)
{
    const char *const schemas[] = { NULL, "other" };
    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        AUTO(store_end) struct store *s = plain_open("sqlite:all.db", schemas[i]);
        struct pawl_err err;
        OK(store_migrate(s, true, &err), &err);
        prepare_all(s);
    }
}

TEST(what_cannot_be_opened_is_named)
{
    struct pawl_err err;
    struct store *s = NULL;
    struct store_conf conf = { .url = "sqlite:nowhere/x.db" };
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "nowhere/x.db");
    HAS_STR(err.text, "its folder does not exist");
    conf.url = "sqlite:";
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    conf.url = "sqlite:x.db";
    conf.schema = "1no";
    EQ_STATUS(store_open(&conf, &s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "1no");
}

static void cannot_open(const char *url, const char *why)
{
    struct store *s = NULL;
    struct pawl_err err = { 0 };
    EQ_STATUS(store_open(&(struct store_conf){ .url = url }, &s, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, why);
}

/* A new file and an existing one: SQLite opens the second for reading, and fails at its WAL. */
TEST(a_read_only_disk_is_named)
{
    struct store *s = NULL;
    struct pawl_err err = { 0 };
    EQ_INT(mkdir("disk", 0700), 0);
    OK(store_open(&(struct store_conf){ .url = "sqlite:disk/old.db" }, &s, &err), &err);
    OK(store_migrate(s, false, &err), &err);
    store_close(s);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("disk", "disk", NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, "disk", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) != 0)
        skip("needs a read-only mount, and may not make one: %s", strerror(errno));
    cannot_open("sqlite:disk/old.db",
                "database \"disk/old.db\": cannot be opened: its folder is on a read-only file "
                "system; mount it for writing, or put the database elsewhere");
    cannot_open("sqlite:disk/new.db",
                "database \"disk/new.db\": cannot be opened: its folder is on a read-only file "
                "system; mount it for writing, or put the database elsewhere");
}

TEST(a_folder_that_may_not_be_written_is_named)
{
    EQ_INT(mkdir("locked", 0755), 0);
    EQ_INT(chmod(".", 0755), 0);
    if (geteuid() == 0)
        EQ_INT(seteuid(65534), 0);
    else
        EQ_INT(chmod("locked", 0500), 0);
    cannot_open("sqlite:locked/new.db",
                "database \"locked/new.db\": cannot be opened: its folder may not be written by "
                "this user; change its owner or its mode");
    EQ_INT(seteuid(getuid()), 0);
    EQ_INT(chmod("locked", 0700), 0);
}

/* Another program's table has one of our names. */
TEST(a_table_that_is_not_ours_leads_to_schema)
{
    struct store *s = NULL;
    struct pawl_err err = { 0 };
    sqlite3 *db = NULL;
    EQ_INT(sqlite3_open("theirs.db", &db), SQLITE_OK);
    EQ_INT(sqlite3_exec(db, "CREATE TABLE pawl_call (x)", NULL, NULL, NULL), SQLITE_OK);
    EQ_INT(sqlite3_close(db), SQLITE_OK);
    OK(store_open(&(struct store_conf){ .url = "sqlite:theirs.db" }, &s, &err), &err);
    TRUE(store_migrate(s, false, &err) != PAWL_OK);
    EQ_STR(err.text,
           "database \"theirs.db\": a step of the schema: table pawl_call already exists; "
           "that one is not Pawl's: --schema NAME gives Pawl names of its own");
    store_close(s);
    OK(store_open(&(struct store_conf){ .url = "sqlite:theirs.db", .schema = "mine" }, &s, &err),
       &err);
    OK(store_migrate(s, false, &err), &err);
    store_close(s);
}

/* The same for the table that lists the steps, which is read before any step is applied. */
TEST(a_migration_table_that_is_not_ours_leads_to_schema)
{
    struct store *s = NULL;
    struct pawl_err err = { 0 };
    sqlite3 *db = NULL;
    EQ_INT(sqlite3_open("steps.db", &db), SQLITE_OK);
    EQ_INT(sqlite3_exec(db, "CREATE TABLE pawl_migration (x)", NULL, NULL, NULL), SQLITE_OK);
    EQ_INT(sqlite3_close(db), SQLITE_OK);
    OK(store_open(&(struct store_conf){ .url = "sqlite:steps.db" }, &s, &err), &err);
    EQ_STATUS(store_migrate(s, false, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text,
            "database \"steps.db\": table \"migration\" of schema \"pawl\" already exists");
    HAS_STR(err.text, "--schema NAME");
    store_close(s);
}

TEST(a_file_that_is_no_database_is_broken)
{
    struct pawl_err err;
    struct store *s = NULL;
    FILE *f = fopen("text.db", "w");
    TRUE(f != NULL);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database at all\n", f);
    fclose(f);
    EQ_STATUS(store_open(&(struct store_conf){ .url = "sqlite:text.db" }, &s, &err), PAWL_BROKEN,
              &err);
    HAS_STR(err.text, "text.db");
}

/* ---- Programs of several releases on one file ------------------------------------------------ */

#define KNOWN_MAX 16

/* The steps of a program that is one step ahead of ours: the step says what it needs, in two
 * halves. */
static const struct sql_migration *newer_program(void)
{
    static struct sql_migration v[KNOWN_MAX];
    int n = 0;
    for (; sql_sqlite_migrations[n].number; n++)
        v[n] = sql_sqlite_migrations[n];
    TRUE(n + 2 <= KNOWN_MAX);
    v[n] = (struct sql_migration){ n + 1, "word", "ALTER TABLE pawl_call ADD COLUMN word TEXT;\n",
                                   "UPDATE pawl_meta SET value = 14 WHERE name = 'min_version';\n"
                                   "CREATE INDEX pawl_call_word ON pawl_call (word);\n" };
    EQ_INT(n + 1, 14); /* after a new step of ours: change its number above */
    return v;
}

TEST(an_older_program_goes_on_after_expand_and_stops_after_finish)
{
    AUTO(store_end) struct store *old = plain_open("sqlite:rolling.db", NULL);
    struct pawl_err err;
    OK(store_migrate(old, true, &err), &err);
    plain_accept(old, "before", BYTES_NONE);

    led_steps_newer = newer_program();
    AUTO(store_end) struct store *new = plain_open("sqlite:rolling.db", NULL);
    OK(store_migrate(new, false, &err), &err);
    EQ_INT(plain_schema(new).version, 14);
    TRUE(plain_schema(new).finish_due);
    plain_accept(new, "new", BYTES_NONE);

    /* The old program, on its old connection and on a new one. */
    led_steps_newer = NULL;
    plain_accept(old, "between", BYTES_NONE);
    AUTO(store_end) struct store *again = plain_open("sqlite:rolling.db", NULL);
    OK(store_migrate(again, false, &err), &err);
    OK(store_fits(again, &err), &err);
    EQ_INT(plain_schema(again).version, 14);
    plain_accept(again, "again", BYTES_NONE);
    OK(store_migrate(again, true, &err), &err); /* nothing of its own is left to finish */
    EQ_INT(plain_schema(again).min_version, 13);

    led_steps_newer = newer_program();
    OK(store_migrate(new, true, &err), &err);
    FALSE(plain_schema(new).finish_due);
    EQ_INT(plain_schema(new).min_version, 14);
    OK(store_fits(new, &err), &err);

    led_steps_newer = NULL;
    EQ_STATUS(store_migrate(again, false, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "schema 14 or later");
    HAS_STR(err.text, "knows 13");
    EQ_STATUS(store_fits(again, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "version 14 or later");
    HAS_STR(err.text, "knows 13");
}

/* A program that does not know the width of a lease stores none: all its calls count as started. */
TEST(an_older_program_goes_on_writing_leases)
{
    AUTO(store_end) struct store *s = plain_open("sqlite:lease.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    run_sql(s, "INSERT INTO pawl_lease (token, node, boot, claimed_at, rev, low, high, held) "
               "VALUES (x'01', 'n', 'b', 1, 1, 1, 1, x'')");
    run_sql(s, "CREATE TABLE seen (n INTEGER CHECK (n = 0))");
    run_sql(s, "INSERT INTO seen SELECT width FROM pawl_lease");
}

TEST(a_newer_program_wants_up_first)
{
    AUTO(store_end) struct store *s = plain_open("sqlite:up.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, true, &err), &err);
    led_steps_newer = newer_program();
    EQ_STATUS(store_fits(s, &err), PAWL_STATE, &err);
    HAS_STR(err.text, "has version 13 and this program wants 14");
    led_steps_newer = NULL;
}

/* Old and new programs start at the same time, on a file of the previous release. (On an empty one
 * the old program may come too late: a new schema has its second halves done.) */
TEST(programs_of_two_releases_start_together)
{
    struct pawl_err err;
    AUTO(store_end) struct store *first = plain_open("sqlite:mixed.db", NULL);
    OK(store_migrate(first, false, &err), &err);
    store_end(&first);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        TRUE(child >= 0);
        if (child == 0) {
            if (i % 2)
                led_steps_newer = newer_program();
            AUTO(store_end) struct store *s = plain_open("sqlite:mixed.db", NULL);
            OK(store_migrate(s, false, &err), &err);
            plain_accept(s, i % 2 ? (i == 1 ? "a" : "b") : "c", BYTES_NONE);
            store_end(&s);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        TRUE(wait(&status) > 0);
        EQ_INT(status, 0);
    }
    AUTO(store_end) struct store *s = plain_open("sqlite:mixed.db", NULL);
    EQ_INT(plain_schema(s).version, 14);
}

TEST(printed_halves_add_up_to_a_migration)
{
    struct pawl_err err;
    struct steps steps;
    struct arena a;
    arena_init(&a, 1 << 20);
    led_steps_newer = newer_program();
    AUTO(store_end) struct store *s = plain_open("sqlite:hand.db", "shop");
    struct store_conf conf = { .url = "sqlite:hand.db", .schema = "shop" };
    OK(store_steps(&conf, &a, &steps, &err), &err);
    EQ_INT(steps.n, 14);
    for (size_t i = 0; i < steps.n; i++)
        run_sql(s, steps.v[i].expand);
    TRUE(plain_schema(s).finish_due);
    OK(store_migrate(s, false, &err), &err); /* each step is identified by its checksum */
    for (size_t i = 0; i < steps.n; i++)
        run_sql(s, steps.v[i].finish);
    FALSE(plain_schema(s).finish_due);
    EQ_INT(plain_schema(s).min_version, 14);
    led_steps_newer = NULL;
    arena_release(&a);
}

/* A schema that is made new: no older program uses it. */
TEST(a_new_schema_has_its_second_halves_done)
{
    AUTO(store_end) struct store *s = plain_open("sqlite:fresh.db", NULL);
    struct pawl_err err;
    OK(store_migrate(s, false, &err), &err);
    FALSE(plain_schema(s).finish_due);
    EQ_INT(plain_schema(s).min_version, 13);
}

/* A watched call waits for the last node of an older release to go; the handle asks again until
 * then. */
TEST(watched_calls_wait_for_migrate_finish)
{
    static struct sql_migration older[KNOWN_MAX];
    struct pawl_err err;
    struct arena a;
    struct call_spec watched;
    memcpy(older, sql_sqlite_migrations, (WATCH_STEP - 1) * sizeof *older);
    led_steps_newer = older;
    AUTO(store_end) struct store *s = plain_open("sqlite:watch.db", NULL);
    OK(store_migrate(s, false, &err), &err);
    led_steps_newer = NULL;
    OK(store_migrate(s, false, &err), &err);
    arena_init(&a, 1 << 20);
    call_spec_init(&watched);
    watched.type = BYTES("t");
    OK(call_spec_settle(&a, &world_real, &watched, &err), &err);
    watched.watch = WATCH_CRON;
    struct op op = { .kind = OP_ACCEPT, .a = &a, .accept = { .v = &watched, .n = 1 } }, *v = &op;
    OK(store_commit(s, &v, 1), &op.err);
    EQ_STATUS(op.status, PAWL_STATE, &op.err);
    plain_accept(s, "before", BYTES_NONE);
    OK(store_migrate(s, true, &err), &err);
    OK(store_commit(s, &v, 1), &op.err);
    OK(op.status, &op.err);
    OK(op.accept.out[0].status, NULL);
    arena_release(&a);
}

TEST(a_file_has_no_roles)
{
    struct pawl_err err;
    struct arena a;
    const char *sql = NULL;
    arena_init(&a, 1 << 20);
    struct roles roles = { .app = "pawl_app" };
    struct store_conf conf = { .url = "trace+sqlite:x.db" };
    EQ_STATUS(store_grants(&conf, &roles, &a, &sql, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "engine \"sqlite\" has no roles");
    conf.url = "mem:x";
    EQ_STATUS(store_grants(&conf, &roles, &a, &sql, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "engine \"mem\" has no roles");
    roles.monitor = "a'; DROP TABLE x; --";
    EQ_STATUS(store_grants(&conf, &roles, &a, &sql, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "role \"a'; DROP");
    AUTO(store_end) struct store *s = plain_open("sqlite:x.db", NULL);
    EQ_STATUS(store_grant(s, "GRANT", &err), PAWL_INVALID, &err);
    arena_release(&a);
}
