/*
 * serve.c - the server: two connections, two lanes, one loop; and back.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/limits.h"
#include "base/mem.h"
#include "events/inside.h"

/* When it stops, requests get an answer within this time. */
#define DRAIN_US (10 * SEC_US)

static void drained(void *ctx)
{
    struct events_server *s = ctx;
    loop_stop(s->loop);
}

static void on_stop(struct loop_task *t)
{
    struct events_server *s =
        (struct events_server *)((char *)t - offsetof(struct events_server, on_stop));
    http_drain(s->http, world_mono(&world_real) + DRAIN_US, drained, s);
}

void events_server_stop(struct events_server *s)
{
    if (!atomic_exchange(&s->stopping, true))
        loop_post(s->loop, &s->on_stop);
}

static enum pawl_status lanes_open(struct events_server *s, const struct events_server_conf *conf,
                                   struct pawl_err *err)
{
    size_t max = conf->queue_max ? conf->queue_max : EVENTS_QUEUE_MAX;
    s->adds = (struct lane){
        .max = max, .group_max = EVENTS_GROUP_MAX, .run = group_add, .loop = s->loop
    };
    s->looks = (struct lane){
        .max = max, .group_max = EVENTS_LOOK_MAX, .run = group_look, .loop = s->loop
    };
    enum pawl_status st = events_db_open(conf->db, conf->lifetime_us, &s->adds.db, err);
    if (st == PAWL_OK)
        st = events_db_make(s->adds.db, err);
    if (st == PAWL_OK)
        st = events_db_open(conf->db, conf->lifetime_us, &s->looks.db, err);
    if (st == PAWL_OK)
        st = lane_open(&s->adds, err);
    return st == PAWL_OK ? lane_open(&s->looks, err) : st;
}

static enum pawl_status listen_now(struct events_server *s, const struct events_server_conf *conf,
                                   struct pawl_err *err)
{
    struct http_conf http = { .listen = conf->listen,
                              .tls_cert = conf->tls_cert,
                              .tls_key = conf->tls_key,
                              .handler = events_handle,
                              .ctx = s,
                              .body_max = events_body_max,
                              .error_body = api_error_body };
    http_limits_init(&http.limits);
    if (conf->connections)
        http.limits.connections = conf->connections;
    return http_open(s->loop, &http, &s->http, err);
}

enum pawl_status events_server_open(const struct events_server_conf *conf,
                                    struct events_server **out, struct pawl_err *err)
{
    struct events_server *s = mem_zalloc(sizeof *s);
    if (!s)
        return err_no_memory(err, "the server");
    s->on_stop.run = on_stop;
    enum pawl_status st = loop_open(&s->loop, err);
    if (st == PAWL_OK)
        st = auth_open(&conf->access, &s->auth, err);
    if (st == PAWL_OK)
        st = lanes_open(s, conf, err);
    if (st == PAWL_OK)
        st = listen_now(s, conf, err);
    if (st == PAWL_OK)
        *out = s;
    else
        events_server_close(s);
    return st;
}

const char *events_server_address(const struct events_server *s)
{
    return http_address(s->http);
}

void events_server_run(struct events_server *s)
{
    loop_run(s->loop);
}

/* When the loop has stopped, the threads have ended, so every errand belongs to this thread. */
static void errands_end(struct events_server *s)
{
    while (s->errands) {
        struct errand *j = s->errands;
        if (j->r && atomic_load(&j->stage) == ERRAND_QUEUED) {
            j->status = err_set(&j->err, PAWL_BUSY, "the server is stopping; nothing was stored");
        }
        if (j->r)
            errand_answer(j);
        errand_free(j);
    }
}

void events_server_close(struct events_server *s)
{
    if (!s)
        return;
    lane_close(&s->adds);
    lane_close(&s->looks);
    if (s->loop)
        errands_end(s);
    http_close(s->http);
    loop_close(s->loop);
    auth_close(s->auth);
    mem_free(s);
}
