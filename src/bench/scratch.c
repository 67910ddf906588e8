/*
 * scratch.c - scratch schemas of `pawl bench` in a user's database (scratch.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/scratch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "bench/engine.h"
#include "bench/table.h"
#include "store/ledger/ledger.h"

#define STEPS_LEN_MAX (4 << 20)
/* How long to retry: statements of a killed process, and their locks, end after their own timeout.
 */
#define REMOVE_S 15
#define PAUSE_NS (200 * 1000000)

/* ---- Making ---------------------------------------------------------------------------------- */

/* Check that the schema does not exist; else it would not be ours to remove. */
static enum pawl_status is_free(const struct bench_place *place, struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct schema is = { 0 };
    struct store_conf conf = { .url = place->url, .schema = place->schema, .role = STORE_READER };
    enum pawl_status st = store_open(&conf, &s, err);
    if (st == PAWL_OK)
        st = store_schema(s, &is, err);
    if (st == PAWL_OK && is.version)
        st = err_set(err, PAWL_STATE,
                     "schema \"%s\" exists already; try again: the next run takes another name",
                     place->schema);
    return st;
}

enum pawl_status bench_scratch_make(struct bench_scratch *s, const char *url, struct pawl_err *err)
{
    static const char what[SCRATCH_COUNT] = { 'e', 'f', 's' };
    unsigned by_chance = (unsigned)world_dice(&world_real);
    enum pawl_status st = PAWL_OK;
    *s = (struct bench_scratch){ .url = url };
    for (int i = 0; i < SCRATCH_COUNT && st == PAWL_OK; i++) {
        struct bench_place place = { .url = url, .schema = s->names[i] };
        snprintf(s->names[i], sizeof s->names[i], "pawlbench_%08x%c", by_chance, what[i]);
        st = is_free(&place, err);
        s->made[i] = st == PAWL_OK;
        if (st == PAWL_OK)
            st = bench_engine_schema(&place, err);
    }
    return st;
}

/* ---- Removing -------------------------------------------------------------------------------- */

/* What the migrations make, and the statement that drops it. */
static const struct kind {
    const char *make, *drop;
} kinds[] = { { "CREATE OR REPLACE VIEW ", "DROP VIEW IF EXISTS " },
              { "CREATE TABLE IF NOT EXISTS ", "DROP TABLE IF EXISTS " } };

/* Does the statement so far name it? A later step may make a view again. */
static bool has_name(const struct buf *b, const char *name, size_t len)
{
    for (const char *at = b->data;
         at && (at = memmem(at, b->len - (size_t)(at - b->data), name, len)); at += len)
        if (at > b->data && at[-1] == ' ' &&
            (at + len == b->data + b->len || at[len] == ',' || at[len] == ' '))
            return true;
    return false;
}

/* Make a statement that drops everything of a kind that the migrations make; "": there is none. */
static enum pawl_status drop_text(const struct bench_place *place, const struct kind *kind,
                                  struct buf *out, struct pawl_err *err)
{
    struct arena a;
    struct steps steps = { 0 };
    size_t n = 0;
    arena_init(&a, STEPS_LEN_MAX);
    enum pawl_status st = store_steps(
        &(struct store_conf){ .url = place->url, .schema = place->schema }, &a, &steps, err);
    for (size_t i = 0; st == PAWL_OK && i < steps.n; i++)
        for (const char *at = steps.v[i].expand; (at = strstr(at, kind->make));) {
            at += strlen(kind->make);
            size_t len = strcspn(at, " (\n");
            if (has_name(out, at, len))
                continue;
            buf_add_text(out, n++ ? ", " : kind->drop);
            buf_add(out, at, len);
        }
    arena_release(&a);
    buf_add_char(out, 0);
    return out->failed ? err_no_memory(err, "the names of tables") : st;
}

/* Wait for locks longer than Pawl would: no other work waits behind this. */
static enum pawl_status drop_schema(struct ledger *l, const char *name, struct pawl_err *err)
{
    char text[200];
    snprintf(text, sizeof text,
             "SET LOCAL lock_timeout = '4s'; SET LOCAL client_min_messages = 'error'; "
             "DROP SCHEMA IF EXISTS \"%s\" CASCADE",
             name);
    enum pawl_status st = led_begin(l, LED_WRITE, NULL, err);
    if (st == PAWL_OK)
        st = l->db->plain(l, text, err);
    if (st == PAWL_OK)
        return l->db->commit(l, NULL, err);
    l->db->rollback(l);
    return st;
}

static enum pawl_status drop_tables(struct ledger *l, const struct bench_place *place,
                                    struct pawl_err *err)
{
    enum pawl_status st = l->db->autocommit(l, err);
    for (size_t i = 0; i < COUNT_OF(kinds) && st == PAWL_OK; i++) {
        struct buf text;
        buf_init(&text, STEPS_LEN_MAX);
        st = drop_text(place, &kinds[i], &text, err);
        if (st == PAWL_OK && *text.data)
            st = l->db->plain(l, text.data, err);
        buf_release(&text);
    }
    return st;
}

static enum pawl_status drop(const struct bench_place *place, struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct store_conf conf = { .url = place->url,
                               .schema = place->schema,
                               .role = STORE_DRIVER_ONLY };
    enum pawl_status st = store_open(&conf, &s, err);
    if (st != PAWL_OK)
        return st;
    return bench_floor_of(place->url) == &bench_floor_pg
               ? drop_schema(led_of(s), place->schema, err)
               : drop_tables(led_of(s), place, err);
}

enum pawl_status bench_scratch_remove(struct bench_scratch *s, struct pawl_err *err)
{
    double until = bench_clock() + REMOVE_S;
    enum pawl_status first = PAWL_OK;
    for (int i = 0; i < SCRATCH_COUNT; i++) {
        struct bench_place place = { .url = s->url, .schema = s->names[i] };
        struct pawl_err why = { 0 };
        enum pawl_status st = s->made[i] ? drop(&place, &why) : PAWL_OK;
        while (st != PAWL_OK && bench_clock() < until) {
            nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
            st = drop(&place, &why);
        }
        s->made[i] = st != PAWL_OK;
        if (st != PAWL_OK && first == PAWL_OK)
            first = err_set(err, st, "%s could not be removed and has to be dropped by hand: %s",
                            s->names[i], why.text);
    }
    return first;
}
