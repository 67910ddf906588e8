/*
 * saga_fixture.c - see saga_fixture.h.
 *
 * The program: handlers, driver, and the file of the world outside. Each line of that file is one
 * write(), so it survives a kill whole.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "saga_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "own_world.h"

const struct saga_step saga_steps[SAGA_STEPS + 1] = {
    [1] = { "reserve", .sql = true, .undo = true },
    [2] = { "charge", .sql = true, .undo = true },
    [3] = { "label", .lazy = true },
    [4] = { "pack", .sql = true },
    [5] = { "post", .undo = true, .outside = true },
    [6] = { "insure", .sql = true, .undo = true },
    [7] = { "tax", .sql = true, .undo = true },
    [8] = { "ring", .sql = true, .undo = true, .outside = true },
    [9] = { "book", .sql = true, .sends = true },
    [10] = { "settle", .sql = true, .undo = true },
};
/* Behind these steps come a child, a sleep and a signal. */
enum { BEFORE_CHILD = 5, BEFORE_SLEEP = 6, BEFORE_SIGNAL = 7 };
enum { ALL_RESULTS = SAGA_STEPS * (SAGA_STEPS + 1) / 2 };

/* Tries of a step that fails for good, and of others: an engine may refuse some. The undo of a step
 * has as many, and one of them may trip. */
enum { TRIES_FEW = 3, TRIES_MANY = 100 };
#define LATE_US (40 * FIXTURE_MS * check_scale())
#define UNTOLD_US (30 * FIXTURE_MS)

/* This process's program. */
static const struct saga_program *my;
static atomic_int reached[SAGA_RUNS_MAX];  /* the step that the run has come to */
static atomic_bool listens[SAGA_RUNS_MAX]; /* it waits for its signal */

/* ---- The world outside ----------------------------------------------------------------------- */

static void world_path(const struct saga_program *s, char out[100])
{
    snprintf(out, 100, "%.80s.world", s->prefix);
}

void saga_note(const struct saga_program *s, const char *run, const char *step, const char *what)
{
    char path[100], line[300];
    world_path(s, path);
    int n = snprintf(line, sizeof line, "%s %s %s\n", run, step, what);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    GE_INT(fd, 0);
    EQ_INT(write(fd, line, (size_t)n), n);
    close(fd);
}

int saga_noted(const struct saga_program *s, const char *run, const char *step, const char *what)
{
    char path[100], line[300], words[3][100];
    int n = 0;
    world_path(s, path);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        EQ_INT(sscanf(line, "%99s %99s %99s", words[0], words[1], words[2]), 3);
        n += (!run || !strcmp(words[0], run)) && (!step || !strcmp(words[1], step)) &&
             (!what || !strcmp(words[2], what));
    }
    if (f)
        fclose(f);
    return n;
}

/* ---- Plans ----------------------------------------------------------------------------------- */

void saga_plan(struct saga_program *s, int n, uint64_t seed)
{
    LE_INT(n, SAGA_RUNS_MAX);
    s->n = n;
    for (int i = 0; i < n; i++) {
        uint64_t dice = mix64(seed * 1000 + (uint64_t)i);
        struct saga_plan *p = &s->v[i];
        *p = (struct saga_plan){ .at = 1 + (int)(dice % SAGA_STEPS),
                                 .early = dice >> 8 & 1,
                                 .keyed = (dice >> 9) % 3 == 0,
                                 .obeys = dice >> 12 & 1,
                                 .lingers = dice >> 13 & 1 };
        /* One run in four completes, the others have an end each. */
        int end = (int)((dice >> 16) % (SAGA_ENDS - 1 + 2));
        p->end = end < SAGA_ENDS - 1 ? (enum saga_end)(end + 1) : SAGA_COMPLETES;
        if (p->end == SAGA_CANCELLED)
            p->at = (int)((dice >> 24) % (SAGA_STEPS + 1));
        if ((dice >> 32) % 2)
            p->trips = 1 + (int)((dice >> 40) % SAGA_STEPS);
    }
}

/* ---- What steps do --------------------------------------------------------------------------- */

/* The argument of a step and of its undo. */
struct step_arg {
    int no, run;
};

static const struct saga_plan *plan_of(const struct step_arg *a)
{
    return &my->v[a->run];
}

static struct pawl_value number(int64_t n)
{
    return (struct pawl_value){ .kind = PAWL_V_INT, .i = n };
}

static struct pawl_value text(const char *s)
{
    return (struct pawl_value){ .kind = PAWL_V_TEXT, .data = s, .len = strlen(s) };
}

/* Another try follows, uncounted if the database was busy: a process that was killed may still have
 * a row locked. */
static int trouble(struct pawl_call *c, const struct pawl_err *err)
{
    if (err->status == PAWL_BUSY)
        return pawl_later(c, 5 * FIXTURE_MS);
    return pawl_fail(c, "%s", err->text);
}

/* Add to two accounts, always in the same order, so that no two transactions wait for each other.
 */
static enum pawl_status move(struct pawl_call *c, int step, int64_t n, struct pawl_err *err)
{
    int from = step % SAGA_ACCOUNTS, to = (step + 2) % SAGA_ACCOUNTS;
    enum pawl_status st = PAWL_OK;
    for (int k = 0; k < SAGA_ACCOUNTS && st == PAWL_OK; k++) {
        struct pawl_value v[] = { number(k == to ? n : -n), number(k) };
        if (k == from || k == to)
            st = pawl_sql(c, "UPDATE saga_account SET balance = balance + ? WHERE id = ?", v, 2,
                          NULL, err);
    }
    return st;
}

/* Write down what a step did: no key forbids to do so twice. n is its place among what the run
 * did. */
static enum pawl_status log_it(struct pawl_call *c, const char *step, const char *what,
                               struct pawl_err *err)
{
    const char *run = pawl_call_id(c);
    const struct pawl_rows *rows;
    struct pawl_value v[] = { text(run), text(step), text(what), number(0) };
    enum pawl_status st =
        pawl_sql(c, "SELECT COUNT(*) FROM saga_log WHERE run = ?", v, 1, &rows, err);
    if (st != PAWL_OK)
        return st;
    v[3] = number(rows->v[0].i);
    return pawl_sql(c, "INSERT INTO saga_log (run, step, what, n) VALUES (?, ?, ?, ?)", v, 4, NULL,
                    err);
}

/* Once in the life of a run. */
static bool trips(struct pawl_call *c, const struct step_arg *a, bool undoes)
{
    const char *run = pawl_call_id(c), *what = undoes ? "undo-trips" : "trips";
    if (plan_of(a)->trips != a->no || saga_noted(my, run, "-", what))
        return false;
    saga_note(my, run, "-", what);
    return true;
}

static void inside(struct pawl_call *c, int step, bool undoes, bool done)
{
    if (my->inside)
        my->inside(pawl_call_id(c), step, undoes, done);
}

static enum pawl_status work(struct pawl_call *c, const struct step_arg *a, struct pawl_err *err)
{
    const struct saga_step *s = &saga_steps[a->no];
    enum pawl_status st = PAWL_OK;
    if (s->outside)
        saga_note(my, pawl_call_id(c), s->name, SAGA_DID);
    if (s->sql)
        st = move(c, a->no, a->no, err);
    if (s->sql && st == PAWL_OK)
        st = log_it(c, s->name, "do", err);
    if (s->sends && st == PAWL_OK)
        st = pawl_send(c, &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "note", .max_lost = 1000 },
                       err);
    return st;
}

static int step_run(struct pawl_call *c, void *arg)
{
    const struct step_arg *a = arg;
    const struct saga_plan *p = plan_of(a);
    struct pawl_err err;
    saga_note(my, pawl_call_id(c), saga_steps[a->no].name, SAGA_BEGUN);
    inside(c, a->no, false, false);
    if (p->end == SAGA_REFUSED && p->at == a->no)
        return pawl_refuse(c, "step %d refuses", a->no);
    if (p->end == SAGA_CANCELLED && p->at == a->no && p->lingers)
        pawl_sleep(c, FIXTURE_WAIT_US);
    if (work(c, a, &err) != PAWL_OK)
        return trouble(c, &err);
    if (p->end == SAGA_CANCELLED && p->at == a->no && p->obeys && pawl_cancelled(c))
        return pawl_fail(c, "it obeys");
    if (p->end == SAGA_LATE && p->at == a->no) {
        while (!pawl_cancelled(c))
            pawl_sleep(c, 10 * FIXTURE_SEC);
        return pawl_fail(c, "it is late");
    }
    if ((p->end == SAGA_FAILS && p->at == a->no) || trips(c, a, false))
        return pawl_fail(c, "step %d fails", a->no);
    inside(c, a->no, false, true);
    return pawl_reply_int(c, a->no);
}

/* The effect outside is undone if it is there and not undone yet. */
static void undo_outside(const char *run, const char *step)
{
    if (saga_noted(my, run, step, SAGA_DID) && !saga_noted(my, run, step, SAGA_UNDID))
        saga_note(my, run, step, SAGA_UNDID);
}

static int step_undo(struct pawl_call *c, int known, struct pawl_data result, void *arg)
{
    const struct step_arg *a = arg;
    const struct saga_step *s = &saga_steps[a->no];
    bool unknown = known == PAWL_STEP_UNKNOWN;
    char want[16];
    struct pawl_err err;
    saga_note(my, pawl_call_id(c), s->name, unknown ? SAGA_UNKNOWN : SAGA_KNOWN);
    inside(c, a->no, true, false);
    int len = snprintf(want, sizeof want, "%d", a->no);
    if (unknown) {
        EQ_INT(result.form, PAWL_NOTHING);
    } else {
        EQ_INT(known, 0);
        EQ_BYTES(result.data, result.len, want, (size_t)len);
    }
    if (s->outside)
        undo_outside(pawl_call_id(c), s->name);
    /* What a step changed with SQL is there if its result is, and only then. */
    if (s->sql && !unknown && move(c, a->no, -a->no, &err) != PAWL_OK)
        return trouble(c, &err);
    if (log_it(c, s->name, unknown ? "unknown" : "undo", &err) != PAWL_OK)
        return trouble(c, &err);
    if (trips(c, a, true))
        return pawl_fail(c, "the undo of step %d fails", a->no);
    inside(c, a->no, true, true);
    return 0;
}

/* ---- saga.run -------------------------------------------------------------------------------- */

static int run_no(const char *id)
{
    size_t len = strlen(my->prefix);
    EQ_INT(strncmp(id, my->prefix, len), 0);
    int no = (int)strtol(id + len + 1, NULL, 10);
    LT_INT(no, my->n);
    return no;
}

/* Take these steps, and add up their results. */
static int steps(struct pawl_call *c, int first, int last, int64_t *sum)
{
    struct step_arg a = { .run = run_no(pawl_call_id(c)) };
    const struct saga_plan *p = plan_of(&a);
    int code = 0;
    for (a.no = first; a.no <= last && code == 0; a.no++) {
        const struct saga_step *s = &saga_steps[a.no];
        bool fails = p->at == a.no && (p->end == SAGA_FAILS || p->end == SAGA_LATE);
        struct pawl_data out;
        if (a.no > atomic_load(&reached[a.run]))
            atomic_store(&reached[a.run], a.no);
        code = pawl_step(c,
                         &(struct pawl_step){
                             PAWL_STEP_INIT, .name = s->name, .run = step_run,
                             .undo = s->undo ? step_undo : NULL, .arg = &a, .arg_size = sizeof a,
                             .max_attempts = fails ? TRIES_FEW : TRIES_MANY,
                             .timeout_us = fails && p->end == SAGA_LATE ? LATE_US : 0,
                             .backoff_base_us = FIXTURE_MS, .backoff_max_us = 10 * FIXTURE_MS,
                             .lazy = s->lazy },
                         &out);
        if (code == 0)
            *sum += strtol(out.data, NULL, 10);
        if (code == 0 && p->end == SAGA_DECLINED && p->at == a.no)
            code = pawl_refuse(c, "no further than step %d", a.no);
    }
    return code;
}

static int child_and_join(struct pawl_call *c)
{
    const char *id;
    int code = pawl_step_child(
        c, "part", &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "part", .max_lost = 1000 }, &id);
    return code ? code : pawl_step_join(c, PAWL_ALL, &id, 1, 0);
}

static int signal_or_stop(struct pawl_call *c)
{
    int no = run_no(pawl_call_id(c));
    struct pawl_data go;
    saga_note(my, pawl_call_id(c), "-", SAGA_LISTENS);
    atomic_store(&listens[no], true);
    int code = pawl_step_signal(c, "go", my->v[no].end == SAGA_UNTOLD ? UNTOLD_US : 0, &go);
    if (code == PAWL_STEP_TIMEOUT)
        return pawl_refuse(c, "it was not told in time");
    if (code == 0 && go.len == 5 && !memcmp(go.data, "false", 5))
        return pawl_refuse(c, "it was told to stop");
    return code;
}

static int never(struct pawl_call *c, void *arg)
{
    (void)arg;
    FAIL("%s: a step ran behind a point that did not go on", pawl_call_id(c));
}

/* The run is suspended, fails or ends here. What a handler asks for that does not look is refused:
 * its later steps, its SQL, its reply. */
static int leave(struct pawl_call *c, int code)
{
    bool refuses = code < PAWL_STEP_VOID; /* by its own will: what it returns has a meaning */
    struct pawl_err err;
    if (!refuses) {
        NE_INT(pawl_step(c, &(struct pawl_step){ PAWL_STEP_INIT, .name = "x", .run = never }, NULL),
               0);
        NE_INT(pawl_step_sleep(c, "y", 1), 0);
        NE_INT(pawl_sql(c, "DELETE FROM saga_log", NULL, 0, NULL, &err), PAWL_OK);
        code = pawl_reply_int(c, -1);
    }
    saga_note(my, pawl_call_id(c), "-", SAGA_LEFT);
    return code;
}

static int saga(struct pawl_call *c)
{
    int64_t sum = 0;
    saga_note(my, pawl_call_id(c), "-", SAGA_PASS);
    int code = steps(c, 1, BEFORE_CHILD, &sum);
    if (code == 0)
        code = child_and_join(c);
    if (code == 0)
        code = steps(c, BEFORE_CHILD + 1, BEFORE_SLEEP, &sum);
    if (code == 0)
        code = pawl_step_sleep(c, "nap", 2 * FIXTURE_MS);
    if (code == 0)
        code = steps(c, BEFORE_SLEEP + 1, BEFORE_SIGNAL, &sum);
    if (code == 0)
        code = signal_or_stop(c);
    if (code == 0)
        code = steps(c, BEFORE_SIGNAL + 1, SAGA_STEPS, &sum);
    if (code)
        return leave(c, code);
    saga_note(my, pawl_call_id(c), "-", SAGA_LEFT);
    return pawl_reply_int(c, sum);
}

/* A child: it moves money too. */
static int part(struct pawl_call *c)
{
    struct pawl_err err;
    if (move(c, SAGA_STEPS + 1, 1, &err) != PAWL_OK || log_it(c, "part", "do", &err) != PAWL_OK)
        return trouble(c, &err);
    return pawl_reply_int(c, 1);
}

/* What a step has sent. */
static int note(struct pawl_call *c)
{
    struct pawl_err err;
    return log_it(c, "note", "do", &err) == PAWL_OK ? 0 : trouble(c, &err);
}

/* ---- The driver ------------------------------------------------------------------------------ */

struct driven {
    char id[120];
    bool told, cancelled, ended;
};

/* How far the runs came in an earlier process: one that waits does not come there again. */
static void recall(void)
{
    for (int i = 0; i < my->n; i++) {
        char id[120];
        snprintf(id, sizeof id, "%.100s-%d", my->prefix, i);
        atomic_store(&listens[i], saga_noted(my, id, "-", SAGA_LISTENS) > 0);
        atomic_store(&reached[i], 0);
        for (int no = 1; no <= SAGA_STEPS; no++)
            if (saga_noted(my, id, saga_steps[no].name, SAGA_BEGUN))
                atomic_store(&reached[i], no);
    }
}

static bool passes_by(enum pawl_status st)
{
    return st == PAWL_BUSY || st == PAWL_UNKNOWN;
}

static void submit(struct pawl *p, int i, struct driven *d)
{
    snprintf(d->id, sizeof d->id, "%.100s-%d", my->prefix, i);
    struct pawl_receipt r =
        fixture_offer(p, (struct pawl_spec){ .id = d->id,
                                             .type = "saga",
                                             .key = my->v[i].keyed ? my->prefix : NULL,
                                             .max_attempts = TRIES_MANY,
                                             .max_lost = 1000,
                                             .backoff_base_us = FIXTURE_MS });
    EQ_STATUS(r.status, PAWL_OK, NULL);
}

/* Its signal, and its cancel. Both may come too late. */
static void drive(struct pawl *p, int i, struct driven *d)
{
    const struct saga_plan *plan = &my->v[i];
    struct pawl_err err;
    if (!d->told && plan->end != SAGA_UNTOLD && (plan->early || atomic_load(&listens[i]))) {
        enum pawl_status st = pawl_signal(
            p, d->id, "go", pawl_text(plan->end == SAGA_TOLD ? "false" : "true"), "go", &err);
        d->told = !passes_by(st);
        if (d->told && st != PAWL_STATE)
            OK(st, &err);
    }
    if (!d->cancelled && plan->end == SAGA_CANCELLED && atomic_load(&reached[i]) >= plan->at) {
        enum pawl_status st = i % 2 ? pawl_cancel(p, d->id, NULL, &err)
                                    : pawl_workflow_cancel(p, d->id, 0, NULL, &err);
        d->cancelled = !passes_by(st);
        if (d->cancelled && st != PAWL_STATE)
            OK(st, &err);
    }
}

/* Has the call ended? Waits for a moment. `may_miss`: it may never have been submitted. */
static bool has_ended(struct pawl *p, const char *id, bool may_miss)
{
    struct pawl_shown *shown = NULL;
    struct pawl_err err;
    enum pawl_status st = pawl_get(p, id, 3 * FIXTURE_MS, &shown, &err);
    if (passes_by(st))
        return false;
    if (may_miss && st == PAWL_NOT_FOUND)
        return true;
    OK(st, &err);
    const struct pawl_view *v = pawl_shown_view(shown);
    bool ended = pawl_state_ended(v->state);
    if (v->state == PAWL_COMPLETED && strcmp(v->type, "saga") == 0)
        EQ_INT(strtol(v->result.data, NULL, 10), ALL_RESULTS);
    pawl_shown_free(shown);
    return ended;
}

static void drive_all(struct pawl *p)
{
    struct driven v[SAGA_RUNS_MAX] = { 0 };
    int64_t until_us = fixture_mono() + 2 * FIXTURE_WAIT_US;
    char id[160];
    int left = my->n;
    for (int i = 0; i < my->n; i++)
        submit(p, i, &v[i]);
    while (left) {
        left = 0;
        for (int i = 0; i < my->n; i++)
            if (!v[i].ended)
                drive(p, i, &v[i]);
        for (int i = 0; i < my->n; i++)
            if (!v[i].ended && !(v[i].ended = has_ended(p, v[i].id, false)) && left++ == 0 &&
                fixture_mono() > until_us)
                FAIL("run \"%s\" has not ended", v[i].id);
    }
    for (int i = 0; i < my->n; i++) {
        snprintf(id, sizeof id, "%.119s.part#1", v[i].id);
        UNTIL(has_ended(p, id, true));
        snprintf(id, sizeof id, "%.119s.book.1", v[i].id);
        UNTIL(has_ended(p, id, true));
    }
}

/* ---- The program ----------------------------------------------------------------------------- */

void saga_run(const struct saga_program *s)
{
    struct pawl_err err;
    my = s;
    recall();
    struct pawl *p =
        fixture_open_as(NULL, (struct pawl_options){ .db = s->url,
                                                     .node = s->node ? s->node : "saga",
                                                     .heartbeat_interval_us = s->beat_us,
                                                     .heartbeat_grace_us = s->grace_us });
    fixture_on(p, "saga", saga);
    fixture_on(p, "part", part);
    fixture_on(p, "note", note);
    fixture_start(p, s->slots);
    drive_all(p);
    OK(pawl_stop(p, FIXTURE_WAIT_US, &err), &err);
    pawl_close(p);
}

static pid_t process(const struct saga_program *s, void (*what)(const struct saga_program *s))
{
    fflush(NULL);
    pid_t pid = fork();
    GE_INT(pid, 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm((unsigned)(100 * check_scale()));
    if (s->crash)
        setenv("PAWL_CRASH", s->crash, 1);
    if (s->log)
        setenv("PAWL_CRASH_LOG", s->log, 1);
    what(s);
    _exit(0);
}

pid_t saga_start(const struct saga_program *s)
{
    return process(s, saga_run);
}

static bool killed(int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        FAIL("the program ended with %s %d", WIFEXITED(status) ? "status" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return false;
}

bool saga_killed(pid_t pid)
{
    int status;
    EQ_INT(waitpid(pid, &status, 0), pid);
    return killed(status);
}

bool saga_killed_any(pid_t *out)
{
    int status;
    *out = wait(&status);
    GT_INT(*out, 0);
    return killed(status);
}

static void make(const struct saga_program *s)
{
    static const char *const sql[] = {
        "CREATE TABLE saga_account (id INTEGER NOT NULL PRIMARY KEY, balance BIGINT NOT NULL)",
        "INSERT INTO saga_account VALUES (0, 1000), (1, 1000), (2, 1000), (3, 1000), (4, 1000)",
        ("CREATE TABLE saga_log (run VARCHAR(120) NOT NULL, step VARCHAR(40) NOT NULL, "
         "what VARCHAR(10) NOT NULL, n BIGINT NOT NULL)"),
        "CREATE INDEX saga_log_run ON saga_log (run)"
    };
    struct pawl *p = fixture_open_as(NULL, (struct pawl_options){ .db = s->url, .node = "make" });
    for (size_t i = 0; i < COUNT_OF(sql); i++)
        OK(pawl_prepare(pawl_program(p), sql[i]), NULL);
    pawl_close(p);
}

void saga_make(const char *url)
{
    FALSE(saga_killed(process(&(struct saga_program){ .url = url }, make)));
}
