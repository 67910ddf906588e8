/*
 * lab - handlers that misbehave on request, so that people and tests can see what Pawl does then.
 *
 * Each method reads its input first and, when it is wrong, refuses (failed for good, no retry) with
 * one sentence that names the member: a second attempt would read the same input.
 * samples/lab/README.md lists them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS_US INT64_C(1000)
#define DAY_MS INT64_C(86400000)
#define TIMES_MAX 1000
#define FAN_MAX 10000
#define BIG_MAX (16 << 20)

/* ---- Reading the input ----------------------------------------------------------------------- */

/* Is there such a member, and is it not null? */
static bool has(struct pawl_call *c, const char *member)
{
    struct pawl_data v;
    return pawl_input_get_json(c, member, &v) == 0 &&
           !(v.len == 4 && memcmp(v.data, "null", 4) == 0);
}

/* The readers below return 0, or what the handler must return: `if ((bad = need_...)) return
 * bad;` */
static int need_int(struct pawl_call *c, const char *member, int64_t max, int64_t *out)
{
    if (pawl_input_get_int(c, member, out) == 0 && *out >= 0 && *out <= max)
        return 0;
    return pawl_refuse(c, "member \"%s\" must be a whole number from 0 to %" PRId64, member, max);
}

static int need_text(struct pawl_call *c, const char *member, const char **out)
{
    if (pawl_input_get_text(c, member, out) == 0 && **out)
        return 0;
    return pawl_refuse(c, "member \"%s\" must be a text that is not empty", member);
}

static int may_int(struct pawl_call *c, const char *member, int64_t max, int64_t *out)
{
    return has(c, member) ? need_int(c, member, max, out) : 0;
}

static int may_text(struct pawl_call *c, const char *member, const char **out)
{
    return has(c, member) ? need_text(c, member, out) : 0;
}

/* The call that `type`, `method`, `key` and `input` of the input describe. */
static int need_call(struct pawl_call *c, struct pawl_spec *out)
{
    int bad = need_text(c, "type", &out->type);
    if (!bad)
        bad = may_text(c, "method", &out->method);
    if (!bad)
        bad = may_text(c, "key", &out->key);
    if (!bad && has(c, "input") && pawl_input_get_json(c, "input", &out->input) != 0)
        bad = pawl_refuse(c, "member \"input\" cannot be read");
    return bad;
}

/* ---- Slow, failing and crashing handlers ----------------------------------------------------- */

/* {"ms": n}: takes that long, stops early when cancelled. An attempt that ends with an error after
 * a cancel request counts as cancelled, not as failed. */
static int lab_sleep(struct pawl_call *c)
{
    int64_t ms = 0;
    int bad = need_int(c, "ms", DAY_MS, &ms);
    if (bad)
        return bad;
    return pawl_sleep(c, ms * MS_US) == 0 ? 0 : pawl_fail(c, "stopped before its time was over");
}

/* {"message": s, "permanent": bool}: reports an error, for good or to be retried. */
static int lab_fail(struct pawl_call *c)
{
    const char *message = "an error on request";
    bool permanent = false;
    int bad = may_text(c, "message", &message);
    if (bad)
        return bad;
    if (has(c, "permanent") && pawl_input_get_bool(c, "permanent", &permanent) != 0)
        return pawl_refuse(c, "member \"permanent\" must be true or false");
    return permanent ? pawl_refuse(c, "%s", message) : pawl_fail(c, "%s", message);
}

/* {"times": n}: fails its first n attempts, then returns the number of the attempt. */
static int lab_flaky(struct pawl_call *c)
{
    int64_t times = 0;
    int bad = need_int(c, "times", TIMES_MAX, &times);
    if (bad)
        return bad;
    if (pawl_call_attempt_no(c) <= times)
        return pawl_fail(c, "attempt %d of %" PRId64 " that fail", pawl_call_attempt_no(c), times);
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

/* {"times": n}: kills its process in its first n attempts, then returns the number of the
 * attempt. */
static int lab_crash(struct pawl_call *c)
{
    int64_t times = 0;
    int bad = need_int(c, "times", TIMES_MAX, &times);
    if (bad)
        return bad;
    if (pawl_call_attempt_no(c) <= times)
        abort();
    return pawl_reply_int(c, pawl_call_attempt_no(c));
}

/* ---- SQL in the call's own transaction ------------------------------------------------------- */

/* Add 1 to the row of that name, or insert it. Three plain statements that every engine accepts;
 * they commit together with the reply, so the row counts each call once, however many attempts it
 * had. */
static enum pawl_status add_one(struct pawl_call *c, const char *name, int64_t *out,
                                struct pawl_err *err)
{
    struct pawl_value p = { .kind = PAWL_V_TEXT, .data = name, .len = strlen(name) };
    const struct pawl_rows *rows = NULL;
    enum pawl_status st =
        pawl_sql(c, "UPDATE lab_count SET n = n + 1 WHERE name = ?", &p, 1, &rows, err);
    if (st == PAWL_OK && rows->changed == 0)
        st = pawl_sql(c, "INSERT INTO lab_count (name, n) VALUES (?, 1)", &p, 1, NULL, err);
    if (st == PAWL_OK)
        st = pawl_sql(c, "SELECT n FROM lab_count WHERE name = ?", &p, 1, &rows, err);
    if (st == PAWL_OK)
        *out = rows->n == 1 ? rows->v[0].i : 0;
    return st;
}

/* {"name": s, "ms": t}: counts in lab_count, waits t ms with the transaction open, returns n. */
static int lab_count(struct pawl_call *c)
{
    const char *name = NULL;
    int64_t ms = 0, n = 0;
    struct pawl_err err;
    int bad = need_text(c, "name", &name);
    if (!bad && strlen(name) > 255)
        bad = pawl_refuse(c, "member \"name\" must be at most 255 bytes");
    if (!bad)
        bad = may_int(c, "ms", DAY_MS, &ms);
    if (bad)
        return bad;
    if (add_one(c, name, &n, &err) != PAWL_OK)
        return pawl_fail(c, "%s", err.text);
    if (ms && pawl_sleep(c, ms * MS_US) != 0)
        return pawl_fail(c, "stopped before its time was over");
    return pawl_reply_int(c, n);
}

/* ---- Other calls ----------------------------------------------------------------------------- */

/* A request that breaks the contract will break it again; any other failure may pass. */
static int end_with(struct pawl_call *c, enum pawl_status st, const struct pawl_err *err)
{
    bool for_good = st == PAWL_INVALID || st == PAWL_TOO_LARGE || st == PAWL_CONFLICT ||
                    st == PAWL_STATE; /* it asked for a key that waits for it */
    return for_good ? pawl_refuse(c, "%s", err->text) : pawl_fail(c, "%s", err->text);
}

/* {"type", "method", "key", "input"}: submits that call, waits for it, returns its result. A second
 * attempt asks for the same id, so a call that has ended otherwise has ended for this one too. */
static int lab_ask(struct pawl_call *c)
{
    struct pawl_spec spec = { PAWL_SPEC_INIT };
    const struct pawl_view *asked = NULL;
    struct pawl_err err;
    int bad = need_call(c, &spec);
    if (bad)
        return bad;
    enum pawl_status st = pawl_ask(c, &spec, &asked, &err);
    if (st != PAWL_OK)
        return end_with(c, st, &err);
    if (asked->state == PAWL_COMPLETED)
        return pawl_reply(c, asked->result);
    if (!pawl_state_ended(asked->state))
        return pawl_fail(c, "call \"%s\" did not end in time", asked->id);
    return pawl_refuse(c, "call \"%s\" ended %s: %s", asked->id, pawl_state_name(asked->state),
                       asked->error ? asked->error : "without an error text");
}

/* Write a JSON string. Ids hold no control characters, so only quotes and backslashes are
 * escaped. */
static char *add_string(char *to, const char *text)
{
    *to++ = '"';
    for (; *text; *to++ = *text++)
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
    *to++ = '"';
    return to;
}

static int reply_ids(struct pawl_call *c, size_t n)
{
    size_t len = 2;
    for (size_t i = 0; i < n; i++)
        len += 2 * strlen(pawl_sent_id(c, i)) + 3;
    char *text = pawl_alloc(c, len);
    if (!text)
        return pawl_fail(c, "no memory for the ids of %zu calls", n);
    char *at = text;
    *at++ = '[';
    for (size_t i = 0; i < n; i++) {
        if (i)
            *at++ = ',';
        at = add_string(at, pawl_sent_id(c, i));
    }
    *at++ = ']';
    return pawl_reply(c, (struct pawl_data){ PAWL_JSON, text, (size_t)(at - text) });
}

/* {"n": k, "type", "method", "input"}: sends k calls, which exist once this one has completed, and
 * returns their ids. */
static int lab_fan(struct pawl_call *c)
{
    struct pawl_spec spec = { PAWL_SPEC_INIT };
    struct pawl_err err;
    int64_t n = 0;
    int bad = need_int(c, "n", FAN_MAX, &n);
    if (!bad)
        bad = need_call(c, &spec);
    if (bad)
        return bad;
    for (int64_t i = 0; i < n; i++) {
        enum pawl_status st = pawl_send(c, &spec, &err);
        if (st != PAWL_OK)
            return end_with(c, st, &err);
    }
    return reply_ids(c, (size_t)n);
}

/* ---- Size ------------------------------------------------------------------------------------ */

/* {"bytes": n}: returns a string of n bytes. */
static int lab_big(struct pawl_call *c)
{
    int64_t n = 0;
    int bad = need_int(c, "bytes", BIG_MAX, &n);
    if (bad)
        return bad;
    size_t len = (size_t)n + 2;
    char *text = pawl_alloc(c, len);
    if (!text)
        return pawl_refuse(c, "member \"bytes\": no memory for %" PRId64 " bytes", n);
    memset(text, 'x', len);
    text[0] = text[len - 1] = '"';
    return pawl_reply(c, (struct pawl_data){ PAWL_JSON, text, len });
}

PAWL_MODULE(m)
{
    static const struct {
        const char *method;
        pawl_handler *handler;
    } all[] = {
        { "sleep", lab_sleep }, { "fail", lab_fail },   { "flaky", lab_flaky },
        { "crash", lab_crash }, { "count", lab_count }, { "ask", lab_ask },
        { "fan", lab_fan },     { "big", lab_big },
    };
    /* VARCHAR and not TEXT: MySQL needs the length of a key. */
    if (pawl_prepare(m, "CREATE TABLE IF NOT EXISTS lab_count ("
                        "name VARCHAR(255) PRIMARY KEY, n BIGINT NOT NULL)") != PAWL_OK)
        return;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (pawl_on(m, "lab", all[i].method, all[i].handler) != PAWL_OK)
            return;
}
