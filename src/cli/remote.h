/*
 * remote.h - what the client commands share: an HTTP client with an arena, printing of answers, and
 * reading of INPUT arguments.
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
    const char *id;        /* of the call that the request writes, for errors; NULL: none */
    struct pawl_err err;
};

/* Prepare a client for the server in the settings. remote_close() must be called also when this
 * fails; the error is in r->err. */
MUST_USE enum pawl_status remote_open(struct remote *r, struct cli *cli);
/* Close the client and free all answers. */
void remote_close(struct remote *r);
/* Print r->err, for UNKNOWN together with r->id. Returns the exit code. */
int remote_fail(struct remote *r);
/* Set r->err to UNKNOWN: `call "ID" may have been DONE: ...; `pawl get ID` shows its state`. */
enum pawl_status remote_unknown(struct remote *r, const char *done);
/* Set r->err to UNKNOWN: `WHAT: the request was sent, and its answer was lost; THEN`. WHAT says
 * what may have happened, THEN what the same command does when it is repeated. Both are in the
 * arena; NULL: no memory was left for them. */
enum pawl_status remote_lost(struct remote *r, const char *what, const char *then);
/* client_json(), with the error in r->err: a POST when only a body is given. *out is in the arena.
 * A path of NULL is the error of remote_path(), or NO_MEMORY. */
MUST_USE enum pawl_status remote_ask(struct remote *r, const struct client_ask *ask,
                                     struct json **out);

/* The value of a member as text, in the arena; NULL when it is null or missing. */
const char *shown(struct arena *a, const struct json *object, const char *name);
/* Print the JSON as it came, and a newline, as the command's whole answer. Returns the exit code.
 */
int remote_print_raw(struct remote *r, const struct json *v);
/* Print a line for every member that has a value, in the server's order. */
void remote_print_fields(struct remote *r, const struct json *object);
/* Append the items of "A,B" to a JSON array that is being written. */
void list_add(struct buf *b, const char *text);
/* Print the member `list`, an array of objects, as a table; `columns` names the objects' members.
 * With --json, print the whole answer instead. Returns the exit code. */
int remote_table(struct remote *r, const struct json *answer, const char *list,
                 const char *const *columns);
/* The colour for a call's, an attempt's or a node's status. */
enum paint paint_of_status(const char *status);

/* The path of a pattern, "/v1/objects/{TYPE}/{KEY}", with the names in place of the braces,
 * escaped, and `rest` behind it; in the arena. NULL: r->err says why, which may be that a name is
 * empty: the braces have the argument as the command's usage calls it. */
char *remote_path(struct remote *r, const char *pattern, const char *const *names,
                  const char *rest);
/* The same for "/v1/calls/{ID}". */
char *call_path(struct remote *r, const char *id, const char *rest);

/* Append `?name=value` or `&name=value` to a path; a NULL value appends nothing. */
void query_add(struct buf *path, const char *name, const char *value);

/* Read the bytes of an INPUT argument: the text itself, `@FILE`, or `-` for stdin. File contents go
 * into the arena. TOO_LARGE: more than max bytes. */
MUST_USE enum pawl_status input_read(struct arena *a, const char *arg, size_t max,
                                     struct bytes *out, struct pawl_err *err);

/* What every answer that is a call has (client_ask.has). */
#define CALL_HAS "id type status"

/* ---- call_parts.c ---------------------------------------------------------------------------- */

/* Append `"name":"text"` to an object; nothing when the text is NULL. */
void call_text_add(struct buf *b, const char *name, const char *text);
/* Append `type` and `method`. TYPE.METHOD is split at its last dot; --method switches that off. */
void call_type_add(const struct cli *cli, struct buf *b, const char *type);
/* Append `tags` from the options --tag, each NAME:VALUE or NAME=VALUE; nothing without them. */
MUST_USE enum pawl_status call_tags_add(const struct cli *cli, struct buf *b, struct pawl_err *err);
/* Append `needs` from the options --needs, each A,B; nothing without them. */
void call_needs_add(const struct cli *cli, struct buf *b);

/* ---- call.c ---------------------------------------------------------------------------------- */

/* Print how a call ended: its result on stdout, anything else on stderr. Returns 0 for completed,
 * 20 to 24 for the other outcomes. */
int call_outcome(struct remote *r, const struct json *call);

#endif
