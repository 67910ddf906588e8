/*
 * server.h - what the files of the daemon share: one struct for the process. Room-private.
 *
 * Everything belongs to the loop thread unless it says otherwise.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/api.h"
#include "cli/cli.h"
#include "net/http.h"

struct server {
    struct cli *cli;          /* borrowed; its settings are those of the start */
    struct settings settings; /* the settings in force; their arena is empty until a reload */
    struct pawl *pawl;        /* owned, like all that follows */
    struct loop *loop;
    struct api *api;
    struct http_server *http;
    unsigned duties; /* DUTY_... */
    bool works;      /* handlers run here */
    bool replaced;   /* another process has taken this node's name */

    atomic_bool stopping;  /* any thread */
    atomic_bool reloading; /* a reload is posted; any thread */
    pthread_t signal_thread, stop_thread;
    bool signals_run, stop_runs;
    struct loop_task on_stop, on_reload, on_stopped, on_replaced;
    struct loop_timer watchdog, counting;
    struct declared *storing, *to_store; /* schedules.c, after a reload; the second waits for the
                                            first. Loop thread */
    int64_t watchdog_us;                 /* 0: no watchdog */
    int64_t grace_us;                    /* of the stop in progress */
};

/* guard.c: may the server listen on this address with these tokens? FORBIDDEN says how to set
 * some. */
MUST_USE enum pawl_status guard_listen(const struct settings *s, struct pawl_err *err);
/* Is each line of `tokens` valid? INVALID names the first that is not, with its line of the
 * file. */
MUST_USE enum pawl_status guard_tokens(const struct settings *s, struct pawl_err *err);
/* Can only this machine reach the address? */
bool guard_loopback(const char *listen);

/* stop.c: block the signals, before any thread starts; one thread then waits for them. */
void signals_block(void);
/* Is this signal to stop, after one at first_us (monotonic), a second one? timeout(1) sends each to
 * the process and to its group, which is one. Any thread. */
bool signal_second(int64_t first_us);
/* Prepare the tasks, before anything can post one. */
void signals_init(struct server *s);
/* Start the thread that waits for signals. NO_MEMORY when it cannot start. */
MUST_USE enum pawl_status signals_open(struct server *s, struct pawl_err *err);
/* End that thread, and the one that stops the workers. Accepts a server whose threads never
 * started. */
void signals_close(struct server *s);

/* reload.c: read the settings again and apply those that can change while the server runs. A
 * mistake in them is logged and changes nothing. */
void server_reload(struct server *s);
/* The settings of the API; borrowed from `settings`. */
struct api_conf server_api_conf(struct server *s, const struct settings *settings);

/* schedules.c: store the schedules that the settings file declares, each under its name; what is
 * stored already is not written again. Waits for the database. The error names file and line. */
MUST_USE enum pawl_status schedules_store(struct server *s, struct pawl_err *err);
/* The same on another thread, with the settings in force; a failure is logged. */
void schedules_store_again(struct server *s);

/* logs.c: write log lines to stderr in the format and from the level of these settings. Any
 * thread. */
void logs_use(const struct settings *s, const char *node);
/* Log one line when the settings come from ./pawl.conf and no option named that file: what the
 * server does then depends on the folder where it was started. After logs_use(). */
void logs_say_file(const struct cli *cli);
struct log_record;
/* The sink of the audit log: one line to stderr. Any thread. */
void logs_audit(const struct log_record *r, void *ctx);

/* notify.c: send one message to systemd, if it started this process and asked for them. Any
 * thread. */
void notify(const char *message);
/* How often systemd expects WATCHDOG=1, in microseconds; 0: never. */
int64_t notify_watchdog_us(void);

#endif
