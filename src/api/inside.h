/*
 * inside.h - what the files of this room share: a request being answered, the table of routes, and
 * the helpers every route is written with.
 *
 *     api_handle -> match (match.c) -> who (auth.c) -> query (query.c) -> route.run
 *     route.run  -> body_object / fields_read -> ask_write | ask_read | wait_enter -> ask_reply
 *
 * Everything runs on the loop thread unless it says otherwise. A `struct ask` and all that is made
 * on `q->a` live until the one ask_reply*() or ask_refuse*() call that ends it; it must not be
 * touched after that. Every route ends its ask exactly once, also when the client has gone.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef API_INSIDE_H
#define API_INSIDE_H

#include <stdatomic.h>

#include "api/front.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "exec/job.h"
#include "exec/waiter.h"

/* ---- Who asks -------------------------------------------------------------------------------- */

/* May this principal see calls of this client? Only ROLE_APP is told apart. */
bool principal_sees(const struct principal *who, struct bytes client);
/* May it work this queue? */
bool principal_works(const struct principal *who, struct bytes queue);

/* ---- The table of routes --------------------------------------------------------------------- */

enum param_kind {
    PARAM_NAME,    /* as the contract's names */
    PARAM_TEXT,    /* any UTF-8 */
    PARAM_INT,     /* min..max */
    PARAM_SECONDS, /* fractions allowed; min..max are seconds, the value microseconds */
    PARAM_TIME,    /* RFC 3339; the value microseconds */
    PARAM_BOOL,    /* true or false; the value 1 or 0 */
    PARAM_WORD,    /* one of `words` */
    PARAM_WORDS,   /* some of `words`, separated by commas */
};

/* One query parameter. Unknown and repeated ones are refused by name before the route runs. */
struct param {
    const char *name;
    enum param_kind kind;
    int64_t min, max; /* of INT and SECONDS */
    const char *about;
    const char *dflt;  /* what a missing one means: JSON, or words; NULL: nothing */
    const char *words; /* WORD, WORDS: "pending|processing" */
};

/* One member of a JSON object, and where its value goes. */
enum field_kind {
    FIELD_NAME,    /* struct bytes; checked as a name */
    FIELD_TEXT,    /* struct bytes; any string */
    FIELD_WORD,    /* struct bytes; one of the words in `words` */
    FIELD_INT,     /* int; min..max */
    FIELD_REAL,    /* double */
    FIELD_SECONDS, /* int64_t microseconds; min..max are seconds. min 1 and FIELD_ABOVE_0: above 0
                    */
    FIELD_TIME,    /* int64_t microseconds; RFC 3339 */
    FIELD_BOOL,    /* bool */
    FIELD_JSON,    /* struct bytes: the value as it was written */
    FIELD_BASE64,  /* struct bytes: decoded */
    FIELD_LEASE,   /* struct bytes: the text of a lease; of anything that is not a string a piece of
                      its JSON too short to be one, since a malformed lease is LOST_LEASE and not
                      INVALID (lease_read) */
    FIELD_OBJECT,  /* const struct json *: an object */
    FIELD_ARRAY,   /* const struct json *: an array */
};
enum {
    FIELD_MUST = 1,    /* it has to be there */
    FIELD_NULL = 2,    /* null reads as if it were not there */
    FIELD_ABOVE_0 = 4, /* SECONDS: 0 is refused */
};
struct field {
    const char *name;
    enum field_kind kind;
    size_t at;      /* in the struct fields_read() fills */
    unsigned flags; /* FIELD_MUST... */
    int64_t min, max;
    const char *words;         /* WORD: "skip|block" */
    const char *about;         /* what it means, for the documents */
    const struct shape *shape; /* OBJECT; ARRAY: of its items. NULL: an object of strings; an array
                                  of names */
    const char *dflt;          /* what a missing one means: JSON, or words; NULL: nothing */
    const char *unit;          /* for the documents, where the kind does not say it */
};
struct shape {
    const char *name; /* "CallSpec": its schema in openapi.json */
    const struct field *v;
    size_t n;           /* at most 64 */
    const char *prefix; /* before a field's name in sentences: "backoff."; NULL: none */
};
#define SHAPE(title, fields)                                                                       \
    {                                                                                              \
        .name = (title), .v = (fields), .n = COUNT_OF(fields)                                      \
    }

/* Fill *out from an object's members: missing ones leave it as it is. INVALID (unknown, repeated,
 * wrong type, out of bounds, missing) with a text that begins `field "name": `. *given (may be
 * NULL) has bit i set when v[i] was there and not a null that means nothing. Strings live in `a`.
 */
MUST_USE enum pawl_status fields_read(struct arena *a, const struct json *object,
                                      const struct shape *shape, void *out, uint64_t *given,
                                      struct pawl_err *err);

/* "skip|block": the next word off *at; false: there is none. */
bool word_next(const char **at, struct bytes *out);
/* Which of the words it is, from 0; -1: none of them. */
int word_at(const char *words, struct bytes word);
bool word_in(const char *words, struct bytes word);
#define WORDS_TEXT_MAX 256
/* "pending, processing or completed" */
void words_text(const char *words, char out[WORDS_TEXT_MAX]);
/* INVALID: `status "zzz" is unknown; expected pending, processing or completed`. */
enum pawl_status unknown_word(struct arena *a, const char *field, struct bytes word,
                              const char *words, struct pawl_err *err);
/* Text as it may stand in a sentence: short, and nothing in it that could end the quotes. */
struct bytes text_shown(struct arena *a, struct bytes text);

/* The words of call_state_of(): all, and those that a cancel or a retry can change. */
#define STATE_WORDS "pending|processing|completed|failed|dead_letter|cancelled|expired"
#define CANCEL_WORDS "pending|processing"
#define RETRY_WORDS "failed|dead_letter|cancelled|expired"

/* `include` of GET /v1/calls, and what each of its words is in struct value. */
#define INCLUDE_WORDS "input|result"
enum { INCLUDE_INPUT = 1, INCLUDE_RESULT = 2 };

struct ask;

/* What an answer is, for the documents. Errors need no line: all are `Error`. */
struct answer {
    int status;
    const char *about;
    const char *schema;  /* "Call", "CallList"...; NULL: none */
    const char *headers; /* "Location Retry-After"; NULL: none that matter */
    const char *type; /* of a body that is no JSON, or may be none: "text/plain"; NULL: it is JSON
                       */
};

struct route {
    enum http_method method; /* HEAD is answered as GET */
    const char *pattern;     /* "/v1/calls/{id}/cancel" */
    void (*run)(struct ask *q);
    unsigned may;  /* MAY_..., 0: admin only */
    bool audited;  /* one audit line for each that was answered below 400 */
    bool raw_body; /* the body is no JSON object: run looks at it itself (body_json, NDJSON) */
    bool ndjson;   /* with raw_body: it may also be NDJSON */
    const char *summary, *about; /* one line; what else is to be known */
    const char *op, *tag;        /* operationId, and the group it is shown in */
    const char *headers;         /* request headers it looks at: "If-Match Prefer"; NULL: none */
    const char *example, *body_example; /* a path and a body that are well-formed */
    const struct param *params;
    size_t n_params;
    const struct shape *body; /* NULL: takes none */
    const struct answer *answers;
    size_t n_answers;
};

/* Schemas of answers: members separated by spaces, each `name:kind`, a `?` behind it: may be null.
 * Kinds: s string, t time, i integer, n number, b boolean, @Name a schema; `[` before one: an array
 * of it, `{`: an object whose members are all of it. Every member is always there, but those with a
 * `*` before their name. Or one of several `words`, or `any` of several schemas. schemas.c. */
struct schema_text {
    const char *name, *members;
    const char *words; /* "pending|processing": a string */
    const char *any;   /* "Call|ArchivedCall" */
    const char *about; /* NULL: the name says it */
};
/* One member, taken apart. */
struct member {
    struct bytes name, kind; /* kind without `[`, `{` and `?` */
    bool array, map, null, maybe;
};
/* The next member off *at; false: there is none. */
bool member_next(const char **at, struct member *out);
extern const struct schema_text schemas[];
extern const size_t n_schemas;

/* The table, printed by api_print_*() and matched by match(). routes.c. */
extern const struct route routes[];
extern const size_t n_routes;

/* ---- One request being answered -------------------------------------------------------------- */

#define ASK_PARAMS_MAX 4 /* `{...}` in one pattern */
#define ASK_QUERY_MAX 16 /* query parameters of one route */

struct value {
    bool given;
    struct bytes text; /* decoded */
    int64_t n;         /* INT, SECONDS (us), TIME (us), BOOL; WORDS: 1 << i for each of `words` */
};

struct ask {
    struct api *api;
    struct http_request *r;
    struct arena *a; /* the request's; loop thread only */
    const struct route *route;
    struct principal who;
    struct bytes path[ASK_PARAMS_MAX]; /* the `{...}` of the pattern, decoded; each a valid name */
    struct value query[ASK_QUERY_MAX]; /* in the order of route->params */
    struct park *park;                 /* the place it is parked at, if it is */
};

/* The value of a query parameter of this route, by name; .given false when it was not there. */
struct value ask_query(const struct ask *q, const char *name);
/* How long to wait: `wait`, else Prefer: wait=S, else dflt_us. INVALID names the field. */
MUST_USE enum pawl_status ask_wait_us(struct ask *q, int64_t dflt_us, int64_t *out,
                                      struct pawl_err *err);

struct api {
    struct exec *exec; /* borrowed */
    struct loop *loop; /* borrowed */
    const struct world *world;
    bool metrics_open, stopping;
    bool no_gateway;
    int64_t lease_us, call_timeout_us, session_wait_us;
    size_t input_len_max, batch_len_max;
    void (*audit)(const struct log_record *r, void *ctx);
    void *audit_ctx;
    const char *(*not_ready)(void *ctx);
    void *ready_ctx;
    struct desk *desk;                  /* owned: the claims that wait (desk.c) */
    const struct http_server *server;   /* borrowed; NULL: nobody said (api_serves) */
    struct doors *doors;                /* owned: tokens, origins, hosts (auth.c) */
    struct park *parked;                /* everybody who waits, linked */
    struct ask_write *turn, **turn_end; /* writes of this turn, posted at its end */
    struct loop_task turn_task;
    struct buf scratch;                /* answers are written here; empty between requests */
    int64_t n_asks;                    /* requests not answered yet */
    int64_t started_us;                /* world_now at api_open */
    atomic_int_least64_t n_writes_out; /* posted, not settled */
};

/* ---- Answering: each of these ends the ask ----------------------------------------------------
 */

/* A buffer to write an answer into: the api's, emptied. Hand it to ask_reply() before returning to
 * the loop. */
struct buf *ask_buf(struct ask *q);
/* JSON from ask_buf(), or from any buffer; one that failed answers 503. */
void ask_reply(struct ask *q, int status, struct buf *b);
/* The same with more headers. */
void ask_reply_with(struct ask *q, int status, struct buf *b, const struct http_header *headers,
                    size_t n);
/* Anything else: text, raw results, pages. Counted, audited, and the ask is over. */
void ask_reply_raw(struct ask *q, const struct http_reply *reply);

/* What an error answer says. Zero and absent: null. */
struct refusal {
    enum pawl_status status;
    const char *text;      /* one about a field (refusal_field) also fills `field` */
    struct bytes id;       /* which call */
    enum pawl_state state; /* as it is; 0: not about a call's state */
    bool indexed;          /* a batch: `index` says which */
    size_t index;
    const struct call *times; /* GONE: when it was made and when it ended; NULL: none */
    const struct call *call;  /* as `call`, whole; NULL: none */
    unsigned show;            /* what of it */
};
void ask_refuse(struct ask *q, const struct refusal *why);
/* By what a function left in err. */
void ask_fail(struct ask *q, const struct pawl_err *err);
/* The same, about a call. */
void ask_fail_id(struct ask *q, const struct pawl_err *err, struct bytes id);
void ask_refusef(struct ask *q, enum pawl_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The client has waited for long enough: an error answer now, while the ask goes on without it. At
 * once for a client that has had its answer. */
void ask_unknown(struct ask *q, const struct pawl_err *err, struct bytes id);

/* There is no memory for it. */
void ask_no_memory(struct ask *q);

/* `{"code":...}` without the "error" around it, for one call of a batch. */
void refusal_add(struct buf *b, const struct refusal *why);
/* The field that a text names, one that begins `field "x": ` or an unknown_word(); absent when it
 * names none. */
struct bytes refusal_field(const char *text);

/* ---- Bodies -----------------------------------------------------------------------------------
 */

/* The body as JSON. An empty one is INVALID unless empty_ok, then *out is NULL. MEDIA by content
 * type, TOO_LARGE. */
MUST_USE enum pawl_status body_json(struct ask *q, bool empty_ok, struct json **out,
                                    struct pawl_err *err);
/* The body as an object of route->body, into *out as fields_read(). An empty body reads as {}. */
MUST_USE enum pawl_status body_object(struct ask *q, void *out, uint64_t *given,
                                      struct pawl_err *err);
/* The body as one JSON value, byte for byte. An empty one is nothing, or INVALID unless empty_ok.
 */
MUST_USE enum pawl_status body_value(struct ask *q, bool empty_ok, struct payload *out,
                                     struct pawl_err *err);
/* Is the body's type one of NDJSON's? */
bool body_is_ndjson(const struct http_request *r);

/* ---- Writes and reads -------------------------------------------------------------------------
 */

/* A write on its way: at the head of the route's own struct, made on q->a and zeroed. Fill job.op
 * (without .a) and done, then ask_write(). The writes of one turn go out together. `done` runs on
 * the loop thread with the answer in job.op and job.op.status; it is called exactly once, with BUSY
 * also when the write could not be posted. What the answer points at lives in `arena`, until
 * ask_write_end(). When its commit has no answer for COMMIT_WAIT_US the client hears UNKNOWN with
 * `id`, and the route goes on as if the client had gone: `done` comes all the same. */
struct ask_write {
    struct job job; /* first */
    struct ask *ask;
    struct arena arena;
    void (*done)(struct ask_write *w);
    struct loop_task task;
    struct ask_write *next;
    struct bytes id;       /* the call it is about, for who hears UNKNOWN; absent: several */
    struct loop_task late; /* its commit has no answer for too long */
    bool is_late;          /* `late` was posted; set before the answer, never after */
    atomic_int settled;    /* see ask_write_quiet() */
    bool (*quiet)(struct ask_write *w); /* store thread: nobody needs to hear of this answer */
};
void ask_write(struct ask *q, struct ask_write *w);
/* A write with a `quiet` that said yes is not announced. True: it is settled and its answer may be
 * read. False: it is still out, and `done` will come after all. Loop thread. */
bool ask_write_settled(struct ask_write *w);
/* Drop the answer's memory; before the ask ends, or the arena is lost. Accepts one that was never
 * posted. */
void ask_write_end(struct ask_write *w);

/* A read: at the head of the route's own struct, made on q->a and zeroed. `work` runs on another
 * thread with a borrowed connection; it may use rd->arena and its own struct, not q->a. Then `done`
 * on the loop thread, with what work returned (or why there was no connection) in status and err.
 */
struct ask_read {
    struct loop_work inside; /* first */
    struct ask *ask;
    struct arena arena;
    enum pawl_status (*work)(struct ask_read *rd, struct store *s);
    void (*done)(struct ask_read *rd);
    enum pawl_status status;
    struct pawl_err err;
};
void ask_read(struct ask *q, struct ask_read *rd);
void ask_read_end(struct ask_read *rd);

/* ---- Parking ----------------------------------------------------------------------------------
 */

enum park_why {
    PARK_TIME, /* its time is up */
    PARK_GONE, /* the client has left (q->r->cut: and hears nothing any more) */
    PARK_STOP, /* the server is stopping */
};

/* A request that waits, without a thread. `over` is called once, unless park_leave() came first. */
struct park {
    struct ask *ask;
    void (*over)(struct park *p, enum park_why why);
    struct loop_timer timer;
    struct park *next, **link;
};
/* until_us is monotonic. May call `over` at once: gone or stopping. One place for one ask. */
void park_enter(struct ask *q, struct park *p, int64_t until_us);
/* Go on; harmless when it is not parked. */
void park_leave(struct park *p);

/* Waiting for the end of a call: register, look, park. Enter before asking the store; then either
 * park (wait_park) or leave (wait_leave). */
enum wait_end {
    WAIT_TOLD,   /* w->call is the call as it ended, in w->arena */
    WAIT_FAILED, /* it has ended, but there was no memory for it */
    WAIT_OVER,   /* time is up, client gone or server stopping: w->why */
};
struct wait {
    struct waiter waiter; /* first */
    struct park park;
    struct loop_task task;
    struct arena arena; /* what was told */
    struct call call;
    bool entered, told, woken, parked, failed;
    enum park_why why;
    void (*done)(struct wait *w, enum wait_end how); /* loop thread; once, after wait_park() */
};
/* `id` must live as long as the ask. */
void wait_enter(struct ask *q, struct wait *w, struct bytes id);
/* Park until told or until_us; w->done is called once, perhaps at once. */
void wait_park(struct wait *w, int64_t until_us);
/* Out of the table. True: it is yours again. False: it was told already, and `done` comes (with
 * WAIT_TOLD) although it was never parked. */
bool wait_leave(struct wait *w);
void wait_end(struct wait *w); /* drop its memory */

/* ---- Calls as JSON ----------------------------------------------------------------------------
 */

/* A call as the contract has it, from an object; settled, with client. header_id is what
 * Idempotency-Key says, absent for none. Errors name the field. `arena` keeps what is made. */
MUST_USE enum pawl_status spec_of_json(struct ask *q, const struct json *object,
                                       struct bytes header_id, struct call_spec *out,
                                       struct pawl_err *err);
/* The same, not yet settled: for routes that fill in more (outgoing calls of a finish). */
MUST_USE enum pawl_status spec_read_json(struct arena *a, const struct json *object,
                                         int64_t call_timeout_us, struct call_spec *out,
                                         struct pawl_err *err);
/* The last step of spec_of_json() alone: id, client, limits, defaults, fingerprint. */
MUST_USE enum pawl_status spec_complete(struct ask *q, struct bytes header_id,
                                        struct call_spec *out, struct pawl_err *err);
/* A session's request: a call without a key, and whether it is cancelled when its wait is over. Not
 * yet settled. */
MUST_USE enum pawl_status session_of_json(struct ask *q, const struct json *object,
                                          struct call_spec *out, bool *out_cancel,
                                          struct pawl_err *err);
/* If-Match as the condition of a write; nothing is set when there is none. INVALID: malformed, or
 * If-None-Match. */
MUST_USE enum pawl_status if_match_read(struct ask *q, struct object_op *out, struct pawl_err *err);
extern const struct shape spec_shape, session_shape;
/* Idempotency-Key; absent when there is none. INVALID. */
MUST_USE enum pawl_status ask_idempotency_key(struct ask *q, struct bytes *out,
                                              struct pawl_err *err);

enum {
    SHOW_INPUT = 1,
    SHOW_RESULT = 2,
    SHOW_CUT = 4, /* inputs and results at most 4 KiB, then "truncated":true */
    SHOW_DUPLICATE = 8,
    SHOW_SECRETS = 16, /* errors and tags: all but monitors see them */
    SHOW_ALL = SHOW_INPUT | SHOW_RESULT | SHOW_SECRETS,
    SHOW_OPEN = 32,      /* leave the object open: the route adds members and the closing brace */
    SHOW_LOCATION = 64,  /* reply_call: with a Location header */
    SHOW_RETRY = 128,    /* reply_call: with Retry-After when it has not ended */
    SHOW_STORED = 256,   /* reply_call, show_call, read_call: it was stored a moment ago; that it
                            cannot be read is UNKNOWN: BUSY would say that nothing was stored */
    SHOW_NO_INPUT = 512, /* lists: leave out input and input_base64 when they were not asked for */
    SHOW_NO_RESULT = 1024, /* likewise result and result_base64 */
    SHOW_LISTED = SHOW_CUT | SHOW_SECRETS | SHOW_NO_INPUT | SHOW_NO_RESULT,
};
/* What this principal may see of what the route shows. */
unsigned ask_show(const struct ask *q, unsigned show);
/* `{"id":...}`, every field there but those that SHOW_NO_... leaves out. */
void call_add(struct buf *b, const struct call *c, unsigned show);
/* A deep copy; false without memory. Any thread that owns `a`. */
bool call_copy(struct arena *a, const struct call *c, struct call *out);

/* Answer with this call. status 0: 200 when it has ended, else 202. Ends the ask. */
void reply_call(struct ask *q, const struct call *c, int status, unsigned show);
/* Read the call and answer with it as it is now; NOT_FOUND, GONE, and NOT_FOUND also when it is
 * somebody else's. Ends the ask. `id` lives as long as it. */
void show_call(struct ask *q, struct bytes id, int status, unsigned show);
/* The same, but `found` is called with the call instead; it ends the ask then or later. The call's
 * memory goes when `found` returns. */
void read_call(struct ask *q, struct bytes id, unsigned show,
               void (*found)(struct ask *q, const struct call *c, void *ctx), void *ctx);
/* One call as a reader finds it. */
struct found {
    struct call call;    /* of one that is gone: id, state and times */
    int64_t archived_us; /* it is gone, and the archive has it since then; 0: no */
};
/* On a reader's thread. NOT_FOUND, also when it is another client's; GONE; both name the call. What
 * is found lives in `a`. */
MUST_USE enum pawl_status call_find(struct ask_read *rd, struct store *s, struct bytes id,
                                    unsigned with, struct found *out);
/* Refuse with what call_find() said; a call that is gone comes with its status and times. */
void refuse_found(struct ask *q, const struct pawl_err *err, struct bytes id,
                  const struct found *f);

/* Members, each with its name: null when absent. */
void add_text(struct buf *b, const char *name, struct bytes text);
void add_int(struct buf *b, const char *name, int64_t n);
void add_bool(struct buf *b, const char *name, bool v);
void add_time(struct buf *b, const char *name, int64_t us); /* 0: null */
void add_seconds(struct buf *b, const char *name, int64_t us);
void add_raw(struct buf *b, const char *name, struct bytes json); /* absent: null */
/* `name` and `name_base64`; max 0: all of it. True: it was cut. */
bool add_payload(struct buf *b, const char *name, const char *name_base64, struct payload p,
                 size_t max);

/* Accepting one call, and answering with it when it ends or its time is up; at the head of a
 * route's own struct, made on q->a and zeroed. Set spec (settled) and perhaps `show` and `late`.
 * submit.c. */
struct submit {
    struct ask_write write; /* first */
    struct call_spec spec;
    struct wait wait;
    unsigned show; /* more of SHOW_... */
    /* Its time is up and it has not ended: ends the ask. NULL: answer with the call as it is. */
    void (*late)(struct submit *s, bool duplicate);
    bool waits;   /* in the table of those who wait, or was */
    bool settled; /* the accept is answered */
    bool over;    /* nothing comes from the wait any more */
    bool told;    /* wait.call is the call as it ended */
    bool fresh;   /* answered quietly: stored, pending */
};
void submit_begin(struct ask *q, struct submit *s, int64_t wait_us);

/* A known id of another client's is a conflict to an app, and says nothing more. */
void accepted_hide(const struct ask *q, struct accepted *r);
/* The sentence for a refused accept. */
void accepted_text(const struct call_spec *s, const struct accepted *r, char *out, size_t size);

/* ---- The steps of api_handle ------------------------------------------------------------------
 */

enum matched { MATCH_FOUND, MATCH_NONE, MATCH_METHOD };
/* Find the route; q->route and q->path are set. METHOD: out_allow says what would do ("GET, PUT").
 * A segment that is not a valid name is INVALID in err, with MATCH_FOUND. */
enum matched match(struct ask *q, char out_allow[64], struct pawl_err *err);
/* Percent-decoding of one segment or query value; absent when malformed or without memory. `plus`:
 * a + is a space. */
struct bytes percent_decode(struct arena *a, struct bytes text, bool plus);
/* One path segment encoded. */
void percent_add(struct buf *b, struct bytes text);

/* Read the query string against route->params. */
MUST_USE enum pawl_status query_read(struct ask *q, struct pawl_err *err);

/* What lists share. `status` and `cursor` as they were written; an app sees its own calls only. */
struct list_words {
    struct bytes status, cursor;
    const char *words; /* of status; NULL: STATE_WORDS */
};
MUST_USE enum pawl_status list_filters(struct ask *q, const struct list_words *w, struct query *out,
                                       struct pawl_err *err);
/* The member `next`: a cursor, or null. */
void list_next(struct buf *b, int64_t next_before);
/* A cancel, redrive or move was settled: tell this process. */
void decided(struct api *api, const struct op *op);

/* ---- Routes -----------------------------------------------------------------------------------
 */

void route_submit(struct ask *q);
void route_batch(struct ask *q);
void route_get(struct ask *q);
void route_list(struct ask *q);
void route_attempts(struct ask *q);
void route_result(struct ask *q);
void route_cancel(struct ask *q);
void route_retry(struct ask *q);
void route_cancel_many(struct ask *q);
void route_retry_many(struct ask *q);
void route_patch(struct ask *q);
void route_openapi(struct ask *q);
void route_session(struct ask *q);
void route_object_call(struct ask *q);
void route_object_get(struct ask *q);
void route_object_put(struct ask *q);
void route_object_delete(struct ask *q);
void route_keys(struct ask *q);
void route_unblock(struct ask *q);
/* The second half: work.c, queues.c, nodes.c, info.c */
void route_claim(struct ask *q);
void route_finish(struct ask *q);
void route_extend(struct ask *q);
void route_queues(struct ask *q);
void route_pause(struct ask *q);
void route_resume(struct ask *q);
void route_nodes(struct ask *q);
void route_leaders(struct ask *q);
void route_drain(struct ask *q);
void route_undrain(struct ask *q);
void route_info(struct ask *q);
void route_metrics(struct ask *q);
void route_healthz(struct ask *q);
void route_readyz(struct ask *q);
void route_home(struct ask *q);
void route_favicon(struct ask *q);

/* Shapes of bodies. */
extern const struct shape batch_shape, bulk_shape, patch_shape, unblock_shape, any_shape;
extern const struct shape claim_shape, finish_shape, extend_shape;

#endif
