/*
 * work_say.c - the environment of a program, and the result that is sent to the server. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/text.h"
#include "cli/work.h"

/* Hidden from the program: our settings, among them the token, and every variable whose name or
 * value looks like a database URL. */
static bool secret(const char *entry)
{
    static const char *const urls[] = { "postgres://", "postgresql://", "mysql://", "mariadb://" };
    const char *value = strchr(entry, '=');
    if (strncmp(entry, "PAWL_", 5) == 0 || strncmp(entry, "TRACEPARENT=", 12) == 0 ||
        strncmp(entry, "DATABASE_URL=", 13) == 0)
        return true;
    for (size_t i = 0; value && i < COUNT_OF(urls); i++)
        if (strncasecmp(value + 1, urls[i], strlen(urls[i])) == 0)
            return true;
    return false;
}

static const char *trace_text(struct arena *a, const char *trace_id)
{
    char span[33];
    token_text(token_make(&world_real), span);
    return arena_printf(a, "TRACEPARENT=00-%s-%.16s-01", trace_id, span);
}

int64_t work_run_us(int64_t timeout_us)
{
    return timeout_us - MIN(timeout_us / 10, 500 * MS_US);
}

char **work_environment(struct arena *a, const struct held *h, char *const *ours, int64_t now_us)
{
    size_t n = 0, m = 0;
    char when[TIME_TEXT_LEN + 1];
    while (ours[n])
        n++;
    const char **v = arena_zalloc(a, n + 10, sizeof(*v));
    if (!v)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!secret(ours[i]))
            v[m++] = ours[i];
    time_text(now_us + work_run_us(h->timeout_us), when);
    v[m++] = arena_printf(a, "PAWL_CALL_ID=%s", h->id);
    v[m++] = arena_printf(a, "PAWL_CALL_TYPE=%s", h->type);
    v[m++] = arena_printf(a, "PAWL_CALL_METHOD=%s", h->method);
    v[m++] = arena_printf(a, "PAWL_CALL_KEY=%s", h->key ? h->key : "");
    v[m++] = arena_printf(a, "PAWL_CALL_ATTEMPT=%" PRId64, h->attempt);
    v[m++] = arena_printf(a, "PAWL_CALL_DEADLINE=%s", when);
    if (h->trace_id)
        v[m++] = trace_text(a, h->trace_id);
    return a->failed ? NULL : (char **)v;
}

static void add_error(struct buf *b, const char *text)
{
    json_add_name(b, "error");
    json_add_string(b, bytes_of(text));
}

void work_result(struct buf *b, const struct held *h, const struct ending_of *e)
{
    const struct child *c = e->child;
    char text[CHILD_TAIL_LEN + 200];
    buf_add_char(b, '{');
    json_add_name(b, "id");
    json_add_string(b, bytes_of(h->id));
    enum child_end end = child_end_of(c->status);
    child_error_text(c->status, (struct bytes){ c->tail, c->tail_len }, text, sizeof(text));
    if (e->cancelled) {
        buf_add_text(b, ",\"cancelled\":true");
    } else if (e->released) {
        buf_add_text(b, ",\"release\":true");
    } else if (e->timed_out) {
        snprintf(text, sizeof(text), "the program did not end within its timeout of %g s",
                 (double)h->timeout_us / 1e6);
        add_error(b, text);
    } else if (c->too_long) {
        add_error(b, "the program's output is longer than a result may be");
        buf_add_text(b, ",\"retry\":false");
    } else if (end == CHILD_RESULT) {
        child_result_add(b, buf_bytes(&c->output));
    } else if (end == CHILD_LATER) {
        buf_addf(b, ",\"retry_in\":%" PRId64 ".%06d", e->later_us / SEC_US,
                 (int)(e->later_us % SEC_US));
    } else {
        add_error(b, text);
        if (end == CHILD_REFUSE)
            buf_add_text(b, ",\"retry\":false");
    }
    buf_add_char(b, '}');
}
