/*
 * saga_check.c - what must be true of the runs of a saga program when they have ended
 * (saga_fixture.h).
 *
 * It is read from the database, without Pawl; only what happened outside of it is read from the
 * file of that world.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "saga_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "feature/workflow.h"
#include "model/workflow.h"

enum { ROWS_MAX = 1000, WORDS_MAX = 8 };
enum { START = 1000 };
/* Stored numbers, which doc/internals/workflows.md and the migration explain. */
enum { SHOWN_COMPLETED = 3, SHOWN_FAILED = 4, SHOWN_CANCELLED = 5, SHOWN_UNDONE = 6 };
enum { UNDO_CAN = 1, UNDO_WAS = 2 };

/* ---- Reading --------------------------------------------------------------------------------- */

/* The rows of one query, each split into its columns. */
struct rows {
    char *text; /* owned */
    char *v[ROWS_MAX][WORDS_MAX];
    int n;
};

static void read_rows(const struct saga_program *s, const char *sql, struct rows *out)
{
    out->n = 0;
    out->text = strdup(engine_rows(s->url, sql));
    TRUE(out->text != NULL);
    for (char *at = out->text, *line; (line = strsep(&at, "\n")) && *line; out->n++) {
        LT_INT(out->n, ROWS_MAX);
        for (int k = 0; k < WORDS_MAX; k++)
            out->v[out->n][k] = strsep(&line, "\t");
    }
}

/* Those of the program: `before` ends with the name of the column that has the id of a run. */
static void read_mine(const struct saga_program *s, const char *before, const char *after,
                      struct rows *out)
{
    char sql[1000];
    snprintf(sql, sizeof sql, "%s LIKE '%s-%%' ORDER BY %s", before, s->prefix, after);
    read_rows(s, sql, out);
}

static int64_t number(const char *word)
{
    char *rest;
    int64_t n = strtoll(word, &rest, 10);
    TRUE(rest != word && !*rest);
    return n;
}

/* All of a program. */
struct all {
    const struct saga_program *s;
    struct rows ends, steps, log, shown;
};

enum { END_ID, END_STATUS, END_SHOWN, END_COMPENSATION };
static void read_ends(const struct saga_program *s, struct rows *out)
{
    read_mine(
        s,
        "SELECT i.id, coalesce(o.status, 0), coalesce(w.shown, 0), "
        "coalesce(w.compensation, 0) FROM pawl_id i LEFT JOIN pawl_outcome o ON o.seq = i.seq "
        "LEFT JOIN pawl_workflow w ON w.seq = i.seq WHERE i.id",
        "i.seq", out);
}

enum { STEP_ID, STEP_NO, STEP_NAME, STEP_KIND, STEP_STATUS, STEP_UNDOS, STEP_DONE_AT, STEP_NODE };
static void read_steps(const struct saga_program *s, struct rows *out)
{
    read_mine(s,
              "SELECT i.id, s.no, s.name, s.kind, s.status, s.undos, coalesce(s.completed_at, 0), "
              "s.node FROM pawl_step s JOIN pawl_id i ON i.seq = s.seq WHERE i.id",
              "s.seq, s.no", out);
}

enum { LOG_RUN, LOG_STEP, LOG_WHAT, LOG_N };
static void read_log(const struct saga_program *s, struct rows *out)
{
    read_mine(s, "SELECT run, step, what, n FROM saga_log WHERE run", "run, n, step, what", out);
}

enum { VIEW_ID, VIEW_STATUS, VIEW_COMPENSATION };
static void read_view(const struct saga_program *s, struct rows *out)
{
    read_mine(s,
              "SELECT id, status, coalesce(compensation_status, '') FROM pawl_workflow_runs "
              "WHERE id",
              "id", out);
}

const char *saga_rows(const struct saga_program *s)
{
    static char *out;
    struct rows steps, log;
    char *at;
    size_t size;
    free(out);
    FILE *f = open_memstream(&at, &size);
    TRUE(f != NULL);
    read_steps(s, &steps);
    read_log(s, &log);
    for (int i = 0; i < steps.n; i++)
        fprintf(f, "%s %s %s %s %s %s %s %s\n", steps.v[i][0], steps.v[i][1], steps.v[i][2],
                steps.v[i][3], steps.v[i][4], steps.v[i][5], steps.v[i][6], steps.v[i][7]);
    for (int i = 0; i < log.n; i++)
        fprintf(f, "%s %s %s %s\n", log.v[i][0], log.v[i][1], log.v[i][2], log.v[i][3]);
    fclose(f);
    free(steps.text);
    free(log.text);
    return out = at;
}

/* ---- One run --------------------------------------------------------------------------------- */

struct run {
    const struct all *all;
    const struct saga_plan *plan;
    char id[120];
    int64_t status, shown, compensation; /* status 0: it has not ended */
    int kills;
};

/* Assert that what is told of a step of the run is as it should be. */
#define STEP_IS(r, step, got, want)                                                                \
    do {                                                                                           \
        int64_t got_ = (got), want_ = (want);                                                      \
        if (got_ != want_)                                                                         \
            FAIL("%s, step \"%s\": %s is %lld, not %lld", (r)->id, step, #got, (long long)got_,    \
                 (long long)want_);                                                                \
    } while (0)

/* The first row of these with this id and this name. NULL: there is none. */
static char **row_of(struct rows *rows, const char *id, const char *name)
{
    for (int i = 0; i < rows->n; i++)
        if (!strcmp(rows->v[i][0], id) && (!name || !strcmp(rows->v[i][STEP_NAME], name)))
            return rows->v[i];
    return NULL;
}

static char **step_row(const struct run *r, const char *name)
{
    return row_of((struct rows *)&r->all->steps, r->id, name);
}

static int64_t step_status(const struct run *r, int no)
{
    char **row = step_row(r, saga_steps[no].name);
    return row ? number(row[STEP_STATUS]) : 0;
}

/* How many rows of the log say this. */
static int logged(const struct all *all, const char *id, const char *step, const char *what)
{
    int n = 0;
    for (int i = 0; i < all->log.n; i++)
        n += !strcmp(all->log.v[i][LOG_RUN], id) && !strcmp(all->log.v[i][LOG_STEP], step) &&
             (!what || !strcmp(all->log.v[i][LOG_WHAT], what));
    return n;
}

static int noted(const struct run *r, const char *step, const char *what)
{
    return saga_noted(r->all->s, r->id, step, what);
}

/* May this step have happened, although no result of it is stored? */
static bool in_doubt(const struct run *r, int no)
{
    int64_t status = step_status(r, no);
    return status == STEP_BEGUN || status == STEP_RETRYING || status == STEP_FAILED;
}

/* An undo was told that it is unknown whether this step has happened. That is true only of the
 * first step without a result, and only if a try of it is known to have gone wrong, or a pass was
 * cut off. */
static void check_unknown(const struct run *r, int no)
{
    const char *name = saga_steps[no].name;
    bool cut = noted(r, "-", SAGA_PASS) > noted(r, "-", SAGA_LEFT);
    TRUE(saga_steps[no].undo);
    for (int k = 1; k < no; k++)
        EQ_INT(step_status(r, k), STEP_COMPLETED);
    for (int k = no + 1; k <= SAGA_STEPS; k++)
        EQ_INT(step_status(r, k), 0);
    if (!in_doubt(r, no) &&
        !(step_status(r, no) == 0 && (noted(r, name, SAGA_BEGUN) || (cut && r->kills))))
        FAIL("%s: step \"%s\" was undone as unknown, and nothing was cut off in it", r->id, name);
}

/* What became of a step of a run that did not complete. */
static void check_undone(const struct run *r, int no)
{
    const struct saga_step *s = &saga_steps[no];
    char **row = step_row(r, s->name);
    bool done = step_status(r, no) == STEP_COMPLETED;
    bool refused = step_status(r, no) == STEP_REFUSED;
    int unknown = logged(r->all, r->id, s->name, "unknown");
    STEP_IS(r, s->name, logged(r->all, r->id, s->name, "undo"), done && s->undo);
    if (done)
        STEP_IS(r, s->name, number(row[STEP_UNDOS]), s->undo ? UNDO_CAN | UNDO_WAS : 0);
    if (done || refused || !s->undo)
        STEP_IS(r, s->name, unknown, 0);
    else if (in_doubt(r, no) || noted(r, s->name, SAGA_DID))
        STEP_IS(r, s->name, unknown, 1);
    if (unknown)
        check_unknown(r, no);
    if (s->outside)
        STEP_IS(r, s->name, noted(r, s->name, SAGA_UNDID), noted(r, s->name, SAGA_DID) > 0);
}

static void check_step(const struct run *r, int no)
{
    const struct saga_step *s = &saga_steps[no];
    bool done = step_status(r, no) == STEP_COMPLETED;
    STEP_IS(r, s->name, logged(r->all, r->id, s->name, "do"), done && s->sql);
    if (done)
        STEP_IS(r, s->name, noted(r, s->name, SAGA_BEGUN) > 0, true);
    if (done && s->outside)
        STEP_IS(r, s->name, noted(r, s->name, SAGA_DID) > 0, true);
    if (r->status != PAWL_COMPLETED) {
        check_undone(r, no);
        return;
    }
    STEP_IS(r, s->name, done, true);
    STEP_IS(r, s->name, logged(r->all, r->id, s->name, NULL), s->sql);
    STEP_IS(r, s->name, noted(r, s->name, SAGA_KNOWN) + noted(r, s->name, SAGA_UNKNOWN), 0);
}

/* Each step ended later than the one before it. */
static void check_times(const struct run *r)
{
    int64_t last = 0;
    for (int i = 0; i < r->all->steps.n; i++) {
        char *const *row = r->all->steps.v[i];
        int64_t at = number(row[STEP_DONE_AT]);
        if (strcmp(row[STEP_ID], r->id) || !at)
            continue;
        GT_INT(at, last);
        last = at;
    }
}

/* What was in doubt is undone first, then what has completed: the last one first. Rows of the log
 * are in the order in which they were written, and each is one transaction. */
static void check_order(const struct run *r)
{
    int64_t last = INT64_MAX, n = 0;
    bool unknown = false, undone = false;
    for (int i = 0; i < r->all->log.n; i++) {
        char *const *row = r->all->log.v[i];
        if (strcmp(row[LOG_RUN], r->id))
            continue;
        EQ_INT(number(row[LOG_N]), n++);
        if (strcmp(row[LOG_WHAT], "unknown") == 0) {
            FALSE(unknown || undone);
            unknown = true;
        }
        if (strcmp(row[LOG_WHAT], "do") == 0)
            FALSE(unknown || undone);
        if (strcmp(row[LOG_WHAT], "undo"))
            continue;
        int64_t at = number(step_row(r, row[LOG_STEP])[STEP_DONE_AT]);
        LT_INT(at, last);
        last = at;
        undone = true;
    }
}

/* Every undo is a step of its own that has completed, and each has its row in the log. */
static void check_undo_rows(const struct run *r)
{
    for (int i = 0; i < r->all->steps.n; i++) {
        char *const *row = r->all->steps.v[i];
        if (strcmp(row[STEP_ID], r->id) || number(row[STEP_KIND]) != STEP_UNDO)
            continue;
        const char *of = row[STEP_NAME] + strlen("undo:");
        EQ_INT(number(row[STEP_STATUS]), STEP_COMPLETED);
        EQ_INT(logged(r->all, r->id, of, "undo") + logged(r->all, r->id, of, "unknown"), 1);
    }
}

/* ---- How it ended ---------------------------------------------------------------------------- */

/* Did it end as its plan says? A cancel may come too late. */
static void check_end(const struct run *r)
{
    enum saga_end end = r->plan->end;
    bool completes = end == SAGA_COMPLETES;
    bool as_planned = end == SAGA_CANCELLED
                          ? r->status == PAWL_CANCELLED || r->status == PAWL_COMPLETED
                          : r->status == (completes ? PAWL_COMPLETED : PAWL_FAILED);
    if (!as_planned)
        FAIL("%s is %s; its plan is %d at %d", r->id, pawl_state_name((enum pawl_state)r->status),
             (int)end, r->plan->at);
    if (end == SAGA_REFUSED || end == SAGA_FAILS || end == SAGA_LATE) {
        EQ_INT(step_status(r, r->plan->at), end == SAGA_REFUSED ? STEP_REFUSED : STEP_FAILED);
        for (int k = r->plan->at + 1; k <= SAGA_STEPS; k++)
            EQ_INT(step_status(r, k), 0);
    }
    if (end == SAGA_DECLINED)
        EQ_INT(step_status(r, r->plan->at), STEP_COMPLETED);
}

static void check_shown(const struct run *r)
{
    static const char *const words[] = { [SHOWN_COMPLETED] = "completed",
                                         [SHOWN_FAILED] = "failed",
                                         [SHOWN_CANCELLED] = "cancelled",
                                         [SHOWN_UNDONE] = "compensated" };
    bool undone = false;
    for (int no = 1; no <= SAGA_STEPS; no++)
        undone = undone || logged(r->all, r->id, saga_steps[no].name, "undo") ||
                 logged(r->all, r->id, saga_steps[no].name, "unknown");
    int64_t want = r->status == PAWL_COMPLETED ? SHOWN_COMPLETED
                   : undone                    ? SHOWN_UNDONE
                   : r->status == PAWL_FAILED  ? SHOWN_FAILED
                                               : SHOWN_CANCELLED;
    char **row = NULL;
    for (int i = 0; i < r->all->shown.n; i++)
        if (!strcmp(r->all->shown.v[i][VIEW_ID], r->id))
            row = (char **)r->all->shown.v[i];
    /* A run that was cancelled before it took a step has nothing to show but the cancel. */
    if (!step_row(r, NULL) && r->status == PAWL_CANCELLED && !row)
        return;
    EQ_INT(r->shown, want);
    EQ_INT(r->compensation, undone ? UNDO_DONE : UNDO_NONE);
    TRUE(row != NULL);
    EQ_STR(row[VIEW_STATUS], words[want]);
    EQ_STR(row[VIEW_COMPENSATION], undone ? "compensated" : "");
}

/* A call that the run has made. Its effect is there once, or not at all if it was cancelled. */
static void check_made(const struct run *r, const char *suffix, const char *step, bool is_made,
                       bool may_be_cancelled)
{
    char id[160];
    snprintf(id, sizeof id, "%.120s.%s", r->id, suffix);
    char **row = row_of((struct rows *)&r->all->ends, id, NULL);
    EQ_INT(row != NULL, is_made);
    if (!row)
        return;
    int64_t status = number(row[END_STATUS]);
    if (status != PAWL_COMPLETED)
        TRUE(may_be_cancelled && status == PAWL_CANCELLED);
    EQ_INT(logged(r->all, id, step, "do"), status == PAWL_COMPLETED);
    EQ_INT(logged(r->all, id, step, NULL), status == PAWL_COMPLETED);
}

static void check_saga(const struct all *all, int i, int kills)
{
    struct run r = { .all = all, .plan = &all->s->v[i], .kills = kills };
    snprintf(r.id, sizeof r.id, "%s-%d", all->s->prefix, i);
    char **row = row_of((struct rows *)&all->ends, r.id, NULL);
    if (!row)
        FAIL("run \"%s\" is not there", r.id);
    r.status = number(row[END_STATUS]);
    r.shown = number(row[END_SHOWN]);
    r.compensation = number(row[END_COMPENSATION]);
    check_end(&r);
    for (int no = 1; no <= SAGA_STEPS; no++)
        check_step(&r, no);
    check_times(&r);
    check_order(&r);
    check_undo_rows(&r);
    check_shown(&r);
    char **part = step_row(&r, "part");
    check_made(&r, "part#1", "part", part && number(part[STEP_STATUS]) == STEP_COMPLETED,
               r.status != PAWL_COMPLETED);
    check_made(&r, "book.1", "note", step_status(&r, 9) == STEP_COMPLETED, false);
}

/* ---- Money ----------------------------------------------------------------------------------- */

static int step_no(const char *name)
{
    for (int no = 1; no <= SAGA_STEPS; no++)
        if (!strcmp(saga_steps[no].name, name))
            return no;
    return strcmp(name, "part") ? 0 : SAGA_STEPS + 1;
}

/* Every balance is the sum of what the log says, over all programs so far. */
static void check_money(const struct all *all)
{
    static int64_t balance[SAGA_ACCOUNTS];
    struct rows rows;
    int64_t sum = 0;
    for (int i = 0; i < all->log.n; i++) {
        const char *what = all->log.v[i][LOG_WHAT];
        int no = step_no(all->log.v[i][LOG_STEP]);
        bool moves = no > SAGA_STEPS || (no > 0 && saga_steps[no].sql);
        int64_t n = no > SAGA_STEPS ? 1 : no;
        n = !moves || !strcmp(what, "unknown") ? 0 : strcmp(what, "undo") ? n : -n;
        balance[no % SAGA_ACCOUNTS] -= n;
        balance[(no + 2) % SAGA_ACCOUNTS] += n;
    }
    read_rows(all->s, "SELECT id, balance FROM saga_account ORDER BY id", &rows);
    EQ_INT(rows.n, SAGA_ACCOUNTS);
    for (int i = 0; i < rows.n; i++) {
        EQ_INT(number(rows.v[i][1]), START + balance[i]);
        sum += number(rows.v[i][1]);
    }
    EQ_INT(sum, START * SAGA_ACCOUNTS);
    free(rows.text);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void check_nothing_left(const struct saga_program *s)
{
    static const char *const empty[] = { "lease", "ready", "line", "cancel", "expiry" };
    char sql[100];
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM pawl_%s", empty[i]);
        EQ_INT(engine_int(s->url, sql), 0);
    }
    EQ_INT(engine_int(s->url, "SELECT COUNT(*) FROM pawl_key WHERE state <> 0"), 0);
}

void saga_check(const struct saga_program *s, int kills)
{
    struct all *all = calloc(1, sizeof *all);
    TRUE(all != NULL);
    all->s = s;
    read_ends(s, &all->ends);
    read_steps(s, &all->steps);
    read_log(s, &all->log);
    read_view(s, &all->shown);
    for (int i = 0; i < all->ends.n; i++)
        if (number(all->ends.v[i][END_STATUS]) == 0)
            FAIL("call \"%s\" has not ended", all->ends.v[i][END_ID]);
    for (int i = 0; i < s->n; i++)
        check_saga(all, i, kills);
    check_money(all);
    check_nothing_left(s);
    free(all->ends.text);
    free(all->steps.text);
    free(all->log.text);
    free(all->shown.text);
    free(all);
}
