/*
 * crash_fixture.c - see crash_fixture.h.
 *
 * A round is seven calls: with SQL, with SQL and a retry, kept for one microsecond only, sending
 * two more calls, cancelled while pending, cancelled while running, delayed. Calls with SQL insert
 * their id into the table `box`, which has no unique constraint: an effect that happened twice is
 * there twice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "crash_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "store/store.h"

enum kind { SQL, RETRY, BRIEF, SEND, CANCEL, HOLD, DELAY, KINDS };
static const char *const kind_names[KINDS] = { "sql",    "retry", "brief", "send",
                                               "cancel", "hold",  "delay" };

static void make_id(char *out, size_t size, const char *node, int round, enum kind k)
{
    snprintf(out, size, "%s-%d-%s", node, round, kind_names[k]);
}

/* ---- The handlers ---- */

static int with_sql(struct pawl_call *c)
{
    struct pawl_value id = { .kind = PAWL_V_TEXT, .data = pawl_call_id(c) };
    id.len = strlen(id.data);
    if (pawl_sql(c, "INSERT INTO box (id) VALUES (?)", &id, 1, NULL, NULL) != PAWL_OK)
        return pawl_fail(c, "no SQL");
    if (strcmp(pawl_call_type(c), "retry") == 0 && pawl_call_view(c)->attempts == 0)
        return pawl_fail(c, "the first time");
    return pawl_reply_int(c, 1);
}

static int sends(struct pawl_call *c)
{
    for (int i = 0; i < 2; i++)
        if (pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "sql", .max_lost = 1000 },
                      NULL) != PAWL_OK)
            return pawl_fail(c, "could not send");
    return pawl_reply_int(c, 2);
}

static int holds(struct pawl_call *c)
{
    while (!pawl_cancelled(c))
        pawl_sleep(c, 10 * FIXTURE_SEC);
    return pawl_fail(c, "asked to stop");
}

/* ---- The program ---- */

static char acked_path[64];

/* Each line is one write() after the answer, so every id in the file was acknowledged. */
static void note(const char *what, const char *id)
{
    char line[300];
    int n = snprintf(line, sizeof line, "%s %s\n", what, id);
    int fd = open(acked_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static bool noted(const char *what, const char *id)
{
    char line[300], want[300];
    bool found = false;
    snprintf(want, sizeof want, "%s %s\n", what, id);
    FILE *f = fopen(acked_path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strcmp(line, want) == 0;
    if (f)
        fclose(f);
    return found;
}

static void must(enum pawl_status st, const struct pawl_err *err, const char *what)
{
    if (st == PAWL_OK)
        return;
    fprintf(stderr, "crash_fixture: %s: %s: %s\n", what, pawl_status_name(st), err->text);
    exit(3);
}

/* After BUSY or UNKNOWN the request is repeated, which is harmless with the same id. */
static bool again(enum pawl_status st, int64_t until_us)
{
    if ((st != PAWL_BUSY && st != PAWL_UNKNOWN) || fixture_mono() > until_us)
        return false;
    usleep(5000);
    return true;
}

/* The statement must succeed; errors that the database may resolve are retried. */
#define MUST(what, call)                                                                           \
    do {                                                                                           \
        int64_t until_us_ = fixture_mono() + FIXTURE_WAIT_US;                                      \
        enum pawl_status st_;                                                                      \
        do                                                                                         \
            st_ = (call);                                                                          \
        while (again(st_, until_us_));                                                             \
        must(st_, &err, what);                                                                     \
    } while (0)

static void submit_round(struct pawl *p, const char *node, int round)
{
    struct pawl_spec v[KINDS];
    struct pawl_receipt r[KINDS];
    struct pawl_err err;
    char ids[KINDS][64];
    size_t n = 0;
    for (int k = 0; k < KINDS; k++) {
        make_id(ids[n], sizeof ids[n], node, round, (enum kind)k);
        if (noted("accepted", ids[n]))
            continue;
        v[n] = (struct pawl_spec){ PAWL_SPEC_INIT,
                                   .id = ids[n],
                                   .type = kind_names[k],
                                   .max_lost = 1000,
                                   .backoff_base_us = 1000,
                                   .keep_us = k == BRIEF ? 1 : 0,
                                   .delay_us = k == DELAY ? 20 * FIXTURE_MS : 0 };
        n++;
    }
    if (!n)
        return;
    MUST("submit", pawl_submit(p, v, n, 0, r, &err));
    for (size_t i = 0; i < n; i++)
        if (r[i].status == PAWL_OK || r[i].status == PAWL_GONE)
            note("accepted", r[i].id);
        else
            exit(4);
}

static void cancel_round(struct pawl *p, const char *node, int round)
{
    static const enum kind kinds[] = { CANCEL, HOLD };
    struct pawl_err err;
    for (int i = 0; i < 2; i++) {
        char id[64];
        make_id(id, sizeof id, node, round, kinds[i]);
        if (noted("cancelled", id))
            continue;
        MUST("cancel", pawl_cancel(p, id, NULL, &err));
        note("cancelled", id);
    }
}

static void wait_call(struct pawl *p, const char *id)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    enum pawl_status st;
    int64_t until_us = fixture_mono() + FIXTURE_WAIT_US;
    do
        st = pawl_get(p, id, 60 * FIXTURE_SEC, &shown, &err);
    while (again(st, until_us));
    if (st == PAWL_GONE)
        return;
    must(st, &err, "wait");
    if (!pawl_state_ended(pawl_shown_view(shown)->state)) {
        fprintf(stderr, "crash_fixture: %s is stuck: %s\n", id,
                pawl_state_name(pawl_shown_view(shown)->state));
        exit(5);
    }
    pawl_shown_free(shown);
}

/* Also the two calls that SEND sent: calls that are pending at a clean stop stay pending. */
static void wait_round(struct pawl *p, const char *node, int round)
{
    char id[64], child[80];
    for (int k = 0; k < KINDS; k++) {
        make_id(id, sizeof id, node, round, (enum kind)k);
        wait_call(p, id);
    }
    make_id(id, sizeof id, node, round, SEND);
    for (int i = 1; i <= 2; i++) {
        snprintf(child, sizeof child, "%s.%d", id, i);
        wait_call(p, child);
    }
}

static void submit_bulk(struct pawl *p)
{
    enum { N = 40, LEN = 1 << 20 };
    static char input[LEN], ids[N][16];
    static struct pawl_spec v[N];
    static struct pawl_receipt r[N];
    struct pawl_err err;
    for (int i = 0; i < N; i++) {
        snprintf(ids[i], sizeof ids[i], "bulk%d", i);
        v[i] =
            (struct pawl_spec){ PAWL_SPEC_INIT, .id = ids[i], .type = "delay", .max_lost = 1000 };
        v[i].input = (struct pawl_data){ PAWL_BYTES, input, LEN };
    }
    MUST("bulk", pawl_submit(p, v, N, PAWL_ATOMIC, r, &err));
    for (int i = 0; i < N; i++)
        if (fixture_ended(p, ids[i]) != PAWL_COMPLETED)
            exit(6);
}

/* The second half of a migration has crash points too. */
static void migrate_finish(void)
{
    struct store *s;
    struct pawl_err err;
    struct store_conf conf = {
        .url = getenv("CRASH_FIXTURE_DB"), .role = STORE_WRITER, .retention_us = 1, .remember_us = 1
    };
    MUST("open", store_open(&conf, &s, &err));
    MUST("migrate", store_migrate(s, true, &err));
    store_close(s);
}

void crash_fixture_program(void)
{
    const char *node = getenv("CRASH_FIXTURE");
    struct pawl_err err;
    struct pawl *p;
    if (!node)
        return;
    alarm((unsigned)(100 * check_scale()));
    int rounds = (int)strtol(getenv("CRASH_FIXTURE_ROUNDS"), NULL, 10);
    snprintf(acked_path, sizeof acked_path, "acked.%s", node);
    struct pawl_options o = { PAWL_OPTIONS_INIT,
                              .db = getenv("CRASH_FIXTURE_DB"),
                              .node = node,
                              .heartbeat_interval_us = 100 * FIXTURE_MS,
                              .heartbeat_grace_us = FIXTURE_SEC * check_scale(),
                              .reclaim_interval_us = 100 * FIXTURE_MS,
                              .gc_interval_us = 5 * FIXTURE_MS };
    MUST("open", pawl_open(&o, &p, &err));
    migrate_finish();
    MUST("table",
         pawl_prepare(pawl_program(p), "CREATE TABLE IF NOT EXISTS box (id VARCHAR(100))"));
    for (int k = 0; k < KINDS; k++)
        if (k != CANCEL)
            must(pawl_on(pawl_program(p), kind_names[k], "run",
                         k == SEND   ? sends
                         : k == HOLD ? holds
                                     : with_sql),
                 &err, "on");
    MUST("start", pawl_start(p, &(struct pawl_workers){ PAWL_WORKERS_INIT, .slots = 4 }, &err));
    for (int i = 0; i < rounds; i++) {
        submit_round(p, node, i);
        cancel_round(p, node, i);
    }
    if (getenv("CRASH_FIXTURE_BULK"))
        submit_bulk(p);
    for (int i = 0; i < rounds; i++)
        wait_round(p, node, i);
    must(pawl_stop(p, 60 * FIXTURE_SEC, &err), &err, "stop");
    pawl_close(p);
    exit(0);
}

/* ---- The harness ---- */

pid_t crash_fixture_start(const struct crash_fixture *b)
{
    char rounds[32];
    snprintf(rounds, sizeof rounds, "%d", b->rounds);
    const char *db = engine_url(b->param);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CRASH_FIXTURE", b->node, 1);
        setenv("CRASH_FIXTURE_DB", db, 1);
        setenv("CRASH_FIXTURE_ROUNDS", rounds, 1);
        unsetenv("PAWL_CRASH");
        unsetenv("PAWL_CRASH_LOG");
        if (b->bulk)
            setenv("CRASH_FIXTURE_BULK", "1", 1);
        if (b->crash)
            setenv("PAWL_CRASH", b->crash, 1);
        if (b->log)
            setenv("PAWL_CRASH_LOG", b->log, 1);
        execl("/proc/self/exe", "crash_fixture", (char *)NULL);
        _exit(127);
    }
    GT_INT(pid, 0);
    return pid;
}

int crash_fixture_wait(pid_t pid)
{
    int status = 0;
    EQ_INT(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return -9;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        FAIL("the program ended with %s %d", WIFEXITED(status) ? "status" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}

/* How many lines are this id. */
static int count_lines(const char *lines, const char *id)
{
    size_t len = strlen(id);
    int n = 0;
    for (const char *at = lines; at && *at; at = strchr(at, '\n')) {
        at += *at == '\n';
        n += strncmp(at, id, len) == 0 && (at[len] == '\n' || at[len] == '\0');
    }
    return n;
}

/* The ids of all effects in `box`, one a line. */
static void check_call(struct pawl *p, const char *box, const char *id, enum kind k)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    enum pawl_status st = pawl_get(p, id, 0, &shown, &err);
    enum pawl_state state = st == PAWL_OK ? pawl_shown_view(shown)->state : 0;
    pawl_shown_free(shown);
    bool gone = st == PAWL_GONE && k == BRIEF;
    if (st != PAWL_OK && !gone)
        FAIL("call \"%s\": %s: %s", id, pawl_status_name(st), err.text);
    if (k == CANCEL || k == HOLD) {
        if (state != PAWL_CANCELLED)
            FAIL("call \"%s\" was cancelled and is %s", id, pawl_state_name(state));
        return;
    }
    if (!gone && state != PAWL_COMPLETED)
        FAIL("call \"%s\" is %s", id, pawl_state_name(state));
    int effects = count_lines(box, id);
    int want = k != SEND;
    if (effects != want)
        FAIL("call \"%s\" took effect %d times, not %d", id, effects, want);
}

static void check_round(struct pawl *p, const char *box, const char *node, int round)
{
    char id[64], child[80];
    for (int k = 0; k < KINDS; k++) {
        make_id(id, sizeof id, node, round, (enum kind)k);
        check_call(p, box, id, (enum kind)k);
    }
    make_id(id, sizeof id, node, round, SEND);
    for (int i = 1; i <= 2; i++) {
        snprintf(child, sizeof child, "%s.%d", id, i);
        EQ_INT(fixture_ended(p, child), PAWL_COMPLETED);
        check_call(p, box, child, SQL);
    }
}

void crash_fixture_count(const void *param, const char *const *nodes, size_t n_nodes, int rounds)
{
    static const char *const empty[] = { "ready", "lease", "cancel" };
    struct pawl *p = fixture_open_as(param, (struct pawl_options){ .node = "counter" });
    char *box = strdup(engine_rows(param, "SELECT id FROM box WHERE id NOT LIKE 'bulk%'"));
    TRUE(box != NULL);
    int n = *box ? 1 : 0;
    for (const char *at = box; (at = strchr(at, '\n')); at++)
        n++;
    for (size_t i = 0; i < n_nodes; i++)
        for (int k = 0; k < rounds; k++)
            check_round(p, box, nodes[i], k);
    EQ_INT(n, (int)n_nodes * rounds * 6);
    EQ_INT(engine_int(param, "SELECT count(*) - count(DISTINCT id) FROM box"), 0);
    EQ_INT(fixture_count(p, PAWL_PENDING), 0);
    EQ_INT(fixture_count(p, PAWL_PROCESSING), 0);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        char sql[60];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM pawl_%s", empty[i]);
        EQ_INT(engine_int(param, sql), 0);
    }
    engine_intact(param);
    free(box);
    pawl_close(p);
}
