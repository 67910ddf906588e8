/*
 * info.c - what this server is and how it is: /v1/info, /healthz, /readyz, and the page at /.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask.h"
#include "api/call_json.h"
#include "api/internal.h"
#include "api/reply.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"

/* ---- /v1/info -------------------------------------------------------------------------------- */

static const struct limit {
    const char *name;
    int64_t n;
} limits[] = {
    { "name", NAME_LEN_MAX },
    { "input", INPUT_LEN_MAX },
    { "result", RESULT_LEN_MAX },
    { "state", STATE_LEN_MAX },
    { "error", ERROR_LEN_MAX },
    { "batch_calls", BATCH_MAX },
    { "batch_bytes", BATCH_LEN_MAX },
    { "claim", CLAIM_MAX },
    { "send", SEND_MAX },
    { "tags", TAG_MAX },
    { "needs", NEEDS_MAX },
    { "has", HAS_MAX },
    { "list", LIST_MAX },
    { "wait", WAIT_MAX_US / SEC_US },
    { "lease_for", LEASE_MAX_US / SEC_US },
    { "nesting", JSON_DEPTH_MAX },
    { "lanes", LANES_MAX },
};

static struct bytes engine_name(const struct exec *e)
{
    const struct store_ops *ops;
    struct pawl_err err;
    return store_engine(exec_conf_of(e)->url, &ops, &err) == PAWL_OK ? bytes_of(ops->name)
                                                                     : BYTES_NONE;
}

void route_info(struct ask *q)
{
    struct exec *e = q->api->exec;
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_text(b, "version", BYTES(PAWL_VERSION));
    add_text(b, "engine", engine_name(e));
    add_text(b, "schema", bytes_of(exec_conf_of(e)->schema));
    add_text(b, "node", bytes_of(exec_node(e)));
    add_text(b, "boot", bytes_of(exec_boot(e)));
    add_time(b, "now", exec_now(e));
    add_time(b, "started_at", q->api->started_us);
    json_add_name(b, "limits");
    buf_add_char(b, '{');
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        add_int(b, limits[i].name, limits[i].n);
    add_int(b, "pending_key", exec_conf_of(e)->key_pending_max);
    buf_add_text(b, "}}");
    ask_reply(q, 200, b);
}

/* ---- Alive, and able ------------------------------------------------------------------------- */

void route_healthz(struct ask *q)
{
    struct buf *b = ask_buf(q);
    buf_add_text(b, "{\"alive\":true}");
    ask_reply(q, 200, b);
}

/* Append what the database said, if it said anything. */
static const char *with_cause(struct arena *a, const char *reason, const char *cause)
{
    const char *both = *cause ? arena_printf(a, "%s: %s", reason, cause) : NULL;
    return both ? both : reason;
}

/* Why this server cannot take work; NULL when it can. */
static const char *why_not(const struct api *api, struct arena *a)
{
    struct exec_figures f;
    if (api->stopping)
        return "the server is stopping";
    exec_figures(api->exec, &f);
    if (f.replaced)
        return "another process has taken this node's name";
    if (f.drained)
        return "the node is drained";
    if (api->no_gateway)
        return "the node is not a gateway";
    if (f.hung >= HUNG_MAX)
        return "too many handlers did not return from their timeout";
    if (f.away_us)
        return "the database does not answer";
    if (f.stalled_us)
        return "the database does not confirm commits: perhaps it waits for a standby that is away";
    if (f.refused_us)
        return with_cause(a, "the database refuses writes", f.why);
    if (f.cut)
        return with_cause(a, "the node's heartbeat is not stored, so its workers are stopped",
                          f.why);
    if (f.writes_waiting >= STORE_QUEUE_MAX)
        return "the queue of writes is full: the database does not keep up";
    return api->not_ready ? api->not_ready(api->ready_ctx) : NULL;
}

void route_readyz(struct ask *q)
{
    const char *why = why_not(q->api, q->a);
    struct buf *b = ask_buf(q);
    buf_add_char(b, '{');
    add_bool(b, "ready", !why);
    add_text(b, "reason", bytes_of(why));
    buf_add_char(b, '}');
    ask_reply(q, why ? 503 : 200, b);
}

/* ---- The page -------------------------------------------------------------------------------- */

static const char page_begin[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>Pawl</title>\n<style>\n"
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto;"
    " padding: 0 1rem; color: #222; background: #fff }\n"
    "pre, code { font: 14px/1.5 ui-monospace, monospace }\n"
    "pre { padding: .8rem 1rem; overflow-x: auto; background: #f3f3f1; border-radius: 6px }\n"
    "a { color: #0b57a4 } td { padding: .15rem 1.2rem .15rem 0; vertical-align: top }\n"
    "@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 }\n"
    "pre { background: #262626 } a { color: #7ab8f5 } }\n"
    "</style>\n</head>\n<body>\n<h1>Pawl " PAWL_VERSION "</h1>\n"
    "<p>Hand it a call; it writes it down, runs it, and remembers how it ended. This server is"
    " running. Try it:</p>\n<pre>";

static const char page_table[] =
    "</pre>\n<p>The dashboard is not here yet. What is:</p>\n<table>\n"
    "<tr><td><a href=\"/v1/calls\">/v1/calls</a></td><td>the newest calls</td></tr>\n"
    "<tr><td><a href=\"/v1/queues\">/v1/queues</a></td><td>queues, how busy they are</td></tr>\n"
    "<tr><td><a href=\"/v1/schedules\">/v1/schedules</a></td><td>calls by the clock</td></tr>\n"
    "<tr><td><a href=\"/v1/nodes\">/v1/nodes</a></td><td>who works</td></tr>\n"
    "<tr><td><a href=\"/v1/info\">/v1/info</a></td><td>version, engine, limits</td></tr>\n"
    "<tr><td><a href=\"/openapi.json\">/openapi.json</a></td><td>every route, in full</td></tr>\n"
    "<tr><td><a href=\"/metrics\">/metrics</a></td><td>figures for Prometheus</td></tr>\n"
    "<tr><td><a href=\"/healthz\">/healthz</a>, <a href=\"/readyz\">/readyz</a></td>"
    "<td>alive; able to take work</td></tr>\n</table>\n</body>\n</html>\n";

/* Append text, escaped for HTML. The address is our own, but it is escaped all the same. */
static void html_add(struct buf *b, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            buf_add_text(b, "&lt;");
            break;
        case '>':
            buf_add_text(b, "&gt;");
            break;
        case '&':
            buf_add_text(b, "&amp;");
            break;
        case '"':
            buf_add_text(b, "&quot;");
            break;
        default:
            buf_add_char(b, *text);
        }
    }
}

static void curl_add(struct buf *b, const struct api *api)
{
    const char *at = api->server ? http_address(api->server) : "http://127.0.0.1:7295";
    if (!strncmp(at, "unix:", 5)) {
        html_add(b, "curl --unix-socket ");
        html_add(b, at + 5);
        at = "http://localhost";
    } else {
        html_add(b, "curl");
    }
    html_add(b, " '"); /* to zsh a plain ? is a pattern that matches no file */
    html_add(b, at);
    html_add(b, "/v1/calls?wait=10' -d '{\"type\":\"echo\",\"input\":\"hello\"}'");
}

void route_home(struct ask *q)
{
    static const struct http_header headers[] = {
        { BYTES("Content-Security-Policy"),
          BYTES("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'") },
        { BYTES("X-Content-Type-Options"), BYTES("nosniff") },
    };
    struct buf *b = ask_buf(q);
    buf_add_text(b, page_begin);
    curl_add(b, q->api);
    buf_add_text(b, page_table);
    if (!buf_ok(b)) {
        ask_refusef(q, PAWL_NO_MEMORY, "there is no memory for this answer");
        return;
    }
    ask_reply_raw(q, &(struct http_reply){ .status = 200,
                                           .content_type = "text/html; charset=utf-8",
                                           .headers = headers,
                                           .n_headers = COUNT_OF(headers),
                                           .body = buf_bytes(b) });
}

/* Browsers ask for it by themselves. There is no icon, and 204 keeps them from reporting an error.
 */
void route_favicon(struct ask *q)
{
    ask_reply_raw(q, &(struct http_reply){ .status = 204 });
}
