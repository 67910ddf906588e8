/*
 * events.c - `pawl events serve` and `pawl events work`: pass the settings to the event service,
 * handle signals, and print the line that says it is ready.
 *
 * The main thread serves, or waits for the workers; another one waits for signals.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/table.h"
#include "events/events.h"
#include "server/server.h"

/* Either the server or the workers. */
struct running {
    struct events_server *server;
    struct events_workers *workers;
    pthread_t thread;
    bool runs;
    sem_t stopped; /* posted when the workers must end */
    atomic_bool stopping;
};

/* ---- Signals --------------------------------------------------------------------------------- */

static sigset_t waited_for(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR2); /* sent by this process to end the waiting thread */
    return set;
}

static void stop(struct running *r)
{
    notify("STOPPING=1");
    if (r->server)
        events_server_stop(r->server);
    if (r->workers)
        events_workers_stop(r->workers);
    sem_post(&r->stopped);
}

static void *signals_main(void *arg)
{
    struct running *r = arg;
    sigset_t set = waited_for();
    int64_t first_us = 0;
    for (int sig = 0; sigwait(&set, &sig) == 0 && sig != SIGUSR2;) {
        if (sig == SIGHUP) {
            log_line(LOG_INFO, "SIGHUP: the event service reads its settings when it starts");
        } else if (!atomic_exchange(&r->stopping, true)) {
            first_us = world_mono(&world_real);
            stop(r);
        } else if (signal_second(first_us)) {
            log_line(LOG_WARN, "%s again: leaving at once", sig == SIGINT ? "SIGINT" : "SIGTERM");
            _exit(128 + sig);
        }
    }
    return NULL;
}

static enum pawl_status watch_signals(struct running *r, struct pawl_err *err)
{
    r->runs = pthread_create(&r->thread, NULL, signals_main, r) == 0;
    return r->runs ? PAWL_OK : err_no_memory(err, "starting the thread for signals");
}

static void watch_end(struct running *r)
{
    if (!r->runs)
        return;
    pthread_kill(r->thread, SIGUSR2);
    pthread_join(r->thread, NULL);
}

/* ---- The ready line -------------------------------------------------------------------------- */

/* One line on stdout, for which people and scripts wait. */
static void say_ready(struct cli *cli, const char *address, int workers)
{
    char db[600];
    url_safe(cli_db(cli), db, sizeof(db));
    if (cli->json) {
        struct buf b;
        buf_init(&b, 8192);
        buf_add_text(&b, "{\"version\":\"" PAWL_VERSION "\"");
        json_add_name(&b, "address");
        if (address)
            json_add_string(&b, bytes_of(address));
        else
            buf_add_text(&b, "null");
        json_add_name(&b, "db");
        json_add_string(&b, bytes_of(db));
        buf_addf(&b, ",\"workers\":%d,\"pid\":%d}", workers, (int)getpid());
        fprintf(cli->out, "%.*s\n", BYTES_ARG(buf_bytes(&b)));
        buf_release(&b);
    } else if (address) {
        fprintf(cli->out, "pawl %s events listening on %s (%s)\n", PAWL_VERSION, address, db);
    } else {
        fprintf(cli->out, "pawl %s events working with %d threads (%s)\n", PAWL_VERSION, workers,
                db);
    }
    fflush(cli->out);
    notify("READY=1");
}

/* ---- serve ----------------------------------------------------------------------------------- */

static enum pawl_status serve(struct cli *cli, struct running *r, struct pawl_err *err)
{
    const struct settings *s = &cli->settings;
    const struct setting_value *v = s->v;
    struct events_server_conf conf = {
        .db = cli_db(cli),
        .listen = v[SET_LISTEN].text,
        .tls_cert = *v[SET_TLS_CERT].text ? v[SET_TLS_CERT].text : NULL,
        .tls_key = *v[SET_TLS_KEY].text ? v[SET_TLS_KEY].text : NULL,
        .connections = (int)v[SET_MAX_CONNECTIONS].number,
        .lifetime_us = v[SET_POOL_LIFETIME].number,
        .access = server_api_conf(&(struct server){ 0 }, s),
    };
    enum pawl_status st = guard_listen(s, err);
    if (st == PAWL_OK)
        st = guard_tokens(s, err);
    if (st == PAWL_OK)
        st = events_server_open(&conf, &r->server, err);
    if (st == PAWL_OK)
        st = watch_signals(r, err);
    if (st != PAWL_OK)
        return st;
    say_ready(cli, events_server_address(r->server), 0);
    events_server_run(r->server);
    return PAWL_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */

static enum pawl_status work(struct cli *cli, struct running *r, struct pawl_err *err)
{
    const struct setting_value *v = cli->settings.v;
    struct events_workers_conf conf = {
        .db = cli_db(cli),
        .threads = (int)v[SET_EVENTS_WORKERS].number,
        .batch = (int)v[SET_EVENTS_BATCH].number,
        .poll_us = v[SET_EVENTS_POLL].number,
        .jitter_us = v[SET_EVENTS_JITTER].number,
        .lifetime_us = v[SET_POOL_LIFETIME].number,
    };
    struct events_figures f;
    enum pawl_status st = events_workers_open(&conf, &r->workers, err);
    if (st == PAWL_OK)
        st = watch_signals(r, err);
    if (st != PAWL_OK)
        return st;
    say_ready(cli, NULL, conf.threads);
    while (sem_wait(&r->stopped) != 0) {
    }
    events_workers_figures(r->workers, &f);
    log_line(LOG_INFO,
             "stopping: %" PRId64 " events received their values from this process, %" PRId64
             " failures",
             f.done, f.failed);
    return PAWL_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static enum pawl_status run_one(struct cli *cli, bool serves, struct running *r,
                                struct pawl_err *err)
{
    if (cli_flag(cli, "schema"))
        return err_set(err, PAWL_INVALID,
                       "option --schema: the tables are status and events of the database itself; "
                       "use another database for a second service");
    return serves ? serve(cli, r, err) : work(cli, r, err);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct running r = { 0 };
    struct pawl_err err = { 0 };
    const char *what = argc ? argv[0] : "";
    bool serves = strcmp(what, "serve") == 0;
    if (!serves && strcmp(what, "work") != 0)
        return cli_unknown(cli, "subcommand", what, "serve or work");
    logs_use(&cli->settings, cli->settings.v[SET_NODE].text);
    logs_say_file(cli);
    signals_block();
    sem_init(&r.stopped, 0, 0);
    enum pawl_status st = run_one(cli, serves, &r, &err);
    watch_end(&r);
    events_server_close(r.server);
    events_workers_close(r.workers);
    sem_destroy(&r.stopped);
    if (st != PAWL_OK)
        return cli_fail(cli, &err);
    log_line(LOG_INFO, "stopped");
    return cli_done(cli);
}

/* All are settings; these are common on the command line. */
static const struct option_row options[] = {
    { "listen", "ADDR:PORT", "127.0.0.1:7295",
      "serve: address to listen on, or unix:PATH; port 0 takes a free one" },
    { "events-workers", "N", "4", "work: threads, each with its own connection" },
    { "events-batch", "N", "100", "work: pending events in one transaction" },
    { "events-poll", "D", "1s", "work: how long to wait when nothing is pending" },
    { "events-jitter", "D", "500ms", "work: longest random time added to that wait" },
    { 0 },
};

const struct command cmd_events = {
    .name = "events",
    .summary = "number events over HTTP, and give pending ones their values",
    .usage = "serve|work",
    .about =
        "A small service beside the ledger, on two tables without keys or indexes: status(id),\n"
        "the counter, and events(id, value), created if they are missing. serve answers\n"
        "POST /events, POST /events/async, GET /events and GET /events/ID; ids are 1, 2, 3 and so\n"
        "on without gaps, however many servers run. work gives each pending event a random word,\n"
        "once, however many workers run. At SIGTERM both finish what they have begun, and exit.",
    .example = "pawl events serve --db sqlite:events.db\n"
               "pawl events work --db sqlite:events.db --events-workers 8",
    .options = options,
    .args_max = 1,
    .run = run,
};
