/*
 * settings.c - reading settings from the environment and the command line against their table.
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

#define SETTING_ROW(id, name, kind, fallback, min, max, meaning)                                   \
    [SET_##id] = { name, SETTING_##kind, fallback, min, max, meaning },
const struct setting setting_table[SETTING_COUNT] = { SETTING_MAP(SETTING_ROW) };
#undef SETTING_ROW

#define VARIABLE_LEN_MAX 64

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

const char *setting_from_text(enum setting_from from)
{
    static const char *const names[] = {
        [FROM_DEFAULT] = "default",
        [FROM_ENVIRONMENT] = "environment",
        [FROM_COMMAND_LINE] = "command line",
    };
    return names[from];
}

/* ---- One value ------------------------------------------------------------------------------- */

/* "--pool-size" or "PAWL_POOL_SIZE": the words in which the user gave it. */
static void origin_text(int id, enum setting_from from, char *out, size_t size)
{
    if (from == FROM_COMMAND_LINE)
        snprintf(out, size, "--%s", setting_table[id].name);
    else
        setting_variable(id, out, size);
    for (char *c = out; from == FROM_COMMAND_LINE && *c; c++)
        if (*c == '_')
            *c = '-';
}

static void number_text(const struct setting *row, int64_t n, char out[32])
{
    if (row->kind == SETTING_DURATION)
        duration_text(n, out);
    else
        snprintf(out, 32, "%" PRId64, n);
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

static enum pawl_status take(struct settings *s, int id, struct setting_value given,
                             struct pawl_err *err)
{
    const struct setting *row = &setting_table[id];
    char origin[VARIABLE_LEN_MAX];
    int64_t n = 0;
    origin_text(id, given.from, origin, sizeof(origin));
    if (row->kind == SETTING_INT && !int_parse(bytes_of(given.text), &n))
        return err_set(err, PAWL_INVALID, "%s: \"%.100s\" is not a whole number", origin,
                       given.text);
    if (row->kind == SETTING_DURATION && !duration_parse(bytes_of(given.text), &n))
        return err_set(err, PAWL_INVALID,
                       "%s: \"%.100s\" is not a duration such as 500ms, 5s, 2m or 7d", origin,
                       given.text);
    if (row->kind != SETTING_TEXT && (n < row->min || (row->max && n > row->max)))
        return out_of_range(id, origin, given.text, err);
    given.number = n;
    s->v[id] = given;
    return PAWL_OK;
}

enum pawl_status settings_set(struct settings *s, int id, const char *text, struct pawl_err *err)
{
    return take(s, id, (struct setting_value){ .text = text, .from = FROM_COMMAND_LINE }, err);
}

enum pawl_status settings_init(struct settings *s, struct pawl_err *err)
{
    enum pawl_status first = PAWL_OK;
    *s = (struct settings){ 0 };
    for (int i = 0; i < SETTING_COUNT; i++) {
        char variable[VARIABLE_LEN_MAX];
        struct setting_value fallback = { .text = setting_table[i].fallback };
        CHECK(take(s, i, fallback, NULL) == PAWL_OK);
        setting_variable(i, variable, sizeof(variable));
        const char *text = getenv(variable);
        if (!text || !*text) /* set but empty is how shells unset a thing for one command */
            continue;
        struct setting_value given = { .text = text, .from = FROM_ENVIRONMENT };
        enum pawl_status st = take(s, i, given, first == PAWL_OK ? err : NULL);
        if (first == PAWL_OK)
            first = st;
    }
    return first;
}

/* ---- Together -------------------------------------------------------------------------------- */

/* `--db env:NAME`: the URL, with its password, stays out of the command line and so out of ps. */
static enum pawl_status follow_env(struct setting_value *db, struct pawl_err *err)
{
    if (strncmp(db->text, "env:", 4) != 0)
        return PAWL_OK;
    const char *name = db->text + 4;
    const char *text = getenv(name);
    if (!text || !*text)
        return err_set(err, PAWL_INVALID, "setting \"db\": the environment has no %.100s",
                       *name ? name : "variable without a name");
    db->via = name;
    db->text = text;
    return PAWL_OK;
}

/* What is no URL at all may be a secret all the same ("host=h password=p"), so it is not repeated.
 */
static enum pawl_status check_db(const struct setting_value *db, struct pawl_err *err)
{
    size_t scheme = strspn(db->text, "abcdefghijklmnopqrstuvwxyz0123456789+");
    if (scheme > 0 && db->text[scheme] == ':')
        return PAWL_OK;
    return err_set(err, PAWL_INVALID, "setting \"db\" (%s): must be a URL such as sqlite:pawl.db",
                   setting_from_text(db->from));
}

enum pawl_status settings_settle(struct settings *s, struct pawl_err *err)
{
    struct setting_value *v = s->v;
    enum pawl_status st = follow_env(&v[SET_DB], err);
    if (st == PAWL_OK)
        st = check_db(&v[SET_DB], err);
    if (st != PAWL_OK)
        return st;
    if (v[SET_HEARTBEAT_GRACE].number < 2 * v[SET_HEARTBEAT_INTERVAL].number)
        return err_set(err, PAWL_INVALID,
                       "setting \"heartbeat_grace\": %s must be at least twice "
                       "heartbeat_interval (%s)",
                       v[SET_HEARTBEAT_GRACE].text, v[SET_HEARTBEAT_INTERVAL].text);
    return PAWL_OK;
}

struct pawl_options settings_options(const struct settings *s)
{
    const struct setting_value *v = s->v;
    /* In struct pawl_options 0 means the default, so "not at all" is a microsecond, or below 0. */
    return (struct pawl_options){
        PAWL_OPTIONS_INIT,
        .db = v[SET_DB].text,
        .schema = v[SET_SCHEMA].text,
        .node = *v[SET_NODE].text ? v[SET_NODE].text : NULL,
        .pool_size = (int)v[SET_POOL_SIZE].number,
        .heartbeat_interval_us = v[SET_HEARTBEAT_INTERVAL].number,
        .heartbeat_grace_us = v[SET_HEARTBEAT_GRACE].number,
        .reclaim_interval_us = v[SET_RECLAIM_INTERVAL].number,
        .retention_us = MAX(v[SET_RETENTION].number, 1),
        .remember_us = MAX(v[SET_REMEMBER].number, 1),
        .gc_interval_us = v[SET_GC_INTERVAL].number ? v[SET_GC_INTERVAL].number : -1,
    };
}
