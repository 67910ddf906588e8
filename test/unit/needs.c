/*
 * needs.c - what a run that has begun needs, and which workers have a version of its code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/limits.h"
#include "base/macros.h"
#include "check.h"
#include "model/needs.h"

static struct arena a;

/* The list as text with spaces. */
static const char *listed(const struct bytes *v, size_t n)
{
    const char *out = "";
    for (size_t i = 0; i < n; i++)
        out = arena_printf(&a, "%s%s%.*s", out, i ? " " : "", BYTES_ARG(v[i]));
    return out;
}

static struct bytes name(const char *version, const char *type)
{
    char text[NEED_VERSION_LEN_MAX];
    return arena_copy(&a, version_name(bytes_of(version), bytes_of(type), text));
}

TEST(a_version_is_a_short_name)
{
    static const char *const good[] = { "1", "2.0.1-rc:3_x",
                                        "0123456789abcdef0123456789abcdef01234567",
                                        "12345678901234567890123456789012345678901234567890" };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        EQ_PTR(version_fault(bytes_of(good[i])), NULL);
    EQ_STR(version_fault(BYTES("")), "is empty");
    EQ_STR(version_fault(BYTES("123456789012345678901234567890123456789012345678901")),
           "is longer than 50 bytes");
    static const char *const bad[] = { "a b", "1@2", "1\n2", "\xc3\xa4", "a/b" };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        HAS_STR(version_fault(bytes_of(bad[i])), "other characters");
}

TEST(what_a_run_needs_is_added_and_taken_away)
{
    static const struct bytes given[] = { BYTES("0"), BYTES("gpu"), BYTES("v:1") };
    arena_init(&a, 1 << 20);
    for (size_t n = 0; n <= COUNT_OF(given); n++) {
        const struct bytes *v = given;
        size_t m = n;
        OK(needs_begin(&a, BYTES_NONE, &v, &m, NULL), NULL);
        EQ_UINT(m, n + 1);
        TRUE(needs_steps(v, m));
        TRUE(!(needs_version(v, m)).data);
        OK(needs_begin(&a, BYTES("2"), &v, &m, NULL), NULL);
        OK(needs_begin(&a, BYTES("2"), &v, &m, NULL), NULL); /* it has them */
        EQ_UINT(m, n + 2);
        EQ_STR(listed(v, m), n == 0   ? "@steps @v:2"
                             : n == 1 ? "0 @steps @v:2"
                             : n == 2 ? "0 @steps @v:2 gpu"
                                      : "0 @steps @v:2 gpu v:1");
        EQ_STR(listed(&(struct bytes){ needs_version(v, m).data, needs_version(v, m).len }, 1),
               "2");
        v = needs_given(&a, v, &m);
        EQ_UINT(m, n);
        EQ_STR(listed(v, m), listed(given, n));
    }
    arena_release(&a);
}

TEST(a_worker_has_a_version_for_a_type_or_for_all)
{
    arena_init(&a, 1 << 20);
    const struct bytes node[] = { NEED_STEPS, name("1", "order"), name("2", "a@b"), BYTES("gpu") };
    const struct bytes http[] = { NEED_STEPS, name("1", NULL), BYTES("v:1") };
    EQ_STR(listed(node, 4), "@steps @v:1@order @v:2@a@b gpu");
    EQ_STR(listed(http, 3), "@steps @v:1 v:1");
    static const struct {
        const char *version, *type;
        bool node, http;
    } v[] = {
        { "1", "order", true, true },     { "2", "order", false, false },
        { "1", "approval", false, true }, { "2", "a@b", true, false },
        { "2", "a", false, false },       { "2", "b", false, false },
        { "11", "order", false, false },  { "1", "orde", false, true },
    };
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        struct bytes version = bytes_of(v[i].version), type = bytes_of(v[i].type);
        EQ_INT(needs_version_served(version, type, node, COUNT_OF(node)), v[i].node);
        EQ_INT(needs_version_served(version, type, http, COUNT_OF(http)), v[i].http);
        FALSE(needs_version_served(version, type, NULL, 0));
    }
    arena_release(&a);
}

TEST(the_longest_names_fit)
{
    char type[NAME_LEN_MAX + 1], version[VERSION_LEN_MAX + 1], text[NEED_VERSION_LEN_MAX];
    memset(type, 't', NAME_LEN_MAX);
    memset(version, 'v', VERSION_LEN_MAX);
    type[NAME_LEN_MAX] = version[VERSION_LEN_MAX] = '\0';
    struct bytes it = version_name(bytes_of(version), bytes_of(type), text);
    EQ_UINT(it.len, 3 + VERSION_LEN_MAX + 1 + NAME_LEN_MAX);
    TRUE(needs_version_served(bytes_of(version), bytes_of(type), &it, 1));
}

TEST(a_worker_says_one_version_or_none)
{
    arena_init(&a, 1 << 20);
    const struct bytes one = name("1", NULL), two = name("2", NULL), typed = name("3", "t");
    const struct bytes v[] = { NEED_STEPS, one, typed, BYTES("v:9") };
    const struct bytes w[] = { one, two };
    EQ_STR(listed(&(struct bytes){ needs_one_version(v, 4).data, 1 }, 1), "1");
    TRUE(!(needs_one_version(w, 2)).data);
    TRUE(!(needs_one_version(&typed, 1)).data);
    TRUE(!(needs_one_version(v, 1)).data);
    TRUE(!(needs_one_version(NULL, 0)).data);
    EQ_STR(listed(&(struct bytes){ version_in_has(BYTES("v:2.0")).data, 3 }, 1), "2.0");
    TRUE(!(version_in_has(BYTES("v"))).data);
    TRUE(!(version_in_has(BYTES("gpu"))).data);
    TRUE(version_in_has(BYTES("v:")).data != NULL); /* and it is refused as empty */
    arena_release(&a);
}

/* What is in a table may be damaged: it is no version, and nobody has it. */
TEST(a_stored_name_that_is_no_version_is_none)
{
    static const struct bytes v[] = { BYTES("@v:"), BYTES("@v:a b"), BYTES("@v:1@t"), BYTES("@"),
                                      BYTES("") };
    for (size_t i = 0; i < COUNT_OF(v); i++)
        TRUE(!(needs_version(&v[i], 1)).data);
}
