/*
 * server.h - what the files of the daemon share: one struct for the process. Room-private.
 *
 * Everything belongs to the loop's thread unless it says otherwise.
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
    struct cli *cli;          /* borrowed: its settings are those of the start */
    struct settings settings; /* those that hold now; their arena is empty until a reload */
    struct pawl *pawl;        /* owned, like all that follows */
    struct loop *loop;
    struct api *api;
    struct http_server *http;
    unsigned duties; /* DUTY_... */
    bool works;      /* handlers run here */
    bool replaced;   /* another process has this node's name */

    atomic_bool stopping;  /* any thread */
    atomic_bool reloading; /* a reload is on its way; any thread */
    pthread_t signal_thread, stop_thread;
    bool signals_run, stop_runs;
    struct loop_task on_stop, on_reload, on_stopped, on_replaced;
    struct loop_timer watchdog, counting;
    int64_t watchdog_us; /* 0: nobody watches */
    int64_t grace_us;    /* of the stop under way */
};

/* guard.c: may this address be listened on with so many tokens? FORBIDDEN says how to set some. */
MUST_USE enum pawl_status guard_listen(const struct settings *s, struct pawl_err *err);
/* Is each line of `tokens` right? INVALID: the first that is not, with its line of the file. */
MUST_USE enum pawl_status guard_tokens(const struct settings *s, struct pawl_err *err);
/* Can only this machine reach the address? */
bool guard_loopback(const char *listen);

/* stop.c: block the signals, before any thread is made; wait for them on a thread of our own. */
void signals_block(void);
/* The tasks; before anybody may post one. */
void signals_init(struct server *s);
MUST_USE enum pawl_status signals_open(struct server *s, struct pawl_err *err);
void signals_close(struct server *s);

/* reload.c: read the settings again and use what can be used. */
void server_reload(struct server *s);
/* What api wants of these settings; borrowed from them. */
struct api_conf server_api_conf(struct server *s, const struct settings *settings);

/* logs.c: lines go to stderr in the format and from the level these settings name. Any thread. */
void logs_use(const struct settings *s, const char *node);
/* One line when the settings are from ./pawl.conf and nobody named that file: what the server does
 * then depends on where it was started. After logs_use(). */
void logs_say_file(const struct cli *cli);
struct log_record;
void logs_audit(const struct log_record *r, void *ctx);

/* notify.c: one message to whoever started us and asked for it. Any thread. */
void notify(const char *message);
/* How often WATCHDOG=1 is expected, in microseconds; 0: not at all. */
int64_t notify_watchdog_us(void);

#endif
