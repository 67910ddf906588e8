/*
 * numbers.c - numbers of calls and versions of objects, from the server's AUTO_INCREMENT counters.
 *
 * A counter gives numbers in the order of the requests of all connections, and no request waits for
 * another transaction's commit: that is the order that calls are promised. But it belongs to one
 * server. Its rows are rolled back, so a replica sees none of them, and its own counter
 * stands at 1 when it is promoted. What replicas see is a row of pawl_reserve, and two rules make
 * it enough:
 *
 * 1. Before a number is used, a row that says it is reserved has been committed, in a transaction
 *    of its own. So that row comes before the use in every replica's log.
 * 2. The first number that a connection uses is above what that row says on its server: the counter
 *    is raised past it. On the server that made the row this skips what was reserved and not used.
 *
 * So every number that a promoted replica gives is above every number in its tables. Ranges kept in
 * memory would cost less, and would break the order: a node with an old range would number a later
 * call below an earlier one of another node's.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/mysql/mydb.h"

/* Numbers reserved at a time: a commit for so many. A connection that uses many reserves more each
 * time; one that uses few wastes few when it ends. */
#define RESERVE_FIRST 10000
#ifdef PAWL_TEST
int64_t mydb_reserve_first = RESERVE_FIRST;
#else
static const int64_t mydb_reserve_first = RESERVE_FIRST;
#endif
#define RESERVE_MOST 160000
/* A commit that takes longer waits for a standby: then the transaction is repeated. */
#define IDLE_US (500 * MS_US)
/* A counter that gives lower numbers than before is another server's, behind the same connection:
 * the reserve is read again. */
#define DRAW_TRIES 3

static const struct {
    const char *name;
    enum sql_name next, upto, above;
} counters[MYDB_COUNTERS] = {
    [MYDB_SEQ] = { "seq", SQL_SEQ_NEXT, SQL_SEQ_UPTO, SQL_SEQ_ABOVE },
    [MYDB_VERSION] = { "version", SQL_VERSION_NEXT, SQL_VERSION_UPTO, SQL_VERSION_ABOVE },
};

/* Rule 2. */
static enum pawl_status get_above(struct ledger *l, int which, struct pawl_err *err)
{
    struct mydb_counter *k = &mydb_of(l)->counters[which];
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    enum pawl_status st = mydb_ask(l, counters[which].upto, NULL, &r, NULL, err);
    if (st != PAWL_OK)
        return st;
    CHECK(r->n == 1 && r->columns == 1);
    int64_t upto = led_get_int(r, 0, 0);
    led_int(&p, upto);
    if (upto) /* 0: nothing was reserved yet */
        st = mydb_ask(l, counters[which].above, &p, NULL, NULL, err);
    if (st == PAWL_OK)
        *k = (struct mydb_counter){
            .known = true, .upto = upto, .last = upto, .step = MAX(k->step, mydb_reserve_first)
        };
    return st;
}

/* Rule 1: numbers up to `last` are about to be used. */
static enum pawl_status reserve(struct ledger *l, int which, int64_t last, struct pawl_err *err)
{
    struct mydb_counter *k = &mydb_of(l)->counters[which];
    struct led_params p = { 0 };
    int64_t upto = last + k->step, began_us = world_mono(&world_real);
    led_text(&p, bytes_of(counters[which].name));
    led_int(&p, upto);
    store_commits(&l->base, true);
    enum pawl_status st = mydb_aside(mydb_of(l), SQL_RESERVE_RAISE, &p, err);
    store_commits(&l->base, false);
    if (st != PAWL_OK)
        return st;
    CHECK(upto >= last && upto > k->upto); /* what is reserved only grows */
    k->upto = upto;
    k->step = MIN(k->step * 2, RESERVE_MOST);
    /* The transaction was idle during that commit, so the server may have ended it. */
    bool idle = world_mono(&world_real) - began_us > IDLE_US;
    /* A repetition skips the numbers: not in tests that count them. */
    return idle && mydb_reserve_first ? led_again(l, "numbers", err) : PAWL_OK;
}

/* n numbers from the counter: the first, and how far each is from the one before, which is not 1
 * where several servers share them out (Galera). */
static enum pawl_status draw_once(struct ledger *l, int which, size_t n, int64_t *first,
                                  int64_t *step, struct pawl_err *err)
{
    struct led_params p = { 0 };
    struct led_column kept;
    struct led_rows *r;
    led_column_init(&kept, &l->scratch, LED_INTS);
    for (size_t i = 0; i < n; i++)
        led_add_int(&kept, i == 0);
    led_column(&p, &kept);
    enum pawl_status st = mydb_ask(l, counters[which].next, &p, &r, NULL, err);
    if (st != PAWL_OK)
        return st;
    CHECK(r->n == 1 && r->columns == 2);
    *first = led_get_int(r, 0, 0);
    *step = led_get_int(r, 0, 1);
    return PAWL_OK;
}

static enum pawl_status draw(struct ledger *l, int which, size_t n, int64_t *first, int64_t *step,
                             struct pawl_err *err)
{
    struct mydb_counter *k = &mydb_of(l)->counters[which];
    for (int i = 0; i < DRAW_TRIES; i++) {
        enum pawl_status st = k->known ? PAWL_OK : get_above(l, which, err);
        if (st == PAWL_OK)
            st = draw_once(l, which, n, first, step, err);
        if (st != PAWL_OK)
            return st;
        int64_t last = *first + (int64_t)(n - 1) * *step;
        if (*step < 1 || *first <= k->last) {
            k->known = false;
            continue;
        }
        k->last = last;
        return last <= k->upto ? PAWL_OK : reserve(l, which, last, err);
    }
    return err_set(err, PAWL_BROKEN, "database: the counter \"%s\" gives numbers below %lld",
                   counters[which].name, (long long)k->last);
}

enum pawl_status mydb_numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err)
{
    int64_t first = 0, step = 1;
    enum pawl_status st = n ? draw(l, MYDB_SEQ, n, &first, &step, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        out[i] = first + (int64_t)i * step;
    return st;
}

/* The statement asks for n rows, which the SQL of these servers cannot generate from a number. */
enum pawl_status mydb_versions(struct ledger *l, const struct led_params *p, struct led_rows **out,
                               struct pawl_err *err)
{
    size_t n = (size_t)p->v[0].i;
    int64_t first = 0, step = 1;
    struct led_rows *r = arena_zalloc(&l->scratch, 1, sizeof *r);
    struct led_cell *v = arena_zalloc(&l->scratch, MAX(n, 1), sizeof *v);
    if (!r || !v)
        return err_no_memory(err, "versions");
    enum pawl_status st = n ? draw(l, MYDB_VERSION, n, &first, &step, err) : PAWL_OK;
    for (size_t i = 0; st == PAWL_OK && i < n; i++)
        v[i] = (struct led_cell){ .b = BYTES(""), .i = first + (int64_t)i * step };
    *r = (struct led_rows){ .n = (int)n, .columns = 1, .v = v };
    *out = r;
    return st;
}
