/*
 * fleet.h - several `pawl serve` processes on one database: started, killed, frozen, stopped, and
 * restarted when they end by themselves, as a service manager would do.
 *
 * All functions are for the case's first thread, except that any thread may ask for ports. Nodes
 * are called n0, n1, ... Their stderr is appended to ./n0.log and so on. A node that ends
 * unexpectedly ends the case; only poison calls (abort) and a start without a database are allowed
 * to end one.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FLEET_H
#define FLEET_H

#include <stdbool.h>
#include <stdint.h>

enum { FLEET_NODES = 3 };

struct fleet_conf {
    const char *db;
    int64_t grace_us;       /* time without a heartbeat after which a node is dead */
    void (*died)(int node); /* called when a node aborted; NULL: none may */
    const char *beat;       /* heartbeat_interval; NULL: an eighth of the grace */
    const char *stop_grace; /* NULL: 3s */
    const char *preload[FLEET_NODES], *clock[FLEET_NODES]; /* LD_PRELOAD, FAKETIME; NULL: none */
    const char *module;      /* what nodes run; NULL: the samples lab and wallet */
    void (*dress)(int node); /* sets the environment, in a node's process; NULL: as it is */
};
/* Set up the fleet; starts no node. */
void fleet_begin(const struct fleet_conf *conf);
/* Start a node; fleet_tend() notices when it listens. */
void fleet_start(int node);
/* Notice which nodes listen, and restart nodes that ended by themselves. To be called often. */
void fleet_tend(void);
/* Wait until every node that should be up listens. */
void fleet_ready(void);

/* Kill a node with SIGKILL and reap it; it stays down. */
void fleet_kill(int node);
/* Send SIGTERM, wait for the end, start the node again. */
void fleet_restart(int node);
/* Stop a node's process with SIGSTOP. */
void fleet_freeze(int node);
/* Continue a frozen node. */
void fleet_thaw(int node);
/* Send SIGTERM to all nodes that are up; each must end with status 0. */
void fleet_end(void);
/* Send SIGTERM and do not wait. */
void fleet_ask_to_stop(int node);
/* Has the node ended since? It is reaped, and its status must be 0. */
bool fleet_has_stopped(int node);

/* The port where the node listens; 0: it does not. A frozen node listens and does not answer. */
int fleet_port(int node);
/* Is the node's process running? */
bool fleet_up(int node);
/* How many times nodes were started. */
int fleet_starts(void);
/* How many of these starts failed because there was no database. */
int fleet_failed_starts(void);

#endif
