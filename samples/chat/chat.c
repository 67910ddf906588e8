/*
 * chat - a session: `Chat.say` answers the messages of a key in order and remembers the last few.
 *
 * Many clients may talk to one session at once and wait; each is answered after those before it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX 1000
#define KEPT 5

/* The state is {"n": 7, "last": ["...", ...]}, with the messages as they were written, so that they
 * are copied without being parsed. */
struct memory {
    int64_t n;
    struct pawl_data last[KEPT];
    size_t kept;
};

/* The end of the JSON string that begins here; it was checked before it was stored. */
static const char *string_end(const char *at)
{
    for (at++; *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at + 1;
}

/* This program writes the state in one form only: read just that. */
static int remember(struct pawl_call *c, struct memory *m)
{
    struct pawl_data state = pawl_state(c);
    *m = (struct memory){ 0 };
    if (state.form == PAWL_NOTHING)
        return 0;
    char *text = pawl_alloc(c, state.len + 1);
    if (!text)
        return pawl_fail(c, "no memory for its messages");
    memcpy(text, state.data, state.len);
    text[state.len] = '\0';
    int used = 0;
    if (state.form != PAWL_JSON ||
        sscanf(text, "{\"n\":%" SCNd64 ",\"last\":[%n", &m->n, &used) != 1 || !used)
        return pawl_refuse(c, "session \"%s\" has a state that Chat did not write",
                           pawl_call_key(c));
    for (const char *at = text + used; *at == '"' && m->kept < KEPT;) {
        const char *end = string_end(at);
        m->last[m->kept++] = (struct pawl_data){ PAWL_JSON, at, (size_t)(end - at) };
        at = end + (*end == ',');
    }
    return 0;
}

static int keep(struct pawl_call *c, const struct memory *m)
{
    size_t len = 64;
    for (size_t i = 0; i < m->kept; i++)
        len += m->last[i].len + 1;
    char *text = pawl_alloc(c, len);
    if (!text)
        return pawl_fail(c, "no memory for its messages");
    int at = snprintf(text, len, "{\"n\":%" PRId64 ",\"last\":[", m->n);
    for (size_t i = 0; i < m->kept; i++)
        at += snprintf(text + at, len - (size_t)at, "%s%.*s", i ? "," : "", (int)m->last[i].len,
                       (const char *)m->last[i].data);
    at += snprintf(text + at, len - (size_t)at, "]}");
    return pawl_set_state(c, (struct pawl_data){ PAWL_JSON, text, (size_t)at })
               ? pawl_fail(c, "its messages could not be stored")
               : 0;
}

/* {"text": s}: returns {"n": the number of this message in the session, "before": the previous
 * one}. */
static int say(struct pawl_call *c)
{
    struct memory m;
    struct pawl_data said;
    const char *text;
    if (!pawl_call_key(c))
        return pawl_refuse(c, "call \"%s\" has no key: a session is named by its key",
                           pawl_call_id(c));
    if (pawl_input_get_text(c, "text", &text) != 0 || strlen(text) > MESSAGE_MAX ||
        pawl_input_get_json(c, "text", &said) != 0)
        return pawl_refuse(c, "member \"text\" must be a text of at most %d bytes", MESSAGE_MAX);
    int bad = remember(c, &m);
    if (bad)
        return bad;
    struct pawl_data before =
        m.kept ? m.last[m.kept - 1] : (struct pawl_data){ PAWL_JSON, "null", 4 };
    if (m.kept == KEPT)
        memmove(m.last, m.last + 1, sizeof m.last[0] * --m.kept);
    m.last[m.kept++] = said;
    m.n++;
    bad = keep(c, &m);
    return bad ? bad
               : pawl_reply_json(c, "{\"n\":%" PRId64 ",\"before\":%.*s}", m.n, (int)before.len,
                                 (const char *)before.data);
}

/* Chat.forget: delete the session. */
static int forget(struct pawl_call *c)
{
    return pawl_delete_state(c) ? pawl_refuse(c, "a session is named by its key") : 0;
}

PAWL_MODULE(m)
{
    if (pawl_on(m, "Chat", "say", say) != PAWL_OK ||
        pawl_on(m, "Chat", "forget", forget) != PAWL_OK)
        return;
}
