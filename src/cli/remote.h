/*
 * remote.h - what the commands that speak to a server share: a client with an arena, answers as
 * tables, and arguments as inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "cli/client.h"
#include "cli/table.h"

struct remote {
    struct cli *cli;
    struct client *client; /* owned */
    struct arena arena;    /* answers live here */
    const char *id;        /* of the call that the request writes, for an error; NULL: none */
    struct pawl_err err;
};

/* Always to be closed, also when it failed. */
MUST_USE enum pawl_status remote_open(struct remote *r, struct cli *cli);
void remote_close(struct remote *r);
/* Say r->err; returns its exit code. UNKNOWN comes with r->id. */
int remote_fail(struct remote *r);
/* UNKNOWN, in r->err: `call "ID" may have been DONE: ...; `pawl get ID` tells`. */
enum pawl_status remote_unknown(struct remote *r, const char *done);
/* GET or POST of a path; the answer as JSON. body absent: GET. */
MUST_USE enum pawl_status remote_ask(struct remote *r, const char *path, struct bytes body,
                                     struct json **out);

/* A member's value as people read it; NULL when it is null or not there. In the arena. */
const char *shown(struct arena *a, const struct json *object, const char *name);
/* The raw text as the whole answer, and a newline. */
int remote_print_raw(struct remote *r, const struct json *v);
/* A line for every member that has a value, in the server's order. */
void remote_print_fields(struct remote *r, const struct json *object);
/* An array of objects as a table; columns name its members. With --json the whole answer instead.
 */
int remote_table(struct remote *r, const struct json *answer, const char *list,
                 const char *const *columns);
/* The colour of a status. */
enum paint paint_of_status(const char *status);

/* "/v1/calls/" + id + rest, in the arena; NULL without memory. */
char *call_path(struct arena *a, const char *id, const char *rest);

/* `?name=value` or `&name=value` at the end of a path; value NULL: nothing. */
void query_add(struct buf *path, const char *name, const char *value);

/* The bytes of INPUT: the text itself, `@file`, or `-` for stdin; in the arena, at most max. */
MUST_USE enum pawl_status input_read(struct arena *a, const char *arg, size_t max,
                                     struct bytes *out, struct pawl_err *err);

/* ---- call.c ---------------------------------------------------------------------------------- */

/* Print how a call ended: its result on stdout, the rest on stderr; returns 0, 20 to 24. */
int call_outcome(struct remote *r, const struct json *call);

#endif
