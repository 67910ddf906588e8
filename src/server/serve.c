/*
 * serve.c - `pawl serve`: settings, database, modules, listen, workers, loop; and back.
 *
 * The main thread becomes the loop thread. Every mistake is reported before the first call is
 * claimed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/world.h"
#include "cli/table.h"
#include "exec/node.h"
#include "lib/lib.h"
#include "server/server.h"

/* Files other than connections: of the database, the loop, the modules. */
#define FILES_BESIDE 512

/* ---- Starting -------------------------------------------------------------------------------- */

static enum pawl_status open_database(struct server *s, struct pawl_err *err)
{
    struct pawl_options options = settings_options(&s->settings);
    const struct call_defaults calls = { s->settings.v[SET_CALL_TIMEOUT].number,
                                         (size_t)s->settings.v[SET_MAX_INPUT].number };
    enum pawl_status st = pawl_open_with(&options, &calls, &s->pawl, err);
    const struct setting_value *modules = &s->settings.v[SET_MODULE];
    for (size_t i = 0; st == PAWL_OK && i < modules->n_items; i++) {
        /* A name without a slash is a file in this folder, not in the linker's folders. */
        char here[PATH_MAX];
        const char *name = modules->items[i];
        snprintf(here, sizeof(here), "%s%s", strchr(name, '/') ? "" : "./", name);
        st = pawl_load(s->pawl, here, err);
    }
    return st;
}

static const char *not_ready(void *ctx)
{
    struct server *s = ctx;
    if (atomic_load(&s->stopping))
        return "stopping";
    struct exec_figures f;
    exec_figures(s->pawl->e, &f);
    return f.replaced ? "another process has taken this node's name" : NULL;
}

static enum pawl_status open_http(struct server *s, struct pawl_err *err)
{
    const struct setting_value *v = s->settings.v;
    struct api_conf conf = server_api_conf(s, &s->settings);
    conf.exec = s->pawl->e;
    conf.no_gateway = !(s->duties & DUTY_GATEWAY);
    conf.not_ready = not_ready;
    conf.ready_ctx = s;
    enum pawl_status st = api_open(&conf, &s->api, err);
    if (st != PAWL_OK)
        return st;
    struct http_conf http = { .listen = v[SET_LISTEN].text,
                              .tls_cert = *v[SET_TLS_CERT].text ? v[SET_TLS_CERT].text : NULL,
                              .tls_key = *v[SET_TLS_KEY].text ? v[SET_TLS_KEY].text : NULL,
                              .handler = api_handle,
                              .ctx = s->api,
                              .body_max = api_body_max,
                              .error_body = api_error_body };
    http_limits_init(&http.limits);
    http.limits.connections = (int)v[SET_MAX_CONNECTIONS].number;
    st = http_open(s->loop, &http, &s->http, err);
    if (st == PAWL_OK)
        api_serves(s->api, s->http);
    return st;
}

/* Runs on the thread that notices it. */
static void replaced(void *ctx)
{
    struct server *s = ctx;
    loop_post(s->loop, &s->on_replaced);
}

/* The first heartbeat comes before any claim, here or by HTTP workers. Without handlers no workers
 * start: the server still serves HTTP and HTTP workers. */
static enum pawl_status start_workers(struct server *s, struct pawl_err *err)
{
    struct exec *e = s->pawl->e;
    const struct setting_value *queues = &s->settings.v[SET_QUEUES];
    const struct setting_value *has = &s->settings.v[SET_HAS];
    bool all = queues->n_items == 0 || strcmp(queues->text, "all") == 0;
    struct pawl_workers workers = { PAWL_WORKERS_INIT,
                                    .slots = (int)s->settings.v[SET_WORKER_SLOTS].number,
                                    .queues = all ? NULL : queues->items,
                                    .n_queues = all ? 0 : queues->n_items,
                                    .has = has->items,
                                    .n_has = has->n_items };
    s->works = exec_handlers(e) && s->duties & DUTY_WORKER;
    struct exec_member me = { .address = http_reached_at(s->http),
                              .roles = s->duties,
                              .slots = s->works ? workers.slots : 0,
                              .queues = workers.queues,
                              .n_queues = workers.n_queues,
                              .has = s->works ? workers.has : NULL,
                              .n_has = s->works ? workers.n_has : 0 };
    exec_on_replaced(e, replaced, s);
    enum pawl_status st = exec_enter(e, &me, err);
    if (st == PAWL_OK)
        logs_use(&s->settings, exec_node(e));
    return st == PAWL_OK && s->works ? pawl_start(s->pawl, &workers, err) : st;
}

/* Each connection is a file; the soft limit is often 1024, the hard limit far higher. */
static void raise_files(const struct settings *s)
{
    struct rlimit limit;
    rlim_t want = (rlim_t)s->v[SET_MAX_CONNECTIONS].number + FILES_BESIDE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
        return;
    rlim_t hard = limit.rlim_max;
    limit.rlim_cur = MIN(want, hard);
    setrlimit(RLIMIT_NOFILE, &limit);
    if (hard < want)
        log_line(LOG_WARN,
                 "setting \"max_connections\": the system allows this process %llu files, so "
                 "there will be fewer connections",
                 (unsigned long long)hard);
}

static void watch(struct loop_timer *t)
{
    struct server *s = (struct server *)((char *)t - offsetof(struct server, watchdog));
    notify("WATCHDOG=1");
    loop_timer_set(s->loop, t, world_mono(&world_real) + s->watchdog_us / 2);
}

/* The number of clients for the heartbeat; only the loop thread may count them. */
static void count(struct loop_timer *t)
{
    struct server *s = (struct server *)((char *)t - offsetof(struct server, counting));
    struct http_stats stats;
    http_stats(s->http, &stats);
    exec_connections(s->pawl->e, stats.connections);
    loop_timer_set(s->loop, t,
                   world_mono(&world_real) + s->settings.v[SET_HEARTBEAT_INTERVAL].number);
}

static enum pawl_status server_open(struct server *s, struct pawl_err *err)
{
    enum pawl_status st = guard_listen(&s->settings, err);
    if (st == PAWL_OK)
        st = guard_tokens(&s->settings, err);
    if (st == PAWL_OK)
        st = settings_duties(&s->settings, &s->duties, err);
    signals_init(s);
    if (st == PAWL_OK)
        st = open_database(s, err);
    if (st == PAWL_OK)
        st = loop_open(&s->loop, err);
    if (st == PAWL_OK)
        st = open_http(s, err);
    if (st == PAWL_OK)
        st = schedules_store(s, err);
    if (st == PAWL_OK)
        st = start_workers(s, err);
    if (st == PAWL_OK)
        st = signals_open(s, err);
    return st;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* One line on stdout, for which people and scripts wait. */
static void say_ready(struct server *s)
{
    char db[600];
    FILE *out = s->cli->out;
    url_safe(s->settings.v[SET_DB].text, db, sizeof(db));
    if (s->cli->json) {
        struct buf b;
        buf_init(&b, 8192);
        buf_add_text(&b, "{\"version\":\"" PAWL_VERSION "\"");
        json_add_name(&b, "address");
        json_add_string(&b, bytes_of(http_address(s->http)));
        json_add_name(&b, "db");
        json_add_string(&b, bytes_of(db));
        json_add_name(&b, "node");
        json_add_string(&b, bytes_of(exec_node(s->pawl->e)));
        buf_addf(&b, ",\"pid\":%d}", (int)getpid());
        fprintf(out, "%.*s\n", BYTES_ARG(buf_bytes(&b)));
        buf_release(&b);
    } else {
        fprintf(out, "pawl %s listening on %s (%s)\n", PAWL_VERSION, http_address(s->http), db);
    }
    fflush(out);
}

static void server_run(struct server *s)
{
    s->watchdog_us = notify_watchdog_us();
    s->watchdog.run = watch;
    if (s->watchdog_us)
        watch(&s->watchdog);
    s->counting.run = count;
    count(&s->counting);
    say_ready(s);
    log_line(LOG_INFO, "ready: %zu handlers, %d slots%s", exec_handlers(s->pawl->e),
             s->works ? (int)s->settings.v[SET_WORKER_SLOTS].number : 0,
             s->settings.v[SET_PAUSED].number ? ", paused" : "");
    notify("READY=1");
    loop_run(s->loop);
}

/* A commit that waits for a standby may wait for ever, and so may a query; closing would wait with
 * it, because no other thread can end these requests. Their clients were told UNKNOWN or
 * disconnected; the database continues without this process. The outstanding requests decide, not
 * only the stall: it may have ended just now while its answers are still on their way to the
 * loop. */
static void leave_outstanding(struct server *s, int code)
{
    struct exec_figures f = { 0 };
    int64_t asks = s->api ? api_busy(s->api) : 0;
    if (s->pawl)
        exec_figures(s->pawl->e, &f);
    if (!f.stalled_us && !asks)
        return;
    if (f.stalled_us)
        log_line(LOG_WARN, "leaving while the database has not confirmed a commit for %.1f s",
                 (double)f.stalled_us / SEC_US);
    else
        log_line(LOG_WARN, "leaving while the database has not answered %" PRId64 " requests",
                 asks);
    fflush(NULL);
    _exit(code);
}

/* `code`: the exit code, in case the process ends in here. */
static void server_close(struct server *s, int code)
{
    signals_close(s);
    if (s->pawl)
        exec_on_replaced(s->pawl->e, NULL, NULL);
    if (s->api)
        api_serves(s->api, NULL);
    http_close(s->http);
    leave_outstanding(s, code);
    if (s->api)
        api_close(s->api);
    loop_close(s->loop);
    pawl_close(s->pawl);
    settings_release(&s->settings);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct server *s = calloc(1, sizeof(*s));
    struct pawl_err err = { 0 };
    (void)argc, (void)argv;
    if (!s)
        return cli_failf(cli, PAWL_NO_MEMORY, "no memory to start");
    s->cli = cli;
    s->settings = cli->settings;
    s->settings.arena = (struct arena){ 0 }; /* main() releases it at the end */
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    const char *node = s->settings.v[SET_NODE].text;
    logs_use(&s->settings, *node ? node : host);
    logs_say_file(cli);
    signals_block();
    raise_files(&s->settings);
    enum pawl_status st = server_open(s, &err);
    if (st == PAWL_OK)
        server_run(s);
    bool was_replaced = st == PAWL_OK && s->replaced;
    if (was_replaced)
        err_set(&err, PAWL_LOST_LEASE, "node \"%.200s\": another process has taken this name",
                exec_node(s->pawl->e));
    /* Reported before closing, which may end the process. */
    int code = st != PAWL_OK || was_replaced ? cli_fail(cli, &err) : 0;
    server_close(s, code);
    free(s);
    if (code)
        return code;
    log_line(LOG_INFO, "stopped");
    return cli_done(cli);
}

/* All are settings; these are common on the command line. */
static const struct option_row options[] = {
    { "listen", "ADDR:PORT", "127.0.0.1:7295",
      "address to listen on, or unix:PATH; port 0 takes a free port" },
    { "module", "FILE.so", NULL, "shared object with handlers to load; may be repeated" },
    { "node", "NAME", NULL,
      "name of this process in the database; default: host name and eight hex digits" },
    { "worker-slots", "N", "16", "handlers that run at the same time" },
    { "queues", "A,B", "all", "queues the handlers take calls from" },
    { "has", "A,B", NULL, "capabilities of the handlers: they run calls that need these" },
    { "paused", NULL, NULL, "start no work; calls are still accepted" },
    { "tls-cert", "FILE", NULL, "certificate chain, PEM; needs --tls-key" },
    { "tls-key", "FILE", NULL, "its private key, PEM" },
    { 0 },
};

const struct command cmd_serve = {
    .name = "serve",
    .summary = "serve HTTP and run handlers on a database",
    .usage = "",
    .about =
        "Opens the database, creates its schema if there is none, loads modules and serves HTTP\n"
        "until SIGTERM or SIGINT. Then it claims no more calls, waits up to `grace` for those\n"
        "that run, releases the rest (which counts as no attempt), answers the requests that\n"
        "wait, and exits; a second signal exits at once. SIGHUP reads the settings again. Prints\n"
        "one line with its address when it is ready.",
    .example = "pawl serve --db sqlite:orders.db --module build/samples/echo.so\n"
               "pawl serve --listen unix:pawl.sock --config pawl.conf --paused",
    .options = options,
    .run = run,
};
