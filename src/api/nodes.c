/*
 * nodes.c - GET /v1/nodes and /v1/leaders, POST /v1/nodes/{node}/drain and /undrain.
 *
 * Of other nodes this one knows what they wrote into the registry with their last beat; of itself
 * it knows how things stand now. A process that runs no handlers is in no registry and still
 * serves, so it adds itself.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/work.h"

/* ---- This process ---------------------------------------------------------------------------- */

/* A share is measured over at least this long: shorter ones jump. */
#define CPU_SPAN_US SEC_US

static int64_t cpu_used_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SEC_US + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

/* How many cores the process used since it was last asked, or lately when that is only just past. A
 * process has one clock of its own, so this is one for all handles in it. */
static double cpu_share(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int64_t at_us, used_us;
    static double share;
    int64_t now_us = world_mono(&world_real);
    pthread_mutex_lock(&lock);
    if (now_us - at_us >= CPU_SPAN_US) {
        int64_t used = cpu_used_us();
        share = at_us ? (double)(used - used_us) / (double)(now_us - at_us) : 0;
        at_us = now_us;
        used_us = used;
    }
    double out = share;
    pthread_mutex_unlock(&lock);
    return out;
}

int64_t process_memory(void)
{
    char text[128];
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (!fgets(text, sizeof(text), f) || sscanf(text, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

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
    return bytes_eq(r->node, bytes_of(e->conf.node)) && bytes_eq(r->boot, bytes_of(e->boot));
}

static const char *status_of(const struct exec_figures *f)
{
    return f->stopping ? "stopping" : f->drained ? "draining" : "up";
}

/* Which queues the workers here serve; null: all. */
static void queues_add(struct buf *b, const struct pool *p)
{
    if (!p->n_queues) {
        add_raw(b, "queues", BYTES_NONE);
        return;
    }
    json_add_name(b, "queues");
    buf_add_char(b, '[');
    for (size_t i = 0; i < p->n_queues; i++) {
        json_add_comma(b);
        json_add_string(b, p->queues[i]);
    }
    buf_add_char(b, ']');
}

static void who_add(struct buf *b, const struct node_row *r, struct bytes address)
{
    json_add_comma(b);
    buf_add_char(b, '{');
    add_text(b, "node", r->node);
    add_text(b, "boot", r->boot);
    add_text(b, "host", r->host);
    add_text(b, "address", address);
}

static void times_add(struct buf *b, const struct node_row *r)
{
    add_text(b, "version", r->version);
    add_time(b, "started_at", r->started_us);
    add_time(b, "heartbeat_at", r->beat_us);
}

static void other_add(struct buf *b, const struct node_row *r)
{
    who_add(b, r, BYTES_NONE);
    add_raw(b, "roles", BYTES_NONE);
    add_raw(b, "queues", BYTES_NONE);
    add_text(b, "status", r->dead ? BYTES("dead") : BYTES("up"));
    times_add(b, r);
    add_int(b, "slots", r->slots);
    add_int(b, "busy", r->busy);
    add_raw(b, "connections", BYTES_NONE);
    add_raw(b, "cpu", BYTES_NONE);
    add_raw(b, "memory", BYTES_NONE);
    buf_add_char(b, '}');
}

static void here_add(struct ask *q, struct buf *b, const struct node_row *r)
{
    struct api *api = q->api;
    struct exec_figures f;
    struct http_stats http = { 0 };
    exec_figures(api->exec, &f);
    if (api->server)
        http_stats(api->server, &http);
    who_add(b, r, api->server ? bytes_of(http_address(api->server)) : BYTES_NONE);
    add_raw(b, "roles", BYTES("[\"all\"]"));
    queues_add(b, &api->exec->pool);
    add_text(b, "status", bytes_of(status_of(&f)));
    times_add(b, r);
    add_int(b, "slots", f.slots);
    add_int(b, "busy", f.busy);
    add_int(b, "connections", http.connections);
    json_add_name(b, "cpu");
    buf_addf(b, "%.3f", cpu_share());
    add_int(b, "memory", process_memory());
    buf_add_char(b, '}');
}

/* This process when no registry has it: it beats for nobody. */
static struct node_row unlisted(struct ask *q, char host[256])
{
    struct exec *e = q->api->exec;
    host[0] = '\0';
    gethostname(host, 255);
    return (struct node_row){ .node = bytes_of(e->conf.node),
                              .boot = bytes_of(e->boot),
                              .host = bytes_of(host),
                              .version = BYTES(PAWL_VERSION),
                              .started_us = q->api->started_us };
}

static void nodes_done(struct ask_read *rd)
{
    struct ask *q = rd->ask;
    const struct node_rows *rows = &((struct nodes_read *)rd)->rows;
    char host[256];
    bool listed = false;
    if (rd->status != PAWL_OK) {
        ask_read_end(rd);
        ask_fail(q, &rd->err);
        return;
    }
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"nodes\":[");
    for (size_t i = 0; i < rows->n; i++) {
        bool here = is_here(q->api->exec, &rows->v[i]);
        listed |= here;
        if (here)
            here_add(q, b, &rows->v[i]);
        else
            other_add(b, &rows->v[i]);
    }
    if (!listed) {
        struct node_row r = unlisted(q, host);
        here_add(q, b, &r);
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

/* One process on a database has nobody to lead. */
void route_leaders(struct ask *q)
{
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"leaders\":[]}");
    ask_reply(q, 200, b);
}

/* ---- Draining -------------------------------------------------------------------------------- */

static void drain_to(struct ask *q, bool drained)
{
    struct exec *e = q->api->exec;
    struct exec_figures f;
    if (!bytes_eq(q->path[0], bytes_of(e->conf.node))) {
        ask_refusef(
            q, PAWL_STATE,
            "node \"%.*s\" is not this one (\"%s\"): draining other nodes comes with clusters",
            BYTES_ARG(q->path[0]), e->conf.node);
        return;
    }
    exec_drain(e, drained);
    exec_figures(e, &f);
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "node", q->path[0]);
    add_text(b, "status", bytes_of(status_of(&f)));
    add_int(b, "busy", f.busy);
    buf_add_char(b, '}');
    ask_reply(q, 200, b);
}

void route_drain(struct ask *q)
{
    drain_to(q, true);
}

void route_undrain(struct ask *q)
{
    drain_to(q, false);
}
