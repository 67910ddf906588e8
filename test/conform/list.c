/*
 * list.c - pages of calls: filters, order, and reading to the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

/* All matches through pages of `limit`, as seqs "5 4 3". */
static const char *listed(struct conform_fixture *b, struct query q, int limit)
{
    char *out = arena_printf(&b->a, "%s", "");
    q.limit = limit;
    do {
        struct page page;
        OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
        LE_INT(page.n, limit);
        for (size_t i = 0; i < page.n; i++)
            out = arena_printf(&b->a, "%s%s%d", out, *out ? " " : "", (int)page.v[i].seq);
        q.before_seq = page.next_before;
    } while (q.before_seq);
    return out;
}

CASE(newest_first_page_by_page)
{
    EQ_STR(listed(b, (struct query){ 0 }, 10), "");
    accept_n(b, "a", 5);
    for (int limit = 1; limit <= 6; limit++)
        EQ_STR(listed(b, (struct query){ 0 }, limit), "5 4 3 2 1");
    EQ_STR(listed(b, (struct query){ .before_seq = 3 }, 10), "2 1");
    EQ_STR(listed(b, (struct query){ .before_seq = 1 }, 10), "");
    EQ_STR(listed(b, (struct query){ .before_seq = 1000 }, 10), "5 4 3 2 1");
}

CASE(every_state_is_found)
{
    enum pawl_state states[] = { PAWL_COMPLETED, PAWL_FAILED, PAWL_DEAD_LETTER, PAWL_CANCELLED,
                                 PAWL_EXPIRED };
    for (int i = 0; i < 5; i++)
        ended_call(b, pawl_state_name(states[i]), states[i]);
    accept_one(b, "processing");
    claim_n(b, 1);
    accept_one(b, "pending");
    for (int i = 0; i < 5; i++)
        EQ_STR(listed(b, (struct query){ .state = states[i] }, 2),
               arena_printf(&b->a, "%d", i + 1));
    EQ_STR(listed(b, (struct query){ .state = PAWL_PROCESSING }, 2), "6");
    EQ_STR(listed(b, (struct query){ .state = PAWL_PENDING }, 2), "7");
    EQ_STR(listed(b, (struct query){ 0 }, 3), "7 6 5 4 3 2 1");
}

static void accept_filtered(struct conform_fixture *b)
{
    struct tag red = { BYTES("color"), BYTES("red") }, blue = { BYTES("color"), BYTES("blue") };
    struct call_spec s = plan("1");
    s.queue = BYTES("q1");
    s.caller = BYTES("alice");
    s.tags = &red;
    s.n_tags = 1;
    accept_spec(b, s);
    advance(b, 10);
    s = plan("2");
    s.type = BYTES("u");
    s.method = BYTES("go");
    s.parent = BYTES("1");
    s.tags = &blue;
    s.n_tags = 1;
    accept_spec(b, s);
    advance(b, 10);
    s = plan("3");
    s.queue = BYTES("q1");
    s.type = BYTES("u");
    s.client = BYTES("c");
    s.caller = BYTES("alice");
    s.tags = &red;
    s.n_tags = 1;
    accept_spec(b, s);
}

CASE(every_filter_given_must_hold)
{
    int64_t t0 = now(b);
    accept_filtered(b);
    for (int limit = 1; limit <= 3; limit += 2) {
        EQ_STR(listed(b, (struct query){ .queue = BYTES("q1") }, limit), "3 1");
        EQ_STR(listed(b, (struct query){ .queue = BYTES("Q1") }, limit), "");
        EQ_STR(listed(b, (struct query){ .type = BYTES("u") }, limit), "3 2");
        EQ_STR(listed(b, (struct query){ .method = BYTES("go") }, limit), "2");
        EQ_STR(listed(b, (struct query){ .parent = BYTES("1") }, limit), "2");
        EQ_STR(listed(b, (struct query){ .caller = BYTES("alice") }, limit), "3 1");
        EQ_STR(listed(b, (struct query){ .client = BYTES("c") }, limit), "3");
        EQ_STR(listed(b, (struct query){ .key = BYTES("k") }, limit), "");
        EQ_STR(listed(b, (struct query){ .tag_name = BYTES("color"), .tag_value = BYTES("red") },
                      limit),
               "3 1");
        EQ_STR(listed(b, (struct query){ .tag_name = BYTES("colour"), .tag_value = BYTES("red") },
                      limit),
               "");
        EQ_STR(listed(b, (struct query){ .since_us = t0 + 10 }, limit), "3 2");
        EQ_STR(listed(b, (struct query){ .until_us = t0 + 10 }, limit), "1");
        EQ_STR(listed(b, (struct query){ .since_us = t0 + 1, .until_us = t0 + 20 }, limit), "2");
        EQ_STR(listed(b, (struct query){ .queue = BYTES("q1"), .type = BYTES("u") }, limit), "3");
        EQ_STR(listed(b,
                      (struct query){ .caller = BYTES("alice"),
                                      .tag_name = BYTES("color"),
                                      .tag_value = BYTES("blue") },
                      limit),
               "");
        EQ_STR(listed(b, (struct query){ .state = PAWL_PENDING, .type = BYTES("u") }, limit),
               "3 2");
        EQ_STR(listed(b, (struct query){ .state = PAWL_FAILED, .type = BYTES("u") }, limit), "");
    }
}

CASE(a_listed_call_is_shown_as_get_shows_it)
{
    accept_filtered(b);
    finish_error(b, claim_n(b, 1), "1", "boom");
    struct buf one_by_one, page_text;
    struct bytes ids[] = { BYTES("3"), BYTES("2"), BYTES("1") };
    struct get g = { .ids = ids, .n = 3, .with = WITH_INPUT | WITH_RESULT };
    struct query q = { .limit = 10, .with = WITH_INPUT | WITH_RESULT };
    struct page page;
    OK(store_get(b->s, &b->a, &g, &b->err), &b->err);
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    buf_init(&one_by_one, 1 << 20);
    buf_init(&page_text, 1 << 20);
    for (int i = 0; i < 3; i++) {
        dump_call(&one_by_one, &g.out[i]);
        dump_call(&page_text, &page.v[i]);
    }
    buf_add_char(&one_by_one, '\0');
    buf_add_char(&page_text, '\0');
    EQ_STR(page_text.data, one_by_one.data);
    buf_release(&one_by_one);
    buf_release(&page_text);
}

CASE(payloads_of_a_page_only_when_asked_for)
{
    accept_one(b, "a");
    struct query q = { .limit = 1 };
    struct page page;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    ABSENT(page.v[0].spec.input.bytes);
    q.with = WITH_INPUT;
    OK(store_list(b->s, &b->a, &q, &page, &b->err), &b->err);
    EQ_TEXT(page.v[0].spec.input.bytes, "1");
}

CASE(a_filter_that_rarely_holds_still_finds_everything)
{
    struct call_spec s = plan("needle 1");
    s.method = BYTES("needle");
    accept_spec(b, s);
    accept_n(b, "a", 10000);
    s.id = BYTES("needle 2");
    accept_spec(b, s);
    accept_n(b, "b", 2500);
    EQ_STR(listed(b, (struct query){ .method = BYTES("needle") }, 10), "10002 1");
    EQ_STR(listed(b, (struct query){ .method = BYTES("none") }, 10), "");
}

CASE(what_is_gone_is_not_listed)
{
    ended_call(b, "a", PAWL_COMPLETED);
    accept_one(b, "b");
    advance(b, RETENTION_US);
    gc(b);
    EQ_STR(listed(b, (struct query){ 0 }, 1), "2");
    advance(b, REMEMBER_US);
    gc(b);
    EQ_STR(listed(b, (struct query){ 0 }, 1), "2");
}
