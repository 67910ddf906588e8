/*
 * call.c - `pawl call` and `pawl submit`: submit one call and, for `call`, wait for its outcome.
 *
 * The id is generated here when none is given, so that a request whose answer was lost can be sent
 * again without creating a second call.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/remote.h"

/* Room for the largest input as base64, and for the other fields. */
#define BODY_LEN_MAX (4 << 20)
/* A server waits 300 s at most; a longer wait is several requests. */
#define ONE_WAIT_US WAIT_MAX_US

enum outcome {
    OUT_COMPLETED = 0,
    OUT_FAILED = 20,
    OUT_DEAD,
    OUT_CANCELLED,
    OUT_EXPIRED,
    OUT_NOT_ENDED
};

/* ---- The body -------------------------------------------------------------------------------- */

static enum pawl_status add_numbers(const struct cli *cli, struct buf *b, struct pawl_err *err)
{
    static const struct {
        const char *option, *field;
        int64_t min, max;
    } whole[] = { { "priority", "priority", PRIORITY_MIN, PRIORITY_MAX },
                  { "max-attempts", "max_attempts", 1, ATTEMPTS_MAX },
                  { "max-lost", "max_lost", 1, ATTEMPTS_MAX } };
    static const char *const durations[][2] = { { "delay", "delay" },
                                                { "timeout", "timeout" },
                                                { "expires-in", "expires_in" },
                                                { "run-timeout", "run_timeout" },
                                                { "keep", "keep" } };
    enum pawl_status st = PAWL_OK;
    int64_t n;
    for (size_t i = 0; st == PAWL_OK && i < COUNT_OF(whole); i++)
        if (cli_flag(cli, whole[i].option)) {
            st = cli_int(cli, whole[i].option, whole[i].min, whole[i].max, &n, err);
            json_add_name(b, whole[i].field);
            buf_add_int(b, n);
        }
    for (size_t i = 0; st == PAWL_OK && i < COUNT_OF(durations); i++)
        if (cli_flag(cli, durations[i][0])) {
            st = cli_duration(cli, durations[i][0], &n, err);
            json_add_name(b, durations[i][1]);
            json_add_seconds(b, n);
        }
    return st;
}

static enum pawl_status add_base64(struct arena *a, struct buf *b, struct bytes input)
{
    char *text = arena_alloc(a, 4 * ((input.len + 2) / 3) + 1);
    if (!text)
        return PAWL_NO_MEMORY;
    json_add_name(b, "input_base64");
    json_add_string(b, (struct bytes){ text, base64_write(input, text) });
    return PAWL_OK;
}

/* INPUT is sent as JSON; --text turns it into a JSON string, --bytes sends any bytes. */
static enum pawl_status add_input(struct remote *r, struct buf *b, const char *arg)
{
    struct bytes input;
    struct pawl_err why;
    enum pawl_status st = input_read(&r->arena, arg, INPUT_LEN_MAX, &input, &r->err);
    if (st != PAWL_OK)
        return st;
    if (cli_flag(r->cli, "bytes"))
        return add_base64(&r->arena, b, input);
    if (cli_flag(r->cli, "text")) {
        if (!utf8_valid(input))
            return err_set(&r->err, PAWL_INVALID, "INPUT is not UTF-8; --bytes sends it as it is");
        json_add_name(b, "input");
        json_add_string(b, input);
        return PAWL_OK;
    }
    if (json_check(input, &why) != PAWL_OK)
        return err_set(&r->err, PAWL_INVALID,
                       "INPUT is not JSON (%.200s); --text sends it as a string", why.text);
    json_add_name(b, "input");
    buf_add_bytes(b, input);
    return PAWL_OK;
}

/* `signal`: a workflow is started with it, or gets it. */
static enum pawl_status add_signal(struct remote *r, struct buf *b)
{
    static const char *const parts[] = { "signal-value", "signal-key" };
    const char *name = cli_option(r->cli, "signal"), *value = cli_option(r->cli, "signal-value");
    struct bytes json = BYTES("null");
    struct pawl_err why;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (!name && cli_option(r->cli, parts[i]))
            return err_set(&r->err, PAWL_INVALID, "option --%s goes with --signal", parts[i]);
    if (!name)
        return PAWL_OK;
    enum pawl_status st =
        value ? input_read(&r->arena, value, RESULT_LEN_MAX, &json, &r->err) : PAWL_OK;
    if (st == PAWL_OK && json_check(json, &why) != PAWL_OK)
        st = err_set(&r->err, PAWL_INVALID, "option --signal-value is not JSON (%.200s)", why.text);
    if (st != PAWL_OK)
        return st;
    json_add_name(b, "signal");
    buf_add_char(b, '{');
    call_text_add(b, "name", name);
    call_text_add(b, "key", cli_option(r->cli, "signal-key"));
    json_add_name(b, "value");
    buf_add_bytes(b, json);
    buf_add_char(b, '}');
    return PAWL_OK;
}

static enum pawl_status body_write(struct remote *r, struct buf *b, int argc, char **argv)
{
    static const char *const texts[][2] = { { "key", "key" },       { "on-dead", "on_dead" },
                                            { "queue", "queue" },   { "run-at", "run_at" },
                                            { "caller", "caller" }, { "parent", "parent" } };
    const struct cli *cli = r->cli;
    for (int i = 0; i < argc; i++)
        if (argv[i][0] != '@' && i == 0 && !utf8_valid(bytes_of(argv[i])))
            return err_set(&r->err, PAWL_INVALID, "TYPE is not UTF-8");
    buf_add_char(b, '{');
    call_text_add(b, "id", r->id);
    call_type_add(cli, b, argv[0]);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        call_text_add(b, texts[i][1], cli_option(cli, texts[i][0]));
    enum pawl_status st = add_numbers(cli, b, &r->err);
    if (st == PAWL_OK)
        st = call_tags_add(cli, b, &r->err);
    call_needs_add(cli, b);
    if (st == PAWL_OK)
        st = add_signal(r, b);
    if (st == PAWL_OK && argc > 1)
        st = add_input(r, b, argv[1]);
    buf_add_char(b, '}');
    if (st == PAWL_OK && !buf_ok(b))
        return err_set(&r->err, PAWL_TOO_LARGE, "the call is longer than %d bytes", BODY_LEN_MAX);
    return st;
}

/* ---- Sending and waiting --------------------------------------------------------------------- */

static bool has_ended(struct arena *a, const struct json *call)
{
    return shown(a, call, "finished_at") != NULL;
}

/* Ask repeatedly until the call has ended or the time is up. */
static enum pawl_status wait_on(struct remote *r, int64_t until_us, struct json **call)
{
    enum pawl_status st = PAWL_OK;
    const char *id = shown(&r->arena, *call, "id");
    while (st == PAWL_OK && !has_ended(&r->arena, *call)) {
        int64_t left_us = until_us - world_mono(&world_real);
        if (left_us <= 0)
            break;
        int64_t wait_us = MIN(left_us, ONE_WAIT_US);
        char query[64];
        snprintf(query, sizeof(query), "?wait=%" PRId64 ".%06d", wait_us / SEC_US,
                 (int)(wait_us % SEC_US));
        struct client_ask ask = { .path = call_path(r, id, query),
                                  .wait_us = wait_us,
                                  .has = CALL_HAS };
        st = remote_ask(r, &ask, call);
    }
    return st;
}

/* True for errors that say nothing about the call: no server, a busy server, an error from a proxy
 * in between. */
static bool tells_nothing(enum pawl_status st)
{
    return st == PAWL_BROKEN || strcmp(err_retry_text(st), "never") != 0;
}

/* The call is stored, but its outcome was not received. */
static enum pawl_status not_seen(struct remote *r)
{
    struct pawl_err why = r->err;
    return err_set(&r->err, PAWL_UNKNOWN,
                   "call \"%s\" was accepted, but its outcome was not received: %s", r->id,
                   why.text);
}

static enum pawl_status submit(struct remote *r, struct bytes body, int64_t wait_us,
                               struct json **out)
{
    char path[64] = "/v1/calls";
    int64_t first_us = MIN(wait_us, ONE_WAIT_US);
    int64_t until_us = world_mono(&world_real) + wait_us;
    if (wait_us)
        snprintf(path, sizeof(path), "/v1/calls?wait=%" PRId64 ".%06d", first_us / SEC_US,
                 (int)(first_us % SEC_US));
    struct client_ask ask = { .path = path, .body = body, .wait_us = first_us, .has = CALL_HAS };
    enum pawl_status st = remote_ask(r, &ask, out);
    /* The body names the call's id, so repeating the request cannot create a second call. */
    if (st == PAWL_UNKNOWN) {
        st = remote_ask(r, &ask, out);
        if (st != PAWL_OK && tells_nothing(st))
            return remote_unknown(r, "accepted");
    }
    if (st != PAWL_OK || !wait_us)
        return st;
    st = wait_on(r, until_us, out);
    return st != PAWL_OK && tells_nothing(st) ? not_seen(r) : st;
}

/* ---- Printing the outcome -------------------------------------------------------------------- */

static enum outcome outcome_of(const char *status)
{
    static const struct {
        const char *status;
        enum outcome outcome;
    } rows[] = { { "completed", OUT_COMPLETED },
                 { "failed", OUT_FAILED },
                 { "dead_letter", OUT_DEAD },
                 { "cancelled", OUT_CANCELLED },
                 { "expired", OUT_EXPIRED } };
    for (size_t i = 0; status && i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].status, status) == 0)
            return rows[i].outcome;
    return OUT_NOT_ENDED;
}

static void print_result(struct remote *r, const struct json *call)
{
    const struct json *bytes = json_member(call, "result_base64");
    const struct json *result = json_member(call, "result");
    if (bytes && bytes->kind == JSON_STRING) {
        struct bytes text = json_string(&r->arena, bytes);
        char *raw = arena_alloc(&r->arena, text.len + 1);
        size_t len = 0;
        if (raw && base64_read(text, raw, &len))
            fwrite(raw, 1, len, r->cli->out);
    } else if (result) {
        remote_print_raw(r, result);
    }
}

int call_outcome(struct remote *r, const struct json *call)
{
    struct cli *cli = r->cli;
    const char *id = shown(&r->arena, call, "id"), *status = shown(&r->arena, call, "status");
    const char *error = shown(&r->arena, call, "error");
    const char *waits = shown(&r->arena, call, "waiting_for");
    enum outcome outcome = outcome_of(status);
    if (cli->json)
        remote_print_raw(r, call);
    else if (outcome == OUT_COMPLETED)
        print_result(r, call);
    int code = cli_done(cli);
    if (outcome != OUT_COMPLETED && !cli->json)
        fprintf(cli->err, "pawl %s: call \"%s\" %s %s%s%s%s%s\n", cli->command->name, id,
                outcome == OUT_NOT_ENDED ? "has not ended: it is" : "ended", status,
                waits ? ", waiting for " : "", waits ? waits : "", error ? ": " : "",
                error ? error : "");
    return code ? code : (int)outcome;
}

/* ---- The commands ---------------------------------------------------------------------------- */

static int finish_call(struct remote *r, const struct json *call)
{
    return call_outcome(r, call);
}

static int finish_submit(struct remote *r, const struct json *call)
{
    if (r->cli->json)
        return remote_print_raw(r, call);
    fprintf(r->cli->out, "%s\n", shown(&r->arena, call, "id"));
    return cli_done(r->cli);
}

static int act(struct cli *cli, int argc, char **argv, int64_t wait_us,
               int (*finish)(struct remote *, const struct json *))
{
    struct remote r;
    struct buf b;
    struct json *call = NULL;
    char made[UUID_TEXT_LEN + 1];
    buf_init(&b, BODY_LEN_MAX);
    enum pawl_status st = remote_open(&r, cli);
    uuid7_make(&world_real, made);
    r.id = cli_flag(cli, "id") ? cli_option(cli, "id") : made;
    if (st == PAWL_OK)
        st = body_write(&r, &b, argc, argv);
    if (st == PAWL_OK)
        st = submit(&r, buf_bytes(&b), wait_us, &call);
    int code = st == PAWL_OK ? finish(&r, call) : remote_fail(&r);
    buf_release(&b);
    remote_close(&r);
    return code;
}

static int run_call(struct cli *cli, int argc, char **argv)
{
    struct pawl_err err = { 0 };
    int64_t wait_us = 0;
    if (!argc)
        return cli_missing(cli, "TYPE");
    if (cli_duration(cli, "wait", &wait_us, &err) != PAWL_OK)
        return cli_fail(cli, &err);
    return act(cli, argc, argv, wait_us, finish_call);
}

static int run_submit(struct cli *cli, int argc, char **argv)
{
    if (!argc)
        return cli_missing(cli, "TYPE");
    return act(cli, argc, argv, 0, finish_submit);
}

#define SPEC_OPTIONS                                                                               \
    { "id", "ID", NULL, "id of the call, default a new one; the same id again is the same call" }, \
        { "key", "K", NULL, "calls of one key run one at a time, in order" },                      \
        { "on-dead", "skip|block", NULL,                                                           \
          "if it fails for good: block stops the key, skip (default) lets it go on" },             \
        { "method", "M", NULL,                                                                     \
          "the method, default \"run\"; TYPE is then not split at its last dot" },                 \
        { "queue", "Q", NULL, "queue it waits in, default \"default\"" },                          \
        { "priority", "N", NULL, "-1000 to 1000, higher runs first; default 0" },                  \
        { "delay", "D", NULL, "do not run it before this time has passed; default 0s" },           \
        { "run-at", "TIME", NULL,                                                                  \
          "do not run it before this time, RFC 3339: 2030-01-31T08:00:00Z" },                      \
        { "expires-in", "D", NULL,                                                                 \
          "end it as expired when it has not started after this time; default never" },            \
        { "signal", "NAME", NULL,                                                                  \
          "a workflow: start it with this signal, or signal the one that has the id" },            \
        { "signal-value", "JSON", NULL, "value of that signal: JSON, @FILE or -; default null" },  \
        { "signal-key", "KEY", NULL, "the same KEY again is the same signal" },                    \
        { "run-timeout", "D", NULL,                                                                \
          "cancel it this long after it was first due, whatever it does; default never" },         \
        { "timeout", "D", NULL,                                                                    \
          "how long one attempt may take; default the server's call_timeout, 60s" },               \
        { "max-attempts", "N", NULL,                                                               \
          "attempts that may end in an error or a timeout; default 3" },                           \
        { "max-lost", "N", NULL,                                                                   \
          "attempts that may be lost because their process dies; default 5" },                     \
        { "keep", "D", NULL,                                                                       \
          "how long it is kept after its end; default the server's retention, 7d" },               \
        { "tag", "NAME:VALUE", NULL, "a label to list calls by; may be repeated" },                \
        { "needs", "A,B", NULL, "capabilities: only a worker that has them all takes it" },        \
        { "caller", "NAME", NULL, "name of the program or person that submits it" },               \
        { "parent", "ID", NULL, "id of the call that caused it, for pawl list --parent" },         \
        { "text", NULL, NULL, "INPUT is plain text; it is sent as a JSON string" },                \
    {                                                                                              \
        "bytes", NULL, NULL, "INPUT is binary; its bytes are sent unchanged"                       \
    }

static const struct option_row options_call[] = {
    { "wait", "D", "60s", "how long to wait for the outcome; the call goes on after that" },
    SPEC_OPTIONS,
    { 0 },
};

static const struct option_row options_submit[] = {
    SPEC_OPTIONS,
    { 0 },
};

const struct command cmd_call = {
    .name = "call",
    .summary = "submit a call and wait for its outcome",
    .usage = "TYPE[.METHOD] [INPUT]",
    .about =
        "INPUT is JSON, @FILE to read a file, or - for stdin; without it the input is null.\n"
        "TYPE.METHOD is split at the last dot; without a dot the method is \"run\". The result\n"
        "goes to stdout, everything else to stderr. Exit codes: 0 completed, 20 failed,\n"
        "21 dead_letter, 22 cancelled, 23 expired, 24 not ended within --wait (the call goes on).\n"
        "6: the server was not reached and nothing was sent. 7: the call was sent, but the answer\n"
        "was lost, so it may be stored; the error names its id. Repeat it with --id and that id:\n"
        "without it, the work may be done twice.",
    .example = "pawl call echo '{\"hello\": \"world\"}'\n"
               "pawl call lab.flaky '{\"times\": 1}' --id flaky-1 --wait 30s\n"
               "pawl call echo.run '\"first\"' --key room-1 --on-dead block\n"
               "echo 'any text' | pawl call echo.run - --text",
    .options = options_call,
    .args_max = 2,
    .reach = REACH_SERVER,
    .run = run_call,
};

const struct command cmd_submit = {
    .name = "submit",
    .summary = "submit a call and print its id",
    .usage = "TYPE[.METHOD] [INPUT]",
    .about =
        "Returns when the call is stored, and prints its id. The call runs whether or not a\n"
        "client waits for it: pawl get ID --wait 60s waits. Arguments, options and exit codes 6\n"
        "and 7 are those of pawl call.",
    .example = "pawl submit echo.run '[1, 2, 3]' --id echo-1 --tag team:shop\n"
               "pawl submit lab.sleep '{\"ms\": 100}' --delay 1s",
    .options = options_submit,
    .args_max = 2,
    .reach = REACH_SERVER,
    .run = run_submit,
};
