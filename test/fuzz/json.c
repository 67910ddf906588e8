/*
 * json.c - fuzz: our parser accepts the same texts as jansson, with the same strings in the same
 * places, and the canonical text means the same.
 *
 * Allowed differences: jansson has no numbers beyond its types and no NUL in names, and we limit
 * nesting. Duplicate names are not compared, because JSON does not define which one counts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "jansson_apart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FLAGS (JSON_DECODE_ANY | JSON_ALLOW_NUL)

static void differ(const char *what, struct bytes text)
{
    fprintf(stderr, "%s: %.*s\n", what, BYTES_ARG(text));
    abort();
}

/* Compare our strings with theirs. */
static void strings(struct arena *a, const struct json *v, json_t *theirs)
{
    struct bytes ours = json_string(a, v), back;
    struct json *again;
    struct buf b;
    if (ours.len != json_string_length(theirs) ||
        memcmp(ours.data, json_string_value(theirs), ours.len) != 0)
        differ("another string", v->raw);
    buf_init(&b, 16 << 20);
    json_add_string(&b, ours);
    CHECK(buf_ok(&b) && json_parse(a, buf_bytes(&b), &again, NULL) == PAWL_OK);
    back = json_string(a, again);
    if (!bytes_eq(back, ours))
        differ("written and read again", v->raw);
    buf_release(&b);
}

/* The parser limits the nesting. */
static void compare(struct arena *a, const struct json *v, json_t *theirs)
{
    static const json_type types[] = {
        [JSON_NULL] = JANSSON_NULL,    [JSON_FALSE] = JANSSON_FALSE,   [JSON_TRUE] = JANSSON_TRUE,
        [JSON_NUMBER] = JSON_REAL,     [JSON_STRING] = JANSSON_STRING, [JSON_ARRAY] = JANSSON_ARRAY,
        [JSON_OBJECT] = JANSSON_OBJECT
    };
    json_type type = json_typeof(theirs) == JSON_INTEGER ? JSON_REAL : json_typeof(theirs);
    size_t n = 0;
    if (types[v->kind] != type)
        differ("another kind", v->raw);
    if (v->kind == JSON_STRING)
        strings(a, v, theirs);
    for (const struct json *c = v->first; c; c = c->next, n++) {
        struct bytes name = v->kind == JSON_OBJECT ? json_name(a, c) : BYTES_NONE;
        json_t *child =
            v->kind == JSON_OBJECT ? json_object_get(theirs, name.data) : json_array_get(theirs, n);
        if (!child)
            differ("a member they do not have", c->raw);
        compare(a, c, child);
    }
    if (n != v->count)
        differ("another count", v->raw);
}

static void canonical(struct arena *a, struct bytes text, json_t *theirs)
{
    struct bytes once, twice;
    json_error_t error;
    CHECK(json_canonical(a, text, &once, NULL) == PAWL_OK && once.len <= text.len);
    CHECK(json_canonical(a, once, &twice, NULL) == PAWL_OK);
    if (!bytes_eq(once, twice))
        differ("canonical twice", text);
    if (!theirs)
        return;
    json_t *same = json_loadb(once.data, once.len, FLAGS, &error);
    if (!same || !json_equal(same, theirs))
        differ("the canonical text means something else", text);
    json_decref(same);
}

/* An error of jansson that we do not have. */
static bool theirs_alone(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct arena a;
    struct json *ours = NULL;
    struct pawl_err err = { 0 };
    json_error_t error;
    /* In its own block, so that the sanitizer sees a read past its end. */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, data, len);
    struct bytes text = { copy, len };
    arena_init(&a, 64 << 20);
    enum pawl_status st = json_parse(&a, text, &ours, &err);
    bool deep = st == PAWL_OK && ours->levels > JSON_DEPTH_MAX; /* a document, and no value */
    if ((st == PAWL_OK && !deep) != (json_check(text, NULL) == PAWL_OK))
        differ("checked and parsed", text);
    json_t *theirs = json_loadb(copy, len, FLAGS, &error);
    /* jansson reads past a NUL byte between two tokens; our parser refuses it. */
    bool nul = memchr(copy, 0, len) != NULL;
    if (nul && st == PAWL_OK)
        differ("a NUL byte", text);
    bool nested = st != PAWL_OK && strstr(err.text, "nesting");
    if ((st == PAWL_OK) != (theirs != NULL) && !nested && !nul &&
        !(st == PAWL_OK && theirs_alone(&error)))
        differ(theirs ? err.text : error.text, text);
    if (st == PAWL_OK && !deep) {
        json_t *single = json_loadb(copy, len, FLAGS | JSON_REJECT_DUPLICATES, &error);
        if (single)
            compare(&a, ours, single);
        canonical(&a, text, single);
        json_decref(single);
    }
    json_decref(theirs);
    arena_release(&a);
    free(copy);
    return 0;
}
