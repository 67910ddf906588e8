/*
 * cli_stranger.c - the program `pawl` and a web server that is not Pawl; names that no path of a
 * server can have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_fixture.h"

/* Every command that asks a server, in each of its forms. */
static const char *const asking[] = {
    "call x 1",
    "submit x 1",
    "batch in.ndjson",
    "get a",
    "get a --result",
    "get a --archived",
    "attempts a",
    "list",
    "cancel a",
    "cancel --status pending",
    "retry a",
    "retry --status failed",
    "pause q",
    "pause --all",
    "resume q",
    "resume --all",
    "queues",
    "nodes",
    "leaders",
    "drain n",
    "undrain n",
    "keys",
    "unblock k skip",
    "object T k",
    "object T k --set 1",
    "object T k --delete",
    "work --exec true --type t --idle 1s",
    "cron list",
    "cron get s",
    "cron put s --every 60 --type t",
    "cron pause s",
    "cron resume s",
    "cron run s",
    "cron rm s",
    "cron runs s",
    "cron next s",
    "cron next '0 3 * * *'",
    "limits",
    "limits get l",
    "limits put l --type t --max 1",
    "limits rm l",
    "workflow list",
    "workflow show o",
    "workflow signal o s",
    "workflow cancel o",
    "workflow retry o",
    "workflow fork o --from s",
};

static bool is_asking(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < COUNT_OF(asking); i++)
        if (strncmp(asking[i], name, len) == 0 && asking[i][len] <= ' ')
            return true;
    return false;
}

/* A command with --url asks a server; `bench`, `serve` and `events` have none. */
TEST(the_list_above_is_complete)
{
    EQ_INT(cli_run("help --json"), 0);
    for (struct json *c = json_member(cli_answer(), "commands")->first; c; c = c->next) {
        bool url = false;
        for (struct json *o = json_member(c, "options")->first; o; o = o->next)
            url = url || strcmp(cli_text(o, "name"), "url") == 0;
        if (is_asking(cli_text(c, "name")) != url)
            FAIL("%s: is it in the list?", cli_text(c, "name"));
    }
}

/* ---- Another program ------------------------------------------------------------------------- */

static int listen_here(int *out_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EQ_INT(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    EQ_INT(listen(fd, 8), 0);
    EQ_INT(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *out_port = ntohs(at.sin_port);
    return fd;
}

/* Answers every request with this body, until the case ends; PAWL_URL names it. */
static pid_t stranger(const char *body)
{
    char answer[1000], rest[4096];
    int port, fd = listen_here(&port);
    snprintf(rest, sizeof rest, "http://127.0.0.1:%d", port);
    setenv("PAWL_URL", rest, 1);
    snprintf(answer, sizeof answer,
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(body),
             body);
    pid_t child = fork();
    if (child != 0) {
        close(fd);
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int one; (one = accept(fd, NULL, NULL)) >= 0; close(one)) {
        if (read(one, rest, sizeof rest) <= 0 || write(one, answer, strlen(answer)) < 0)
            continue;
        shutdown(one, SHUT_WR);
        while (read(one, rest, sizeof rest) > 0) {
        }
    }
    _exit(0);
}

static void is_no_answer(const char *args, const char *why)
{
    EQ_INT(cli_run(args), 9);
    EQ_STR(cli_out, "");
    HAS_STR(cli_err_out, "http://127.0.0.1:");
    HAS_STR(cli_err_out, " answered HTTP 200, and the body is not an answer of Pawl: ");
    HAS_STR(cli_err_out, why);
    HAS_STR(cli_err_out, "; is --url right?\n");
}

static void every_command_says(const char *body, const char *why)
{
    pid_t child = stranger(body);
    for (size_t i = 0; i < COUNT_OF(asking); i++)
        is_no_answer(asking[i], why);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

TEST(an_empty_object_is_no_answer_of_pawl, .deadline_s = 60)
{
    cli_write_file("in.ndjson", "{\"type\":\"x\"}\n");
    every_command_says("{}", ": it has no ");
}

TEST(json_that_is_no_object_is_no_answer_of_pawl, .deadline_s = 60)
{
    cli_write_file("in.ndjson", "{\"type\":\"x\"}\n");
    every_command_says("\"ok\"", ": it ");
    every_command_says("<html>It works!</html>", ": it is not JSON");
}

/* The names are those of Pawl, and what is behind them is not. */
TEST(lists_of_other_things_are_no_answer_of_pawl)
{
    cli_write_file("in.ndjson", "{\"type\":\"x\"}\n");
    stranger("{\"calls\":[{\"name\":1}],\"queues\":[7],\"nodes\":[{\"node\":null}],"
             "\"attempts\":{},\"keys\":[{\"key\":{}}],\"id\":[],\"changed\":null}");
    is_no_answer("list", "in \"calls\", it has no \"id\"");
    is_no_answer("work --exec true --type t --idle 1s", "in \"calls\", it has no \"id\"");
    is_no_answer("queues", "in \"queues\", it is not an object");
    is_no_answer("pause --all", "in \"queues\", it is not an object");
    is_no_answer("nodes", "in \"nodes\", it has no \"node\"");
    is_no_answer("attempts a", "it has no list \"attempts\"");
    is_no_answer("keys", "in \"keys\", it has no \"key\"");
    is_no_answer("get a", "it has no \"id\"");
    is_no_answer("cancel --status pending", "it has no \"changed\"");
    EQ_INT(cli_run("batch in.ndjson"), 9);
    EQ_STR(cli_err_out, "pawl batch: line 1: the answer is neither a call of Pawl nor an error of "
                        "it; is --url right?\n");
    EQ_INT(cli_run("get a --json"), 9);
    HAS_STR(cli_err_out, "\"code\":\"BROKEN\"");
    EQ_STR(cli_out, "");
}

/* A worker took this for "no work" and asked again at once, for ever. */
TEST(calls_without_a_lease_are_no_answer_to_a_claim)
{
    stranger(
        "{\"calls\":[{\"id\":\"a\",\"type\":\"t\",\"status\":\"processing\",\"method\":\"run\","
        "\"attempt\":1}]}");
    EQ_INT(cli_run("work --exec true --type t"), 9);
    HAS_STR(cli_err_out, "the answer to a claim has calls and no lease; is --url right?");
}

/* ---- Names in a path ------------------------------------------------------------------------- */

#define EXPECTED "; expected 1 to 255 bytes of UTF-8 without control characters\n"

/* No server is there: nothing is sent. */
TEST(a_name_that_is_empty_is_named)
{
    static const char *const given[][2] = {
        { "get ''", "ID" },
        { "get '' --archived", "ID" },
        { "attempts ''", "ID" },
        { "cancel ''", "ID" },
        { "retry ''", "ID" },
        { "pause ''", "QUEUE" },
        { "resume ''", "QUEUE" },
        { "drain ''", "NODE" },
        { "undrain ''", "NODE" },
        { "unblock '' skip", "KEY" },
        { "object '' k", "TYPE" },
        { "object T ''", "KEY" },
        { "object T '' --set 1", "KEY" },
        { "object '' '' --delete --cancel", "TYPE" },
    };
    setenv("PAWL_URL", "http://127.0.0.1:1", 1);
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        char want[200];
        snprintf(want, sizeof want, ": argument %s is empty" EXPECTED, given[i][1]);
        EQ_INT(cli_run(given[i][0]), 2);
        HAS_STR(cli_err_out, want);
        EQ_STR(cli_out, "");
    }
    EQ_INT(cli_run("get '' --json"), 2);
    HAS_STR(cli_err_out, "{\"error\":{\"code\":\"INVALID\",\"message\":\"argument ID is empty");
}

/* Other names that the server refuses, or that a proxy takes for steps of the path. */
TEST(a_name_that_cannot_be_sent_is_named)
{
    setenv("PAWL_URL", "http://127.0.0.1:1", 1);
    EQ_INT(cli_run("get .."), 2);
    HAS_STR(cli_err_out, "argument ID must not be \".\" or \"..\"" EXPECTED);
    EQ_INT(cli_run("pause $(printf '%0256d' 1)"), 2);
    HAS_STR(cli_err_out, "argument QUEUE is longer than 255 bytes" EXPECTED);
    EQ_INT(cli_run("drain \"$(printf 'a\\tb')\""), 2);
    HAS_STR(cli_err_out, "argument NODE has a control character" EXPECTED);
    EQ_INT(cli_run("get $(printf '%0255d' 1)"), 6); /* it was sent */
}
