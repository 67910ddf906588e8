/*
 * lib_args.c - misuse of pawl.h is reported, never a crash; and every limit, exactly at it and one
 * beyond.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

#define INVALID(call) EQ_STATUS(call, PAWL_INVALID, &err)

/* ---- NULL and nonsense ---- */

TEST(missing_arguments_are_invalid)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_receipt r;
    struct pawl_shown *shown;
    struct pawl_page *page;
    struct pawl_attempts *at;
    struct pawl_queues *q;
    struct pawl_lease *l;
    struct pawl_spec s = { PAWL_SPEC_INIT, .type = "t" };
    enum pawl_state st;
    INVALID(pawl_open(NULL, NULL, &err));
    INVALID(pawl_submit(NULL, &s, 1, 0, &r, &err));
    INVALID(pawl_submit(p, NULL, 1, 0, &r, &err));
    INVALID(pawl_submit(p, &s, 1, 0, NULL, &err));
    INVALID(pawl_submit(p, &s, 0, 0, &r, &err));
    INVALID(pawl_submit(p, &s, 1, 2, &r, &err));
    INVALID(pawl_submit_wait(NULL, &s, 0, &shown, &err));
    INVALID(pawl_submit_wait(p, NULL, 0, &shown, &err));
    INVALID(pawl_submit_wait(p, &s, 0, NULL, &err));
    INVALID(pawl_get(NULL, "x", 0, &shown, &err));
    INVALID(pawl_get(p, NULL, 0, &shown, &err));
    INVALID(pawl_get(p, "", 0, &shown, &err));
    INVALID(pawl_get(p, "x", 0, NULL, &err));
    INVALID(pawl_list(NULL, NULL, &page, &err));
    INVALID(pawl_list(p, NULL, NULL, &err));
    INVALID(pawl_attempts(NULL, "x", &at, &err));
    INVALID(pawl_attempts(p, NULL, &at, &err));
    INVALID(pawl_attempts(p, "x", NULL, &err));
    INVALID(pawl_cancel(NULL, "x", &st, &err));
    INVALID(pawl_cancel(p, NULL, &st, &err));
    INVALID(pawl_retry(NULL, "x", &err));
    INVALID(pawl_retry(p, NULL, &err));
    INVALID(pawl_move(NULL, "x", 0, PAWL_SAME, NULL, &err));
    INVALID(pawl_move(p, NULL, 0, PAWL_SAME, NULL, &err));
    INVALID(pawl_pause(NULL, "q", true, &err));
    INVALID(pawl_pause(p, NULL, true, &err));
    INVALID(pawl_queues(NULL, &q, &err));
    INVALID(pawl_queues(p, NULL, &err));
    INVALID(pawl_gc(NULL, 1, NULL, NULL, &err));
    INVALID(pawl_gc(p, -1, NULL, NULL, &err));
    INVALID(pawl_claim(NULL, NULL, &l, &err));
    INVALID(pawl_claim(p, NULL, NULL, &err));
    INVALID(pawl_extend(NULL, "x", 0, NULL, &err));
    INVALID(pawl_finish(NULL, "x", NULL, 1, NULL, &err));
    INVALID(pawl_finish(p, "x", NULL, 1, NULL, &err));
    INVALID(pawl_start(NULL, NULL, &err));
    INVALID(pawl_stop(NULL, 0, &err));
    INVALID(pawl_stop(p, -1, &err));
    INVALID(pawl_load(NULL, "x", &err));
    INVALID(pawl_load(p, NULL, &err));
    INVALID(pawl_on(NULL, "t", "run", fixture_echo));
    INVALID(pawl_on(pawl_program(p), NULL, "run", fixture_echo));
    INVALID(pawl_on(pawl_program(p), "t", NULL, fixture_echo));
    INVALID(pawl_on(pawl_program(p), "t", "run", NULL));
    INVALID(pawl_on(pawl_program(p), "", "run", fixture_echo));
    EQ_PTR(pawl_program(NULL), NULL);
    EQ_INT(fixture_count(p, 0), 0);
    pawl_close(p);
}

TEST(an_error_needs_nowhere_to_be_put)
{
    struct pawl *p = fixture_open(param);
    struct pawl_shown *shown;
    EQ_STATUS(pawl_get(p, "x", 0, &shown, NULL), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(pawl_cancel(p, "x", NULL, NULL), PAWL_NOT_FOUND, NULL);
    EQ_STATUS(pawl_get(NULL, "x", 0, &shown, NULL), PAWL_INVALID, NULL);
    pawl_close(p);
}

TEST(freeing_nothing_is_fine)
{
    (void)param;
    pawl_shown_free(NULL);
    pawl_page_free(NULL);
    pawl_attempts_free(NULL);
    pawl_queues_free(NULL);
    pawl_lease_free(NULL);
    pawl_close(NULL);
    EQ_PTR(pawl_shown_view(NULL), NULL);
    EQ_STR(pawl_status_name(PAWL_STATUS_COUNT), "?");
    EQ_STR(pawl_state_name(0), "?");
    FALSE(pawl_state_ended(0));
    FALSE(pawl_state_ended(PAWL_PROCESSING));
    TRUE(pawl_state_ended(PAWL_EXPIRED));
}

TEST(figures_for_nobody_do_nothing)
{
    struct pawl *p = fixture_open(param);
    struct pawl_stats st = { .size = sizeof(size_t) + 8 };
    st.duplicates = 77;
    pawl_stats(p, &st);
    EQ_INT(st.duplicates, 77); /* beyond the size that the caller gave */
    pawl_stats(NULL, &st);
    pawl_stats(p, NULL);
    pawl_close(p);
}

/* ---- Structs of another size ---- */

TEST(structs_of_a_wrong_size_are_invalid)
{
    struct pawl *p = fixture_open(param), *none;
    struct pawl_err err;
    struct pawl_page *page;
    struct pawl_lease *l;
    static const size_t bad[] = { 0, 1, sizeof(size_t) - 1, 5000, SIZE_MAX };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pawl_options o = { .size = bad[i], .db = param };
        struct pawl_query q = { .size = bad[i] };
        struct pawl_claim c = { .size = bad[i] };
        struct pawl_workers w = { .size = bad[i] };
        struct pawl_finish f = { .size = bad[i], .id = "x", .how = PAWL_END_RESULT };
        INVALID(pawl_open(&o, &none, &err));
        EQ_PTR(none, NULL);
        INVALID(pawl_list(p, &q, &page, &err));
        INVALID(pawl_claim(p, &c, &l, &err));
        INVALID(pawl_start(p, &w, &err));
        INVALID(pawl_finish(p, "0123456789abcdef0123456789abcdef", &f, 1, NULL, &err));
    }
    static const size_t bad_spec[] = { 0, 8, offsetof(struct pawl_spec, needs) - 1 };
    for (size_t i = 0; i < 3; i++) {
        struct pawl_spec s = { .size = bad_spec[i], .type = "t" };
        struct pawl_receipt r;
        OK(pawl_submit(p, &s, 1, 0, &r, &err), &err);
        EQ_STATUS(r.status, PAWL_INVALID, NULL);
    }
    pawl_close(p);
}

TEST(options_of_an_older_header_still_open)
{
    (void)param;
    struct pawl *p;
    struct pawl_err err;
    struct pawl_options o = { .size = offsetof(struct pawl_options, client), .db = "mem:older" };
    o.pool_size = 10000; /* beyond the size of this caller's struct, so it is not read */
    OK(pawl_open(&o, &p, &err), &err);
    pawl_close(p);
}

TEST(options_that_make_no_sense_are_invalid)
{
    static const struct pawl_options bad[] = {
        { .db = "nothing" },
        { .db = "oracle:x" },
        { .db = "" },
        { .db = "mem:x", .schema = "a b" },
        { .db = "mem:x", .schema = "" },
        { .db = "mem:x", .schema = "1a" },
        { .db = "mem:x", .schema = "a23456789012345678901234567890123" },
        { .db = "mem:x", .node = "" },
        { .db = "mem:x", .client = "a\nb" },
        { .db = "mem:x", .pool_size = -1 },
        { .db = "mem:x", .pool_size = 257 },
        { .db = "mem:x", .heartbeat_interval_us = -5 },
        { .db = "mem:x", .heartbeat_interval_us = FIXTURE_SEC, .heartbeat_grace_us = FIXTURE_SEC },
        { .db = "mem:x", .reclaim_interval_us = 1 },
        { .db = "mem:x", .retention_us = -1 },
        { .db = "mem:x", .remember_us = INT64_MAX },
    };
    (void)param;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pawl_options o = bad[i];
        struct pawl_err err;
        struct pawl *p;
        o.size = sizeof o;
        enum pawl_status st = pawl_open(&o, &p, &err);
        if (st != PAWL_INVALID)
            FAIL("options %zu: %s", i, pawl_status_name(st));
        EQ_PTR(p, NULL);
    }
}

TEST(a_database_that_cannot_be_opened_is_told)
{
    if (fixture_is_mem(param))
        skip("mem: opens always");
    struct pawl_options o = { PAWL_OPTIONS_INIT, .db = "sqlite:no/such/folder/x.db" };
    struct pawl_err err;
    struct pawl *p;
    const struct engine *e = engine_of(param);
    char nowhere[300];
    if (e->server) { /* the server is there, but has no such database */
        snprintf(nowhere, sizeof nowhere, "%s", engine_url(param));
        memcpy(strstr(nowhere, "/case_"), "/none", 5);
        o.db = nowhere;
    }
    NE_INT(pawl_open(&o, &p, &err), PAWL_OK);
    NE_INT(strlen(err.text), 0);
    if (e->server)
        return;
    FILE *f = fopen("not.db", "w");
    TRUE(f != NULL);
    for (int i = 0; i < 1000; i++)
        fputs("this is no database at all. ", f);
    fclose(f);
    o.db = "sqlite:not.db";
    NE_INT(pawl_open(&o, &p, &err), PAWL_OK);
    NE_INT(strlen(err.text), 0);
}

/* ---- Limits of a call ---- */

static enum pawl_status offered(struct pawl *p, struct pawl_spec s)
{
    return fixture_offer(p, s).status;
}

#define REFUSED(...) EQ_STATUS(offered(p, (struct pawl_spec){ __VA_ARGS__ }), PAWL_INVALID, NULL)
#define TAKEN(...) EQ_STATUS(offered(p, (struct pawl_spec){ __VA_ARGS__ }), PAWL_OK, NULL)

static char long_name[257];

TEST(names_of_255_bytes_and_one_more)
{
    struct pawl *p = fixture_open(param);
    memset(long_name, 'n', 255);
    TAKEN(.id = long_name, .type = long_name, .method = long_name, .queue = long_name,
          .caller = long_name, .parent = long_name);
    fixture_on(p, long_name, fixture_echo); /* its method "run", which is never called */
    OK(pawl_on(pawl_program(p), long_name, long_name, fixture_echo), NULL);
    fixture_start(p, 1);
    fixture_ends(p, long_name, PAWL_COMPLETED);
    long_name[255] = 'n';
    REFUSED(.id = long_name, .type = "t");
    REFUSED(.type = long_name);
    REFUSED(.type = "t", .method = long_name);
    REFUSED(.type = "t", .queue = long_name);
    REFUSED(.type = "t", .caller = long_name);
    REFUSED(.type = "t", .parent = long_name);
    REFUSED(.type = NULL);
    REFUSED(.type = "");
    REFUSED(.type = "a\tb");
    REFUSED(.type = "a\x7f");
    REFUSED(.type = "\xff");
    REFUSED(.type = "t", .id = "");
    REFUSED(.type = "t", .key = "");
    REFUSED(.type = "t", .traceparent = "00-x");
    struct pawl_err err;
    struct pawl_shown *shown;
    INVALID(pawl_get(p, long_name, 0, &shown, &err));
    INVALID(pawl_cancel(p, long_name, NULL, &err));
    INVALID(pawl_pause(p, long_name, true, &err));
    pawl_close(p);
}

TEST(numbers_at_their_edges)
{
    struct pawl *p = fixture_open(param);
    const int64_t century = INT64_C(100) * 366 * 86400 * FIXTURE_SEC;
    TAKEN(.type = "t", .priority = -1000, .max_attempts = 1000, .max_lost = 1000);
    TAKEN(.type = "t", .priority = 1000, .max_attempts = 1, .max_lost = 1, .timeout_us = 1);
    TAKEN(.type = "t", .delay_us = century, .timeout_us = century, .keep_us = century);
    TAKEN(.type = "t", .expires_in_us = century, .backoff_base_us = century,
          .backoff_max_us = century, .backoff_factor = 1000, .backoff_jitter = 1);
    REFUSED(.type = "t", .priority = -1001);
    REFUSED(.type = "t", .priority = 1001);
    REFUSED(.type = "t", .priority = INT_MAX);
    REFUSED(.type = "t", .max_attempts = 1001);
    REFUSED(.type = "t", .max_attempts = -1);
    REFUSED(.type = "t", .max_lost = 1001);
    REFUSED(.type = "t", .delay_us = century + 1);
    REFUSED(.type = "t", .delay_us = -1);
    REFUSED(.type = "t", .timeout_us = -1);
    REFUSED(.type = "t", .timeout_us = century + 1);
    REFUSED(.type = "t", .keep_us = INT64_MAX);
    REFUSED(.type = "t", .expires_in_us = INT64_MAX);
    REFUSED(.type = "t", .run_at_us = INT64_MAX);
    REFUSED(.type = "t", .expires_at_us = INT64_MIN);
    REFUSED(.type = "t", .delay_us = 1, .run_at_us = 1);
    REFUSED(.type = "t", .expires_in_us = 1, .expires_at_us = 1);
    REFUSED(.type = "t", .backoff_factor = 0.5);
    REFUSED(.type = "t", .backoff_factor = 1001);
    REFUSED(.type = "t", .backoff_factor = 0.0 / 0.0);
    REFUSED(.type = "t", .backoff_jitter = 1.5);
    REFUSED(.type = "t", .on_dead = 2);
    pawl_close(p);
}

TEST(sixteen_tags_and_one_more)
{
    struct pawl *p = fixture_open(param);
    struct pawl_tag tags[17];
    char names[17][32];
    for (int i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        tags[i] = (struct pawl_tag){ names[i], "v" };
    }
    TAKEN(.id = "x", .type = "t", .tags = tags, .n_tags = 16);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_INT((int)pawl_shown_view(shown)->n_tags, 16);
    pawl_shown_free(shown);
    REFUSED(.type = "t", .tags = tags, .n_tags = 17);
    REFUSED(.type = "t", .tags = NULL, .n_tags = 1);
    memset(long_name, 'n', 256);
    long_name[64] = '\0';
    tags[0].name = long_name;
    TAKEN(.type = "t", .tags = tags, .n_tags = 1);
    long_name[64] = 'n';
    long_name[65] = '\0';
    REFUSED(.type = "t", .tags = tags, .n_tags = 1);
    memset(long_name, 'n', 256);
    tags[0] = (struct pawl_tag){ "a", long_name };
    REFUSED(.type = "t", .tags = tags, .n_tags = 1);
    long_name[255] = '\0';
    TAKEN(.type = "t", .tags = tags, .n_tags = 1);
    tags[1] = tags[0];
    REFUSED(.type = "t", .tags = tags, .n_tags = 2);
    tags[0] = (struct pawl_tag){ NULL, "v" };
    REFUSED(.type = "t", .tags = tags, .n_tags = 1);
    tags[0] = (struct pawl_tag){ "a", NULL };
    TRUE(offered(p, (struct pawl_spec){ .type = "t", .tags = tags, .n_tags = 1 }) <= PAWL_INVALID);
    pawl_close(p);
}

TEST(an_input_of_one_mebibyte_and_one_byte_more)
{
    struct pawl *p = fixture_open(param);
    char *big = malloc((1 << 20) + 1);
    TRUE(big != NULL);
    memset(big, 'x', (1 << 20) + 1);
    TAKEN(.id = "x", .type = "t", .input = { PAWL_BYTES, big, 1 << 20 });
    EQ_STATUS(
        offered(p, (struct pawl_spec){ .type = "t", .input = { PAWL_BYTES, big, (1 << 20) + 1 } }),
        PAWL_TOO_LARGE, NULL);
    struct pawl_shown *shown = fixture_get(p, "x");
    EQ_BYTES(pawl_shown_view(shown)->input.data, pawl_shown_view(shown)->input.len, big, 1 << 20);
    pawl_shown_free(shown);
    big[0] = big[(1 << 20) - 1] = '"'; /* a JSON string of exactly that length */
    TAKEN(.id = "y", .type = "t", .input = { PAWL_JSON, big, 1 << 20 });
    free(big);
    pawl_close(p);
}

TEST(inputs_that_are_not_what_they_say_are_refused)
{
    struct pawl *p = fixture_open(param);
    REFUSED(.type = "t", .input = { PAWL_JSON, "", 0 });
    REFUSED(.type = "t", .input = { PAWL_JSON, "{", 1 });
    REFUSED(.type = "t", .input = { PAWL_JSON, "1 2", 3 });
    REFUSED(.type = "t", .input = { PAWL_JSON, "\"\xff\"", 3 });
    REFUSED(.type = "t", .input = { 3, "1", 1 });
    REFUSED(.type = "t", .input = { -1, "1", 1 });
    EQ_INT(fixture_count(p, 0), 0);
    pawl_close(p);
}

/* A length without an address: refused, not read. */
TEST(an_input_at_no_address_that_claims_a_length_is_refused)
{
    struct pawl *p = fixture_open(param);
    REFUSED(.type = "t", .input = { PAWL_BYTES, NULL, 100 });
    REFUSED(.type = "t", .input = { PAWL_JSON, NULL, 100 });
    fixture_submit(p, "x", "t");
    struct pawl_lease *l = fixture_claim(p, "t", 1);
    struct pawl_finish f = { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_RESULT,
                             .result = { PAWL_BYTES, NULL, 100 } };
    struct pawl_err err;
    INVALID(pawl_finish(p, l->token, &f, 1, NULL, &err));
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(a_batch_of_ten_thousand_and_one_more)
{
    struct pawl *p = fixture_open(param);
    struct pawl_spec *v = calloc(10001, sizeof *v);
    struct pawl_receipt *r = calloc(10001, sizeof *r);
    struct pawl_err err;
    TRUE(v && r);
    for (int i = 0; i < 10001; i++)
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = "t" };
    INVALID(pawl_submit(p, v, 10001, 0, r, &err));
    OK(pawl_submit(p, v, 10000, 0, r, &err), &err);
    for (int i = 0; i < 10000; i++)
        EQ_STATUS(r[i].status, PAWL_OK, NULL);
    EQ_INT(fixture_count(p, PAWL_PENDING), 10000);
    free(v);
    free(r);
    pawl_close(p);
}

/* 64 MiB of inputs in one batch, and one byte more. */
TEST(a_batch_whose_inputs_are_too_much)
{
    struct pawl *p = fixture_open(param);
    enum { N = 65 };
    static struct pawl_spec v[N];
    static struct pawl_receipt r[N];
    char *big = calloc(1, 1 << 20);
    struct pawl_err err;
    TRUE(big != NULL);
    for (int i = 0; i < N; i++)
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = "t",
                                   .input = { PAWL_BYTES, big, 1 << 20 } };
    OK(pawl_submit(p, v, N, 0, r, &err), &err);
    for (int i = 0; i < N - 1; i++)
        EQ_STATUS(r[i].status, PAWL_OK, NULL);
    EQ_STATUS(r[N - 1].status, PAWL_TOO_LARGE, NULL);
    free(big);
    pawl_close(p);
}

TEST(a_claim_of_a_thousand_and_one_more)
{
    struct pawl *p = fixture_open(param);
    struct pawl_lease *l;
    struct pawl_err err;
    fixture_submit_many(p, "t", 1100);
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .max = 1001 }, &l, &err));
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .max = -1 }, &l, &err));
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = FIXTURE_SEC - 1 }, &l,
                       &err));
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .lease_us = 3601 * FIXTURE_SEC },
                       &l, &err));
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .wait_us = 300 * FIXTURE_SEC + 1 },
                       &l, &err));
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .worker = "" }, &l, &err));
    INVALID(pawl_claim(p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .n_types = 1 }, &l, &err));
    OK(pawl_claim(
           p, &(struct pawl_claim){ PAWL_CLAIM_INIT, .max = 1000, .lease_us = 3600 * FIXTURE_SEC },
           &l, &err),
       &err);
    EQ_INT((int)l->n, 1000);
    static struct pawl_finish f[1001];
    for (size_t i = 0; i < 1000; i++)
        f[i] =
            (struct pawl_finish){ PAWL_FINISH_INIT, .id = l->calls[i].id, .how = PAWL_END_RESULT };
    INVALID(pawl_finish(p, l->token, f, 1001, NULL, &err));
    INVALID(pawl_finish(p, l->token, f, 0, NULL, &err));
    OK(pawl_finish(p, l->token, f, 1000, NULL, &err), &err);
    EQ_INT(fixture_count(p, PAWL_COMPLETED), 1000);
    int64_t until;
    INVALID(pawl_extend(p, l->token, FIXTURE_SEC - 1, &until, &err));
    INVALID(pawl_extend(p, l->token, 3601 * FIXTURE_SEC, &until, &err));
    pawl_lease_free(l);
    pawl_close(p);
}

TEST(a_wait_of_300_seconds_and_a_microsecond_more)
{
    struct pawl *p = fixture_open(param);
    struct pawl_shown *shown;
    struct pawl_err err;
    struct pawl_spec s = { PAWL_SPEC_INIT, .id = "x", .type = "t", .expires_at_us = 1 };
    INVALID(pawl_submit_wait(p, &s, 300 * FIXTURE_SEC + 1, &shown, &err));
    INVALID(pawl_submit_wait(p, &s, -1, &shown, &err));
    EQ_INT(fixture_count(p, 0), 0);
    OK(pawl_submit_wait(p, &s, 300 * FIXTURE_SEC, &shown, &err), &err);
    pawl_shown_free(shown);
    INVALID(pawl_get(p, "x", 300 * FIXTURE_SEC + 1, &shown, &err));
    INVALID(pawl_get(p, "x", -1, &shown, &err));
    OK(pawl_get(p, "x", 300 * FIXTURE_SEC, &shown, &err), &err);
    pawl_shown_free(shown);
    pawl_close(p);
}

TEST(lists_of_a_thousand_and_one_more)
{
    struct pawl *p = fixture_open(param);
    struct pawl_page *page;
    struct pawl_err err;
    fixture_submit_many(p, "t", 1001);
    INVALID(pawl_list(p, &(struct pawl_query){ PAWL_QUERY_INIT, .limit = 1001 }, &page, &err));
    INVALID(pawl_list(p, &(struct pawl_query){ PAWL_QUERY_INIT, .limit = -1 }, &page, &err));
    INVALID(pawl_list(p, &(struct pawl_query){ PAWL_QUERY_INIT, .state = 8 }, &page, &err));
    OK(pawl_list(p, &(struct pawl_query){ PAWL_QUERY_INIT, .limit = 1000 }, &page, &err), &err);
    EQ_INT((int)page->n, 1000);
    TRUE(page->next != NULL);
    pawl_page_free(page);
    OK(pawl_list(p, NULL, &page, &err), &err);
    EQ_INT((int)page->n, 100);
    pawl_page_free(page);
    pawl_close(p);
}

TEST(ten_thousand_lanes_and_one_more)
{
    struct pawl *p = fixture_open(param);
    static struct pawl_spec v[10000];
    static struct pawl_receipt r[10000];
    static char types[10000][16];
    struct pawl_err err;
    for (int i = 0; i < 10000; i++) {
        snprintf(types[i], sizeof types[i], "t%d", i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .type = types[i] };
    }
    OK(pawl_submit(p, v, 10000, 0, r, &err), &err);
    for (int i = 0; i < 10000; i++)
        EQ_STATUS(r[i].status, PAWL_OK, NULL);
    struct pawl_receipt one = fixture_offer(p, (struct pawl_spec){ .type = "one more" });
    EQ_STATUS(one.status, PAWL_FULL, NULL);
    HAS_STR(one.error, "10000 lanes, limit 10000");
    TAKEN(.type = "t77"); /* existing queues accept more */
    pawl_close(p);
}

TEST(a_finish_that_makes_no_sense_is_invalid)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    fixture_submit(p, "x", "t");
    struct pawl_lease *l = fixture_claim(p, "t", 1);
    struct pawl_spec send = { PAWL_SPEC_INIT, .type = "" };
    const struct pawl_finish bad[] = {
        { PAWL_FINISH_INIT, .how = PAWL_END_RESULT },
        { PAWL_FINISH_INIT, .id = "x" },
        { PAWL_FINISH_INIT, .id = "x", .how = 8 },
        { PAWL_FINISH_INIT, .id = "x", .how = -1 },
        { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_RESULT, .result = { PAWL_JSON, "{", 1 } },
        { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_RESULT, .result = { 9, "1", 1 } },
        { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_RESULT, .send = &send, .n_send = 1 },
        { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_RESULT, .n_send = 1 },
        { PAWL_FINISH_INIT, .id = "x", .how = PAWL_END_ERROR, .retry_in_us = INT64_MAX },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        enum pawl_status st = pawl_finish(p, l->token, &bad[i], 1, NULL, &err);
        if (st != PAWL_INVALID)
            FAIL("finish %zu: %s", i, pawl_status_name(st));
    }
    EQ_INT(fixture_state(p, "x"), PAWL_PROCESSING);
    pawl_lease_free(l);
    pawl_close(p);
}

/* A caller that was built with a newer header has longer structs: an array of them is read with its
 * element size, not ours. */
TEST(an_array_of_longer_structs_is_walked_at_its_own_size)
{
    struct longer {
        struct pawl_spec spec;
        char more[64];
    } v[3] = { 0 };
    struct pawl_receipt r[3];
    struct pawl_err err;
    struct pawl *p = fixture_open(param);
    for (int i = 0; i < 3; i++) {
        v[i].spec = (struct pawl_spec){ .size = sizeof v[i], .type = "t" };
        v[i].spec.id = (const char *[]){ "a", "b", "c" }[i];
        memset(v[i].more, 0xff, sizeof v[i].more);
    }
    OK(pawl_submit(p, &v[0].spec, 3, 0, r, &err), &err);
    for (int i = 0; i < 3; i++)
        EQ_STR(r[i].id, v[i].spec.id);
    EQ_INT(r[2].status, PAWL_OK);
    pawl_close(p);
}
