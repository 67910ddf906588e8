/*
 * listen.c - hints between the processes on one schema, by LISTEN and NOTIFY.
 *
 * On a connection that does nothing else. A NOTIFY holds a lock of the whole database until its
 * transaction ends; inside one of our commits that would include the wait for the disk. Here it is
 * a transaction of its own that does not wait for the disk. The payload is one letter for each
 * kind of hint; any other payload (an application's NOTIFY, pawl.submit(notify => true)) counts as
 * work. Without other listeners nothing is sent: each listener holds a shared advisory lock, and
 * the locks of others are counted from time to time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "store/pg/pg.h"

/* How long a count of other listeners is used. A process that begins to listen in between misses
 * no more than this: it polls as often. */
#define OTHERS_US (1 * SEC_US)

/* How long the server may take to answer a NOTIFY. */
#define TELL_US (3 * SEC_US)

static void channel_name(const struct pg *c, char out[PG_CHANNEL_LEN_MAX + 1])
{
    snprintf(out, PG_CHANNEL_LEN_MAX + 1, PG_CHANNEL_PREFIX "%s", c->ledger.schema);
}

/* Schemas have letters, digits and _ in their names: between quotes there is nothing to escape. */
static enum pawl_status listen(struct pg *c, struct pawl_err *err)
{
    char channel[PG_CHANNEL_LEN_MAX + 1], text[200];
    struct led_params p = { 0 };
    channel_name(c, channel);
    snprintf(text, sizeof text, "SET synchronous_commit = off; LISTEN \"%s\"", channel);
    enum pawl_status st = pg_plain(&c->ledger, text, err);
    led_text(&p, bytes_of(channel));
    if (st == PAWL_OK)
        st = led_run(&c->ledger, SQL_LISTEN_ENTER, &p, NULL, err);
    c->listening = st == PAWL_OK;
    c->others_us = 0;
    return st;
}

static enum pawl_status count_others(struct pg *c, const struct led_params *channel,
                                     struct pawl_err *err)
{
    int64_t n = 0, now_us = world_mono(&world_real);
    if (c->others_us && now_us - c->others_us < OTHERS_US)
        return PAWL_OK;
    enum pawl_status st = led_number(&c->ledger, SQL_LISTEN_OTHERS, channel, 0, &n, err);
    c->others = n > 0;
    c->others_us = now_us;
    return st;
}

static enum pawl_status tell(struct pg *c, unsigned kinds, struct pawl_err *err)
{
    char channel[PG_CHANNEL_LEN_MAX + 1], payload[8];
    struct led_params p = { 0 };
    channel_name(c, channel);
    snprintf(payload, sizeof payload, "%s%s%s%s", kinds & HINT_WORK ? "w" : "",
             kinds & HINT_ENDED ? "e" : "", kinds & HINT_NODES ? "n" : "",
             kinds & HINT_TIMES ? "t" : "");
    led_text(&p, bytes_of(channel));
    enum pawl_status st = count_others(c, &p, err);
    if (st != PAWL_OK || !c->others)
        return st;
    led_text(&p, bytes_of(payload));
    return led_run(&c->ledger, SQL_LISTEN_TELL, &p, NULL, err);
}

/* Read the hints that have arrived, without our own. */
static unsigned arrived(struct pg *c)
{
    unsigned heard = 0;
    PGnotify *n;
    while ((n = PQnotifies(c->db))) {
        if (n->be_pid != PQbackendPID(c->db)) {
            bool ours = n->extra[0] && !n->extra[strspn(n->extra, "went")];
            heard |= !ours || strchr(n->extra, 'w') ? HINT_WORK : 0;
            heard |= ours && strchr(n->extra, 'e') ? HINT_ENDED : 0;
            heard |= ours && strchr(n->extra, 'n') ? HINT_NODES : 0;
            heard |= ours && strchr(n->extra, 't') ? HINT_TIMES : 0;
        }
        PQfreemem(n);
    }
    return heard;
}

/* Wait until something can be read. BUSY: the connection is gone. */
static enum pawl_status wait_for_word(struct pg *c, struct hint *h, struct pawl_err *err)
{
    for (;;) {
        if (!PQconsumeInput(c->db))
            return pg_fail(c, NULL, LED_PHASE("listening"), err);
        h->heard |= arrived(c);
        int64_t left_us = h->until_us - world_mono(&world_real);
        if (h->heard || left_us <= 0)
            return PAWL_OK;
        struct pollfd v[] = { { .fd = PQsocket(c->db), .events = POLLIN },
                              { .fd = h->wake_fd, .events = POLLIN } };
        int n = poll(v, 2, (int)MIN(left_us / MS_US + 1, INT64_C(60000)));
        if (n < 0 && errno != EINTR)
            return err_set(err, PAWL_BUSY, "database: listening: poll failed");
        if (n > 0 && v[1].revents)
            return PAWL_OK;
    }
}

enum pawl_status pg_hint(struct store *s, struct hint *h, struct pawl_err *err)
{
    struct pg *c = pg_of(led_of(s));
    arena_reset(&c->ledger.scratch);
    enum pawl_status st = pg_connect(c, err);
    c->conn.patience_us = TELL_US;
    if (st != PAWL_OK)
        return st;
    if (c->pooled)
        return err_set(err, PAWL_STATE, "database: a pooler lets no hints through");
    if (!c->listening) {
        st = listen(c, err);
        h->heard = HINT_ALL; /* hints may have been missed */
    }
    if (st == PAWL_OK && h->tell)
        st = tell(c, h->tell, err);
    return st == PAWL_OK ? wait_for_word(c, h, err) : st;
}
