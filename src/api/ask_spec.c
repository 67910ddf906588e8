/*
 * ask_spec.c - the call that a request asks for, completed with what its headers and its token say
 * (ask_spec.h). Pure, except that it makes ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/ask_spec.h"

#include "api/internal.h"
#include "model/spec_json.h"
#include "model/words.h"

enum pawl_status spec_complete(struct ask *q, struct bytes header_id, struct call_spec *out,
                               struct pawl_err *err)
{
    if (header_id.data && out->id.data && !bytes_eq(header_id, out->id))
        return err_set(
            err, PAWL_INVALID, "field \"id\": is \"%.*s\", and Idempotency-Key says \"%.*s\"",
            BYTES_ARG(text_shown(q->a, out->id)), BYTES_ARG(text_shown(q->a, header_id)));
    if (header_id.data)
        out->id = header_id;
    out->client = q->who.name;
    if (out->input.bytes.len > q->api->input_len_max)
        return err_set(err, PAWL_TOO_LARGE, "field \"input\": is %zu bytes, limit %zu",
                       out->input.bytes.len, q->api->input_len_max);
    return call_spec_settle(q->a, q->api->world, out, err);
}

enum pawl_status spec_of_json(struct ask *q, const struct json *object, struct bytes header_id,
                              struct call_spec *out, struct pawl_err *err)
{
    enum pawl_status st = spec_read_json(q->a, object, q->api->call_timeout_us, out, err);
    return st == PAWL_OK ? spec_complete(q, header_id, out, err) : st;
}

/* ---- Idempotency-Key ------------------------------------------------------------------------- */

/* The content of a structured string (RFC 8941), without quotes and backslashes. Absent: malformed.
 */
static struct bytes unquote(struct arena *a, struct bytes h)
{
    char *out = arena_alloc(a, h.len), *put = out;
    if (!out)
        return BYTES_NONE;
    for (size_t i = 1; i + 1 < h.len; i++) {
        if (h.data[i] == '"')
            return BYTES_NONE;
        if (h.data[i] == '\\' && (++i + 1 >= h.len || (h.data[i] != '"' && h.data[i] != '\\')))
            return BYTES_NONE;
        *put++ = h.data[i];
    }
    return (struct bytes){ out, (size_t)(put - out) };
}

enum pawl_status ask_idempotency_key(struct ask *q, struct bytes *out, struct pawl_err *err)
{
    struct bytes h = http_header(q->r, "idempotency-key");
    *out = h;
    if (!h.data)
        return PAWL_OK;
    if (http_header_count(q->r, "idempotency-key") > 1)
        return err_set(err, PAWL_INVALID, "field \"Idempotency-Key\": is given twice");
    if (h.len >= 1 && h.data[0] == '"') {
        *out = h.len >= 2 && h.data[h.len - 1] == '"' ? unquote(q->a, h) : BYTES_NONE;
        if (!out->data)
            return err_set(
                err, PAWL_INVALID,
                "field \"Idempotency-Key\": begins with a quote and is not a quoted string "
                "(RFC 8941)");
    }
    if (!out->len)
        return err_set(err, PAWL_INVALID, "field \"Idempotency-Key\": is empty");
    return PAWL_OK;
}
