/*
 * needs.c - capabilities as settled lists of names (needs.h). Pure, any thread.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "model/needs.h"
#include "model/words.h"

static bool name_good(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-' || c == '.' || c == ':'))
            return false;
    }
    return name.len >= 1 && name.len <= NEED_LEN_MAX;
}

static int compare(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

enum pawl_status needs_settle(struct arena *a, const struct needs_field *field,
                              const struct bytes **v, size_t *n, struct pawl_err *err)
{
    if (*n > field->max)
        return err_set(err, PAWL_INVALID, "field \"%s\": has %zu names, limit %zu", field->name, *n,
                       field->max);
    for (size_t i = 0; i < *n; i++)
        if (!name_good((*v)[i]))
            return err_set(err, PAWL_INVALID,
                           "field \"%s\": name %zu, \"%.*s\", is not 1..%d letters, digits, \"_\", "
                           "\"-\", \".\" and \":\"",
                           field->name, i + 1, BYTES_ARG(text_shown(a, (*v)[i])), NEED_LEN_MAX);
    if (*n == 0) {
        *v = NULL;
        return PAWL_OK;
    }
    struct bytes *to = arena_alloc(a, *n * sizeof *to);
    if (!to)
        return err_no_memory(err, "a list of capabilities");
    memcpy(to, *v, *n * sizeof *to);
    qsort(to, *n, sizeof *to, compare);
    size_t kept = 1;
    for (size_t i = 1; i < *n; i++)
        if (!bytes_eq(to[i], to[kept - 1]))
            to[kept++] = to[i];
    *v = to;
    *n = kept;
    return PAWL_OK;
}

enum pawl_status needs_of_json(struct arena *a, const struct json *list,
                               const struct needs_field *field, const struct bytes **v, size_t *n,
                               struct pawl_err *err)
{
    *v = NULL;
    *n = 0;
    if (!list)
        return PAWL_OK;
    if (list->count > field->max)
        return err_set(err, PAWL_INVALID, "field \"%s\": has %zu names, limit %zu", field->name,
                       list->count, field->max);
    struct bytes *names = arena_zalloc(a, list->count + 1, sizeof *names);
    for (const struct json *one = list->first; names && one; one = one->next) {
        if (one->kind != JSON_STRING)
            return err_set(err, PAWL_INVALID, "field \"%s\": name %zu, %.*s, is not a string",
                           field->name, *n + 1, (int)MIN(one->raw.len, 40), one->raw.data);
        names[(*n)++] = json_string(a, one);
    }
    *v = names;
    return a->failed ? err_no_memory(err, "a list of capabilities") : PAWL_OK;
}

bool needs_served(const struct bytes *needs, size_t n_needs, const struct bytes *has, size_t n_has)
{
    size_t at = 0;
    for (size_t i = 0; i < n_needs; i++) {
        while (at < n_has && bytes_cmp(has[at], needs[i]) < 0)
            at++;
        if (at == n_has || !bytes_eq(has[at], needs[i]))
            return false;
    }
    return true;
}

/* ---- Runs that have begun -------------------------------------------------------------------- */

/* A lane stores its needs as one text (needs_text), in 1100 bytes on MariaDB. */
static_assert(NEEDS_MAX * (NEED_LEN_MAX + 1) + sizeof "@steps" + sizeof NEED_VERSION - 1 +
                      VERSION_LEN_MAX <=
                  1100,
              "what a pinned run needs fits into its lane");
static_assert(sizeof "v:" - 1 + VERSION_LEN_MAX <= NEED_LEN_MAX, "a worker can name it in `has`");

const char *version_fault(struct bytes version)
{
    if (!version.len)
        return "is empty";
    if (version.len > VERSION_LEN_MAX)
        return "is longer than 50 bytes";
    return name_good(version) ? NULL
                              : "has other characters than letters, digits, \"_\", \"-\", \".\" "
                                "and \":\"";
}
static_assert(VERSION_LEN_MAX == 50, "the sentence says so");

struct bytes version_in_has(struct bytes name)
{
    const size_t len = sizeof "v:" - 1;
    if (name.len < len || memcmp(name.data, "v:", len) != 0)
        return BYTES_NONE;
    return (struct bytes){ name.data + len, name.len - len };
}

struct bytes version_name(struct bytes version, struct bytes type, char text[NEED_VERSION_LEN_MAX])
{
    CHECK(!version_fault(version) && type.len <= NAME_LEN_MAX);
    int len = snprintf(text, NEED_VERSION_LEN_MAX, "%s%.*s%s%.*s", NEED_VERSION, BYTES_ARG(version),
                       type.data ? "@" : "", BYTES_ARG(type));
    return (struct bytes){ text, (size_t)len };
}

bool needs_steps(const struct bytes *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes_eq(v[i], NEED_STEPS))
            return true;
    return false;
}

/* The version of a name that begins with NEED_VERSION and goes for every type; else absent. */
static struct bytes version_of(struct bytes name)
{
    const size_t len = sizeof NEED_VERSION - 1;
    if (name.len <= len || memcmp(name.data, NEED_VERSION, len) != 0)
        return BYTES_NONE;
    struct bytes version = { name.data + len, name.len - len };
    return version_fault(version) ? BYTES_NONE : version;
}

struct bytes needs_version(const struct bytes *v, size_t n)
{
    struct bytes version = BYTES_NONE;
    for (size_t i = 0; i < n && !version.data; i++)
        version = version_of(v[i]);
    return version;
}

struct bytes needs_one_version(const struct bytes *has, size_t n_has)
{
    struct bytes one = BYTES_NONE;
    for (size_t i = 0; i < n_has; i++) {
        struct bytes version = version_of(has[i]);
        if (version.data && one.data)
            return BYTES_NONE;
        one = version.data ? version : one;
    }
    return one;
}

static bool named(const struct bytes *v, size_t n, struct bytes name)
{
    return n && bsearch(&name, v, n, sizeof *v, compare);
}

bool needs_version_served(struct bytes version, struct bytes type, const struct bytes *has,
                          size_t n_has)
{
    char all[NEED_VERSION_LEN_MAX], one[NEED_VERSION_LEN_MAX];
    return named(has, n_has, version_name(version, BYTES_NONE, all)) ||
           named(has, n_has, version_name(version, type, one));
}

enum pawl_status needs_add(struct arena *a, struct bytes name, const struct bytes **v, size_t *n,
                           struct pawl_err *err)
{
    size_t at = 0;
    while (at < *n && bytes_cmp((*v)[at], name) < 0)
        at++;
    if (at < *n && bytes_eq((*v)[at], name))
        return PAWL_OK;
    struct bytes *to = arena_alloc(a, (*n + 1) * sizeof *to);
    if (!to)
        return err_no_memory(err, "a list of capabilities");
    for (size_t i = 0; i < *n; i++)
        to[i + (i >= at)] = (*v)[i];
    to[at] = name;
    *v = to;
    ++*n;
    return PAWL_OK;
}

enum pawl_status needs_begin(struct arena *a, struct bytes version, const struct bytes **v,
                             size_t *n, struct pawl_err *err)
{
    char text[NEED_VERSION_LEN_MAX];
    enum pawl_status st = needs_add(a, NEED_STEPS, v, n, err);
    if (st != PAWL_OK || !version.data)
        return st;
    struct bytes name = arena_copy(a, version_name(version, BYTES_NONE, text));
    return name.data ? needs_add(a, name, v, n, err) : err_no_memory(err, "a version");
}

const struct bytes *needs_given(struct arena *a, const struct bytes *v, size_t *n)
{
    size_t given = 0;
    struct bytes *to = *n ? arena_alloc(a, *n * sizeof *to) : NULL;
    for (size_t i = 0; to && i < *n; i++)
        if (!v[i].len || v[i].data[0] != '@')
            to[given++] = v[i];
    *n = given;
    return given ? to : NULL;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

bool needs_same(const struct bytes *v, size_t n, const struct bytes *w, size_t m)
{
    bool same = n == m;
    for (size_t i = 0; i < n && same; i++)
        same = bytes_eq(v[i], w[i]);
    return same;
}

struct bytes needs_text(struct arena *a, const struct bytes *v, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += v[i].len + (i > 0);
    char *text = n ? arena_alloc(a, len) : NULL, *at = text;
    for (size_t i = 0; text && i < n; i++) {
        if (i)
            *at++ = '\n';
        memcpy(at, v[i].data, v[i].len);
        at += v[i].len;
    }
    return text ? (struct bytes){ text, len } : BYTES_NONE;
}

bool needs_of_text(struct arena *a, struct bytes text, const struct bytes **v, size_t *n)
{
    size_t all = 1;
    *v = NULL;
    *n = 0;
    if (text.len == 0)
        return true;
    for (size_t i = 0; i < text.len; i++)
        all += text.data[i] == '\n';
    struct bytes *to = arena_alloc(a, all * sizeof *to);
    if (!to)
        return false;
    for (size_t from = 0, i = 0; i <= text.len; i++)
        if (i == text.len || text.data[i] == '\n') {
            to[(*n)++] = (struct bytes){ text.data + from, i - from };
            from = i + 1;
        }
    *v = to;
    return true;
}

const struct bytes *needs_copy(struct arena *a, const struct bytes *v, size_t n)
{
    struct bytes *to = n ? arena_alloc(a, n * sizeof *to) : NULL;
    for (size_t i = 0; to && i < n; i++)
        to[i] = arena_copy(a, v[i]);
    return to;
}
