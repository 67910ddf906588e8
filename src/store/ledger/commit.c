/*
 * commit.c - handles and transactions.
 *
 * Between sending COMMIT and its answer a lost connection leaves a transaction UNKNOWN; before,
 * nothing was stored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/mem.h"
#include "store/ledger/cache.h"

/* Memory of one transaction: the rows it reads and the statements it writes. */
#define SCRATCH_LEN_MAX (512 << 20)
/* Memory that a handle keeps from one group to the next: what a group of 1,000 calls needs. */
#define SCRATCH_KEEP_LEN (4 << 20)

/* ---- Handles --------------------------------------------------------------------------------- */

void led_init(struct ledger *c, const struct store_conf *conf, const struct led_driver *db)
{
    c->db = db;
    arena_init(&c->scratch, SCRATCH_LEN_MAX);
    arena_keep(&c->scratch, SCRATCH_KEEP_LEN);
    snprintf(c->schema, sizeof c->schema, "%s", conf->schema ? conf->schema : "pawl");
    c->world = conf->world ? conf->world : &world_real;
    c->own_clock = c->world != &world_real;
    c->retention_us = conf->retention_us;
    c->call_timeout_us = conf->call_timeout_us;
    c->input_len_max = conf->input_len_max;
    c->remember_us = conf->remember_us;
    c->key_pending_max = conf->key_pending_max;
    c->features = conf->features;
    c->n_features = conf->n_features;
    for (size_t i = 0; i < c->n_features; i++) {
        const struct feature *f = c->features[i];
        c->watch |= f->watch;
        CHECK(!f->flow_end || !c->flows); /* a flow belongs to one feature */
        c->flows = f->flow_end ? f : c->flows;
        CHECK(!f->gated || !c->gates);
        c->gates = f->gated ? f : c->gates;
    }
}

void led_end(struct ledger *c)
{
    led_lanes_end(c);
    led_cache_end(c);
    led_gates_end(c);
    mem_free(c->cursors.v);
    arena_release(&c->scratch);
}

/* ---- Transactions ---------------------------------------------------------------------------- */

enum pawl_status led_forget(struct ledger *c, struct pawl_err *err)
{
    const struct led_cache *old = c->tx;
    led_cache_doubt(c); /* led_cache_stored() will not see what was decided about these leases */
    c->tx = arena_zalloc(&c->scratch, 1, sizeof *c->tx);
    if (!c->tx)
        return err_no_memory(err, "a transaction");
    c->tx->last_call = &c->tx->first_call;
    if (old) { /* numbers that were drawn and not used stay with this transaction */
        c->tx->numbers = old->numbers;
        c->tx->versions = old->versions;
    }
    return PAWL_OK;
}

enum pawl_status led_again(struct ledger *c, const char *what, struct pawl_err *err)
{
    if (c->reading || c->db->one_writer) /* no other transaction can interfere */
        return err_set(err, PAWL_BROKEN, "database: %s", what);
    c->redo = true;
    return err_set(err, PAWL_BUSY, "database: another transaction changed it first (%s)", what);
}

enum pawl_status led_row_changed(struct ledger *c, enum sql_name name, struct pawl_err *err)
{
    if (c->reading || c->db->one_writer)
        return led_failed(PAWL_BROKEN, NULL, LED_STATEMENT(name),
                          BYTES("a row is not as it was read"), err);
    return led_again(c, "a row", err);
}

enum pawl_status led_failed(enum pawl_status st, const char *file, struct led_doing doing,
                            struct bytes text, struct pawl_err *err)
{
    bool named = st == PAWL_BROKEN && doing.statement;
    return err_set(err, st, "database%s%s%s: %s%s%.*s%s%s%s", file ? " \"" : "", file ? file : "",
                   file ? "\"" : "", doing.phase ? doing.phase : "", doing.phase ? ": " : "",
                   BYTES_ARG(text), named ? " [" : "", named ? doing.statement : "",
                   named ? "]" : "");
}

enum pawl_status led_denied(const char *account, const char *text, struct pawl_err *err)
{
    enum pawl_status st =
        err_set(err, PAWL_INVALID,
                "database: account \"%.80s\" may not do this (%.200s): nodes, and commands on the "
                "database, need the rights that pawl migrate grants gives as --admin",
                account, text);
    if (err)
        snprintf(err->sqlstate, sizeof err->sqlstate, "42501");
    return st;
}

enum pawl_status led_fresh(struct ledger *c, enum led_begin how, struct pawl_err *err)
{
    led_lanes_begin(c);
    arena_reset(&c->scratch);
    c->tx = NULL;
    c->redo = c->blocked = false;
    c->reading = how == LED_READ;
    return led_forget(c, err);
}

enum pawl_status led_begin(struct ledger *c, enum led_begin how, const struct led_batch *first,
                           struct pawl_err *err)
{
    enum pawl_status st = first ? PAWL_OK : led_fresh(c, how, err);
    if (st == PAWL_OK && c->scratch.failed)
        st = err_no_memory(err, "a transaction");
    if (st == PAWL_OK)
        st = c->db->begin(c, how, first, err);
    if (st == PAWL_OK && c->own_clock)
        c->now_us = world_now(c->world);
    if (st == PAWL_OK && c->now_us <= 0) /* what is written now would have no time */
        st = err_set(err, PAWL_BROKEN, "database: its clock says %lld", (long long)c->now_us);
    return st;
}

void led_undo(struct ledger **tx)
{
    struct ledger *c = *tx;
    if (!c)
        return;
    bool redo = c->redo;
    c->db->rollback(c);
    c->redo = redo;
    led_lanes_undo(c);
    led_cache_doubt(c);
    if (c->tx && c->tx->ahead.pairs)
        c->cursors.full_us = 0; /* the rollback restored rows that the cursors may have passed */
    *tx = NULL;
}

enum pawl_status led_commit(struct ledger *taken, const struct led_batch *last,
                            struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = taken;
    enum pawl_status st = tx->db->commit(tx, last, err);
    if (st != PAWL_OK)
        return st;
    led_lanes_stored(tx);
    led_cache_stored(tx);
    tx = NULL;
    return PAWL_OK;
}
