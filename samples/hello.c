/*
 * hello - the first program to read: open a database, serve one kind of call, submit one, wait for
 * its outcome, print it.
 *
 *     build/samples/hello            stores in hello.db, here
 *     build/samples/hello other.db   stores there
 *
 * Run it twice: the second run submits the same id, so the call exists already, and gets the answer
 * of the first. The handler does not run again.
 *
 * To build it outside this tree: cc hello.c $(pkg-config --cflags --libs pawl)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <stdio.h>

/* The handler of greeter.hello: runs one attempt of one call, on a thread of the library. Its
 * reply, and everything that it does in the database, is stored in one transaction. */
static int hello(struct pawl_call *c)
{
    const char *name;

    /* A wrong input will be wrong the next time too: refuse it, which ends the call for good. For
     * an error that may pass, use pawl_fail(c, "..."), and the library retries the call. */
    if (pawl_input_get_text(c, "name", &name) != 0)
        return pawl_refuse(c, "member \"name\" must be a text");

    printf("the handler runs, attempt %d of call %s\n", pawl_call_attempt_no(c), pawl_call_id(c));
    char text[200];
    snprintf(text, sizeof text, "hello, %.150s", name);
    return pawl_reply_text(c, text);
}

/* Everything that can fail says why in one sentence. */
static int complain(const struct pawl_err *err)
{
    fprintf(stderr, "hello: %s\n", err->text);
    return 1;
}

/* Submit one call and wait up to ten seconds for its end. */
static int submit_and_print(struct pawl *p)
{
    struct pawl_err err;
    struct pawl_shown *shown = NULL;
    struct pawl_spec spec = {
        PAWL_SPEC_INIT,    .id = "hello-1", /* without an id the library makes one, and every submit
                                               is a new call */
        .type = "greeter", .method = "hello", .input = PAWL_TEXT("{\"name\": \"world\"}"),
    };
    if (pawl_submit_wait(p, &spec, 10 * INT64_C(1000000), &shown, &err) != PAWL_OK)
        return complain(&err);

    const struct pawl_view *call = pawl_shown_view(shown);
    printf("call %s is %s%s\n", call->id, pawl_state_name(call->state),
           call->duplicate ? ", and was known before" : "");
    if (call->state == PAWL_COMPLETED)
        printf("its result is %.*s\n", (int)call->result.len, (const char *)call->result.data);
    else if (call->error)
        printf("its last error is: %s\n", call->error);
    int failed = call->state != PAWL_COMPLETED;
    pawl_shown_free(shown);
    return failed;
}

int main(int argc, char **argv)
{
    struct pawl *p = NULL;
    struct pawl_err err;
    char db[1100];
    snprintf(db, sizeof db, "sqlite:%.1000s", argc > 1 ? argv[1] : "hello.db");

    /* Open the file; create it and its tables when they are missing. */
    struct pawl_options options = { PAWL_OPTIONS_INIT, .db = db };
    if (pawl_open(&options, &p, &err) != PAWL_OK)
        return complain(&err);

    /* Register the handler, then start the threads that run it. */
    int failed = 1;
    if (pawl_on(pawl_program(p), "greeter", "hello", hello) != PAWL_OK)
        fprintf(stderr, "hello: the handler could not be registered\n");
    else if (pawl_start(p, NULL, &err) != PAWL_OK)
        complain(&err);
    else
        failed = submit_and_print(p);

    /* Stop the threads and close the file. Accepted calls stay in it, and run when a process that
     * serves them opens the database again. */
    pawl_close(p);
    return failed;
}
