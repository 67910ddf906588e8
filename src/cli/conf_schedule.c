/*
 * conf_schedule.c - the blocks `schedule "NAME" { ... }` of pawl.conf.
 *
 *     schedule "nightly" {
 *         cron = "0 3 * * 1-5"
 *         zone = "Europe/Berlin"
 *         type = report
 *         input = '{"kind": "daily"}'
 *         tags = { "team:shop" }
 *         backoff { base = 5s }
 *     }
 *
 * A block has the members of a schedule and of its call, from the tables of the model. It becomes
 * one flat JSON object, which is checked here as far as it can be without a database, because the
 * line numbers are known only now; `pawl serve` stores it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/cli.h"
#include "cli/conf_inside.h"
#include "model/schedule.h"
#include "model/spec_json.h"

/* Blocks in one file; there are more in no file of 1 MiB. */
#define BLOCKS_MAX 10000
#define MEMBERS_MAX 64
#define BLOCK_LEN_MAX (4 << 20)

/* ---- The table ------------------------------------------------------------------------------- */

/* A member of a block: a field of the schedule or of its call. */
struct member {
    const struct field *f;
    int line; /* where the block at hand has set it; 0: not */
};
static struct member members[MEMBERS_MAX];
static size_t n_members;

static void members_of(const struct shape *s, const char *but)
{
    for (size_t i = 0; i < s->n; i++)
        if (shape_has(s, i) && strcmp(s->v[i].name, "name") != 0 && strcmp(s->v[i].name, but) != 0)
            members[n_members++].f = &s->v[i];
}

static void members_fill(void)
{
    if (n_members)
        return;
    members_of(&schedule_shape, "call");
    members_of(&tick_spec_shape, "");
    CHECK(n_members < MEMBERS_MAX);
}

static struct member *member_find(const char *name)
{
    for (size_t i = 0; i < n_members; i++)
        if (strcmp(members[i].f->name, name) == 0)
            return &members[i];
    return NULL;
}

static bool is_list(const struct field *f)
{
    return f->kind == FIELD_TIMES || f->kind == FIELD_ARRAY ||
           (f->kind == FIELD_OBJECT && !f->shape);
}

cfg_opt_t conf_schedule_option(void)
{
    static cfg_opt_t in_block[MEMBERS_MAX], in_object[MEMBERS_MAX][16];
    cfg_opt_t end = CFG_END();
    members_fill();
    for (size_t i = 0; i < n_members; i++) {
        const struct field *f = members[i].f;
        cfg_opt_t one = CFG_STR(f->name, 0, CFGF_NODEFAULT);
        cfg_opt_t many = CFG_STR_LIST(f->name, 0, CFGF_NODEFAULT);
        in_block[i] = is_list(f) ? many : one;
        if (f->kind != FIELD_OBJECT || !f->shape)
            continue;
        CHECK(f->shape->n < 16);
        for (size_t k = 0; k < f->shape->n; k++) {
            cfg_opt_t inner = CFG_STR(f->shape->v[k].name, 0, CFGF_NODEFAULT);
            in_object[i][k] = inner;
        }
        in_object[i][f->shape->n] = end;
        cfg_opt_t object = CFG_SEC(f->name, in_object[i], CFGF_NODEFAULT);
        in_block[i] = object;
    }
    in_block[n_members] = end;
    cfg_opt_t block = CFG_SEC("schedule", in_block, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
    return block;
}

const char *conf_schedule_nearest(const char *name)
{
    struct nearest n = { .asked = name };
    for (size_t i = 0; i < n_members; i++)
        nearest_offer(&n, members[i].f->name);
    return nearest_name(&n);
}

/* ---- From texts to JSON ---------------------------------------------------------------------- */

/* A text as the JSON of this kind of field. What is no such text stays a string, and the reader of
 * schedules says what was expected. */
static void text_add(struct buf *b, const struct field *f, const char *text)
{
    static const char *const words[] = { "no", "yes", "false", "true", "off", "on" };
    struct bytes t = bytes_of(text);
    double number;
    int64_t us;
    if (f->kind == FIELD_SECONDS && duration_parse(t, &us)) {
        json_add_seconds(b, us);
        return;
    }
    if ((f->kind == FIELD_INT || f->kind == FIELD_REAL) && real_parse(t, &number) &&
        json_check(t, NULL) == PAWL_OK) {
        buf_add_bytes(b, t);
        return;
    }
    if (f->kind == FIELD_JSON && json_check(t, NULL) == PAWL_OK) {
        buf_add_bytes(b, t);
        return;
    }
    for (size_t i = 0; f->kind == FIELD_BOOL && i < COUNT_OF(words); i++)
        if (strcmp(text, words[i]) == 0) {
            buf_add_text(b, i % 2 ? "true" : "false");
            return;
        }
    json_add_string(b, t);
}

/* A list of texts, or of NAME:VALUE. False: one is not NAME:VALUE. */
static bool list_add(struct buf *b, const struct field *f, cfg_t *block)
{
    bool pairs = f->kind == FIELD_OBJECT;
    buf_add_char(b, pairs ? '{' : '[');
    for (unsigned i = 0; i < cfg_size(block, f->name); i++) {
        const char *text = cfg_getnstr(block, f->name, i);
        const char *colon = pairs ? strchr(text, ':') : NULL;
        json_add_comma(b);
        if (pairs && (!colon || colon == text))
            return false;
        if (pairs) {
            json_add_string(b, (struct bytes){ text, (size_t)(colon - text) });
            buf_add_char(b, ':');
        }
        json_add_string(b, bytes_of(pairs ? colon + 1 : text));
    }
    buf_add_char(b, pairs ? '}' : ']');
    return true;
}

static void object_add(struct buf *b, const struct shape *s, cfg_t *object)
{
    buf_add_char(b, '{');
    for (size_t i = 0; object && i < s->n; i++)
        if (cfg_size(object, s->v[i].name) > 0 && cfg_getstr(object, s->v[i].name)) {
            json_add_name(b, s->v[i].name);
            text_add(b, &s->v[i], cfg_getstr(object, s->v[i].name));
        }
    buf_add_char(b, '}');
}

/* Returns the line of a mistake, or 0. */
static int member_add(struct buf *b, const struct member *m, cfg_t *block, char *text, size_t size)
{
    const struct field *f = m->f;
    if (!m->line)
        return 0;
    json_add_name(b, f->name);
    if (is_list(f)) {
        if (list_add(b, f, block))
            return 0;
        snprintf(text, size, "field \"%s\": its items must be NAME:VALUE", f->name);
        return m->line;
    }
    if (f->kind == FIELD_OBJECT) {
        object_add(b, f->shape, cfg_getsec(block, f->name));
        return 0;
    }
    const char *value = cfg_getstr(block, f->name);
    if (f->kind == FIELD_JSON && json_check(bytes_of(value), NULL) != PAWL_OK) {
        snprintf(text, size, "field \"%s\": is not JSON", f->name);
        return m->line;
    }
    text_add(b, f, value);
    return 0;
}

/* ---- A block --------------------------------------------------------------------------------- */

/* The name that the sentence begins with: `field "every": ...` or `overlap "x" is ...`. */
static void name_in(const char *sentence, char name[64])
{
    *name = 0;
    if (sscanf(sentence, "field \"%63[a-z_0-9]", name) != 1)
        sscanf(sentence, "%63[a-z_0-9]", name);
}

/* The line of the field that the sentence names; `line` when it names none of the block. */
static int line_of(const char *sentence, int line)
{
    char name[64];
    name_in(sentence, name);
    const struct member *m = member_find(name);
    return m && m->line ? m->line : line;
}

int conf_schedule_line(const struct conf_schedule *s, const char *error)
{
    char name[64], word[70];
    int line = s->line;
    name_in(error, name);
    snprintf(word, sizeof(word), " %s=", name);
    const char *at = strstr(s->lines.data, word);
    if (at)
        sscanf(at + strlen(word), "%d", &line);
    return line;
}

/* For conf_schedule_line(), in the settings' arena. */
static struct bytes lines_keep(struct arena *a)
{
    struct buf b;
    buf_init(&b, BLOCK_LEN_MAX);
    buf_add_char(&b, ' ');
    for (size_t i = 0; i < n_members; i++)
        if (members[i].line)
            buf_addf(&b, "%s=%d ", members[i].f->name, members[i].line);
    struct bytes lines = buf_ok(&b) ? arena_copy(a, buf_bytes(&b)) : BYTES_NONE;
    buf_release(&b);
    return lines;
}

static void refuse_block(const char *title, int line, const char *why)
{
    char text[400];
    snprintf(text, sizeof(text), "schedule \"%.100s\": %.280s", title, why);
    conf_refuse(line, text);
}

/* Read the block's JSON as serve will, and check what needs no database. */
static enum pawl_status block_check(struct bytes text, struct pawl_err *err)
{
    const struct schedule_limits limits = { 0 };
    struct schedule s;
    struct json *v;
    struct arena a;
    arena_init(&a, BLOCK_LEN_MAX);
    enum pawl_status st = json_parse(&a, text, &v, err);
    if (st == PAWL_OK)
        st = schedule_read_flat(&a, v, &limits, &s, err);
    arena_release(&a);
    return st;
}

static bool block_keep(struct settings *s, const char *title, struct bytes text, int line)
{
    if (s->n_schedules % 64 == 0) {
        struct conf_schedule *v = arena_zalloc(&s->arena, s->n_schedules + 64, sizeof(*v));
        if (!v)
            return false;
        if (s->n_schedules)
            memcpy(v, s->schedules, s->n_schedules * sizeof(*v));
        s->schedules = v;
    }
    struct conf_schedule *one = &s->schedules[s->n_schedules];
    one->name = arena_text(&s->arena, bytes_of(title));
    one->text = arena_copy(&s->arena, text);
    one->line = line;
    one->lines = lines_keep(&s->arena);
    if (!one->name || !one->text.data || !one->lines.data)
        return false;
    s->n_schedules++;
    return true;
}

static bool block_take(cfg_t *block, int line)
{
    struct settings *s = conf_settings();
    struct pawl_err err = { 0 };
    const char *title = cfg_title(block), *bad = name_fault(bytes_of(title));
    struct buf b;
    char text[520] = "";
    int wrong = bad ? line : s->n_schedules >= BLOCKS_MAX ? line : 0;
    if (bad)
        snprintf(text, sizeof(text), "field \"name\": %s", bad);
    else if (wrong)
        snprintf(text, sizeof(text), "there are more than 10000 schedules");
    buf_init(&b, BLOCK_LEN_MAX);
    buf_add_char(&b, '{');
    for (size_t i = 0; i < n_members && !wrong; i++)
        wrong = member_add(&b, &members[i], block, text, sizeof(text));
    buf_add_char(&b, '}');
    if (!wrong && (!buf_ok(&b) || block_check(buf_bytes(&b), &err) != PAWL_OK)) {
        snprintf(text, sizeof(text), "%s", buf_ok(&b) ? err.text : "is too long");
        wrong = line_of(text, line);
    }
    if (!wrong && !block_keep(s, title, buf_bytes(&b), line)) {
        snprintf(text, sizeof(text), "no memory to read it");
        wrong = line;
    }
    buf_release(&b);
    if (wrong)
        refuse_block(title, wrong, text);
    return !wrong;
}

/* ---- Callbacks of libconfuse ----------------------------------------------------------------- */

/* Called after each value of a block; after each item of a list, and once more at its end. */
static int on_member(cfg_t *cfg, cfg_opt_t *opt)
{
    struct member *m = member_find(cfg_opt_name(opt));
    CHECK(m);
    if (m->line && !is_list(m->f)) {
        char text[160];
        snprintf(text, sizeof(text), "field \"%s\": was set before, on line %d", m->f->name,
                 m->line);
        refuse_block(cfg_title(cfg), cfg->line, text);
        return -1;
    }
    m->line = cfg->line;
    return 0;
}

/* Called at the end of a block. */
static int on_block(cfg_t *cfg, cfg_opt_t *opt)
{
    (void)cfg;
    cfg_t *block = cfg_opt_getnsec(opt, cfg_opt_size(opt) - 1);
    bool ok = block_take(block, conf_block_line());
    for (size_t i = 0; i < n_members; i++)
        members[i].line = 0;
    return ok ? 0 : -1;
}

void conf_schedule_watch(cfg_t *cfg)
{
    char path[80];
    struct settings *s = conf_settings();
    s->schedules = NULL;
    s->n_schedules = 0;
    for (size_t i = 0; i < n_members; i++) {
        members[i].line = 0;
        snprintf(path, sizeof(path), "schedule|%s", members[i].f->name);
        cfg_set_validate_func(cfg, path, on_member);
    }
    cfg_set_validate_func(cfg, "schedule", on_block);
}
