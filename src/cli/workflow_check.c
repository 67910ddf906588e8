/*
 * workflow_check.c - `pawl workflow check`: would live runs break with new modules, and where?
 *
 * It reads the database, and each run is replayed in a process of its own that has no connection to
 * it (lib/replay.h).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/workflow_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/db_command.h"
#include "cli/table.h"
#include "lib/replay.h"

/* Some runs would break. No status has this exit code. */
#define EXIT_BROKEN 1
/* Runs that are read together. */
#define PAGE 100
#define PAGE_LEN_MAX (64 << 20)
/* One run: all its results, and what is around them. */
#define RUN_LEN_MAX ((size_t)STEPS_LEN_MAX * 2)
/* What is kept for the answer: the runs that are listed, and types. */
#define LISTED_MAX 10000
#define ANSWER_LEN_MAX (64 << 20)
#define TYPES_LEN_MAX (1 << 20)
#define SAMPLE_MAX 1000000000
#define PROGRESS_US (100 * MS_US)

/* A type that the modules do not serve. */
struct unserved {
    struct unserved *next;
    struct bytes type, method;
    int64_t runs;
};

struct check {
    struct cli *cli;
    struct store *store; /* owned */
    struct replay_conf conf;
    struct bytes type; /* absent: all */
    int64_t sample;    /* how many runs at most; 0: all */
    int64_t now_us, told_us;
    int64_t checked, broken, unknown;
    int64_t pinned; /* to another version: these modules do not go on with them */
    struct unserved *unserved;
    struct arena types; /* of `unserved` */
    struct cli_table table;
    struct buf json; /* the members of an array */
    size_t listed;
    struct pawl_err err;
};

/* ---- The verdict on one run ------------------------------------------------------------------ */

static const char *verdict_name(const struct replay_result *r)
{
    switch (r->fate) {
    case REPLAY_CRASHED:
        return "crashes";
    case REPLAY_EXITED:
        return "exits";
    case REPLAY_HUNG:
        return "hangs";
    case REPLAY_ENDED:
        break;
    }
    switch (r->outcome.end) {
    case REPLAY_DIVERGES:
        return "diverges";
    case REPLAY_MISSES:
        return "misses";
    case REPLAY_FAILS:
        return "fails";
    case REPLAY_NONE:
    case REPLAY_FITS:
    case REPLAY_BLIND:
    case REPLAY_UNSERVED:
    case REPLAY_PINNED:
        break;
    }
    return "unknown";
}

/* What happens to the run, as a sentence without its subject. */
static void problem_text(const struct check *c, const struct replay_result *r, struct buf *out)
{
    const struct replay_outcome *o = &r->outcome;
    char took[32];
    duration_text(c->conf.timeout_us, took);
    switch (r->fate) {
    case REPLAY_CRASHED:
        buf_addf(out, "crashes with signal %d (%s)", r->signal, strsignal(r->signal));
        break;
    case REPLAY_EXITED:
        buf_addf(out, "ends its process with exit code %d", r->code);
        break;
    case REPLAY_HUNG:
        buf_addf(out, "does not end within %s", took);
        break;
    case REPLAY_ENDED:
        if (o->end == REPLAY_MISSES)
            buf_addf(out, "never asks for stored step %" PRId64 ": ", o->stored.no);
        else if (o->end == REPLAY_FAILS)
            buf_add_text(out, "would fail: ");
        else if (o->end == REPLAY_BLIND)
            buf_add_text(out, "cannot be checked further: ");
        buf_add_text(out, o->text);
        break;
    }
    bool place = r->fate != REPLAY_ENDED || o->end == REPLAY_FAILS || o->end == REPLAY_BLIND;
    if (place && o->asked.no)
        buf_addf(out, ", after step %" PRId64, o->asked.no);
    else if (place)
        buf_add_text(out, ", before its first step");
}

static void text_json(struct buf *b, const char *name, struct bytes text)
{
    json_add_name(b, name);
    json_add_string(b, utf8_valid(text) ? text : BYTES("?"));
}

static void point_json(struct buf *b, const char *name, const struct replay_point *p)
{
    json_add_name(b, name);
    if (!p->no) {
        buf_add_text(b, "null");
        return;
    }
    buf_add_char(b, '{');
    text_json(b, "kind", bytes_of(step_kind_name((int64_t)p->kind)));
    text_json(b, "name", bytes_of(p->name));
    buf_add_char(b, '}');
}

static void point_cell(struct cli_table *s, const struct replay_point *p)
{
    if (p->no)
        cli_table_text(s, "%s \"%s\"", step_kind_name((int64_t)p->kind), p->name);
    else
        cli_table_none(s);
}

/* A run in the answer; `o` has the steps to be shown. */
static void list_row(struct check *c, const struct call_spec *s, const struct replay_result *r,
                     const struct replay_outcome *o, const char *problem)
{
    int64_t no = MAX(o->asked.no, o->stored.no);
    struct cli_table *t = &c->table;
    cli_table_text(t, "%.*s", BYTES_ARG(s->id));
    cli_table_text(t, "%.*s.%.*s", BYTES_ARG(s->type), BYTES_ARG(s->method));
    if (no)
        cli_table_int(t, no);
    else
        cli_table_none(t);
    point_cell(t, &o->stored);
    point_cell(t, &o->asked);
    cli_table_text(t, "%s", problem);
    cli_table_paint(t, r->outcome.end == REPLAY_BLIND ? PAINT_WARN : PAINT_BAD);
}

static void list_json(struct check *c, const struct call_spec *s, const struct replay_result *r,
                      const struct replay_outcome *o, const char *problem)
{
    struct buf *b = &c->json;
    int64_t no = MAX(o->asked.no, o->stored.no);
    json_add_comma(b);
    buf_add_char(b, '{');
    text_json(b, "id", s->id);
    text_json(b, "type", s->type);
    text_json(b, "method", s->method);
    json_add_name(b, "no");
    if (no)
        buf_addf(b, "%" PRId64, no);
    else
        buf_add_text(b, "null");
    text_json(b, "verdict", bytes_of(verdict_name(r)));
    point_json(b, "stored", &o->stored);
    point_json(b, "asked", &o->asked);
    text_json(b, "problem", bytes_of(problem));
    buf_add_char(b, '}');
}

static void list_run(struct check *c, const struct call_spec *s, const struct replay_result *r)
{
    struct replay_outcome o = r->outcome;
    struct buf text;
    if (c->listed++ >= LISTED_MAX)
        return;
    if (r->fate == REPLAY_ENDED && o.end == REPLAY_MISSES)
        o.asked.no = 0; /* at that place nothing was */
    buf_init(&text, 4096);
    problem_text(c, r, &text);
    buf_add_char(&text, '\0');
    const char *problem = buf_ok(&text) ? text.data : "?";
    if (c->cli->json)
        list_json(c, s, r, &o, problem);
    else
        list_row(c, s, r, &o, problem);
    buf_release(&text);
}

static struct unserved *unserved_find(struct check *c, const struct call_spec *s)
{
    struct unserved *u = c->unserved;
    while (u && !(bytes_eq(u->type, s->type) && bytes_eq(u->method, s->method)))
        u = u->next;
    return u;
}

static void count_unserved(struct check *c, const struct call_spec *s)
{
    struct unserved *u = unserved_find(c, s);
    if (!u && (u = arena_zalloc(&c->types, 1, sizeof *u))) {
        u->type = arena_copy(&c->types, s->type);
        u->method = arena_copy(&c->types, s->method);
        u->next = c->unserved;
        c->unserved = u;
    }
    if (u)
        u->runs++;
}

static void judge(struct check *c, const struct call_spec *s, const struct replay_result *r)
{
    bool ended = r->fate == REPLAY_ENDED;
    if (ended && r->outcome.end == REPLAY_UNSERVED) {
        count_unserved(c, s);
        return;
    }
    if (ended && r->outcome.end == REPLAY_PINNED) {
        c->pinned++;
        return;
    }
    c->checked++;
    if (ended && r->outcome.end == REPLAY_FITS)
        return;
    if (ended && r->outcome.end == REPLAY_BLIND)
        c->unknown++;
    else
        c->broken++;
    list_run(c, s, r);
}

/* ---- One run --------------------------------------------------------------------------------- */

/* What a pass of the run would begin with. False: it has gone since it was listed. */
static enum pawl_status read_run(struct check *c, struct arena *a, const struct call *listed,
                                 struct call *out_call, struct workflow_journal *out_journal,
                                 struct payload *out_state, bool *out_there)
{
    struct pawl_err *err = &c->err;
    struct get g = { .ids = &listed->spec.id, .n = 1, .with = WITH_INPUT };
    struct object object;
    enum pawl_status st = store_get(c->store, a, &g, err);
    *out_there = st == PAWL_OK && g.found[0] == PAWL_OK && g.out[0].seq == listed->seq;
    if (!*out_there)
        return st;
    *out_call = g.out[0];
    st = workflow_journal_read(c->store, a, listed->seq, 1, (size_t)STEPS_LEN_MAX, 0, out_journal,
                               err);
    *out_there = out_journal->seq;
    if (st != PAWL_OK || !listed->spec.key.data)
        return st;
    st = store_object(c->store, a, listed->spec.type, listed->spec.key, &object, err);
    *out_state = st == PAWL_OK ? object.state : (struct payload){ 0 };
    return st == PAWL_NOT_FOUND ? PAWL_OK : st;
}

static enum pawl_status replay_one(struct check *c, struct arena *a, const struct call *listed)
{
    struct call call;
    struct workflow_journal journal;
    struct replay r = { .call = &call, .journal = &journal, .now_us = c->now_us };
    struct replay_result result = { .fate = REPLAY_ENDED, .outcome = { .end = REPLAY_BLIND } };
    bool there;
    enum pawl_status st = read_run(c, a, listed, &call, &journal, &r.state, &there);
    if (st != PAWL_OK || !there)
        return st;
    if (journal.next)
        snprintf(result.outcome.text, sizeof result.outcome.text,
                 "its results are more than %d MiB", STEPS_LEN_MAX >> 20);
    else
        st = replay_journal(&c->conf, &r, &result, &c->err);
    if (st == PAWL_OK)
        judge(c, &call.spec, &result);
    return st;
}

static void progress(struct check *c)
{
    int64_t now_us = world_mono(&world_real);
    if (now_us < c->told_us + PROGRESS_US)
        return;
    c->told_us = now_us;
    cli_progress(c->cli, "workflow check: %" PRId64 " run%s, %" PRId64 " would break", c->checked,
                 plural(c->checked), c->broken);
}

/* ---- All runs -------------------------------------------------------------------------------- */

static bool enough(const struct check *c)
{
    return c->sample && c->checked >= c->sample;
}

static enum pawl_status check_page(struct check *c, struct arena *a, int64_t *before_seq)
{
    struct workflow_page page;
    struct arena one;
    enum pawl_status st =
        workflow_list(c->store, a,
                      &(struct workflow_query){
                          .live = true, .name = c->type, .before_seq = *before_seq, .limit = PAGE },
                      &page, &c->err);
    arena_init(&one, RUN_LEN_MAX);
    for (size_t i = 0; st == PAWL_OK && i < page.n && !enough(c); i++) {
        const struct call *call = &page.v[i].call;
        if (unserved_find(c, &call->spec))
            count_unserved(c, &call->spec);
        else
            st = replay_one(c, &one, call);
        arena_reset(&one);
        progress(c);
    }
    arena_release(&one);
    *before_seq = st == PAWL_OK && !enough(c) ? page.next_before : 0;
    return st;
}

static enum pawl_status check_all(struct check *c)
{
    struct arena a;
    int64_t before_seq = 0;
    enum pawl_status st = store_now(c->store, &c->now_us, &c->err);
    if (st == PAWL_OK)
        st = replay_modules(&c->conf, &c->err);
    arena_init(&a, PAGE_LEN_MAX);
    while (st == PAWL_OK) {
        st = check_page(c, &a, &before_seq);
        arena_reset(&a);
        if (!before_seq)
            break;
    }
    arena_release(&a);
    return st;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static int answer_json(struct check *c)
{
    struct buf b;
    buf_init(&b, 2 * (size_t)ANSWER_LEN_MAX);
    buf_addf(&b,
             "{\"checked\":%" PRId64 ",\"fit\":%" PRId64 ",\"broken\":%" PRId64
             ",\"unknown\":%" PRId64 ",\"runs\":[",
             c->checked, c->checked - c->broken - c->unknown, c->broken, c->unknown);
    buf_add_bytes(&b, buf_bytes(&c->json));
    b.failed |= !buf_ok(&c->json);
    buf_addf(&b, "],\"truncated\":%s,\"pinned\":%" PRId64 ",\"not_served\":[",
             c->listed > LISTED_MAX ? "true" : "false", c->pinned);
    for (const struct unserved *u = c->unserved; u; u = u->next) {
        json_add_comma(&b);
        buf_add_char(&b, '{');
        text_json(&b, "type", u->type);
        text_json(&b, "method", u->method);
        json_add_name(&b, "runs");
        buf_addf(&b, "%" PRId64 "}", u->runs);
    }
    buf_add_text(&b, "]}");
    int code = cli_table_send(c->cli, &b);
    buf_release(&b);
    return code;
}

static int answer_text(struct check *c)
{
    FILE *out = c->cli->out;
    cli_progress_end(c->cli);
    if (c->table.n) {
        cli_table_print(c->cli, &c->table);
        fputc('\n', out);
    }
    if (c->listed > LISTED_MAX)
        fprintf(out, "only the newest %d of them are listed\n", LISTED_MAX);
    fprintf(out, "%" PRId64 " live run%s checked: %" PRId64 " fit, %" PRId64 " would break",
            c->checked, plural(c->checked), c->checked - c->broken - c->unknown, c->broken);
    if (c->unknown)
        fprintf(out, ", %" PRId64 " cannot be checked to the end", c->unknown);
    fputc('\n', out);
    if (c->pinned)
        fprintf(out, "pinned to other versions: %" PRId64 " live run%s\n", c->pinned,
                plural(c->pinned));
    for (const struct unserved *u = c->unserved; u; u = u->next)
        fprintf(out, "not served: %.*s.%.*s, %" PRId64 " live run%s\n", BYTES_ARG(u->type),
                BYTES_ARG(u->method), u->runs, plural(u->runs));
    return cli_done(c->cli);
}

/* ---- The command ----------------------------------------------------------------------------- */

static enum pawl_status options_take(struct check *c)
{
    struct cli *cli = c->cli;
    struct pawl_err *err = &c->err;
    const struct setting_value *modules = &cli->settings.v[SET_MODULE];
    const char *type = cli_option(cli, "type"), *fault = type ? name_fault(bytes_of(type)) : NULL;
    if (!modules->n_items)
        return err_set(err, PAWL_INVALID, "option --module is missing: the module to be deployed");
    if (fault)
        return err_set(err, PAWL_INVALID, "option --type: %s", fault);
    c->type = bytes_of(type);
    c->conf.modules = modules->items;
    c->conf.n_modules = modules->n_items;
    if (cli_flag(cli, "sample") &&
        cli_int(cli, "sample", 1, SAMPLE_MAX, &c->sample, err) != PAWL_OK)
        return err->status;
    enum pawl_status st = cli_duration(cli, "timeout", &c->conf.timeout_us, err);
    if (st == PAWL_OK && (c->conf.timeout_us < MS_US || c->conf.timeout_us > DURATION_MAX_US))
        st = err_set(err, PAWL_INVALID, "option --timeout: must be at least 1ms");
    return st == PAWL_OK ? settings_settle(&cli->settings, err) : st;
}

int workflow_check(struct cli *cli)
{
    static const char *const columns[] = { "run",   "workflow", "no", "stored",
                                           "asked", "problem",  NULL };
    struct check c = { .cli = cli };
    arena_init(&c.types, TYPES_LEN_MAX);
    buf_init(&c.json, ANSWER_LEN_MAX);
    cli_table_init(&c.table, columns);
    enum pawl_status st = options_take(&c);
    if (st == PAWL_OK)
        st = db_command_open(cli, STORE_READER, &c.store, &c.err);
    c.conf.store = c.store;
    if (st == PAWL_OK)
        st = check_all(&c);
    int code = st != PAWL_OK ? cli_fail(cli, &c.err)
               : cli->json   ? answer_json(&c)
                             : answer_text(&c);
    store_close(c.store);
    cli_table_release(&c.table);
    buf_release(&c.json);
    arena_release(&c.types);
    return code ? code : c.broken ? EXIT_BROKEN : 0;
}
