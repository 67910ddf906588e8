/*
 * migrate.c - `pawl migrate`: show the migration steps, apply them, finish them, print their SQL,
 * or grant database roles access to the tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "cli/db_command.h"
#include "cli/table.h"

#define STEPS_LEN_MAX (16 << 20)

/* What `status` and `up` print. */
struct picture {
    const char *engine;
    struct schema schema;
    struct steps steps;
    bool changed; /* this run applied something */
};

/* ---- The SQL --------------------------------------------------------------------------------- */

static int print_json(struct cli *cli, const struct steps *steps)
{
    struct buf b;
    buf_init(&b, STEPS_LEN_MAX);
    buf_add_text(&b, "{\"steps\":[");
    for (size_t i = 0; i < steps->n; i++) {
        const struct step *step = &steps->v[i];
        buf_addf(&b, "%s{\"number\":%d", i ? "," : "", step->number);
        json_add_name(&b, "word");
        json_add_string(&b, bytes_of(step->word));
        json_add_name(&b, "up");
        json_add_string(&b, bytes_of(step->expand));
        json_add_name(&b, "finish");
        json_add_string(&b, bytes_of(step->finish));
        buf_add_char(&b, '}');
    }
    buf_add_text(&b, "]}");
    int code = cli_table_send(cli, &b);
    buf_release(&b);
    return code;
}

/* A script for the database's own shell, with one transaction for each half of a step. */
static void print_half(struct cli *cli, const struct step *step, const char *half, const char *sql)
{
    fprintf(cli->out, "-- step %d, %s: %s\nBEGIN;\n%s%sCOMMIT;\n\n", step->number, step->word, half,
            sql, *sql && sql[strlen(sql) - 1] == '\n' ? "" : "\n");
}

static int print_steps(struct cli *cli, bool finish, struct arena *a)
{
    struct pawl_err err = { 0 };
    struct steps steps;
    struct store_conf conf = db_command_conf(cli, STORE_WRITER);
    if (store_steps(&conf, a, &steps, &err) != PAWL_OK)
        return cli_fail(cli, &err);
    if (cli->json)
        return print_json(cli, &steps);
    for (size_t i = 0; i < steps.n; i++) {
        if (!finish)
            print_half(cli, &steps.v[i], "up", steps.v[i].expand);
        else if (steps.v[i].finish[0])
            print_half(cli, &steps.v[i], "finish", steps.v[i].finish);
    }
    return cli_done(cli);
}

/* ---- The state of a database ----------------------------------------------------------------- */

static const char *verdict(const struct schema *s)
{
    if (s->min_version > s->wanted)
        return "too new for this program";
    if (s->version > s->wanted)
        return "newer than this program, but compatible with it";
    if (s->version == 0)
        return "empty: pawl migrate up creates the tables";
    if (s->version < s->wanted)
        return "old: pawl migrate up brings it up to date";
    return s->finish_due ? "up to date; run pawl migrate finish when no older program runs"
                         : "up to date";
}

static void summary_fill(struct cli_table *s, const struct picture *p)
{
    static const char *const columns[] = { "engine",     "version", "wanted", "min_version",
                                           "finish_due", "changed", "state",  NULL };
    cli_table_init(s, columns);
    cli_table_text(s, "%s", p->engine);
    cli_table_int(s, p->schema.version);
    cli_table_int(s, p->schema.wanted);
    cli_table_int(s, p->schema.min_version);
    cli_table_bool(s, p->schema.finish_due);
    cli_table_bool(s, p->changed);
    cli_table_text(s, "%s", verdict(&p->schema));
    cli_table_paint(s, p->schema.min_version > p->schema.wanted ? PAINT_BAD
                       : p->schema.version < p->schema.wanted   ? PAINT_WARN
                                                                : PAINT_GOOD);
}

static void steps_fill(struct cli_table *s, const struct picture *p)
{
    static const char *const columns[] = { "step", "word", "applied", NULL };
    cli_table_init(s, columns);
    for (size_t i = 0; i < p->steps.n; i++) {
        cli_table_int(s, p->steps.v[i].number);
        cli_table_text(s, "%s", p->steps.v[i].word);
        cli_table_bool(s, p->steps.v[i].number <= p->schema.version);
    }
}

static int show(struct cli *cli, const struct picture *p)
{
    struct cli_table summary, steps;
    summary_fill(&summary, p);
    steps_fill(&steps, p);
    int code = 0;
    if (!cli->json) {
        cli_table_print_fields(cli, &summary);
        fputc('\n', cli->out);
        cli_table_print(cli, &steps);
        code = cli_done(cli);
    } else {
        struct buf b;
        buf_init(&b, STEPS_LEN_MAX);
        buf_add_char(&b, '{');
        cli_table_json_members(&b, &summary);
        json_add_name(&b, "steps");
        cli_table_json(&b, &steps);
        buf_add_char(&b, '}');
        code = cli_table_send(cli, &b);
        buf_release(&b);
    }
    cli_table_release(&summary);
    cli_table_release(&steps);
    return code;
}

/* ---- Nodes of older versions ----------------------------------------------------------------- */

/* Is version "0.9.1" older than "0.10"? Texts that are not numbers count as equal. */
static bool older(const char *a, const char *b)
{
    while (*a && *b) {
        char *after_a, *after_b;
        long x = strtol(a, &after_a, 10), y = strtol(b, &after_b, 10);
        if (x != y)
            return x < y;
        a = *after_a == '.' ? after_a + 1 : "";
        b = *after_b == '.' ? after_b + 1 : "";
    }
    return !*a && *b;
}

/* The second half of a step removes what older programs need, so none of them may be running. */
static enum pawl_status no_old_nodes(struct cli *cli, struct store *s, struct arena *a,
                                     struct pawl_err *err)
{
    struct node_rows nodes;
    int64_t now_us = 0, grace_us = cli->settings.v[SET_HEARTBEAT_GRACE].number;
    enum pawl_status st = store_nodes(s, a, &nodes, err);
    if (st == PAWL_OK)
        st = store_now(s, &now_us, err);
    for (size_t i = 0; st == PAWL_OK && i < nodes.n; i++) {
        const struct node_row *n = &nodes.v[i];
        const char *version = n->version.data ? arena_text(a, n->version) : "";
        if (!version)
            return err_no_memory(err, "looking at the nodes");
        if (!n->dead && now_us - n->beat_us <= grace_us && older(version, PAWL_VERSION))
            return err_set(
                err, PAWL_STATE,
                "node \"%.*s\" runs the older pawl %.20s (this is %s): stop it before pawl "
                "migrate finish, or add --force",
                BYTES_ARG(n->node), version, PAWL_VERSION);
    }
    return st;
}

/* ---- Applying the steps ---------------------------------------------------------------------- */

struct request {
    bool up, finish, force;
};

/* Opens as a writer only to write: a reader takes no lock that other processes wait for. */
static enum pawl_status look_and_act(struct cli *cli, struct request w, struct arena *a,
                                     struct picture *out, struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct schema before = { 0 };
    struct store_conf conf = db_command_conf(cli, w.up ? STORE_WRITER : STORE_READER);
    enum pawl_status st = store_open(&conf, &s, err);
    if (st == PAWL_OK)
        st = store_schema(s, &before, err);
    if (st == PAWL_OK && w.up)
        st = store_migrate(s, false, err);
    if (st == PAWL_OK)
        st = store_schema(s, &out->schema, err);
    if (st == PAWL_OK && w.finish && out->schema.finish_due) {
        if (!w.force)
            st = no_old_nodes(cli, s, a, err);
        if (st == PAWL_OK)
            st = store_migrate(s, true, err);
        if (st == PAWL_OK)
            st = store_schema(s, &out->schema, err);
    }
    if (st != PAWL_OK)
        return st;
    out->engine = s->ops->name;
    out->changed =
        out->schema.version != before.version || out->schema.finish_due != before.finish_due;
    return PAWL_OK;
}

static int act(struct cli *cli, struct request w, struct arena *a)
{
    struct picture p = { 0 };
    struct pawl_err err = { 0 };
    struct store_conf conf = db_command_conf(cli, STORE_READER);
    enum pawl_status st = w.up ? PAWL_OK : cli_db_exists(cli, &err);
    if (st == PAWL_OK)
        st = store_steps(&conf, a, &p.steps, &err);
    if (st == PAWL_OK)
        st = look_and_act(cli, w, a, &p, &err);
    return st == PAWL_OK ? show(cli, &p) : cli_fail(cli, &err);
}

/* ---- Grants ---------------------------------------------------------------------------------- */

/* A role's name; an empty name omits the role. */
static const char *role(const struct cli *cli, const char *option)
{
    const char *name = cli_option(cli, option);
    return *name ? name : NULL;
}

static enum pawl_status grant(struct cli *cli, const char *sql, struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct store_conf conf = db_command_conf(cli, STORE_WRITER);
    enum pawl_status st = store_open(&conf, &s, err);
    return st == PAWL_OK ? store_grant(s, sql, err) : st;
}

static int grants_json(struct cli *cli, const char *sql, bool applied)
{
    static const char *const columns[] = { "sql", "applied", NULL };
    struct cli_table s;
    cli_table_init(&s, columns);
    cli_table_text(&s, "%s", sql);
    cli_table_bool(&s, applied);
    int code = cli_table_answer(cli, &s);
    cli_table_release(&s);
    return code;
}

static int grants(struct cli *cli, struct arena *a)
{
    struct pawl_err err = { 0 };
    const char *sql = NULL;
    bool apply = cli_flag(cli, "apply");
    struct roles roles = { role(cli, "app"), role(cli, "monitor"), role(cli, "admin") };
    struct store_conf conf = db_command_conf(cli, STORE_READER);
    enum pawl_status st = store_grants(&conf, &roles, a, &sql, &err);
    if (st == PAWL_OK && apply)
        st = grant(cli, sql, &err);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    if (cli->json)
        return grants_json(cli, sql, apply);
    fputs(sql, cli->out);
    return cli_done(cli);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(struct cli *cli, int argc, char **argv)
{
    const char *what = argc ? argv[0] : "status";
    struct request w = { .up = strcmp(what, "up") == 0,
                         .finish = strcmp(what, "finish") == 0,
                         .force = cli_flag(cli, "force") };
    bool roles = strcmp(what, "grants") == 0;
    if (!w.up && !w.finish && !roles && strcmp(what, "status") != 0)
        return cli_unknown(cli, "subcommand", what, "status, up, finish or grants");
    if (cli_flag(cli, "apply") && (!roles || cli_flag(cli, "print")))
        return cli_failf(cli, PAWL_INVALID,
                         "option --apply can only be used with grants, and not with --print");
    w.up = w.up || w.finish;
    struct arena a;
    arena_init(&a, STEPS_LEN_MAX);
    int code = roles                    ? grants(cli, &a)
               : cli_flag(cli, "print") ? print_steps(cli, w.finish, &a)
                                        : act(cli, w, &a);
    arena_release(&a);
    return code;
}

static const struct option_row options[] = {
    { "print", NULL, NULL, "print the SQL instead of running it; opens no database" },
    { "force", NULL, NULL, "finish: even while a node runs an older program" },
    { "apply", NULL, NULL, "grants: run the SQL as well" },
    { "app", "ROLE", "pawl_app", "grants: role that submits calls; empty for none" },
    { "monitor", "ROLE", "pawl_monitor",
      "grants: role that sees everything but contents; empty for none" },
    { "admin", "ROLE", "pawl_admin", "grants: role that pawl serve connects as; empty for none" },
    { 0 },
};

const struct command cmd_migrate = {
    .name = "migrate",
    .summary = "show the schema's state, or bring it up to date",
    .usage = "[status|up|finish|grants]",
    .about =
        "A schema is built by numbered steps. status (the default) shows which steps are\n"
        "applied. up applies the missing steps, all or none; it is safe while other processes do\n"
        "the same. finish also runs the second half of each step, which must wait until no older\n"
        "program uses the database. pawl serve and the library run up by themselves; --print\n"
        "prints the SQL instead, to run it by hand. grants prints the SQL that gives roles of a\n"
        "database server the access they need (SQLite has no roles; on MariaDB and MySQL a role\n"
        "is a name, or an account as user@host). --apply runs that SQL; it needs the owner of\n"
        "the schema, and the roles must exist.",
    .example = "pawl migrate --db sqlite:orders.db\n"
               "pawl migrate up --db sqlite:orders.db\n"
               "pawl migrate up --print --schema orders | sqlite3 orders.db",
    .options = options,
    .args_max = 1,
    .run = run,
};
