/*
 * nodes.c - GET /v1/nodes and /v1/leaders, POST /v1/nodes/{node}/drain and /undrain.
 *
 * Other nodes are shown as their last heartbeat described them in the registry, this process as it
 * is now. A process that serves HTTP without having entered the registry adds itself to the list.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <unistd.h>

#include "api/ask.h"
#include "api/ask_io.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/json.h"
#include "exec/node.h"

void api_serves(struct api *api, const struct http_server *server)
{
    api->server = server;
}

/* ---- The list -------------------------------------------------------------------------------- */

struct nodes_read {
    struct ask_read rd; /* first */
    struct node_rows rows;
};

static enum pawl_status nodes_work(struct ask_read *rd, struct store *s)
{
    return store_nodes(s, &rd->arena, &((struct nodes_read *)rd)->rows, &rd->err);
}

static bool is_here(const struct exec *e, const struct node_row *r)
{
    return bytes_eq(r->node, bytes_of(exec_node(e))) && bytes_eq(r->boot, bytes_of(exec_boot(e)));
}

static const char *status_of(const struct node_row *r)
{
    static const char *const names[] = {
        [NODE_JOINING] = "joining", [NODE_ACTIVE] = "active", [NODE_DRAINING] = "draining"
    };
    return r->dead ? "dead" : r->drain ? "draining" : names[MIN(r->state, NODE_DRAINING)];
}

/* Append names that are separated by newlines as an array; absent: null. */
static void names_add(struct buf *b, const char *member, struct bytes names)
{
    if (!names.data) {
        add_raw(b, member, BYTES_NONE);
        return;
    }
    json_add_name(b, member);
    buf_add_char(b, '[');
    while (names.len) {
        const char *end = memchr(names.data, '\n', names.len);
        size_t len = end ? (size_t)(end - names.data) : names.len;
        json_add_comma(b);
        json_add_string(b, (struct bytes){ names.data, len });
        names.data += len + (end != NULL);
        names.len -= len + (end != NULL);
    }
    buf_add_char(b, ']');
}

static void node_add(struct buf *b, const struct node_row *r)
{
    json_add_comma(b);
    buf_add_char(b, '{');
    add_text(b, "node", r->node);
    add_text(b, "boot", r->boot);
    add_text(b, "host", r->host);
    add_text(b, "address", r->address);
    names_add(b, "roles", r->roles);
    names_add(b, "queues", r->queues);
    names_add(b, "has", r->has.data ? r->has : BYTES(""));
    add_text(b, "status", bytes_of(status_of(r)));
    add_text(b, "version", r->version);
    add_time(b, "started_at", r->started_us);
    add_time(b, "heartbeat_at", r->beat_us);
    add_int(b, "slots", r->slots);
    add_int(b, "busy", r->busy);
    add_int(b, "connections", r->connections);
    json_add_name(b, "cpu");
    buf_addf(b, "%.3f", (double)r->cpu_milli / 1000);
    add_int(b, "memory", r->memory);
    buf_add_char(b, '}');
}

/* The row of this process, with its figures of now. */
static struct node_row here(struct ask *q, struct node_row r)
{
    struct api *api = q->api;
    struct exec_figures f;
    struct http_stats http = { 0 };
    exec_figures(api->exec, &f);
    if (api->server)
        http_stats(api->server, &http);
    if (api->server)
        r.address = bytes_of(http_reached_at(api->server));
    r.state = f.stopping || f.drained ? NODE_DRAINING : NODE_ACTIVE;
    r.slots = f.started ? f.slots : r.slots;
    r.busy = f.busy;
    r.connections = http.connections;
    r.cpu_milli = process_cpu_milli();
    r.memory = process_memory();
    return r;
}

/* A row for this process when it is not in the registry. */
static struct node_row unlisted(struct ask *q, char host[256])
{
    struct exec *e = q->api->exec;
    host[0] = '\0';
    gethostname(host, 255);
    return (struct node_row){ .node = bytes_of(exec_node(e)),
                              .boot = bytes_of(exec_boot(e)),
                              .host = bytes_of(host),
                              .version = BYTES(PAWL_VERSION),
                              .roles = BYTES("gateway"),
                              .started_us = q->api->started_us };
}

static void nodes_done(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    const struct node_rows *rows = &((struct nodes_read *)rd)->rows;
    char host[256];
    bool listed = false;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"nodes\":[");
    for (size_t i = 0; i < rows->n; i++) {
        bool own = is_here(q->api->exec, &rows->v[i]);
        struct node_row r = own ? here(q, rows->v[i]) : rows->v[i];
        listed |= own;
        node_add(b, &r);
    }
    if (!listed) {
        struct node_row r = here(q, unlisted(q, host));
        node_add(b, &r);
    }
    buf_add_text(b, "]}");
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_nodes(struct ask *q)
{
    struct nodes_read *r = arena_zalloc(q->a, 1, sizeof(*r));
    if (!r) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
        return;
    }
    r->rd.work = nodes_work;
    r->rd.done = nodes_done;
    ask_read(q, &r->rd);
}

/* ---- Leaders --------------------------------------------------------------------------------- */

struct leaders_read {
    struct ask_read rd; /* first */
    struct leader_rows rows;
};

static enum pawl_status leaders_work(struct ask_read *rd, struct store *s)
{
    return store_leaders(s, &rd->arena, &((struct leaders_read *)rd)->rows, &rd->err);
}

static void leaders_done(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    const struct leader_rows *rows = &((struct leaders_read *)rd)->rows;
    if (ask_read_failed(rd))
        return;
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"leaders\":[");
    for (size_t i = 0; i < rows->n; i++) {
        struct leader_row r = rows->v[i];
        if (r.until_us <= exec_now(q->api->exec)) /* its lease is over: no node has the role */
            r = (struct leader_row){ .role = r.role, .epoch = r.epoch };
        json_add_comma(b);
        buf_add_char(b, '{');
        add_text(b, "role", r.role);
        add_text(b, "node", r.node);
        add_int(b, "epoch", r.epoch);
        add_time(b, "acquired_at", r.acquired_us);
        add_time(b, "lease_until", r.until_us);
        buf_add_char(b, '}');
    }
    buf_add_text(b, "]}");
    ask_read_end(rd);
    ask_reply(q, 200, b);
}

void route_leaders(struct ask *q)
{
    struct leaders_read *r = arena_zalloc(q->a, 1, sizeof(*r));
    if (!r) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
        return;
    }
    r->rd.work = leaders_work;
    r->rd.done = leaders_done;
    ask_read(q, &r->rd);
}

/* ---- Draining -------------------------------------------------------------------------------- */

static void drain_reply(struct ask *q, bool drain)
{
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "node", q->path[0]);
    add_text(b, "status", drain ? BYTES("draining") : BYTES("active"));
    buf_add_char(b, '}');
    ask_reply(q, 200, b);
}

static bool own_name(const struct ask *q)
{
    return bytes_eq(q->path[0], bytes_of(exec_node(q->api->exec)));
}

static void drained(struct ask_write *w)
{
    struct ask *q = w->ask;
    struct pawl_err err = w->job.op.err;
    enum pawl_status st = w->job.op.status;
    bool drain = w->job.op.node.drain;
    ask_write_end(w);
    if (st != PAWL_OK) {
        ask_fail(q, &err);
        return;
    }
    if (own_name(q))
        exec_drain_requested(q->api->exec, drain);
    drain_reply(q, drain);
}

/* Store the request in the registry; the node reads it with its next heartbeat. */
static void drain_to(struct ask *q, bool drain)
{
    if (own_name(q) && !exec_entered(q->api->exec)) {
        exec_drain(q->api->exec, drain);
        drain_reply(q, drain);
        return;
    }
    struct ask_write *w = arena_zalloc(q->a, 1, sizeof(*w));
    if (!w) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this request");
        return;
    }
    w->job.op = (struct op){ .kind = OP_DRAIN, .node = { .node = q->path[0], .drain = drain } };
    w->done = drained;
    ask_write(q, w);
}

void route_drain(struct ask *q)
{
    drain_to(q, true);
}

void route_undrain(struct ask *q)
{
    drain_to(q, false);
}
