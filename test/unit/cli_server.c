/*
 * cli_server.c - the program `pawl` with a server: error messages when it cannot be reached, and
 * the questions before many calls are changed.
 *
 * Each case starts build/pawl as a server in its own folder. Cases about a terminal create one.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "check.h"
#include "cli_server.h"

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

/* ---- Tokens ---------------------------------------------------------------------------------- */

TEST(a_missing_or_unknown_token_names_pawl_token)
{
    EQ_INT(run("pawl token new ann admin"), 0);
    char token[100] = "", more[400] = "";
    TRUE(sscanf(out, "%90s", token) == 1);
    const char *line = strstr(err_out, "ann:admin:");
    TRUE(line != NULL);
    snprintf(more, sizeof(more), "--tokens %.*s", (int)strcspn(line, "\""), line);
    serve(more);
    EQ_INT(run("pawl list"), 11);
    HAS_STR(err_out, "requires a token, and none is set: set PAWL_TOKEN");
    EQ_INT(run("PAWL_TOKEN=wrong pawl list"), 11);
    HAS_STR(err_out, "does not accept this token (setting \"token\", from: environment)");
    FALSE(strstr(err_out, "wrong"));
    char good[200];
    snprintf(good, sizeof(good), "PAWL_TOKEN=%s pawl list", token);
    EQ_INT(run(good), 0);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static void certificate(const char *name)
{
    char line[400];
    snprintf(line, sizeof(line),
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=x -addext subjectAltName=%s -keyout key.pem -out cert.pem 2>/dev/null",
             name);
    if (system(line) != 0)
        skip("no openssl command");
}

TEST(a_certificate_that_is_not_trusted_is_said_so)
{
    certificate("IP:127.0.0.1");
    serve("--tls-cert cert.pem --tls-key key.pem");
    EQ_INT(run("pawl list --url https://$u"), 6);
    HAS_STR(err_out, "the certificate of https://127.0.0.1:");
    HAS_STR(err_out, "is not trusted: self-signed certificate; set SSL_CERT_FILE to a file");
    FALSE(strstr(err_out, "is `pawl serve` running"));
    EQ_INT(run("SSL_CERT_FILE=cert.pem; export SSL_CERT_FILE; pawl list --url https://$u"), 0);
}

TEST(a_certificate_for_another_name_is_said_so)
{
    certificate("DNS:pawl.example.org");
    serve("--tls-cert cert.pem --tls-key key.pem");
    EQ_INT(run("SSL_CERT_FILE=cert.pem; export SSL_CERT_FILE; pawl list --url https://$u"), 6);
    HAS_STR(err_out, "is not trusted: IP address mismatch; write --url with a name that the "
                     "certificate is for");
}

TEST(http_where_there_is_tls_and_the_other_way_round)
{
    char want[100];
    certificate("IP:127.0.0.1");
    serve("--tls-cert cert.pem --tls-key key.pem");
    snprintf(want, sizeof(want),
             "the server at 127.0.0.1:%d speaks TLS; use --url https://127.0.0.1:%d\n", port, port);
    EQ_INT(run("pawl list"), 2);
    HAS_STR(err_out, want);
    EQ_INT(run("pawl submit echo 1"), 2); /* a POST that is sent again when its answer is lost */
    HAS_STR(err_out, want);
    /* OpenSSL does not recognize this one as HTTP. */
    EQ_INT(run("pawl object Counter c --delete"), 2);
    HAS_STR(err_out, want);
    serve("--node other");
    snprintf(want, sizeof(want),
             "the server at 127.0.0.1:%d does not speak TLS; use --url http://127.0.0.1:%d\n", port,
             port);
    EQ_INT(run("pawl list --url https://$u"), 2);
    HAS_STR(err_out, want);
}

/* Another kind of server: it sends a greeting, and nothing that is HTTP. */
TEST(what_does_not_speak_http_is_said_so)
{
    int fd = listen_here(&port);
    pid_t child = fork();
    if (child == 0) {
        static const char greeting[] = "SSH-2.0-something\r\n\r\n";
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int one; (one = accept(fd, NULL, NULL)) >= 0;) {
            ssize_t ignored = write(one, greeting, sizeof(greeting) - 1);
            (void)ignored;
            shutdown(one, SHUT_WR);
            char rest[4096];
            while (read(one, rest, sizeof(rest)) > 0) {
            }
            close(one);
        }
        _exit(0);
    }
    EQ_INT(run("pawl list"), 2);
    HAS_STR(err_out, "does not speak HTTP; is --url right?");
    kill(child, SIGKILL);
}

/* ---- Answers that are lost ------------------------------------------------------------------- */

/* A shell line that starts `pawl ARGS` in the background, kills the server with -9 when the call is
 * stored, and ends with the exit code. */
static int run_and_kill(const char *args)
{
    char line[1000];
    snprintf(line, sizeof(line),
             "pawl %s >call.txt 2>&1 & c=$!; until pawl list --json | grep -q nobody; do sleep "
             "0.05; done; kill -9 %d; wait $c; x=$?; cat call.txt; (exit $x)",
             args, (int)server);
    int code = run(line);
    server = 0;
    return code;
}

/* The call is stored and will run: with the message "cannot reach" people sent it twice. */
TEST(a_call_whose_answer_is_lost_is_told_with_its_id)
{
    char id[64] = "", line[200];
    serve("");
    EQ_INT(run_and_kill("call nobody 1"), 7);
    EQ_INT(sscanf(out, "pawl call: call \"%36[-0-9a-f]\" may have been accepted", id), 1);
    snprintf(line, sizeof(line), "`pawl get %s` shows its state\n", id);
    HAS_STR(out, line);
    serve("");
    snprintf(line, sizeof(line), "pawl get %s --json", id);
    EQ_INT(run(line), 0);
    HAS_STR(out, "\"status\":\"pending\"");
}

TEST(a_call_whose_answer_is_lost_has_its_id_in_json)
{
    serve("");
    EQ_INT(run_and_kill("call nobody 1 --id 'an id' --json"), 7);
    HAS_STR(out, "\"code\":\"UNKNOWN\"");
    HAS_STR(out, ",\"id\":\"an id\",");
    HAS_STR(out, "`pawl get ID` shows its state");
}

TEST(a_call_that_was_never_sent_is_busy)
{
    serve("");
    kill(server, SIGKILL);
    EQ_INT(waitpid(server, NULL, 0), server);
    EQ_INT(run("pawl call nobody 1 --json"), 6);
    HAS_STR(err_out, "\"code\":\"BUSY\"");
    FALSE(strstr(err_out, "\"id\""));
    EQ_INT(run("pawl cancel a"), 6);
    EQ_INT(run("echo '{\"type\":\"x\"}' | pawl batch -"), 6);
}

/* Answers this many requests on one connection, reads one more, and exits. */
static void serve_and_go(int answers)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n"
                                 "{\"id\":\"a\",\"type\":\"x\",\"status\":\"cancelled\"}";
    int fd = listen_here(&port);
    if (fork() == 0) {
        char request[4096] = "";
        size_t n = 0;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int one = accept(fd, NULL, NULL);
        close(fd);
        for (ssize_t got; (got = read(one, request + n, sizeof(request) - 1 - n)) > 0;) {
            n += (size_t)got;
            request[n] = 0;
            if (!strstr(request, "}")) /* the end of each body */
                continue;
            if (answers-- <= 0 || write(one, answer, sizeof(answer) - 1) < 0)
                break;
            n = 0;
        }
        _exit(0);
    }
    close(fd);
}

/* The second request uses the connection of the first, and the server accepts no other one. */
TEST(a_write_that_is_lost_on_a_kept_connection_is_unknown)
{
    serve_and_go(1);
    EQ_INT(run("pawl cancel a b"), 7);
    EQ_STR(out, "a cancelled\n");
    HAS_STR(err_out, "call \"b\" may have been cancelled: the request was sent, but its answer was "
                     "lost; `pawl get b` shows its state\n");
    serve_and_go(0);
    EQ_INT(run("pawl retry a --json"), 7);
    HAS_STR(err_out, "\"id\":\"a\"");
    HAS_STR(err_out, "may have been retried");
    serve_and_go(0);
    EQ_INT(run("pawl submit x --id s-1"), 7);
    HAS_STR(err_out, "call \"s-1\" may have been accepted");
}

/* A gateway answers for a server that did not: the request may have reached it. */
TEST(an_answer_of_a_gateway_is_no_answer)
{
    static const char answer[] = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 13\r\n"
                                 "Connection: close\r\n\r\n<html></html>";
    for (int i = 0; i < 2; i++) {
        int fd = listen_here(&port);
        if (fork() == 0) {
            char request[4096];
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int one; (one = accept(fd, NULL, NULL)) >= 0; close(one))
                if (read(one, request, sizeof request) < 0 ||
                    write(one, answer, sizeof answer - 1) < 0)
                    _exit(1);
            _exit(0);
        }
        close(fd);
        if (i == 0) {
            EQ_INT(run("pawl submit x --id s-1"), 7);
            HAS_STR(err_out, "call \"s-1\" may have been accepted");
        } else {
            EQ_INT(run("pawl get s-1"), 9);
            HAS_STR(err_out, "answered HTTP 502, and the body is not an error of Pawl");
        }
    }
}

TEST(a_batch_whose_answer_is_lost_tells_the_lines)
{
    serve_and_go(0);
    EQ_INT(run("printf '%s\\n\\n%s\\n' '{\"type\":\"x\",\"id\":\"b-1\"}' '{\"type\":\"x\"}' | "
               "pawl batch -"),
           7);
    HAS_STR(err_out, "the calls of lines 1 to 3 may have been accepted");
    HAS_STR(err_out, "lines after them were not sent");
    serve_and_go(0);
    EQ_INT(run("echo '{\"type\":\"x\",\"id\":\"b-1\"}' | pawl batch - --json"), 7);
    HAS_STR(out, "{\"id\":\"b-1\",\"error\":{\"code\":\"UNKNOWN\",");
}

/* ---- What may have happened, and the same command again ---------------------------------------
 *
 * A proxy between the program and its server passes so many answers on. The server answers one
 * more, and the proxy closes both connections.
 */

static int behind; /* the server's port, while `port` is the proxy's */

static int connect_to(int to_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)to_port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

/* One connection; false: an answer came that is not passed on. */
static bool carry(int client, int to, int *answers)
{
    struct pollfd v[2] = { { .fd = client, .events = POLLIN }, { .fd = to, .events = POLLIN } };
    static char data[TEXT_MAX];
    while (poll(v, 2, -1) > 0) {
        bool answer = v[1].revents;
        ssize_t n = read(v[answer].fd, data, sizeof(data));
        if (n <= 0)
            return true;
        if (answer && (*answers)-- == 0)
            return false;
        if (write(v[!answer].fd, data, (size_t)n) != n)
            return true;
    }
    return true;
}

static void cut_after(int answers)
{
    behind = behind ? behind : port;
    int fd = listen_here(&port);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (bool on = true; on;) {
            int client = accept(fd, NULL, NULL), to = connect_to(behind);
            on = carry(client, to, &answers);
            if (!on)
                close(fd); /* nobody listens any more when the client notices */
            close(to);
            close(client);
        }
        _exit(0);
    }
    close(fd);
}

/* `pawl ARGS` is carried out, and its answer number `answers` + 1 is lost; what it says. */
static void run_cut(const char *args, int answers, const char *says)
{
    char line[1000];
    cut_after(answers);
    snprintf(line, sizeof(line), "pawl %s", args);
    EQ_INT(run(line), 7);
    HAS_STR(err_out, says);
    port = behind;
}

/* The same again, with an answer. */
static void run_again(const char *args, int code, const char *says)
{
    char line[1000];
    snprintf(line, sizeof(line), "pawl %s", args);
    EQ_INT(run(line), code);
    HAS_STR(code ? err_out : out, says);
}

static void submit_n(const char *type, int n)
{
    char line[300];
    snprintf(
        line, sizeof(line),
        "i=0; while [ $i -lt %d ]; do echo '{\"type\":\"%s\"}'; i=$((i+1)); done | pawl batch -", n,
        type);
    EQ_INT(run(line), 0);
}

TEST(a_bulk_cancel_whose_answer_is_lost_can_be_given_again)
{
    serve("");
    submit_n("nobody", 3);
    run_cut("cancel --status pending --type nobody", 0,
            "pawl cancel: up to 1000 calls may have been cancelled: the request was sent, and its "
            "answer was lost; the same command again cancels those that are left and those "
            "accepted since\n");
    run_again("cancel --status pending --type nobody", 0, "0 calls cancelled\n");
    run_again("list --status cancelled --json", 0, "\"cancelled\"");
    submit_n("nobody", 1);
    run_cut("cancel --status pending --before 2099-01-01T00:00:00Z --limit 7", 0,
            "up to 7 calls may have been cancelled");
    HAS_STR(err_out, "cancels those that are left, up to its --limit\n");
}

/* What came before is sure. */
TEST(a_bulk_cancel_whose_second_answer_is_lost_says_what_is_sure)
{
    serve("");
    submit_n("nobody", 1500);
    run_cut("cancel --status pending", 1,
            "1000 calls were cancelled, and up to 1000 more calls may have been cancelled");
    run_again("cancel --status pending", 0, "0 calls cancelled\n");
}

TEST(a_bulk_retry_whose_answer_is_lost_can_be_given_again)
{
    serve("");
    submit_n("nobody", 3);
    EQ_INT(run("pawl cancel --status pending"), 0);
    run_cut("retry --status cancelled", 0,
            "up to 1000 calls may have been retried: the request was sent, and its answer was "
            "lost; the same command again retries those that have failed again, those that are "
            "left and those accepted since\n");
    run_again("retry --status cancelled", 0, "0 calls retried\n"); /* they are pending */
    run_cut("retry --status cancelled --json", 0, "\"code\":\"UNKNOWN\"");
    FALSE(strstr(err_out, "\"id\""));
}

TEST(a_queue_or_node_command_whose_answer_is_lost_can_be_given_again)
{
    serve("--node n1");
    submit_n("nobody", 1);
    run_cut("pause default", 0,
            "queue \"default\" may have been paused: the request was sent, and its answer was "
            "lost; the same command can be given again\n");
    run_again("queues --json", 0, "\"paused\":true");
    run_again("pause default", 0, "default paused\n");
    run_cut("resume default", 0, "queue \"default\" may have been resumed");
    run_again("queues --json", 0, "\"paused\":false");
    run_again("resume default", 0, "default resumed\n");
    run_cut("resume --all", 1, "queue \"default\" may have been resumed");
    run_cut("drain n1", 0,
            "node \"n1\" may have been told to drain: the request was sent, and its answer was "
            "lost; the same command can be given again\n");
    run_again("drain n1", 0, "n1 draining\n");
    run_cut("undrain n1", 0, "node \"n1\" may have been told to undrain");
    run_again("undrain n1", 0, "n1 ");
}

TEST(an_object_whose_answer_is_lost_says_what_the_same_does)
{
    serve("");
    run_cut(
        "object Counter c --set 1", 0,
        "object \"Counter\" \"c\" may have been written: the request was sent, and its answer "
        "was lost; the same command again writes the same state, over what was written since\n");
    run_again("object Counter c --json", 0, "\"state\":1,");
    run_again("object Counter c --set 1", 0, "");
    EQ_INT(run("pawl object Counter c --json | sed 's/.*\"version\":\\([0-9]*\\).*/\\1/'"), 0);
    char line[100];
    snprintf(line, sizeof(line), "object Counter c --set 2 --if-version %.*s",
             (int)strcspn(out, "\n"), out);
    run_cut(line, 0, "the same command again says STALE if it was\n");
    EQ_INT(run("pawl object Counter c --json"), 0);
    HAS_STR(out, "\"state\":2,");
    char again[120];
    snprintf(again, sizeof(again), "pawl %s --json", line);
    EQ_INT(run(again), 16);
    HAS_STR(err_out, "\"code\":\"STALE\"");
    run_cut("object Counter c --delete", 0,
            "object \"Counter\" \"c\" may have been deleted: the request was sent, and its answer "
            "was lost; the same command again says NOT_FOUND if it was\n");
    run_again("object Counter c --delete --json", 3, "\"code\":\"NOT_FOUND\"");
    /* To read is no write: it is asked again. */
    cut_after(0);
    EQ_INT(run("pawl object Counter c"), 7);
    FALSE(strstr(err_out, "may have been"));
}

/* The ids that were made here are in the answer, and the calls are stored under them. */
TEST(a_batch_whose_answer_is_lost_tells_the_ids)
{
    char id[64] = "", line[200];
    serve("");
    EQ_INT(run("printf '%s\\n\\n%s\\n' '{\"type\":\"nobody\",\"id\":\"b-1\"}' "
               "'{\"type\":\"nobody\"}' >in.ndjson"),
           0);
    run_cut("batch in.ndjson", 0,
            "the calls of lines 1 to 3 may have been accepted: they were sent, and the answer was "
            "lost; lines with an \"id\" can be sent again, the others would run twice: `pawl get "
            "ID` tells. Lines before them were answered, lines after them were not sent\n");
    HAS_STR(out, "line 1: \"b-1\" may have been accepted\n");
    const char *at = strstr(out, "line 3: ");
    TRUE(at != NULL);
    EQ_INT(sscanf(at, "line 3: \"%36[-0-9a-f]\" may have been accepted", id), 1);
    snprintf(line, sizeof(line), "get %s --json", id);
    run_again(line, 0, "\"status\":\"pending\"");
    EQ_INT(run("echo '{\"type\":\"nobody\",\"id\":\"b-1\"}' | pawl batch -"), 0);
    HAS_STR(out, "0 accepted, 1 already stored");
}

/* Its head may be another call by then, so that the same again would decide about that one. */
TEST(an_unblock_whose_answer_is_lost_says_where_to_look)
{
    serve("--module " PAWL_BUILD_DIR "/samples/lab.so");
    EQ_INT(run("pawl call lab.fail 1 --key k --on-dead block --max-attempts 1 --wait 10s"), 20);
    run_cut("unblock k skip", 0,
            "key \"k\" may have been unblocked: the request was sent, and its answer was lost; "
            "`pawl keys --blocked` tells, and whether another call of it blocks it by now\n");
    run_again("unblock k skip --json", 13, "\"code\":\"STATE\"");
}

/* ---- Confirmation before many calls change --------------------------------------------------- */

/* How many calls have this status. */
static void are(const char *status, const char *want)
{
    char line[200];
    snprintf(line, sizeof(line), "pawl list -n 5000 --status %s --json | grep -o '\"id\":' | wc -l",
             status);
    EQ_INT(run(line), 0);
    EQ_STR(out, want);
}

/* Submit n calls of a type that has no handler. */
static void submit(int n, const char *type)
{
    char line[300];
    snprintf(line, sizeof(line),
             "yes '{\"type\":\"%s\",\"queue\":\"%s\"}' | head -n %d | pawl batch -", type, type, n);
    EQ_INT(run(line), 0);
}

TEST(a_bulk_cancel_says_how_many_and_asks_on_a_terminal)
{
    serve("");
    submit(3, "mail");
    submit(2, "post");
    EQ_INT(run_on_terminal("cancel --status pending --type mail", "cancel 3 calls? [y/N] ", "n\n"),
           2);
    HAS_STR(out, "not confirmed; nothing was changed");
    EQ_INT(run_on_terminal("cancel --type mail", "cancel 3 calls? [y/N] ", "\n"), 2);
    /* End of input. */
    EQ_INT(run_on_terminal("cancel --type mail", "cancel 3 calls? [y/N] ", "\004"), 2);
    EQ_INT(run_on_terminal("cancel --before 2001-01-01T00:00:00Z", NULL, NULL), 0); /* none */
    HAS_STR(out, "0 calls cancelled");
    are("pending", "5\n");
    EQ_INT(run_on_terminal("cancel --type mail -n 1", "cancel 1 call? [y/N] ", "y\n"), 0);
    HAS_STR(out, "1 call cancelled");
    are("pending", "4\n");
    EQ_INT(run_on_terminal("cancel --type mail", "cancel 2 calls? [y/N] ", "YES\n"), 0);
    HAS_STR(out, "2 calls cancelled");
    EQ_INT(run_on_terminal("cancel --queue post --yes", NULL, NULL), 0);
    FALSE(strstr(out, "[y/N]"));
    HAS_STR(out, "2 calls cancelled");
    are("pending", "0\n");
    EQ_INT(run_on_terminal("retry --type mail", "retry 3 calls? [y/N] ", "y\n"), 0);
    HAS_STR(out, "3 calls retried");
    are("pending", "3\n");
}

TEST(without_a_terminal_nothing_is_asked)
{
    serve("");
    submit(3, "mail");
    EQ_INT(run("pawl cancel --status pending"), 0);
    EQ_STR(out, "3 calls cancelled\n");
    EQ_STR(err_out, "");
    EQ_INT(run("pawl retry --status cancelled --json"), 0);
    EQ_STR(out, "{\"changed\":3}\n");
    /* A terminal on one side only: the question would not be seen, or not be answered. */
    EQ_INT(run_on_terminal("cancel --type mail 2>err.txt", NULL, NULL), 0);
    HAS_STR(out, "3 calls cancelled");
    EQ_INT(run_on_terminal("retry --type mail </dev/null", NULL, NULL), 0);
    HAS_STR(out, "3 calls retried");
}

TEST(a_count_that_is_not_complete_says_at_least)
{
    serve("");
    submit(1001, "mail");
    EQ_INT(run_on_terminal("cancel --type mail", "cancel at least 1000 calls? [y/N] ", "n\n"), 2);
    EQ_INT(run_on_terminal("cancel --type mail -n 7", "cancel 7 calls? [y/N] ", "n\n"), 2);
    EQ_INT(run_on_terminal("cancel --type mail", "cancel at least 1000 calls? [y/N] ", "y\n"), 0);
    HAS_STR(out, "1001 calls cancelled");
}

/* The server scans 10,000 calls a page, and the newest 10,000 do not match. */
TEST(calls_behind_a_page_without_any_are_asked_about)
{
    serve("");
    submit(3, "mail");
    submit(10000, "post");
    EQ_INT(run_on_terminal("cancel --type mail", "cancel 3 calls? [y/N] ", "n\n"), 2);
    HAS_STR(out, "not confirmed; nothing was changed");
    EQ_INT(run_on_terminal("cancel --type none", NULL, NULL), 0);
    HAS_STR(out, "0 calls cancelled");
}

/* NO_COLOR switches off colour; a dumb terminal would print the escape sequences. */
TEST(a_dumb_terminal_has_no_line_of_progress)
{
    serve("");
    submit(3, "mail");
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    EQ_INT(run_on_terminal("list", NULL, NULL), 0);
    HAS_STR(out, "list: 3 calls");
    FALSE(strstr(out, "\033[1m"));
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    EQ_INT(run_on_terminal("list", NULL, NULL), 0);
    FALSE(strstr(out, "\033"));
    HAS_STR(out, "mail");
    EQ_INT(run_on_terminal("cancel --type mail", "cancel 3 calls? [y/N] ", "n\n"), 2);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* `pawl events` has no node, and its log had "node":"". */
TEST(the_event_service_logs_no_node)
{
    EQ_INT(run(PAWL " events serve --db sqlite:e.db --listen 127.0.0.1:0 --log-format json "
                    ">said.txt & until [ -s said.txt ]; do sleep 0.05; done; kill $!; wait $!"),
           0);
    HAS_STR(err_out, "\"level\":\"info\",\"message\":");
    FALSE(strstr(err_out, "\"node\""));
}

/* ---- work ------------------------------------------------------------------------------------ */

/* The log had the literal text "host-pid" as the node. */
TEST(a_worker_is_called_by_its_host_and_pid)
{
    char host[256] = "", want[400];
    serve("");
    gethostname(host, sizeof(host) - 1);
    submit(1, "mail");
    EQ_INT(run("pawl work --exec 'echo $PPID >pid.txt; exit 3' --type mail --idle 100ms"), 0);
    slurp("pid.txt", out);
    snprintf(want, sizeof(want), "\"node\":\"%s-%d\"", host, (int)strtol(out, NULL, 10));
    EQ_INT(run("id=$(pawl list --json | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/'); "
               "pawl attempts \"$id\" --json"),
           0);
    HAS_STR(out, want);
}

/* ---- Needs ----------------------------------------------------------------------------------- */

TEST(a_worker_takes_what_it_has)
{
    serve("--has big");
    EQ_INT(run("pawl nodes --json"), 0);
    HAS_STR(out, "\"has\":[]"); /* no handler runs here */
    EQ_INT(run("pawl submit mail --id a --needs gpu,big --needs v:2"), 0);
    EQ_INT(run("pawl submit mail --id b"), 0);
    EQ_INT(run("pawl get a"), 0);
    HAS_STR(out, "needs");
    HAS_STR(out, "[\"big\",\"gpu\",\"v:2\"]");
    EQ_INT(run("pawl get b"), 0);
    FALSE(strstr(out, "needs"));
    EQ_INT(run("pawl work --exec cat --type mail --has gpu,big --idle 100ms"), 0);
    EQ_INT(run("pawl get a --json"), 0);
    HAS_STR(out, "\"status\":\"pending\"");
    EQ_INT(run("pawl get b --json"), 0);
    HAS_STR(out, "\"status\":\"completed\"");
    EQ_INT(run("pawl work --exec cat --type mail --has gpu,big,v:2 --idle 100ms"), 0);
    EQ_INT(run("pawl get a --json"), 0);
    HAS_STR(out, "\"status\":\"completed\"");
    EQ_INT(run("pawl submit mail --timeout 0"), 2);
    HAS_STR(err_out, "field \"timeout\": is 0, not above 0");
    EQ_INT(run("pawl nodes"), 0);
    HAS_STR(out, "  has\n");
    FALSE(strstr(out, "[]"));
    EQ_INT(run("pawl submit mail --needs 'a b'"), 2);
    HAS_STR(err_out, "field \"needs\": name 1, \"a b\", is not 1..64 letters");
}

TEST(a_node_says_what_it_has)
{
    serve("--has gpu,big --module " PAWL_BUILD_DIR "/samples/echo.so");
    EQ_INT(run("pawl nodes --json"), 0);
    HAS_STR(out, "\"has\":[\"big\",\"gpu\"]");
    EQ_INT(run("pawl call echo 1 --needs gpu"), 0);
    EQ_STR(out, "1\n");
    EQ_INT(run(PAWL " serve --db sqlite:o.db --listen 127.0.0.1:0 --has 'a b' "
                    "--module " PAWL_BUILD_DIR "/samples/echo.so"),
           2);
    HAS_STR(err_out, "field \"has\": name 1, \"a b\", is not 1..64 letters");
}

/* ---- Versions -------------------------------------------------------------------------------- */

TEST(a_setting_that_pins_nothing_is_told)
{
    serve("--versions pin --module " PAWL_BUILD_DIR "/samples/echo.so");
    serve_logged("versions is pin, and no handler of this process has a version");
    EQ_INT(run(PAWL " serve --db sqlite:o.db --listen 127.0.0.1:0 --config /dev/null "
                    "--versions stay"),
           2);
    HAS_STR(err_out, "--versions: \"stay\" is unknown; expected pin, follow");
    EQ_INT(run("PAWL_VERSIONS=stay " PAWL " serve --db sqlite:o.db --listen 127.0.0.1:0 "
               "--config /dev/null"),
           2);
    HAS_STR(err_out, "PAWL_VERSIONS: \"stay\" is unknown; expected pin, follow");
    EQ_INT(run("echo 'versions = stay' >v.conf; " PAWL " serve --config v.conf"), 2);
    HAS_STR(err_out, "v.conf:1: versions: \"stay\" is unknown; expected pin, follow");
}
