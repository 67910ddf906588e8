/*
 * cli.c - the program `pawl` as people and scripts meet it: exit codes, sentences, JSON, colour.
 *
 * Each case runs build/pawl in its own folder through the shell; what the database holds is made
 * with the library or with SQLite itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <pty.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "check.h"
#include "store/store.h"

#define PAWL PAWL_BUILD_DIR "/pawl"
#define TEXT_MAX (256 << 10)
#define SECOND INT64_C(1000000)

static char out[TEXT_MAX], err_out[TEXT_MAX];

static void slurp(const char *path, char *to)
{
    FILE *f = fopen(path, "r");
    TRUE(f != NULL);
    to[fread(to, 1, TEXT_MAX - 1, f)] = 0;
    fclose(f);
}

/* Runs `pawl ARGS` with `before` (assignments) in front; fills out and err_out, returns the exit
 * code. */
static int run_with(const char *before, const char *args)
{
    char line[4096];
    snprintf(line, sizeof(line), "%s " PAWL " %s >out.txt 2>err.txt", before, args);
    int status = system(line);
    TRUE(WIFEXITED(status));
    slurp("out.txt", out);
    slurp("err.txt", err_out);
    return WEXITSTATUS(status);
}

static int run(const char *args)
{
    return run_with("", args);
}

static struct arena parsed;

/* What stdout holds as one JSON value. */
static struct json *answer(void)
{
    struct json *v = NULL;
    struct pawl_err err;
    arena_release(&parsed);
    arena_init(&parsed, 16 << 20);
    size_t len = strlen(out);
    TRUE(len > 1 && out[len - 1] == '\n');
    OK(json_parse(&parsed, (struct bytes){ out, len - 1 }, &v, &err), &err);
    return v;
}

static int64_t number(const struct json *v, const char *name)
{
    int64_t n = -1;
    TRUE(json_int(json_member(v, name), &n));
    return n;
}

static const char *text(const struct json *v, const char *name)
{
    return json_string(&parsed, json_member(v, name)).data;
}

static void sql(const char *path, const char *statement)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    EQ_INT(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, statement, NULL, NULL, &why);
    EQ_STR(why, NULL);
    sqlite3_close(db);
}

static void write_file(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    TRUE(f && fputs(content, f) >= 0 && fclose(f) == 0);
}

/* The level of a check in doctor's answer; NULL when it is not there. */
static const char *level_of(const char *check)
{
    for (struct json *c = json_member(answer(), "checks")->first; c; c = c->next)
        if (strcmp(text(c, "check"), check) == 0)
            return text(c, "level");
    return NULL;
}

/* ---- Asking for help ------------------------------------------------------------------------- */

TEST(every_command_has_help_with_an_example)
{
    EQ_INT(run("help --json"), 0);
    const char *names[64];
    int n = 0;
    for (struct json *c = json_member(answer(), "commands")->first; c && n < 64; c = c->next)
        names[n++] = strdup(text(c, "name"));
    GE_INT(n, 23);
    for (int i = 0; i < n; i++) {
        char args[64], example[64];
        snprintf(args, sizeof(args), "%s --help", names[i]);
        snprintf(example, sizeof(example), "pawl %s", names[i]);
        EQ_INT(run(args), 0);
        HAS_STR(out, "usage: pawl ");
        HAS_STR(out, "--json");
        const char *examples = strstr(out, "\nexample\n  ");
        TRUE(examples != NULL);
        HAS_STR(examples, example);
        EQ_STR(err_out, "");
        snprintf(args, sizeof(args), "help %s --json", names[i]);
        EQ_INT(run(args), 0);
        EQ_STR(text(answer(), "name"), names[i]);
        free((char *)names[i]);
    }
}

TEST(help_lists_commands_and_settings)
{
    EQ_INT(run("help"), 0);
    HAS_STR(out, "  migrate ");
    EQ_INT(run("--help"), 0);
    HAS_STR(out, "  migrate ");
    EQ_INT(run("help settings"), 0);
    HAS_STR(out, "PAWL_POOL_SIZE");
    EQ_INT(run("help settings --json"), 0);
    EQ_STR(text(answer()->first, "setting"), "db");
    EQ_INT(run("help nobody"), 2);
    HAS_STR(err_out, "unknown command \"nobody\"");
    EQ_INT(run(""), 2);
    HAS_STR(err_out, "usage: pawl [options] COMMAND");
    EQ_STR(out, "");
}

TEST(the_page_in_doc_is_what_the_program_prints)
{
    EQ_INT(run("help --markdown"), 0);
    EQ_INT(system("diff -u " PAWL_SOURCE_DIR "/doc/cli.md out.txt >&2"), 0);
    EQ_INT(run("help settings --markdown"), 0);
    EQ_INT(system("diff -u " PAWL_SOURCE_DIR "/doc/settings.md out.txt >&2"), 0);
}

TEST(version_is_the_headers)
{
    EQ_INT(run("version"), 0);
    EQ_STR(out, "pawl " PAWL_VERSION "\n");
    EQ_INT(run("--version"), 0);
    EQ_STR(out, "pawl " PAWL_VERSION "\n");
    EQ_INT(run("version --json"), 0);
    EQ_STR(text(answer(), "version"), PAWL_VERSION);
}

/* The pawl.conf that is installed: harmless as it is, and every line of it right when it counts. */
TEST(the_printed_conf_holds_the_defaults)
{
    static char defaults[TEXT_MAX];
    EQ_INT(run("migrate up"), 0);
    EQ_INT(run("help settings --conf"), 0);
    EQ_INT(system("cp out.txt as-printed.conf"), 0);
    EQ_INT(system("sed 's/^#\\([a-z_]* = \\)/\\1/' out.txt >all.conf"), 0);
    EQ_INT(run("doctor --json --config as-printed.conf"), 0);
    for (struct json *s = json_member(answer(), "settings")->first; s; s = s->next)
        EQ_STR(text(s, "from"), "default");
    snprintf(defaults, sizeof(defaults), "%s", out);
    EQ_INT(run("doctor --json --config all.conf"), 0);
    int n = 0;
    for (struct json *s = json_member(answer(), "settings")->first; s; s = s->next, n++) {
        char same[600];
        if (*text(s, "value")) /* an empty list in the file is as good as none */
            HAS_STR(text(s, "from"), "all.conf:");
        snprintf(same, sizeof(same), "{\"setting\":\"%s\",\"value\":\"%s\",", text(s, "setting"),
                 text(s, "value"));
        HAS_STR(defaults, same);
    }
    GE_INT(n, 30);
    EQ_INT(run("help --conf"), 2);
    HAS_STR(err_out, "option --conf can only be used with pawl help settings");
}

/* ---- Getting it wrong ------------------------------------------------------------------------ */

TEST(wrong_names_are_invalid_and_hinted_at)
{
    EQ_INT(run("migrat"), 2);
    EQ_STR(err_out, "pawl: unknown command \"migrat\"; did you mean migrate?\n");
    EQ_INT(run("serve-coffee"), 2);
    HAS_STR(err_out, "pawl help lists them");
    EQ_INT(run("migrate --prnt"), 2);
    EQ_STR(err_out, "pawl migrate: unknown option --prnt; did you mean --print?\n");
    EQ_INT(run("migrate --frobnicate"), 2);
    HAS_STR(err_out, "pawl migrate --help lists them");
    EQ_INT(run("gc -m 5"), 2);
    EQ_STR(err_out, "pawl gc: unknown option \"-m\"; pawl gc --help lists them\n");
    EQ_INT(run("gc -n 5"), 2); /* gc has no --limit */
    HAS_STR(err_out, "unknown option --limit");
    EQ_INT(run("gc --=5"), 2);
    EQ_STR(out, "");
}

TEST(wrong_arguments_are_invalid)
{
    EQ_INT(run("migrate sideways"), 2);
    EQ_STR(err_out, "pawl migrate: unknown subcommand \"sideways\"; expected status, up, finish or "
                    "grants\n");
    EQ_INT(run("migrate up down"), 2);
    HAS_STR(err_out, "unexpected argument \"down\"; usage: pawl migrate [status|up|finish|grants]");
    EQ_INT(run("gc --max"), 2);
    HAS_STR(err_out, "option --max needs N");
    EQ_INT(run("gc --retention"), 2);
    HAS_STR(err_out, "option --retention needs a value");
    EQ_INT(run("gc --max=many"), 2);
    HAS_STR(err_out, "option --max: \"many\" is not a whole number");
    EQ_INT(run("gc --max 0"), 2);
    EQ_INT(run("gc --json=yes"), 2);
    HAS_STR(err_out, "takes no argument");
    EQ_INT(run_with("PAWL_POOL_SIZE=x", "gc"), 2);
    HAS_STR(err_out, "PAWL_POOL_SIZE");
    EQ_INT(run_with("PAWL_POOL_SIZE=x", "version"), 0);
    EQ_INT(run("gc --schema 1x --db mem:x"), 2);
    HAS_STR(err_out, "schema \"1x\"");
}

/* What is missing or unknown is named, and so is what would be right. */
TEST(errors_say_what_was_expected)
{
    static const struct {
        const char *args, *says;
    } rows[] = {
        { "events", "pawl events: subcommand is missing; expected serve or work" },
        { "events sreve", "pawl events: unknown subcommand \"sreve\"; expected serve or work" },
        { "get", "pawl get: ID is missing; usage: pawl get ID" },
        { "attempts", "ID is missing; usage: pawl attempts ID" },
        { "call", "TYPE is missing; usage: pawl call TYPE[.METHOD] [INPUT]" },
        { "submit", "TYPE is missing; usage: pawl submit" },
        { "batch", "FILE (or - for stdin) is missing" },
        { "backup", "FILE is missing; usage: pawl backup FILE" },
        { "cancel", "ID, or a filter such as --status, is missing; usage: pawl cancel ID..." },
        { "retry x --type t", "give IDs or filters such as --status, not both" },
        { "pause", "QUEUE, or --all, is missing; usage: pawl pause QUEUE..." },
        { "resume q --all", "give QUEUE or --all, not both" },
        { "unblock", "KEY is missing; usage: pawl unblock KEY skip|retry" },
        { "unblock k", "action is missing; expected skip or retry" },
        { "unblock k go", "unknown action \"go\"; expected skip or retry" },
        { "object", "TYPE is missing; usage: pawl object TYPE KEY" },
        { "object Counter", "KEY is missing; usage: pawl object TYPE KEY" },
        { "drain", "NODE is missing; usage: pawl drain NODE" },
        { "token", "usage: pawl token new NAME ROLE; ROLE is admin, app or monitor" },
        { "token new ann king", "ROLE \"king\" is unknown; expected admin, app or monitor" },
        { "completion", "shell is missing; expected bash" },
        { "completion zsh", "unknown shell \"zsh\"; expected bash" },
        { "get x --wait 5s --archived", "--wait cannot be used with --archived" },
        { "work --type t", "option --exec is missing: the program to run for each call" },
        { "work --exec cat", "option --type is missing: the type of the calls to run it for" },
        { "doctor --config no.conf", "settings file \"no.conf\": No such file or directory" },
        { "serve --listen here", "\"here\" is not ADDR:PORT, [ADDR]:PORT or unix:PATH" },
        { "serve --tls-cert c.pem", "setting \"tls_key\" is not set, but \"tls_cert\" is" },
        { "serve --db env:NOT_SET",
          "env:NOT_SET, and the environment variable NOT_SET is not set" },
        { "--bogus list", "pawl: unknown option \"--bogus\"; pawl help lists the commands" },
        { "--url", "pawl: option --url needs a value" },
        { "list --url http://nowhere.invalid:80", "host \"nowhere.invalid\": " },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        NE_INT(run(rows[i].args), 0);
        HAS_STR(err_out, rows[i].says);
        EQ_STR(out, "");
    }
}

/* The file is said before anything is opened, so a start that fails says it too. */
TEST(events_say_which_settings_file_was_found)
{
    FILE *f = fopen("pawl.conf", "w");
    TRUE(f != NULL);
    fputs("db = \"sqlite:e.db\"\n", f);
    fclose(f);
    EQ_INT(run("events work --schema x"), 2);
    HAS_STR(err_out, "settings are from ./pawl.conf, in ");
    EQ_INT(run("events serve --schema x"), 2);
    HAS_STR(err_out, "settings are from ./pawl.conf, in ");
    EQ_INT(run("events work --schema x --config pawl.conf"), 2);
    FALSE(strstr(err_out, "settings are from"));
}

/* What bash offers for the last of these words, which are parted as bash parts them. */
static void completes(const char *words, const char *want)
{
    char line[600];
    snprintf(line, sizeof(line),
             "bash -c '. ./pawl.bash; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
             "_pawl; echo \"${COMPREPLY[@]}\"' >out.txt 2>err.txt",
             words);
    EQ_INT(system(line), 0);
    slurp("out.txt", out);
    out[strcspn(out, "\n")] = 0;
    EQ_STR(out, want);
}

TEST(completion_knows_letters_and_options_before_the_command)
{
    EQ_INT(run("completion bash >pawl.bash;"), 0);
    completes("pawl doc", "doctor");
    completes("pawl list --lim", "--limit");
    completes("pawl --url http : //x li", "list");
    completes("pawl --url http : //x list --lim", "--limit");
    completes("pawl --node list get --arch", "--archived");
    completes("pawl --schema = get lis", "list");
    completes("pawl --json --u", "--url");
    completes("pawl --vers", "--version");
    completes("pawl get -", "--wait --result --archived --url --config --json -h --help");
    completes("pawl gc --max", "--max");
    EQ_INT(run("completion bash"), 0);
    HAS_STR(out, " -n --limit");
}

/* `pawl --url X list` is `pawl list --url X`. */
TEST(options_may_stand_before_the_command)
{
    EQ_INT(run("--db sqlite:b.db migrate up --json"), 0);
    EQ_INT(access("b.db", F_OK), 0);
    EQ_STR(text(answer(), "state"), "up to date");
    EQ_INT(run("--json --db=sqlite:b.db --schema pawl migrate"), 0);
    EQ_STR(text(answer(), "state"), "up to date");
    EQ_INT(run("--max 5 --paused gc --db sqlite:b.db --json"), 0); /* its own, and a flag */
    EQ_INT(number(answer(), "removed"), 0);
    EQ_INT(run("--url http://127.0.0.1:1 list"), 6);
    HAS_STR(err_out, "pawl list: cannot reach http://127.0.0.1:1: ");
    EQ_INT(run("--max 5 list"), 2); /* an option of another command */
    HAS_STR(err_out, "pawl list: unknown option --max");
    EQ_INT(run("--json --version"), 0);
    EQ_STR(text(answer(), "version"), PAWL_VERSION);
}

TEST(short_options)
{
    EQ_INT(run("-h"), 0);
    HAS_STR(out, "usage: pawl [options] COMMAND");
    EQ_INT(run("list -h"), 0);
    HAS_STR(out, "usage: pawl list ");
    HAS_STR(out, "  -n, --limit N ");
    HAS_STR(out, "  -h, --help ");
    EQ_INT(run("-h list"), 0);
    HAS_STR(out, "usage: pawl list ");
    EQ_INT(run("list -n many"), 2);
    HAS_STR(err_out, "option --limit: \"many\" is not a whole number");
    EQ_INT(run("keys -n0"), 2);
    HAS_STR(err_out, "option --limit: 0 must be 1 to ");
    EQ_INT(run("list -n"), 2);
    HAS_STR(err_out, "option --limit needs N");
    EQ_INT(run("list -n 5 --url http://127.0.0.1:1"), 6);
    EQ_INT(run("man"), 0);
    HAS_STR(out, ".B \\-n, \\-\\-limit");
}

TEST(errors_are_json_when_asked)
{
    EQ_INT(run("migrate --db sqlite:none.db --json"), 3);
    EQ_STR(out, "");
    snprintf(out, sizeof(out), "%s", err_out);
    struct json *e = json_member(answer(), "error");
    EQ_STR(text(e, "code"), "NOT_FOUND");
    HAS_STR(text(e, "message"), "none.db");
    EQ_STR(text(e, "retry"), "never");
}

TEST(a_full_disk_behind_stdout_is_an_error)
{
    int status = system(PAWL " help >/dev/full 2>err.txt");
    EQ_INT(WEXITSTATUS(status), 6);
}

TEST(looking_makes_no_file)
{
    EQ_INT(run("migrate --db sqlite:none.db"), 3);
    EQ_INT(run("gc --db sqlite:none.db"), 3);
    EQ_INT(run("doctor --db sqlite:none.db"), 9);
    NE_INT(access("none.db", F_OK), 0);
}

TEST(no_password_is_printed)
{
    EQ_INT(run("doctor --db postgres://ann:hush@host/db"), 9);
    FALSE(strstr(out, "hush") || strstr(err_out, "hush"));
    HAS_STR(out, "postgres://ann:***@host/db");
    NE_INT(run_with("DATABASE_URL=postgres://ann:hush@host/db", "migrate --db env:DATABASE_URL"),
           0);
    FALSE(strstr(out, "hush") || strstr(err_out, "hush"));
}

/* ---- migrate --------------------------------------------------------------------------------- */

TEST(migrate_makes_the_schema_once)
{
    EQ_INT(run("migrate up --db sqlite:a.db --json"), 0);
    EQ_STR(json_member(answer(), "changed")->raw.data[0] == 't' ? "yes" : "no", "yes");
    int64_t wanted = number(answer(), "wanted");
    EQ_INT(number(answer(), "version"), wanted);
    EQ_INT(json_member(answer(), "steps")->count, wanted);
    EQ_INT(run("migrate up --db sqlite:a.db --json"), 0);
    EQ_INT(json_member(answer(), "changed")->kind, JSON_FALSE);
    EQ_INT(run("migrate finish --db sqlite:a.db"), 0);
    EQ_INT(run_with("PAWL_DB=sqlite:a.db", "migrate status"), 0);
    HAS_STR(out, "up to date");
}

TEST(migrate_tells_an_empty_database)
{
    sql("empty.db", "CREATE TABLE mine (x)");
    EQ_INT(run("migrate --db sqlite:empty.db"), 0);
    HAS_STR(out, "empty: pawl migrate up creates the tables");
    EQ_INT(run("migrate --db sqlite:empty.db --json"), 0);
    EQ_INT(number(answer(), "version"), 0);
    EQ_INT(run("gc --db sqlite:empty.db"), 13);
    EQ_INT(run("doctor --db sqlite:empty.db --json"), 0);
    EQ_STR(level_of("schema"), "warn");
}

TEST(a_newer_database_is_used_or_refused)
{
    EQ_INT(run("migrate up --db sqlite:n.db --json"), 0);
    char add[400];
    snprintf(add, sizeof(add), "INSERT INTO pawl_migration VALUES (%d, 'later', X'00', 0, 1)",
             (int)number(answer(), "wanted") + 1);
    sql("n.db", add);
    EQ_INT(run("migrate --db sqlite:n.db"), 0);
    HAS_STR(out, "newer than this program, but compatible with it");
    EQ_INT(run("doctor --db sqlite:n.db"), 0);
    sql("n.db", "UPDATE pawl_meta SET value = 99 WHERE name = 'min_version'");
    EQ_INT(run("migrate --db sqlite:n.db"), 0);
    HAS_STR(out, "too new for this program");
    EQ_INT(run("migrate up --db sqlite:n.db"), 13);
    HAS_STR(err_out, "n.db");
    EQ_INT(run("doctor --db sqlite:n.db --json"), 9);
    EQ_STR(level_of("schema"), "bad");
}

TEST(the_printed_script_makes_the_same_schema)
{
    EQ_INT(run("migrate up --print --schema shop --db sqlite:none.db"), 0);
    NE_INT(access("none.db", F_OK), 0);
    static char script[TEXT_MAX];
    snprintf(script, sizeof(script), "%s", out);
    FALSE(strstr(script, "pawl_"));
    sql("hand.db", script);
    EQ_INT(run("migrate up --schema shop --db sqlite:hand.db --json"), 0);
    EQ_INT(json_member(answer(), "changed")->kind, JSON_FALSE);
    EQ_STR(text(answer(), "state"), "up to date");
    EQ_INT(run("migrate --print --json"), 0);
    EQ_INT(number(json_member(answer(), "steps")->first, "number"), 1);
    EQ_INT(run("migrate finish --print"), 0);
    EQ_INT(run("migrate --print --db trace+sqlite:none.db"), 0);
    HAS_STR(out, "CREATE TABLE pawl_call");
    EQ_INT(run("migrate --print --db mem:x"), 0);
    EQ_STR(out, "");
}

/* ---- doctor ---------------------------------------------------------------------------------- */

TEST(doctor_says_where_each_setting_came_from)
{
    EQ_INT(run("migrate up --db sqlite:d.db"), 0);
    EQ_INT(run_with("PAWL_RETENTION=2d U=sqlite:d.db", "doctor --db env:U --pool-size 3 --json"),
           0);
    EQ_STR(text(answer(), "verdict"), "ok");
    int seen = 0;
    for (struct json *s = json_member(answer(), "settings")->first; s; s = s->next) {
        const char *name = text(s, "setting"), *from = text(s, "from"), *value = text(s, "value");
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
    EQ_INT(run_with("PAWL_RETENTON=2d", "doctor --db sqlite:d.db"), 0);
    HAS_STR(out, "PAWL_RETENTON is not a setting; did you mean PAWL_RETENTION?");
}

TEST(doctor_looks_at_the_engine)
{
    EQ_INT(run("migrate up --db sqlite:d.db"), 0);
    EQ_INT(run("doctor --db sqlite:d.db --json"), 0);
    const char *const checks[] = { "engine",    "sqlite",    "journal_mode", "synchronous",
                                   "page_size", "isolation", "file",         "log",
                                   "disk",      "integrity", "schema",       "clock",
                                   "queues",    "nodes" };
    for (size_t i = 0; i < COUNT_OF(checks); i++)
        EQ_STR(level_of(checks[i]), "ok");
    EQ_INT(run("doctor --db trace+sqlite:d.db --json"), 0);
    EQ_STR(level_of("integrity"), "ok");
    EQ_INT(run("doctor --db fault+sqlite:d.db --json"), 0);
    EQ_STR(level_of("integrity"), "ok");
    EQ_INT(run("migrate --print --db fault+sqlite:d.db"), 0);
    HAS_STR(out, "CREATE TABLE pawl_call");
    EQ_INT(run("doctor --db mem:x --json"), 0);
    EQ_STR(level_of("engine"), "warn");
    EQ_STR(text(answer(), "verdict"), "warn");
}

TEST(doctor_finds_what_is_bad)
{
    write_file("bad.db", "this is not a database, however long one looks at it; not at all.\n");
    EQ_INT(run("doctor --db sqlite:bad.db --json"), 9);
    EQ_STR(level_of("database"), "bad");
    EQ_INT(run("migrate up --db sqlite:bad.db"), 9);
    EQ_INT(run("doctor --db sqlite:no/such/folder/x.db"), 9);
}

/* A page of the file is overwritten: the header still reads, its own check does not pass. */
TEST(doctor_finds_a_damaged_page)
{
    EQ_INT(run("migrate up --db sqlite:d.db"), 0);
    sql("d.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    FILE *f = fopen("d.db", "r+");
    TRUE(f && fseek(f, 2 * 4096, SEEK_SET) == 0);
    for (int i = 0; i < 4096; i++)
        fputc(0x5a, f);
    fclose(f);
    EQ_INT(run("doctor --db sqlite:d.db --json"), 9);
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
    if (child == 0) { /* a process that dies without a word */
        struct pawl *p = open_work("sqlite:d.db");
        OK(pawl_pause(p, "mail", true, &err), &err);
        OK(pawl_start(p, NULL, &err), &err);
        _exit(0);
    }
    EQ_INT(waitpid(child, &status, 0), child);
    EQ_INT(run("doctor --db sqlite:d.db --heartbeat-interval 1ms --heartbeat-grace 2ms"), 0);
    HAS_STR(out, "\"mail\" is paused");
    HAS_STR(out, "\"worker\" has sent no heartbeat");
    HAS_STR(out, "1 known, 0 alive, 1 silent, 0 dead");
}

TEST(doctor_warns_of_dead_nodes)
{
    struct pawl *p = open_work("sqlite:d.db");
    struct pawl_err err;
    sqlite3 *db;
    OK(pawl_start(p, NULL, &err), &err);
    EQ_INT(sqlite3_open("d.db", &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 20000); /* the node writes too */
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
    EQ_INT(run("doctor --db sqlite:d.db"), 0);
    HAS_STR(out, "\"fallen\" is dead: its last heartbeat was 1m");
    HAS_STR(out, "27 known, 1 alive, 0 silent, 26 dead");
    TRUE(!strstr(out, "ancient")); /* longer ago than calls are kept */
    EQ_INT(run("doctor --db sqlite:d.db --json"), 0);
    EQ_STR(level_of("node"), "warn");
    pawl_close(p);
}

/* ---- gc -------------------------------------------------------------------------------------- */

/* n ended calls whose time has passed, and one that is pending. */
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
    EQ_INT(run("gc --db sqlite:g.db --max 10 --json"), 0);
    EQ_INT(number(answer(), "removed"), 10);
    EQ_INT(run("gc --db sqlite:g.db"), 0);
    HAS_STR(out, "20 calls removed, 0 ids forgotten");
    EQ_STR(err_out, "");
    EQ_INT(run("gc --db sqlite:g.db --json"), 0);
    EQ_INT(number(answer(), "removed"), 0);
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
    EQ_INT(run("archive --db sqlite:a.db --json"), 0);
    EQ_INT(number(answer(), "archived"), 0); /* they are not that old */
    EQ_INT(run("archive --db sqlite:a.db --older-than 0s --json"), 0);
    EQ_INT(number(answer(), "archived"), 450);
    EQ_INT(count_in("a.db", "SELECT count(*) FROM pawl_archive WHERE status = 'completed'"), 450);
    EQ_INT(count_in("a.db", "SELECT count(*) FROM pawl_call"), 1);
    EQ_INT(count_in("a.db", "SELECT count(*) FROM pawl_gone"), 450);
    EQ_INT(run("archive --db sqlite:a.db --older-than 0s"), 0);
    HAS_STR(out, "0 calls that ended before 2");
    EQ_STR(err_out, "");
    EQ_INT(run("archive --db sqlite:a.db --older-than soon"), 2);
    HAS_STR(err_out, "option --older-than: \"soon\" is not a duration");
    EQ_INT(run("archive --db sqlite:none.db"), 3);
    NE_INT(access("none.db", F_OK), 0);
}

TEST(requeue_stuck_ends_what_lasts_too_long)
{
    EQ_INT(run("migrate up --db sqlite:r.db"), 0);
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
    EQ_INT(run("requeue-stuck --db sqlite:r.db --json"), 0);
    EQ_INT(number(answer(), "leases"), 0); /* ten minutes have not passed */
    EQ_INT(run("requeue-stuck --db sqlite:r.db --older-than 0s --json"), 0);
    EQ_INT(number(answer(), "leases"), 1);
    EQ_INT(number(answer(), "calls"), 1);
    EQ_INT(number(answer(), "ended"), 0);
    struct finish_item item = { .id = BYTES("stuck"), .how = END_RESULT };
    struct op finish = { .kind = OP_FINISH,
                         .a = &a,
                         .finish = { .token = { { 1 } }, .v = &item, .n = 1 } };
    OK(store_commit(s, &(struct op *){ &finish }, 1), &err);
    EQ_STATUS(finish.status, PAWL_LOST_LEASE, &finish.err);
    claim.claim.token.b[0] = 2;
    OK(store_commit(s, &(struct op *){ &claim }, 1), &err);
    store_close(s);
    EQ_INT(run("requeue-stuck --db sqlite:r.db --older-than 0s --reclaim-action fail"), 0);
    HAS_STR(out, "1 lease ended in ");
    HAS_STR(out, ": 0 calls pending again, 1 ended");
    arena_release(&a);
}

/* ---- backup ---------------------------------------------------------------------------------- */

TEST(backup_makes_a_file_that_works)
{
    fill("sqlite:b.db", 20);
    EQ_INT(run("backup copy.db --db sqlite:b.db --json"), 0);
    EQ_STR(text(answer(), "file"), "copy.db");
    GT_INT(number(answer(), "bytes"), 4096);
    NE_INT(access("copy.db.partial", F_OK), 0);
    EQ_INT(count_in("copy.db", "SELECT count(*) FROM pawl_call"), 21);
    EQ_INT(run("doctor --db sqlite:copy.db"), 0);
    EQ_INT(run("backup copy.db --db sqlite:b.db"), 2);
    HAS_STR(err_out, "\"copy.db\" exists already");
    EQ_INT(run("backup --db sqlite:b.db"), 2);
    EQ_INT(run("backup no/such/folder/x --db sqlite:b.db"), 2);
    HAS_STR(err_out, "No such file");
    EQ_INT(run("backup x.db --db sqlite:none.db"), 3);
    EQ_INT(run("backup x.db --db mem:x"), 2);
    NE_INT(access("x.db", F_OK), 0);
    write_file("x.db.partial", "somebody's");
    EQ_INT(run("backup x.db --db sqlite:b.db"), 2);
    HAS_STR(err_out, "\"x.db.partial\" exists");
}

TEST(backup_asks_the_servers_own_program)
{
    write_file("pg_dump", "#!/bin/sh\necho \"$PGPASSWORD $*\"\n");
    EQ_INT(system("chmod +x pg_dump"), 0);
    EQ_INT(run_with("PATH=.:$PATH", "backup x.dump --db postgres://ann:hush@host/db --schema shop"),
           0);
    HAS_STR(out, "x.dump: ");
    FALSE(strstr(out, "hush"));
    EQ_INT(system("grep -q '^hush .*--schema=\"shop\" --dbname=postgres://ann@host/db$' x.dump"),
           0);
    EQ_INT(run_with("PATH=/nowhere", "backup y.dump --db postgres://ann:hush@host/db"), 3);
    EQ_STR(err_out, "pawl backup: pg_dump is not in PATH: install PostgreSQL's client programs\n");
}

/* The file of the backup was stdin to pg_dump, which then had none. */
TEST(a_closed_stream_is_not_taken_by_a_file)
{
    write_file("pg_dump", "#!/bin/sh\necho dumped\n");
    EQ_INT(system("chmod +x pg_dump"), 0);
    EQ_INT(run_with("PATH=.:$PATH", "backup x.dump --db postgres://ann@host/db <&-"), 0);
    EQ_INT(system("test \"$(cat x.dump)\" = dumped"), 0);
    int status = system(PAWL " version >&- 2>err.txt"); /* what cannot be written is not a success
                                                         */
    EQ_INT(WEXITSTATUS(status), 6);
    status = system(PAWL " migrate up --db sqlite:s.db >/dev/null <&- 2>&-");
    EQ_INT(WEXITSTATUS(status), 0);
    EQ_INT(run("doctor --db sqlite:s.db"), 0);
}

/* ---- Schemas, releases and roles ------------------------------------------------------------- */

TEST(schemas_in_one_file_do_not_see_each_other)
{
    EQ_INT(run("migrate up --db sqlite:s.db"), 0);
    EQ_INT(run("gc --db sqlite:s.db --schema shop"), 13); /* it is not there yet */
    HAS_STR(err_out, "has version 0");
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
    EQ_INT(run("archive --db sqlite:s.db --older-than 0s --json"), 0);
    EQ_INT(number(answer(), "archived"), 0);
    EQ_INT(run("archive --db sqlite:s.db --schema shop --older-than 0s --json"), 0);
    EQ_INT(number(answer(), "archived"), 1);
    EQ_INT(count_in("s.db", "SELECT count(*) FROM shop_archive"), 1);
    EQ_INT(count_in("s.db", "SELECT count(*) FROM pawl_archive"), 0);
    EQ_INT(run("doctor --db sqlite:s.db --schema pawl2"), 0);
}

TEST(a_program_below_min_version_says_both)
{
    EQ_INT(run("migrate up --db sqlite:m.db"), 0);
    sql("m.db", "UPDATE pawl_meta SET value = 99 WHERE name = 'min_version'");
    const char *const commands[] = { "gc", "archive", "requeue-stuck", "migrate up",
                                     "migrate finish" };
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        char line[128];
        snprintf(line, sizeof(line), "%s --db sqlite:m.db", commands[i]);
        EQ_INT(run(line), 13);
        HAS_STR(err_out, "99 or later");
        HAS_STR(err_out, "knows 7");
    }
}

/* A half that is left to finish, and a node of the release before. */
TEST(finish_waits_for_older_nodes)
{
    EQ_INT(run("migrate up --db sqlite:f.db"), 0);
    sql("f.db", "UPDATE pawl_migration SET finished = 0 WHERE number = 2");
    sql("f.db", "INSERT INTO pawl_node (node, boot, host, version, dead, slots, busy, beats, "
                "started_at, beat_at) VALUES ('old-one', 'b', 'h', '0.0.9', 0, 1, 0, 1, 0, "
                "CAST(strftime('%s', 'now') AS INTEGER) * 1000000)");
    EQ_INT(run("migrate finish --db sqlite:f.db"), 13);
    HAS_STR(err_out, "node \"old-one\" runs the older pawl 0.0.9 (this is " PAWL_VERSION ")");
    EQ_INT(run("migrate --db sqlite:f.db"), 0);
    HAS_STR(out, "run pawl migrate finish when no older program runs");
    sql("f.db", "UPDATE pawl_node SET version = '" PAWL_VERSION "'");
    EQ_INT(run("migrate finish --db sqlite:f.db --json"), 0);
    EQ_INT(json_member(answer(), "changed")->kind, JSON_TRUE);
    sql("f.db", "UPDATE pawl_migration SET finished = 0 WHERE number = 2");
    sql("f.db", "UPDATE pawl_node SET version = '0.0.9'");
    EQ_INT(run("migrate finish --db sqlite:f.db --force"), 0);
    sql("f.db", "UPDATE pawl_migration SET finished = 0 WHERE number = 2");
    sql("f.db", "UPDATE pawl_node SET beat_at = 1"); /* silent for long */
    EQ_INT(run("migrate finish --db sqlite:f.db"), 0);
}

TEST(grants_are_for_servers)
{
    EQ_INT(run("migrate grants --db sqlite:x.db"), 2);
    EQ_STR(err_out, "pawl migrate: engine \"sqlite\" has no roles\n");
    EQ_INT(run("migrate grants --apply --db mem:x"), 2);
    EQ_INT(run("migrate grants --app 'a b' --db sqlite:x.db"), 2);
    HAS_STR(err_out, "role \"a b\"");
    EQ_INT(run("migrate up --apply --db sqlite:x.db"), 2);
    NE_INT(access("x.db", F_OK), 0);
}

/* ---- On a terminal --------------------------------------------------------------------------- */

/* Runs a line with a terminal as stdin, stdout and stderr; what it drew is in `out`. */
static int run_on_terminal(const char *line)
{
    int master, status = 0;
    size_t len = 0;
    ssize_t n;
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child < 0)
        skip("needs a terminal, and none can be made here: %s", strerror(errno));
    if (child == 0)
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    while (len < TEXT_MAX - 1 && (n = read(master, out + len, TEXT_MAX - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = 0;
    close(master);
    EQ_INT(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

TEST(colour_is_for_terminals_without_no_color)
{
    EQ_INT(run("migrate up --db sqlite:c.db"), 0);
    FALSE(strchr(out, '\033'));
    EQ_INT(run_on_terminal("unset NO_COLOR; " PAWL " doctor --db sqlite:c.db"), 0);
    HAS_STR(out, "\033[32mok\033[0m");
    EQ_INT(run_on_terminal("NO_COLOR=1 " PAWL " doctor --db sqlite:c.db"), 0);
    FALSE(strchr(out, '\033'));
    EQ_INT(run_on_terminal("unset NO_COLOR; " PAWL " doctor --db sqlite:c.db --json"), 0);
    FALSE(strchr(out, '\033'));
}

TEST(gc_draws_its_progress_on_a_terminal)
{
    fill("sqlite:g.db", 4100);
    EQ_INT(run_on_terminal(PAWL " gc --db sqlite:g.db"), 0);
    HAS_STR(out, "gc: 2000 calls removed");
    HAS_STR(out, "4100 calls removed, 0 ids forgotten");
}

TEST(backup_and_archive_draw_their_progress_on_a_terminal)
{
    fill("sqlite:g.db", 300);
    EQ_INT(run_on_terminal(PAWL " backup copy.db --db sqlite:g.db"), 0);
    HAS_STR(out, "backup: ");
    HAS_STR(out, " pages");
    HAS_STR(out, "copy.db: ");
    EQ_INT(run_on_terminal(PAWL " archive --older-than 0s --db sqlite:g.db"), 0);
    HAS_STR(out, "archive: 200 calls");
    HAS_STR(out, "300 calls that ended before ");
}
