/*
 * settings.c - read settings from the environment and the command line; conf.c adds those from the
 * file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "exec/node.h"

#define SETTING_ROW(id, name, kind, fallback, min, max, when, meaning)                             \
    [SET_##id] = { name, SETTING_##kind, fallback, min, max, SETTING_##when, meaning },
const struct setting setting_table[SETTING_COUNT] = { SETTING_MAP(SETTING_ROW) };
#undef SETTING_ROW

#define VARIABLE_LEN_MAX 64
/* Room for a few thousand tokens or queues; more is a mistake. */
#define SETTINGS_LEN_MAX (4 << 20)

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

int setting_find(const char *name)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (same_name(name, setting_table[i].name))
            return i;
    return -1;
}

void setting_variable(int id, char *out, size_t size)
{
    int len = snprintf(out, size, "PAWL_%s", setting_table[id].name);
    for (int i = 0; i < len && (size_t)i < size; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
}

const char *setting_choices(int id)
{
    switch (id) {
    case SET_RECLAIM_ACTION:
        return "requeue, fail";
    case SET_VERSIONS:
        return "pin, follow";
    case SET_LOG_LEVEL:
        return "debug, info, warn, error";
    case SET_LOG_FORMAT:
        return "auto, text, json";
    default:
        return NULL;
    }
}

bool setting_secret(int id)
{
    enum setting_kind kind = setting_table[id].kind;
    return kind == SETTING_SECRET || kind == SETTING_LINES;
}

static bool is_list(int id)
{
    enum setting_kind kind = setting_table[id].kind;
    return kind == SETTING_LIST || kind == SETTING_LINES;
}

void setting_from_text(const struct settings *s, int id, char *out, size_t size)
{
    static const char *const names[] = { "default", "file", "environment", "command line" };
    const struct setting_value *v = &s->v[id];
    if (v->from == FROM_FILE)
        snprintf(out, size, "%s:%d", s->file, v->line);
    else
        snprintf(out, size, "%s%s%s", names[v->from], v->via ? ", env:" : "", v->via ? v->via : "");
}

void setting_blame(const struct settings *s, int id, size_t item, struct pawl_err *err)
{
    const struct setting_value *v = &s->v[id];
    struct pawl_err why = *err;
    if (v->from == FROM_FILE)
        err_set(err, why.status, "%.150s:%d: %s", s->file,
                v->lines && item < v->n_items ? v->lines[item] : v->line, why.text);
}

void setting_shown(const struct settings *s, int id, char *out, size_t size)
{
    const struct setting_value *v = &s->v[id];
    if (setting_table[id].kind == SETTING_LINES && v->n_items)
        snprintf(out, size, "%zu set", v->n_items);
    else if (setting_secret(id))
        snprintf(out, size, "%s", *v->text ? "***" : "");
    else
        url_safe(v->text, out, size);
}

/* ---- One value ------------------------------------------------------------------------------- */

/* The name as the user wrote it: "--pool-size", "PAWL_POOL_SIZE" or "pool_size". */
static void origin_text(int id, enum setting_from from, char *out, size_t size)
{
    if (from == FROM_COMMAND_LINE)
        snprintf(out, size, "--%s", setting_table[id].name);
    else if (from == FROM_FILE)
        snprintf(out, size, "%s", setting_table[id].name);
    else
        setting_variable(id, out, size);
    for (char *c = out; from == FROM_COMMAND_LINE && *c; c++)
        if (*c == '_')
            *c = '-';
}

static void number_text(const struct setting *row, int64_t n, char out[32])
{
    if (row->kind == SETTING_INT)
        snprintf(out, 32, "%" PRId64, n);
    else
        duration_text(n, out);
}

static enum pawl_status out_of_range(int id, const char *origin, const char *text,
                                     struct pawl_err *err)
{
    const struct setting *row = &setting_table[id];
    char min[32], max[32];
    number_text(row, row->min, min);
    number_text(row, row->max, max);
    if (row->max)
        return err_set(err, PAWL_INVALID, "%s: \"%.100s\" must be %s to %s", origin, text, min,
                       max);
    return err_set(err, PAWL_INVALID, "%s: \"%.100s\" must be at least %s", origin, text, min);
}

static bool bool_parse(const char *text, int64_t *out)
{
    static const char *const yes[] = { "yes", "true", "on", "1", "" };
    static const char *const no[] = { "no", "false", "off", "0" };
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        if (strcmp(text, yes[i]) == 0)
            return *out = 1, true;
    for (size_t i = 0; i < COUNT_OF(no); i++)
        if (strcmp(text, no[i]) == 0)
            return *out = 0, true;
    return false;
}

/* Two durations, "5ms to 250ms", or one duration for both. */
static bool range_parse(const char *text, int64_t *out_first, int64_t *out_last)
{
    const char *to = strstr(text, " to ");
    if (!to)
        return duration_parse(bytes_of(text), out_first) && (*out_last = *out_first, true);
    return duration_parse((struct bytes){ text, (size_t)(to - text) }, out_first) &&
           duration_parse(bytes_of(to + 4), out_last) && *out_first <= *out_last;
}

static bool choice_known(const char *choices, const char *text)
{
    assert(choices);
    for (const char *at = choices; *at;) {
        size_t len = strcspn(at, ",");
        if (strlen(text) == len && strncmp(at, text, len) == 0)
            return true;
        at += len + strspn(at + len, ", ");
    }
    return false;
}

/* Parse `given` and fill in its numbers. Returns NULL when it is valid, else what was expected. */
static const char *fault_of(int id, struct setting_value *given)
{
    switch (setting_table[id].kind) {
    case SETTING_TEXT:
    case SETTING_SECRET:
    case SETTING_LIST:
    case SETTING_LINES:
        return NULL;
    case SETTING_INT:
        return int_parse(bytes_of(given->text), &given->number) ? NULL : "is not a whole number";
    case SETTING_DURATION:
        return duration_parse(bytes_of(given->text), &given->number)
                   ? NULL
                   : "is not a duration such as 500ms, 5s, 2m or 7d";
    case SETTING_RANGE:
        return range_parse(given->text, &given->number, &given->last)
                   ? NULL
                   : "is not a duration, or two as in 5ms to 250ms";
    case SETTING_BOOL:
        return bool_parse(given->text, &given->number) ? NULL : "is neither yes nor no";
    case SETTING_CHOICE:
        return choice_known(setting_choices(id), given->text) ? NULL : "is unknown";
    }
    return NULL;
}

static enum pawl_status take(struct settings *s, int id, struct setting_value given,
                             struct pawl_err *err)
{
    const struct setting *row = &setting_table[id];
    char origin[VARIABLE_LEN_MAX];
    const char *fault = fault_of(id, &given);
    origin_text(id, given.from, origin, sizeof(origin));
    if (fault && row->kind == SETTING_CHOICE)
        return err_set(err, PAWL_INVALID, "%s: \"%.100s\" is unknown; expected %s", origin,
                       given.text, setting_choices(id));
    if (fault)
        return err_set(err, PAWL_INVALID, "%s: \"%.100s\" %s", origin, given.text, fault);
    bool number =
        row->kind == SETTING_INT || row->kind == SETTING_DURATION || row->kind == SETTING_RANGE;
    if (number && (given.number < row->min || (row->max && given.number > row->max)))
        return out_of_range(id, origin, given.text, err);
    s->v[id] = given;
    return PAWL_OK;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Append items; the text becomes all items with commas between them. */
static bool list_add(struct settings *s, struct setting_value *v, const struct bytes *more,
                     size_t n)
{
    const char **items = arena_alloc(&s->arena, (v->n_items + n) * sizeof(*items));
    size_t len = 0;
    for (size_t i = 0; items && i < v->n_items + n; i++) {
        items[i] = i < v->n_items ? v->items[i] : arena_text(&s->arena, more[i - v->n_items]);
        if (!items[i])
            return false;
        len += strlen(items[i]) + 1;
    }
    char *text = items ? arena_alloc(&s->arena, len + 1) : NULL;
    if (!text)
        return false;
    *text = 0;
    v->text = text;
    v->items = items;
    v->n_items += n;
    for (size_t i = 0; i < v->n_items; i++)
        text += snprintf(text, len + 1, "%s%s", i ? "," : "", items[i]);
    return true;
}

/* Split at commas, or at white space, and trim each item. */
static enum pawl_status list_split(struct settings *s, int id, struct setting_value *v,
                                   const char *text, struct pawl_err *err)
{
    const char *between = setting_table[id].kind == SETTING_LIST ? "," : " \t\r\n";
    size_t n = 0;
    struct bytes *items = arena_alloc(&s->arena, (strlen(text) / 2 + 1) * sizeof(*items));
    for (const char *at = text; items && *at;) {
        size_t len = strcspn(at, between);
        struct bytes item = { at, len };
        while (item.len && isspace((unsigned char)item.data[0]))
            item.data++, item.len--;
        while (item.len && isspace((unsigned char)item.data[item.len - 1]))
            item.len--;
        if (item.len)
            items[n++] = item;
        at += len + (at[len] != 0);
    }
    bool ok = items && (n == 0 || list_add(s, v, items, n));
    return ok ? PAWL_OK : err_no_memory(err, "reading the settings");
}

/* Set a value from one text. On the command line, a repeated list option appends. */
static enum pawl_status give(struct settings *s, int id, const char *text, enum setting_from from,
                             struct pawl_err *err)
{
    struct setting_value given = { .text = text, .from = from };
    if (!is_list(id))
        return take(s, id, given, err);
    if (from == FROM_COMMAND_LINE && s->v[id].from == from)
        given = s->v[id];
    else
        given.text = "";
    enum pawl_status st = list_split(s, id, &given, text, err);
    return st == PAWL_OK ? take(s, id, given, err) : st;
}

enum pawl_status settings_set(struct settings *s, int id, const char *text, struct pawl_err *err)
{
    return give(s, id, text, FROM_COMMAND_LINE, err);
}

enum pawl_status settings_from_file(struct settings *s, int id, struct setting_texts texts,
                                    int line, struct pawl_err *err)
{
    struct setting_value given = { .text = "", .from = FROM_FILE, .line = line };
    struct bytes *items = arena_alloc(&s->arena, (texts.n + 1) * sizeof(*items));
    for (size_t i = 0; items && i < texts.n; i++)
        items[i] = bytes_of(texts.v[i]);
    if (!is_list(id))
        given.text = items ? arena_text(&s->arena, texts.n ? items[0] : BYTES("")) : NULL;
    else if (items && texts.n && !list_add(s, &given, items, texts.n))
        items = NULL;
    int *lines = arena_alloc(&s->arena, (texts.n + 1) * sizeof(*lines));
    if (!items || !given.text || !lines)
        return err_no_memory(err, "reading the settings");
    if (is_list(id) && texts.lines) {
        memcpy(lines, texts.lines, texts.n * sizeof(*lines));
        given.lines = lines;
    }
    /* Validated even when a stronger source has set it: an invalid line is an error either way. */
    struct setting_value strong = s->v[id];
    enum pawl_status st = take(s, id, given, err);
    if (strong.from > FROM_FILE)
        s->v[id] = strong;
    return st;
}

void settings_release(struct settings *s)
{
    arena_release(&s->arena);
}

enum pawl_status settings_init(struct settings *s, struct pawl_err *err)
{
    enum pawl_status first = PAWL_OK;
    *s = (struct settings){ 0 };
    arena_init(&s->arena, SETTINGS_LEN_MAX);
    for (int i = 0; i < SETTING_COUNT; i++) {
        char variable[VARIABLE_LEN_MAX];
        CHECK(take(s, i, (struct setting_value){ .text = setting_table[i].fallback }, NULL) ==
              PAWL_OK);
        setting_variable(i, variable, sizeof(variable));
        const char *text = getenv(variable);
        if (!text || !*text) /* a variable that is set but empty counts as not set */
            continue;
        enum pawl_status st = give(s, i, text, FROM_ENVIRONMENT, first == PAWL_OK ? err : NULL);
        if (first == PAWL_OK)
            first = st;
    }
    return first;
}

/* ---- Checks across settings ------------------------------------------------------------------ */

/* With `--db env:NAME` the URL and its password do not appear on the command line, nor in ps. */
static enum pawl_status follow_env(struct settings *s, struct pawl_err *err)
{
    struct setting_value *db = &s->v[SET_DB];
    if (strncmp(db->text, "env:", 4) != 0)
        return PAWL_OK;
    const char *name = db->text + 4;
    const char *text = getenv(name);
    if (!text || !*text) {
        err_set(err, PAWL_INVALID,
                "setting \"db\" is env:%.100s, and the environment variable %.100s is not set",
                name, *name ? name : "\"\"");
        setting_blame(s, SET_DB, 0, err);
        return PAWL_INVALID;
    }
    db->via = name;
    db->text = text;
    return PAWL_OK;
}

/* A text that is not a URL may still hold a secret ("host=h password=p"), so the error does not
 * quote it. */
static enum pawl_status check_db(const struct settings *s, struct pawl_err *err)
{
    const char *text = s->v[SET_DB].text;
    char from[600];
    size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+");
    if (scheme > 0 && text[scheme] == ':')
        return PAWL_OK;
    setting_from_text(s, SET_DB, from, sizeof(from));
    return err_set(
        err, PAWL_INVALID,
        "setting \"db\" (%.300s): must be a URL: sqlite:PATH, postgres://..., mysql://...", from);
}

enum pawl_status settings_duties(const struct settings *s, unsigned *out, struct pawl_err *err)
{
    const struct setting_value *v = &s->v[SET_ROLES];
    *out = v->n_items ? 0 : DUTY_ALL;
    for (size_t i = 0; i < v->n_items; i++) {
        unsigned duty =
            strcmp(v->items[i], "all") == 0 ? DUTY_ALL : duty_find(bytes_of(v->items[i]));
        if (!duty) {
            err_set(
                err, PAWL_INVALID,
                "setting \"roles\": \"%.60s\" is unknown; expected gateway, worker, scheduler, all",
                v->items[i]);
            setting_blame(s, SET_ROLES, i, err);
            return PAWL_INVALID;
        }
        *out |= duty;
    }
    return PAWL_OK;
}

/* The error names the line of the grace; when that is the default, the line of the interval. */
static enum pawl_status check_heartbeat(const struct settings *s, struct pawl_err *err)
{
    const struct setting_value *grace = &s->v[SET_HEARTBEAT_GRACE],
                               *interval = &s->v[SET_HEARTBEAT_INTERVAL];
    if (grace->number >= 2 * interval->number)
        return PAWL_OK;
    err_set(err, PAWL_INVALID,
            "setting \"heartbeat_grace\": %s must be at least twice heartbeat_interval (%s)",
            grace->text, interval->text);
    setting_blame(s, grace->from == FROM_DEFAULT ? SET_HEARTBEAT_INTERVAL : SET_HEARTBEAT_GRACE, 0,
                  err);
    return PAWL_INVALID;
}

enum pawl_status settings_settle(struct settings *s, struct pawl_err *err)
{
    struct setting_value *v = s->v;
    unsigned duties;
    enum pawl_status st = follow_env(s, err);
    if (st == PAWL_OK)
        st = check_db(s, err);
    if (st == PAWL_OK)
        st = check_heartbeat(s, err);
    if (st == PAWL_OK)
        st = settings_duties(s, &duties, err);
    if (st != PAWL_OK || !*v[SET_TLS_CERT].text == !*v[SET_TLS_KEY].text)
        return st;
    bool cert = *v[SET_TLS_CERT].text != 0;
    err_set(err, PAWL_INVALID, "setting \"%s\" is not set, but \"%s\" is: TLS needs both",
            cert ? "tls_key" : "tls_cert", cert ? "tls_cert" : "tls_key");
    setting_blame(s, cert ? SET_TLS_CERT : SET_TLS_KEY, 0, err);
    return PAWL_INVALID;
}

struct pawl_options settings_options(const struct settings *s)
{
    const struct setting_value *v = s->v;
    /* In struct pawl_options 0 means "default", so zero is passed as 1 us, or as -1 for "off". */
    return (struct pawl_options){
        PAWL_OPTIONS_INIT,
        .db = v[SET_DB].text,
        .schema = v[SET_SCHEMA].text,
        .node = *v[SET_NODE].text ? v[SET_NODE].text : NULL,
        .pool_size = (int)v[SET_POOL_SIZE].number,
        .pool_timeout_us = v[SET_POOL_TIMEOUT].number,
        .pool_lifetime_us = v[SET_POOL_LIFETIME].number,
        .heartbeat_interval_us = v[SET_HEARTBEAT_INTERVAL].number,
        .heartbeat_grace_us = v[SET_HEARTBEAT_GRACE].number,
        .reclaim_interval_us = v[SET_RECLAIM_INTERVAL].number,
        .fail_lost = strcmp(v[SET_RECLAIM_ACTION].text, "fail") == 0,
        .pin_versions = strcmp(v[SET_VERSIONS].text, "pin") == 0,
        .poll_min_us = v[SET_POLL_INTERVAL].number,
        .poll_max_us = v[SET_POLL_INTERVAL].last,
        .retention_us = MAX(v[SET_RETENTION].number, 1),
        .remember_us = MAX(v[SET_REMEMBER].number, 1),
        .cron_runs_us = MAX(v[SET_CRON_RUNS_RETENTION].number, 1),
        .gc_interval_us = v[SET_GC_INTERVAL].number ? v[SET_GC_INTERVAL].number : -1,
        .paused = v[SET_PAUSED].number != 0,
        .max_pending_key = v[SET_MAX_PENDING_KEY].number,
    };
}
