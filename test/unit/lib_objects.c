/*
 * lib_objects.c - objects and keys from outside their calls: load, save, delete, pending, blocked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>

#include "fixture.h"

RUNS_ON(ENGINES_ALL)

static struct pawl_data json(const char *text)
{
    return (struct pawl_data){ PAWL_JSON, text, strlen(text) };
}

#define CHANGE(...) (&(struct pawl_object_change){ PAWL_OBJECT_CHANGE_INIT, __VA_ARGS__ })

TEST(save_load_and_delete)
{
    struct pawl *p = fixture_open(param);
    struct pawl_object *o;
    struct pawl_err err;
    int64_t version = 0, next = 0;
    EQ_STATUS(pawl_object_load(p, "T", "k", &o, &err), PAWL_NOT_FOUND, &err);
    OK(pawl_object_save(p, CHANGE(.type = "T", .key = "k", .state = json(" {\"a\": 1.50} ")),
                        &version, &err),
       &err);
    GT_INT(version, 0);
    OK(pawl_object_load(p, "T", "k", &o, &err), &err);
    EQ_STR(o->type, "T");
    EQ_STR(o->key, "k");
    EQ_BYTES(o->state.data, o->state.len, " {\"a\": 1.50} ", 13);
    EQ_INT(o->version, version);
    GT_INT(o->updated_at_us, 0);
    EQ_INT(o->pending, 0);
    pawl_object_free(o);
    EQ_STATUS(pawl_object_save(
                  p, CHANGE(.type = "T", .key = "k", .state = json("2"), .if_version = version + 1),
                  &next, &err),
              PAWL_STALE, &err);
    EQ_INT(next, version);
    OK(pawl_object_save(p,
                        CHANGE(.type = "T", .key = "k", .state = { PAWL_BYTES, "\0\xff", 2 },
                               .if_version = version),
                        &next, &err),
       &err);
    GT_INT(next, version);
    OK(pawl_object_delete(p, CHANGE(.type = "T", .key = "k", .if_version = next), NULL, &err),
       &err);
    EQ_STATUS(pawl_object_delete(p, CHANGE(.type = "T", .key = "k"), NULL, &err), PAWL_NOT_FOUND,
              &err);
    pawl_close(p);
}

TEST(misuse_is_invalid)
{
    struct pawl *p = fixture_open(param);
    struct pawl_object *o;
    struct pawl_keys *keys;
    struct pawl_page *page;
    struct pawl_err err;
    EQ_STATUS(pawl_object_load(NULL, "T", "k", &o, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_load(p, "T", "k", NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_load(p, NULL, "k", &o, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_load(p, "T", "", &o, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_save(p, NULL, NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_save(p, CHANGE(.type = "T", .key = "k"), NULL, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_save(p, CHANGE(.type = "T", .key = "k", .state = json("{")), NULL, &err),
              PAWL_INVALID, &err);
    EQ_STATUS(pawl_object_save(
                  p,
                  CHANGE(.type = "T", .key = "k", .state = json("1"), .wait_us = 301 * FIXTURE_SEC),
                  NULL, &err),
              PAWL_INVALID, &err);
    static char large[(1 << 20) + 1];
    EQ_STATUS(pawl_object_save(
                  p, CHANGE(.type = "T", .key = "k", .state = { PAWL_BYTES, large, sizeof large }),
                  NULL, &err),
              PAWL_TOO_LARGE, &err);
    OK(pawl_object_save(
           p, CHANGE(.type = "T", .key = "k", .state = { PAWL_BYTES, large, sizeof large - 1 }),
           NULL, &err),
       &err);
    EQ_STATUS(
        pawl_keys(p, &(struct pawl_key_query){ PAWL_KEY_QUERY_INIT, .limit = 1001 }, &keys, &err),
        PAWL_INVALID, &err);
    EQ_STATUS(pawl_pending(p, "T", "k", 0, &page, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_pending(p, "T", NULL, 1, &page, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_unblock(p, NULL, true, &err), PAWL_INVALID, &err);
    EQ_STATUS(pawl_unblock(p, "nobody", true, &err), PAWL_NOT_FOUND, &err);
    pawl_close(p);
}

static int keeps_one(struct pawl_call *c)
{
    pawl_set_state_int(c, 1);
    return fixture_blocks(c);
}

static void *save_two(void *arg)
{
    struct pawl_err err;
    OK(pawl_object_save(
           arg, CHANGE(.type = "t", .key = "k", .state = json("2"), .wait_us = 60 * FIXTURE_SEC),
           NULL, &err),
       &err);
    return NULL;
}

/* While a call runs the state belongs to it; a save waits until it has ended. */
TEST(a_save_waits_for_the_keys_turn)
{
    struct pawl *p = fixture_open(param);
    struct pawl_object *o;
    struct pawl_err err;
    pthread_t thread;
    fixture_on(p, "t", keeps_one);
    fixture_start(p, 2);
    fixture_submit_as(p, (struct pawl_spec){ .id = "x", .type = "t", .key = "k" });
    UNTIL(atomic_load(&fixture_inside) == 1);
    EQ_STATUS(pawl_object_save(p,
                               CHANGE(.type = "t", .key = "k", .state = json("3"), .wait_us = -1),
                               NULL, &err),
              PAWL_BUSY, &err);
    int64_t begun = fixture_mono();
    EQ_STATUS(pawl_object_delete(p, CHANGE(.type = "t", .key = "k", .wait_us = 30 * FIXTURE_MS),
                                 NULL, &err),
              PAWL_BUSY, &err);
    GE_INT(fixture_mono() - begun, 30 * FIXTURE_MS);
    EQ_INT(pthread_create(&thread, NULL, save_two, p), 0);
    fixture_open_gate();
    fixture_ends(p, "x", PAWL_COMPLETED);
    pthread_join(thread, NULL);
    OK(pawl_object_load(p, "t", "k", &o, &err), &err);
    EQ_BYTES(o->state.data, o->state.len, "2", 1);
    pawl_object_free(o);
    pawl_close(p);
}

static void submit_to(struct pawl *p, const char *id, const char *type)
{
    fixture_submit_as(p, (struct pawl_spec){ .id = id, .type = type, .key = "k" });
}

static atomic_bool enough;

static void *keep_busy(void *arg)
{
    struct pawl_err err;
    while (!atomic_load(&enough)) {
        struct pawl_shown *s;
        OK(pawl_submit_wait(arg, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t", .key = "k" },
                            FIXTURE_WAIT_US, &s, &err),
           &err);
        pawl_shown_free(s);
    }
    return NULL;
}

/* With callers that submit again at once the key is never idle between two commits. */
TEST(a_save_gets_its_turn_on_a_busy_key)
{
    enum { CALLERS = 4 };
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    pthread_t threads[CALLERS];
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 4);
    for (int i = 0; i < CALLERS; i++)
        EQ_INT(pthread_create(&threads[i], NULL, keep_busy, p), 0);
    for (int i = 0; i < 20; i++) {
        struct pawl_object_change c = { PAWL_OBJECT_CHANGE_INIT, .type = "t", .key = "k",
                                        .state = PAWL_TEXT("1"), .wait_us = FIXTURE_WAIT_US };
        OK(pawl_object_save(p, &c, NULL, &err), &err);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    pawl_close(p);
}

TEST(deleting_what_has_pending_calls)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    struct pawl_object *o;
    int64_t cancelled = 0;
    OK(pawl_object_save(p, CHANGE(.type = "t", .key = "k", .state = json("1")), NULL, &err), &err);
    submit_to(p, "a", "t");
    submit_to(p, "b", "t");
    OK(pawl_object_load(p, "t", "k", &o, &err), &err);
    EQ_INT(o->pending, 2);
    pawl_object_free(o);
    EQ_STATUS(pawl_object_delete(p, CHANGE(.type = "t", .key = "k"), NULL, &err), PAWL_STATE, &err);
    OK(pawl_object_delete(p, CHANGE(.type = "t", .key = "k", .cancel = true), &cancelled, &err),
       &err);
    EQ_INT(cancelled, 2);
    fixture_ends(p, "a", PAWL_CANCELLED);
    fixture_ends(p, "b", PAWL_CANCELLED);
    pawl_close(p);
}

TEST(pending_comes_in_the_order_of_the_line)
{
    struct pawl *p = fixture_open(param);
    struct pawl_page *page;
    struct pawl_err err;
    static const char *const want[] = { "a", "b", "d", "later" };
    fixture_submit_as(p,
                      (struct pawl_spec){
                          .id = "later", .type = "t", .key = "k", .delay_us = 1000 * FIXTURE_SEC });
    submit_to(p, "a", "t");
    submit_to(p, "b", "t");
    submit_to(p, "other", "u");
    fixture_submit_as(
        p, (struct pawl_spec){
               .id = "d", .type = "t", .key = "k", .priority = 1000, .input = json("7") });
    fixture_submit(p, "none", "t");
    OK(pawl_pending(p, "t", "k", 100, &page, &err), &err);
    EQ_INT((int)page->n, 4);
    for (int i = 0; i < 4; i++)
        EQ_STR(page->calls[i].id, want[i]);
    EQ_INT(page->calls[0].position, 1);
    EQ_INT(page->calls[2].position, 4);
    EQ_INT(page->calls[3].position, -1);
    EQ_BYTES(page->calls[2].input.data, page->calls[2].input.len, "7", 1);
    EQ_STR(page->next, NULL);
    pawl_page_free(page);
    OK(pawl_pending(p, NULL, "k", 2, &page, &err), &err);
    EQ_INT((int)page->n, 2);
    EQ_STR(page->calls[0].id, "a");
    pawl_page_free(page);
    pawl_close(p);
}

TEST(pending_of_a_long_line_is_its_beginning)
{
    struct pawl *p = fixture_open(param);
    struct pawl_page *page;
    struct pawl_err err;
    static struct pawl_spec v[2500];
    static struct pawl_receipt r[2500];
    static char ids[2500][16];
    for (int i = 0; i < 2500; i++) {
        snprintf(ids[i], sizeof ids[i], "c%d", i);
        v[i] = (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i], .type = "t", .key = "k" };
    }
    OK(pawl_submit(p, v, 2500, 0, r, &err), &err);
    OK(pawl_pending(p, "t", "k", 3, &page, &err), &err);
    EQ_INT((int)page->n, 3);
    for (int i = 0; i < 3; i++)
        EQ_STR(page->calls[i].id, ids[i]);
    pawl_page_free(page);
    pawl_close(p);
}

TEST(a_blocked_key_waits_for_a_decision)
{
    struct pawl *p = fixture_open(param);
    struct pawl_keys *keys;
    struct pawl_err err;
    struct pawl_key_query blocked = { PAWL_KEY_QUERY_INIT, .blocked = true };
    fixture_on(p, "bad", fixture_refuse);
    fixture_on(p, "t", fixture_echo);
    fixture_start(p, 2);
    fixture_submit_as(p, (struct pawl_spec){
                             .id = "a", .type = "bad", .key = "k", .on_dead = PAWL_ON_DEAD_BLOCK });
    submit_to(p, "b", "t");
    fixture_ends(p, "a", PAWL_FAILED);
    OK(pawl_keys(p, &blocked, &keys, &err), &err);
    EQ_INT((int)keys->n, 1);
    EQ_STR(keys->v[0].key, "k");
    EQ_STR(keys->v[0].head, "a");
    EQ_INT(keys->v[0].head_state, PAWL_FAILED);
    TRUE(keys->v[0].blocked);
    EQ_INT(keys->v[0].pending, 1);
    EQ_STR(keys->next, NULL);
    pawl_keys_free(keys);
    struct pawl_shown *s = fixture_get(p, "a");
    EQ_INT(pawl_shown_view(s)->keep_until_us, 0);
    pawl_shown_free(s);
    OK(pawl_unblock(p, "k", true, &err), &err); /* it fails once more, and blocks again */
    UNTIL(fixture_state(p, "a") == PAWL_FAILED);
    EQ_INT(fixture_state(p, "b"), PAWL_PENDING);
    OK(pawl_unblock(p, "k", false, &err), &err);
    fixture_ends(p, "b", PAWL_COMPLETED);
    EQ_STATUS(pawl_unblock(p, "k", false, &err), PAWL_STATE, &err);
    OK(pawl_keys(p, &blocked, &keys, &err), &err);
    EQ_INT((int)keys->n, 0);
    pawl_keys_free(keys);
    pawl_close(p);
}

TEST(keys_come_in_pages_by_name)
{
    struct pawl *p = fixture_open(param);
    struct pawl_err err;
    char id[16], after[16] = "";
    int seen = 0;
    for (int i = 0; i < 7; i++) {
        snprintf(id, sizeof id, "k%d", i);
        fixture_submit_as(p, (struct pawl_spec){ .id = id, .type = "t", .key = id });
    }
    for (bool more = true; more;) {
        struct pawl_keys *keys;
        struct pawl_key_query q = { PAWL_KEY_QUERY_INIT, .limit = 3,
                                    .after = *after ? after : NULL };
        OK(pawl_keys(p, &q, &keys, &err), &err);
        LE_INT((int)keys->n, 3);
        for (size_t i = 0; i < keys->n; i++) {
            snprintf(id, sizeof id, "k%d", seen++);
            EQ_STR(keys->v[i].key, id);
            EQ_STR(keys->v[i].head, id);
            FALSE(keys->v[i].blocked);
        }
        more = keys->next;
        snprintf(after, sizeof after, "%s", keys->next ? keys->next : "");
        pawl_keys_free(keys);
    }
    EQ_INT(seen, 7);
    pawl_close(p);
}

TEST(a_full_key_takes_no_more)
{
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .max_pending_key = 2 });
    struct pawl_shown *shown;
    struct pawl_err err;
    submit_to(p, "a", "t");
    submit_to(p, "b", "t");
    struct pawl_receipt r =
        fixture_offer(p, (struct pawl_spec){ .id = "c", .type = "t", .key = "k" });
    EQ_INT(r.status, PAWL_FULL);
    EQ_STR(r.error, "key \"k\": 2 calls pending, limit 2");
    EQ_STATUS(pawl_submit_wait(p, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "t", .key = "k" }, 0,
                               &shown, &err),
              PAWL_FULL, &err);
    r = fixture_offer(p, (struct pawl_spec){ .id = "a", .type = "t", .key = "k" });
    EQ_INT(r.status, PAWL_OK); /* a duplicate: it takes no place */
    TRUE(r.duplicate);
    fixture_submit_as(p, (struct pawl_spec){ .id = "d", .type = "t", .key = "l" });
    pawl_close(p);
    struct pawl_options wrong = { PAWL_OPTIONS_INIT, .db = param, .max_pending_key = -1 };
    EQ_STATUS(pawl_open(&wrong, &p, &err), PAWL_INVALID, &err);
}
