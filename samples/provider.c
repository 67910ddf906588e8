/*
 * provider - a host of objects that keeps its own loop: the calls of its objects are stored,
 * ordered and answered by Pawl, and run by the host.
 *
 *     build/samples/provider            stores in provider.db, here
 *     build/samples/provider other.db   stores there
 *
 * Below are the seven operations that such a host needs, each a few lines over libpawl:
 * insert_or_get, get_call, pending_calls, update_status, save_object, load_object, delete_object.
 * doc/provider.md says what each promises. main() runs one object through them, a counter. Run it
 * twice: the second run inserts nothing and gets the answers of the first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A call of an object, as the host handles it. */
struct object_call {
    const char *call_id, *object_type, *object_id, *method;
    struct pawl_data request;
};

/* ---- The seven operations -------------------------------------------------------------------- */

/* Store the call, or find it: the same call_id with the same content is the same call, however
 * often it comes. With other content it is PAWL_CONFLICT. */
static enum pawl_status insert_or_get(struct pawl *p, const struct object_call *c,
                                      struct pawl_receipt *out, struct pawl_err *err)
{
    struct pawl_spec spec = { PAWL_SPEC_INIT,      .id = c->call_id,    .type = c->object_type,
                              .key = c->object_id, .method = c->method, .input = c->request };
    enum pawl_status st = pawl_submit(p, &spec, 1, 0, out, err);
    if (st == PAWL_OK && out->status != PAWL_OK) {
        st = err->status = out->status;
        snprintf(err->text, sizeof err->text, "%s", out->error);
    }
    return st;
}

/* The call as it is: its state, result or error. */
static enum pawl_status get_call(struct pawl *p, const char *call_id, struct pawl_shown **out,
                                 struct pawl_err *err)
{
    return pawl_get(p, call_id, 0, out, err);
}

/* The calls that wait for this object, in the order in which they will run. */
static enum pawl_status pending_calls(struct pawl *p, const char *type, const char *object_id,
                                      struct pawl_page **out, struct pawl_err *err)
{
    return pawl_pending(p, type, object_id, 100, out, err);
}

/* Store how a call ended, together with the new state of its object. The lease proves that this
 * host owns the call: a host that was too slow and has lost it changes nothing. */
static enum pawl_status update_status(struct pawl *p, const char *lease, struct pawl_finish how,
                                      enum pawl_state *out, struct pawl_err *err)
{
    how.size = sizeof how;
    return pawl_finish(p, lease, &how, 1, out, err);
}

static enum pawl_status save_object(struct pawl *p, const char *type, const char *object_id,
                                    struct pawl_data state, struct pawl_err *err)
{
    struct pawl_object_change change = { PAWL_OBJECT_CHANGE_INIT, .type = type, .key = object_id,
                                         .state = state };
    return pawl_object_save(p, &change, NULL, err);
}

static enum pawl_status load_object(struct pawl *p, const char *type, const char *object_id,
                                    struct pawl_object **out, struct pawl_err *err)
{
    return pawl_object_load(p, type, object_id, out, err);
}

static enum pawl_status delete_object(struct pawl *p, const char *type, const char *object_id,
                                      struct pawl_err *err)
{
    struct pawl_object_change change = { PAWL_OBJECT_CHANGE_INIT, .type = type, .key = object_id };
    return pawl_object_delete(p, &change, NULL, err);
}

/* ---- A host with one kind of object: a counter ----------------------------------------------- */

static int64_t number(struct pawl_data d)
{
    char text[32] = "0";
    if (d.form == PAWL_JSON)
        snprintf(text, sizeof text, "%.*s", (int)d.len, (const char *)d.data);
    return strtoll(text, NULL, 10);
}

/* Run one call of the lease. */
static enum pawl_status run_call(struct pawl *p, const struct pawl_lease *lease, size_t i,
                                 struct pawl_err *err)
{
    const struct pawl_view *call = &lease->calls[i];
    char sum[32];
    int len =
        snprintf(sum, sizeof sum, "%" PRId64, number(lease->states[i].state) + number(call->input));
    struct pawl_data kept = { PAWL_JSON, sum, (size_t)len };
    struct pawl_finish how = {
        .id = call->id, .how = PAWL_END_RESULT, .result = kept, .state = kept
    };
    enum pawl_state state;
    enum pawl_status st = update_status(p, lease->token, how, &state, err);
    if (st == PAWL_OK)
        printf("ran %s, number %" PRId64 " of %s: %s, %s\n", call->id, call->key_no, call->key, sum,
               pawl_state_name(state));
    return st;
}

/* Claim due calls and run them, until none is due. A claim has at most one call of an object, and
 * its next call only after that one has ended, so the host need not care about their order. */
static enum pawl_status run_all(struct pawl *p, struct pawl_err *err)
{
    struct pawl_claim claim = { PAWL_CLAIM_INIT, .worker = "provider", .max = 10 };
    for (;;) {
        struct pawl_lease *lease = NULL;
        enum pawl_status st = pawl_claim(p, &claim, &lease, err);
        size_t n = st == PAWL_OK ? lease->n : 0;
        for (size_t i = 0; st == PAWL_OK && i < n; i++)
            st = run_call(p, lease, i, err);
        pawl_lease_free(lease);
        if (st != PAWL_OK || !n)
            return st;
    }
}

static enum pawl_status insert_some(struct pawl *p, struct pawl_err *err)
{
    static const char *const ids[] = { "add-1", "add-2", "add-3" };
    enum pawl_status st = PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < 3; i++) {
        struct object_call c = { ids[i], "Counter", "c1", "add", PAWL_TEXT("5") };
        struct pawl_receipt r;
        st = insert_or_get(p, &c, &r, err);
        if (st == PAWL_OK)
            printf("%s %s is %s\n", r.duplicate ? "known" : "inserted", r.id,
                   pawl_state_name(r.state));
    }
    return st;
}

static enum pawl_status show_pending(struct pawl *p, struct pawl_err *err)
{
    struct pawl_page *page = NULL;
    enum pawl_status st = pending_calls(p, "Counter", "c1", &page, err);
    for (size_t i = 0; st == PAWL_OK && i < page->n; i++)
        printf("pending %s at %" PRId64 "\n", page->calls[i].id, page->calls[i].position);
    pawl_page_free(page);
    return st;
}

static enum pawl_status show_end(struct pawl *p, struct pawl_err *err)
{
    struct pawl_shown *shown = NULL;
    struct pawl_object *object = NULL;
    enum pawl_status st = get_call(p, "add-3", &shown, err);
    if (st == PAWL_OK)
        printf("add-3 is %s with %.*s\n", pawl_state_name(pawl_shown_view(shown)->state),
               (int)pawl_shown_view(shown)->result.len,
               (const char *)pawl_shown_view(shown)->result.data);
    if (st == PAWL_OK)
        st = load_object(p, "Counter", "c1", &object, err);
    if (st == PAWL_OK)
        printf("c1 keeps %.*s\n", (int)object->state.len, (const char *)object->state.data);
    pawl_shown_free(shown);
    pawl_object_free(object);
    return st;
}

/* An object without calls may be given a state, and lose it again. */
static enum pawl_status save_and_delete(struct pawl *p, struct pawl_err *err)
{
    enum pawl_status st = save_object(p, "Counter", "c2", PAWL_TEXT("100"), err);
    if (st == PAWL_OK)
        st = delete_object(p, "Counter", "c2", err);
    struct pawl_object *gone = NULL;
    if (st == PAWL_OK && load_object(p, "Counter", "c2", &gone, err) == PAWL_NOT_FOUND)
        printf("c2 is gone\n");
    pawl_object_free(gone);
    return st;
}

int main(int argc, char **argv)
{
    struct pawl *p = NULL;
    struct pawl_err err;
    char db[1100];
    snprintf(db, sizeof db, "sqlite:%.1000s", argc > 1 ? argv[1] : "provider.db");
    enum pawl_status st =
        pawl_open(&(struct pawl_options){ PAWL_OPTIONS_INIT, .db = db }, &p, &err);
    if (st == PAWL_OK)
        st = insert_some(p, &err);
    if (st == PAWL_OK)
        st = show_pending(p, &err);
    if (st == PAWL_OK)
        st = run_all(p, &err);
    if (st == PAWL_OK)
        st = show_end(p, &err);
    if (st == PAWL_OK)
        st = save_and_delete(p, &err);
    if (st != PAWL_OK)
        fprintf(stderr, "provider: %s\n", err.text);
    pawl_close(p);
    return st == PAWL_OK ? 0 : 1;
}
