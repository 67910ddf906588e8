/*
 * conn.c - the connection of an engine to its server: when it is opened again, when it is replaced.
 *
 * store/pg and store/mysql bring how to open and close one (struct led_conn_ops). What must stay
 * true: a handle that has no connection asks for one at most once a pause, so that a server that
 * comes back is not flooded by the handles that wait for it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "store/ledger/ledger.h"

/* The pause before a lost connection is opened again: it doubles with each failure, up to the
 * second. Each is longer by a random part, so that handles do not retry at the same time. */
#define RETRY_FIRST_US (20 * MS_US)
#define RETRY_MAX_US (2 * SEC_US)
/* How long the first answers of a connection may take, and the first of a transaction: nothing is
 * lost yet, and callers wait. */
#define CONNECT_US (2 * SEC_US)
#define BEGIN_US (2 * SEC_US)
#define BEGIN_MUCH_US (5 * SEC_US)
/* A statement without a transaction is a read or a heartbeat, and others wait for it. */
#define AUTOCOMMIT_US (3 * SEC_US)
/* A connection that was idle for longer is checked before it is used: the server may have closed
 * it, and then the caller gets a new one instead of an error. */
#define STALE_US (50 * MS_US)

void led_conn_init(struct led_conn *k, const struct store_conf *conf)
{
    k->lifetime_us = conf->lifetime_us;
    k->retry_max_us = conf->retry_max_us ? MIN(conf->retry_max_us, RETRY_MAX_US) : RETRY_MAX_US;
}

/* A random part of a pause. */
static int64_t jitter(int64_t us)
{
    return (int64_t)(world_unit(&world_real) * (double)us / 2);
}

static enum pawl_status reconnect(struct ledger *c, struct led_conn *k,
                                  const struct led_conn_ops *ops, struct pawl_err *err)
{
    int64_t now = k->used_us;
    ops->close(c);
    led_lanes_undo(c);
    k->patience_us = SLOWER(CONNECT_US);
    enum pawl_status st = ops->open(c, err);
    k->patience_us = 0;
    if (st == PAWL_OK) {
        k->retry_gap_us = 0;
        k->replace_at_us = k->lifetime_us ? now + k->lifetime_us + jitter(k->lifetime_us / 4) : 0;
        return PAWL_OK;
    }
    ops->close(c);
    k->retry_gap_us = k->retry_gap_us ? MIN(k->retry_gap_us * 2, k->retry_max_us) : RETRY_FIRST_US;
    k->retry_at_us = world_mono(&world_real) + k->retry_gap_us + jitter(k->retry_gap_us);
    return st;
}

enum pawl_status led_connect(struct ledger *c, struct led_conn *k, const struct led_conn_ops *ops,
                             struct pawl_err *err)
{
    int64_t now = world_mono(&world_real);
    bool stale = now - k->used_us > STALE_US;
    k->used_us = now;
    if (ops->usable(c, stale)) {
        bool old = k->replace_at_us && now >= k->replace_at_us && !c->db->in_tx(c);
        return old ? reconnect(c, k, ops, err) : PAWL_OK;
    }
    if (now < k->retry_at_us)
        return err_set(err, PAWL_BUSY, "database: the connection was lost a moment ago");
    return reconnect(c, k, ops, err);
}

void led_conn_begins(struct led_conn *k, enum led_begin how, const struct led_batch *first)
{
    k->patience_us = how == LED_READ ? 0 : SLOWER(first ? BEGIN_MUCH_US : BEGIN_US);
}

void led_conn_autocommits(struct led_conn *k)
{
    k->patience_us = SLOWER(AUTOCOMMIT_US);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

enum pawl_status led_number_alone(struct ledger *c, enum sql_name name, int64_t *out,
                                  struct pawl_err *err)
{
    arena_reset(&c->scratch);
    enum pawl_status st = c->db->autocommit(c, err);
    return st == PAWL_OK ? led_number(c, name, NULL, 0, out, err) : st;
}

enum pawl_status led_now(struct store *s, int64_t *out_us, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    if (!c->own_clock)
        return led_number_alone(c, SQL_CLOCK, out_us, err);
    *out_us = world_now(c->world);
    return PAWL_OK;
}
