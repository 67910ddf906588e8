/*
 * fleet.h - several `pawl serve` processes on one database: started, killed, frozen, stopped, and
 * started again when they end by themselves, as a service manager would.
 *
 * All by the case's first thread; ports may be asked for by any. Nodes are called n0, n1, ... What
 * they say on stderr is added to ./n0.log and so on. A node that ends in a way it may not ends the
 * case: only poison (abort) and a start without a database are forgiven.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FLEET_H
#define FLEET_H

#include <stdbool.h>
#include <stdint.h>

enum { FLEET_NODES = 3 };

struct fleet_conf {
    const char *db;
    int64_t grace_us;       /* silence after which a node is taken for dead */
    void (*died)(int node); /* one aborted; NULL: none may */
    const char *beat;       /* heartbeat_interval; NULL: an eighth of the grace */
    const char *stop_grace; /* NULL: 3s */
    const char *preload[FLEET_NODES], *clock[FLEET_NODES]; /* LD_PRELOAD, FAKETIME; NULL: none */
};
void fleet_begin(const struct fleet_conf *conf);
/* Start a node; it says when it listens, and fleet_tend() hears it. */
void fleet_start(int node);
/* Hear who listens now, and start again who ended by himself. Often. */
void fleet_tend(void);
/* Until all that should be up are. */
void fleet_ready(void);

/* kill -9 and reap; it stays down. */
void fleet_kill(int node);
/* SIGTERM, wait, start again. */
void fleet_restart(int node);
void fleet_freeze(int node);
void fleet_thaw(int node);
/* SIGTERM to all that are up; each must end with status 0. */
void fleet_end(void);
/* SIGTERM and no waiting; then whether it has ended, and reaped with status 0. */
void fleet_ask_to_stop(int node);
bool fleet_has_stopped(int node);

/* Where it listens; 0: do not try. A frozen node listens and does not answer. */
int fleet_port(int node);
bool fleet_up(int node);
/* Starts of nodes, and those that came to nothing because there was no database. */
int fleet_starts(void);
int fleet_failed_starts(void);

#endif
