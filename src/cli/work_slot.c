/*
 * work_slot.c - one slot of `pawl work`: claim, run, extend, finish, repeat. On its own thread.
 *
 * Invariant: when the lease of a call may have ended, its program is stopped and its result is not
 * sent. The server would refuse the result, but the program must not go on beside another attempt.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/remote.h"
#include "cli/work.h"

#define CLAIM_WAIT_US (20 * SEC_US)
/* A waiting claim over TLS cannot be interrupted, so it is short: a stop has to wait for it. */
#define CLAIM_WAIT_TLS_US (2 * SEC_US)
#define SLOT_LEN_MAX ((size_t)64 << 20)
/* How soon a running program is told about a stop or a cancel. */
#define TURN_US (100 * MS_US)

static void say(struct worker *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(struct worker *w, const char *fmt, ...)
{
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    pthread_mutex_lock(&w->lock);
    fprintf(w->cli->err, "pawl work: %s\n", text);
    pthread_mutex_unlock(&w->lock);
}

/* Sleep, but return early on a stop. */
static void rest(struct worker *w, int64_t us)
{
    int64_t until_us = world_mono(&world_real) + us;
    while (!atomic_load(&w->stop) && world_mono(&world_real) < until_us)
        usleep((useconds_t)MIN(us, TURN_US));
}

/* May the error pass by itself? Then the request is repeated; any other error ends the worker. */
static bool passes(enum pawl_status st)
{
    return st == PAWL_BUSY || st == PAWL_UNKNOWN || st == PAWL_FULL || st == PAWL_NO_MEMORY ||
           st == PAWL_TIMEOUT;
}

/* ---- Claim ----------------------------------------------------------------------------------- */

static void claim_body(const struct worker *w, struct buf *b, int64_t wait_us)
{
    buf_add_text(b, "{\"worker\":");
    json_add_string(b, bytes_of(w->name));
    buf_addf(b, ",\"types\":%s", w->types);
    if (w->queues)
        buf_addf(b, ",\"queues\":%s", w->queues);
    if (w->has)
        buf_addf(b, ",\"has\":%s", w->has);
    buf_addf(b, ",\"max\":1,\"wait\":%.3f,\"lease_for\":%.3f}", (double)wait_us / 1e6,
             (double)w->lease_us / 1e6);
}

static enum pawl_status claim(struct slot *s, struct arena *a, struct json **out,
                              struct pawl_err *err)
{
    struct worker *w = s->w;
    struct buf b;
    int64_t wait_us = strncmp(w->cli->settings.v[SET_URL].text, "https:", 6) == 0
                          ? CLAIM_WAIT_TLS_US
                          : CLAIM_WAIT_US;
    if (w->idle_us)
        wait_us = MIN(wait_us, w->idle_us);
    buf_init(&b, 64 << 10);
    claim_body(w, &b, wait_us);
    pthread_mutex_lock(&w->lock);
    s->claiming = !atomic_load(&w->stop);
    bool go = s->claiming;
    pthread_mutex_unlock(&w->lock);
    struct client_ask ask = { .method = "POST",
                              .path = "/v1/work/claim",
                              .body = buf_bytes(&b),
                              .wait_us = wait_us,
                              .once = true,
                              .list = "calls",
                              .has = CALL_HAS " method attempt" };
    enum pawl_status st =
        go ? client_json(s->client, a, &ask, out, err) : err_set(err, PAWL_STATE, "stopping");
    if (st == PAWL_OK && json_member(*out, "calls")->first && !shown(a, *out, "lease"))
        st = err_set(err, PAWL_BROKEN,
                     "the answer to a claim has calls and no lease; is --url "
                     "right?");
    pthread_mutex_lock(&w->lock);
    s->claiming = false;
    pthread_mutex_unlock(&w->lock);
    buf_release(&b);
    return st;
}

/* The first call in the answer to a claim; false when there is none. */
static bool held_read(struct worker *w, struct arena *a, const struct json *answer,
                      struct held *out)
{
    const struct json *calls = json_member(answer, "calls");
    const struct json *c = calls ? calls->first : NULL;
    double timeout = 60;
    if (!c)
        return false;
    *out = (struct held){ .lease = shown(a, answer, "lease"),
                          .id = shown(a, c, "id"),
                          .type = shown(a, c, "type"),
                          .method = shown(a, c, "method"),
                          .key = shown(a, c, "key"),
                          .trace_id = shown(a, c, "trace_id"),
                          .attempt = 1 };
    json_int(json_member(c, "attempt"), &out->attempt);
    json_real(json_member(c, "timeout"), &timeout);
    out->timeout_us = (int64_t)(timeout * 1e6);
    const struct json *bytes = json_member(c, "input_base64"), *input = json_member(c, "input");
    if (bytes && bytes->kind == JSON_STRING) {
        struct bytes text = json_string(a, bytes);
        char *raw = arena_alloc(a, text.len + 1);
        size_t len = 0;
        if (raw && base64_read(text, raw, &len))
            out->input = (struct bytes){ raw, len };
    } else if (input) {
        out->input = input->raw;
    }
    int64_t now_us = world_mono(&world_real);
    out->deadline_us = now_us + work_run_us(out->timeout_us);
    out->until_us = now_us + w->lease_us;
    return out->lease && out->id && out->type && out->method;
}

/* ---- Extend ---------------------------------------------------------------------------------- */

static bool names(struct arena *a, const struct json *list, const char *id)
{
    for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
        struct bytes text = json_string(a, one);
        if (text.data && strcmp(text.data, id) == 0)
            return true;
    }
    return false;
}

enum kept { KEPT, KEPT_CANCELLED, KEPT_LOST, KEPT_UNSURE };

static enum kept extend(struct slot *s, struct held *h)
{
    struct arena a;
    struct buf b;
    struct json *answer = NULL;
    struct pawl_err err;
    enum kept kept = KEPT;
    int64_t asked_us = world_mono(&world_real);
    arena_init(&a, 1 << 20);
    buf_init(&b, 4096);
    buf_addf(&b, "{\"lease\":\"%s\",\"lease_for\":%.3f}", h->lease, (double)s->w->lease_us / 1e6);
    struct client_ask ask = {
        .method = "POST", .path = "/v1/work/extend", .body = buf_bytes(&b), .list = "cancelled"
    };
    enum pawl_status st = client_json(s->client, &a, &ask, &answer, &err);
    if (st == PAWL_OK) {
        h->until_us = asked_us + s->w->lease_us;
        if (names(&a, json_member(answer, "cancelled"), h->id))
            kept = KEPT_CANCELLED;
    } else {
        kept = passes(st) && world_mono(&world_real) < h->until_us ? KEPT_UNSURE : KEPT_LOST;
    }
    buf_release(&b);
    arena_release(&a);
    return kept;
}

/* ---- Run and finish -------------------------------------------------------------------------- */

/* Wait until the program has ended, and extend the lease meanwhile. False: the lease was lost. */
static bool attend(struct slot *s, struct held *h, struct child *c, struct ending_of *e)
{
    struct worker *w = s->w;
    int64_t extend_us = world_mono(&world_real) + w->lease_us / 3;
    for (;;) {
        int64_t turn_us = world_mono(&world_real) + TURN_US;
        if (child_turn(c, e->timed_out ? turn_us : MIN(turn_us, h->deadline_us)))
            break;
        int64_t now_us = world_mono(&world_real);
        if (atomic_load(&w->hard) && !e->released) {
            e->released = true;
            child_kill(c, false);
        }
        if (now_us >= h->deadline_us && !e->timed_out) {
            e->timed_out = true;
            child_kill(c, false);
        }
        if (now_us < extend_us)
            continue;
        enum kept kept = extend(s, h);
        extend_us = world_mono(&world_real) + (kept == KEPT_UNSURE ? SEC_US : w->lease_us / 3);
        if (kept == KEPT_LOST)
            return false;
        if (kept == KEPT_CANCELLED && !e->cancelled) {
            e->cancelled = true;
            child_kill(c, false);
        }
    }
    /* A program that exited with 0 at the same moment counts as completed. */
    if (child_end_of(c->status) == CHILD_RESULT)
        e->timed_out = e->cancelled = e->released = false;
    return true;
}

static enum pawl_status finish(struct slot *s, const struct held *h, const struct ending_of *e,
                               const char **out_status, struct arena *a, struct pawl_err *err)
{
    struct buf b;
    struct json *answer = NULL;
    buf_init(&b, (size_t)16 << 20);
    buf_addf(&b, "{\"lease\":\"%s\",\"results\":[", h->lease);
    work_result(&b, h, e);
    buf_add_text(&b, "]}");
    struct client_ask ask = { .method = "POST",
                              .path = "/v1/work/finish",
                              .body = buf_bytes(&b),
                              .list = "results",
                              .has = "id status" };
    enum pawl_status st;
    /* Repeating a finish gets the same answer, so it is sent until the answer comes or the lease
     * ends. */
    for (;;) {
        st = client_json(s->client, a, &ask, &answer, err);
        if (!passes(st) || world_mono(&world_real) >= h->until_us)
            break;
        usleep(500000);
    }
    const struct json *results = st == PAWL_OK ? json_member(answer, "results") : NULL;
    *out_status = results && results->first ? shown(a, results->first, "status") : NULL;
    buf_release(&b);
    return st;
}

static void run_held(struct slot *s, struct arena *a, struct held *h)
{
    struct worker *w = s->w;
    struct child c = { .pid = -1, .in = -1, .out = -1, .err = -1 };
    struct ending_of e = { .child = &c, .later_us = w->later_us };
    struct pawl_err err = { 0 };
    const char *status = NULL;
    int64_t began_us = world_mono(&world_real);
    struct child_conf conf = { .command = w->command,
                               .env = work_environment(a, h, environ, world_now(&world_real)),
                               .input = h->input,
                               .output_max = RESULT_LEN_MAX + 1 };
    bool ours = true;
    if (atomic_load(&w->stop) || !conf.env || child_open(&c, &conf, &err) != PAWL_OK) {
        e.released = true;
        if (err.status != PAWL_OK)
            say(w, "call \"%s\" is handed back: %s", h->id, err.text);
    } else {
        ours = attend(s, h, &c, &e);
    }
    enum pawl_status st = ours ? finish(s, h, &e, &status, a, &err)
                               : err_set(&err, PAWL_LOST_LEASE, "its lease has ended");
    if (st == PAWL_OK)
        say(w, "call \"%s\" attempt %" PRId64 ": %s in %.3f s", h->id, h->attempt,
            status ? status : "ended", (double)(world_mono(&world_real) - began_us) / 1e6);
    else if (st == PAWL_LOST_LEASE && e.timed_out)
        say(w, "call \"%s\" attempt %" PRId64 ": timed out after %g s", h->id, h->attempt,
            (double)h->timeout_us / 1e6);
    else
        say(w, "call \"%s\" attempt %" PRId64 " could not be finished: %s", h->id, h->attempt,
            err.text);
    child_release(&c);
}

/* ---- The slot -------------------------------------------------------------------------------- */

static void give_up(struct worker *w, const struct pawl_err *err)
{
    pthread_mutex_lock(&w->lock);
    if (w->err.status == PAWL_OK)
        w->err = *err;
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->stop, true);
}

/* True when no call came for idle_us and no slot runs one. */
static bool idle(struct worker *w)
{
    return w->idle_us && !atomic_load(&w->running) &&
           world_mono(&world_real) - atomic_load(&w->busy_us) >= w->idle_us;
}

static void one_round(struct slot *s, struct arena *a, int64_t *pause_us)
{
    struct worker *w = s->w;
    struct json *answer = NULL;
    struct held h;
    struct pawl_err err = { 0 };
    enum pawl_status st = claim(s, a, &answer, &err);
    if (st == PAWL_OK && held_read(w, a, answer, &h)) {
        *pause_us = 0;
        atomic_fetch_add(&w->running, 1);
        run_held(s, a, &h);
        atomic_store(&w->busy_us, world_mono(&world_real));
        atomic_fetch_sub(&w->running, 1);
        pthread_mutex_lock(&w->lock);
        w->n_done++;
        pthread_mutex_unlock(&w->lock);
    } else if (st == PAWL_OK) {
        *pause_us = 0;
        if (idle(w))
            atomic_store(&w->stop, true);
    } else if (!atomic_load(&w->stop) && passes(st)) {
        if (idle(w)) { /* nobody could say whether there was a call */
            give_up(w, &err);
            return;
        }
        if (!*pause_us)
            say(w, "%s (trying again)", err.text);
        *pause_us = *pause_us ? MIN(*pause_us * 2, 10 * SEC_US) : 500 * MS_US;
        rest(w, *pause_us);
    } else if (!atomic_load(&w->stop)) {
        give_up(w, &err);
    }
}

void *slot_main(void *arg)
{
    struct slot *s = arg;
    struct worker *w = s->w;
    struct arena a;
    int64_t pause_us = 0;
    arena_init(&a, SLOT_LEN_MAX);
    while (!atomic_load(&w->stop)) {
        arena_reset(&a);
        one_round(s, &a, &pause_us);
    }
    arena_release(&a);
    pthread_mutex_lock(&w->lock);
    w->n_alive--;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}
