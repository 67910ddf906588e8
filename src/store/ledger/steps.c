/*
 * steps.c - the steps of a schema: which were applied, which are due, and applying them.
 *
 * The same for every engine, which brings the texts, a way to run one, and the lock under which
 * processes that start together take turns (struct led_steps). What must stay true: a step that was
 * applied is still the one this program knows. Its checksum is stored.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/hook.h"
#include "base/ident.h"
#include "store/ledger/ledger.h"

#ifdef PAWL_TEST
const struct sql_migration *led_steps_newer;
#endif

const struct sql_migration *led_steps_known(const struct led_steps *s)
{
#ifdef PAWL_TEST
    if (led_steps_newer)
        return led_steps_newer;
#endif
    return s->v;
}

int led_steps_wanted(const struct led_steps *s)
{
    int n = 0;
    while (led_steps_known(s)[n].number) {
        n++;
        CHECK(led_steps_known(s)[n - 1].number == n);
    }
    CHECK(n <= LED_STEPS_MAX);
    return n;
}

/* ---- What was applied ------------------------------------------------------------------------ */

/* The sentence begins with the database, and names its file if it is one. */
static enum pawl_status refuse(const struct ledger *c, enum pawl_status st, struct pawl_err *err,
                               const char *fmt, ...) PRINTF_LIKE(4, 5);

static enum pawl_status refuse(const struct ledger *c, enum pawl_status st, struct pawl_err *err,
                               const char *fmt, ...)
{
    char text[sizeof((struct pawl_err *)0)->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return c->path ? err_set(err, st, "database \"%s\": %s", c->path, text)
                   : err_set(err, st, "database: %s", text);
}

static enum pawl_status table_exists(struct ledger *c, const struct led_steps *s, const char *table,
                                     bool *out, struct pawl_err *err)
{
    char joined[SCHEMA_LEN_MAX + 32];
    struct led_params p = { 0 };
    int64_t one = 0;
    snprintf(joined, sizeof joined, "%s_%s", c->schema, table);
    led_text(&p, bytes_of(s->joined ? joined : c->schema));
    if (!s->joined)
        led_text(&p, bytes_of(table));
    enum pawl_status st = led_number(c, SQL_MIGRATION_EXISTS, &p, 0, &one, err);
    *out = one != 0;
    return st;
}

enum pawl_status led_step_checksum(const struct sql_migration *m,
                                   unsigned char out[LED_CHECKSUM_LEN], struct pawl_err *err)
{
    struct bytes halves[] = { bytes_of(m->expand), bytes_of(m->finish) };
    return digest_parts(halves, 2, out) ? PAWL_OK : err_no_memory(err, "a checksum");
}

/* An applied step that we know must be the one we know. Those beyond are a newer program's. */
static enum pawl_status same_step(struct ledger *c, const struct led_steps *s, int number,
                                  struct bytes stored, struct pawl_err *err)
{
    unsigned char ours[LED_CHECKSUM_LEN];
    if (number > led_steps_wanted(s))
        return PAWL_OK;
    const struct sql_migration *m = &led_steps_known(s)[number - 1];
    enum pawl_status st = led_step_checksum(m, ours, err);
    if (st == PAWL_OK && !bytes_eq(stored, (struct bytes){ (char *)ours, sizeof ours }))
        st = refuse(c, PAWL_BROKEN, err,
                    "step %d (%s) of its schema is not the one this program has", number, m->word);
    return st;
}

/* The table has other columns than ours. */
static enum pawl_status taken(struct ledger *c, const char *table, struct pawl_err *err)
{
    if (!err || (strcmp(err->sqlstate, "42703") != 0 && strcmp(err->sqlstate, "42S22") != 0 &&
                 !strstr(err->text, "no such column")))
        return err ? err->status : PAWL_BROKEN;
    return refuse(c, PAWL_BROKEN, err,
                  "table \"%s\" of schema \"%s\" already exists, with other columns", table,
                  c->schema);
}

static enum pawl_status steps_read(struct ledger *c, const struct led_steps *s,
                                   struct led_applied *out, struct pawl_err *err)
{
    struct led_rows *r;
    enum pawl_status st = led_query(c, SQL_MIGRATION_LIST, NULL, &r, err);
    if (st == PAWL_BROKEN)
        return taken(c, "migration", err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        int64_t number = led_get_int(r, i, 0);
        if (number != out->version + 1 || number > LED_STEPS_MAX)
            return refuse(c, PAWL_BROKEN, err, "step %d of its schema is missing",
                          out->version + 1);
        out->version++;
        out->finished[number] = led_get_int(r, i, 2) != 0;
        st = same_step(c, s, (int)number, led_get(r, i, 1), err);
    }
    return st;
}

static enum pawl_status applied_read(struct ledger *c, const struct led_steps *s,
                                     struct led_applied *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    bool there;
    *out = (struct led_applied){ 0 };
    enum pawl_status st = table_exists(c, s, "migration", &there, err);
    if (st == PAWL_OK && there)
        st = steps_read(c, s, out, err);
    if (st == PAWL_OK)
        st = table_exists(c, s, "meta", &there, err);
    if (st != PAWL_OK || !there)
        return st;
    led_text(&p, BYTES("min_version"));
    st = led_number(c, SQL_META_GET, &p, 0, &out->min_version, err);
    return st == PAWL_BROKEN ? taken(c, "meta", err) : st;
}

/* A program that knows less than the database needs is told which one it needs. */
static enum pawl_status steps_fit(struct ledger *c, const struct led_steps *s,
                                  const struct led_applied *had, struct pawl_err *err)
{
    if (had->min_version <= led_steps_wanted(s))
        return PAWL_OK;
    return refuse(c, PAWL_STATE, err,
                  "needs a program that knows schema %lld or later; this one (pawl %s) knows %d",
                  (long long)had->min_version, PAWL_VERSION, led_steps_wanted(s));
}

/* ---- Applying -------------------------------------------------------------------------------- */

static enum pawl_status text_run(struct ledger *c, const struct led_steps *s, const char *text,
                                 struct pawl_err *err)
{
    const char *own = s->own_names(c->schema, &c->scratch, text);
    return own ? s->run(c, own, err) : err_no_memory(err, "a step of the schema");
}

static enum pawl_status step_apply(struct ledger *c, const struct led_steps *s,
                                   const struct sql_migration *m, struct pawl_err *err)
{
    unsigned char sum[LED_CHECKSUM_LEN];
    struct led_params p = { 0 };
    enum pawl_status st = led_step_checksum(m, sum, err);
    if (st == PAWL_OK)
        st = text_run(c, s, m->expand, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.step");
    led_int(&p, m->number);
    led_text(&p, bytes_of(m->word));
    led_blob(&p, (struct bytes){ (char *)sum, sizeof sum });
    led_int(&p, c->now_us);
    led_int(&p, m->finish[0] == 0);
    return led_run(c, SQL_MIGRATION_ADD, &p, NULL, err);
}

static enum pawl_status step_finish(struct ledger *c, const struct led_steps *s,
                                    const struct sql_migration *m, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t rows = 0;
    enum pawl_status st = text_run(c, s, m->finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.finish");
    led_int(&p, m->number);
    st = led_run(c, SQL_MIGRATION_FINISH, &p, &rows, err);
    if (st == PAWL_OK && rows != 1)
        st = refuse(c, PAWL_BROKEN, err, "step %d of its schema is missing", m->number);
    return st;
}

static enum pawl_status steps_apply(struct ledger *c, const struct led_steps *s,
                                    struct led_applied *had, bool finish, struct pawl_err *err)
{
    enum pawl_status st = s->before ? s->before(c, had, err) : PAWL_OK;
    for (int i = 0; i < s->n_first && st == PAWL_OK; i++)
        st = text_run(c, s, s->texts[s->first[i]], err);
    for (const struct sql_migration *m = led_steps_known(s); m->number && st == PAWL_OK; m++) {
        if (m->number > had->version) {
            st = step_apply(c, s, m, err);
            had->finished[m->number] = m->finish[0] == 0;
        }
        if (st == PAWL_OK && finish && !had->finished[m->number])
            st = step_finish(c, s, m, err);
    }
    return st;
}

/* The account that owns the schema applies its steps; one that only runs nodes is told so. */
static enum pawl_status steps_run(struct ledger *c, const struct led_steps *s,
                                  struct led_applied *had, bool finish, struct pawl_err *err)
{
    struct pawl_err own = { 0 };
    enum pawl_status st = steps_apply(c, s, had, finish, &own);
    if (st != PAWL_OK && s->refusal && store_denied(&own)) {
        struct led_refusal r = s->refusal(c);
        return err_set(err, st,
                       "database: schema \"%s\" is at step %d of %d, and %s may not change it "
                       "(%.200s): run pawl migrate up as its owner",
                       c->schema, had->version, led_steps_wanted(s), r.account, r.why);
    }
    if (st != PAWL_OK && err)
        *err = own;
    return st;
}

/* Nothing is due when every step we know is there, and its second half too if that was asked for.
 */
static bool steps_due(const struct led_steps *s, const struct led_applied *had, bool finish)
{
    if (had->version < led_steps_wanted(s))
        return true;
    for (int i = 1; finish && i <= led_steps_wanted(s); i++)
        if (!had->finished[i])
            return true;
    return false;
}

/* ---- Under the lock -------------------------------------------------------------------------- */

/* *out: there is something to commit. */
static enum pawl_status migrate_locked(struct ledger *c, const struct led_steps *s, bool finish,
                                       bool *out, struct pawl_err *err)
{
    struct led_applied had;
    enum pawl_status st = applied_read(c, s, &had, err);
    if (st == PAWL_OK)
        st = steps_fit(c, s, &had, err);
    if (st != PAWL_OK)
        return st;
    finish = finish || had.version == 0; /* no older program uses a new schema */
    bool due = steps_due(s, &had, finish);
    *out = due || s->after;
    if (due) {
        CRASH_POINT("migrate.begin");
        PAUSE_POINT("migrate.begin");
        st = steps_run(c, s, &had, finish, err);
    }
    if (st == PAWL_OK && s->after)
        st = s->after(c, err);
    return st;
}

static enum pawl_status migrate_once(struct ledger *c, const struct led_steps *s, bool finish,
                                     struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    bool changed = false;
    enum pawl_status st = led_begin(c, LED_WRITE, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = s->lock ? s->lock(c, err) : PAWL_OK;
    if (st != PAWL_OK)
        return st;
    st = migrate_locked(c, s, finish, &changed, err);
    if (st == PAWL_OK && changed) {
        CRASH_POINT("migrate.before_commit");
        st = led_commit(TAKE(tx), NULL, err);
    }
    if (s->unlock)
        s->unlock(c);
    if (st == PAWL_OK && changed)
        CRASH_POINT("migrate.after_commit");
    return st;
}

enum pawl_status led_migrate(struct ledger *c, const struct led_steps *s, bool finish,
                             struct pawl_err *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (int i = 0; i < s->tries && st == PAWL_BUSY; i++)
        st = migrate_once(c, s, finish, err);
    return st;
}

enum pawl_status led_finished(struct ledger *c, int step, bool *out, struct pawl_err *err)
{
    CHECK(step > 0 && step <= LED_STEPS_MAX);
    uint64_t *word = &c->finished[step / 64], bit = UINT64_C(1) << step % 64;
    struct led_params p = { 0 };
    int64_t finished = 0;
    *out = *word & bit;
    if (*out)
        return PAWL_OK;
    led_int(&p, step);
    enum pawl_status st = led_number(c, SQL_MIGRATION_FINISHED, &p, 0, &finished, err);
    *out = st == PAWL_OK && finished;
    if (*out)
        *word |= bit;
    return st;
}

enum pawl_status led_schema(struct ledger *c, const struct led_steps *s, struct schema *out,
                            struct pawl_err *err)
{
    struct led_applied had;
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = applied_read(c, s, &had, err);
    if (st != PAWL_OK)
        return st;
    int wanted = led_steps_wanted(s);
    *out = (struct schema){ .version = had.version,
                            .wanted = wanted,
                            .min_version = (int)had.min_version };
    for (int i = 1; i <= MIN(had.version, wanted); i++)
        if (!had.finished[i])
            out->finish_due = true;
    return PAWL_OK;
}

enum pawl_status led_grantable(struct ledger *c, struct pawl_err *err)
{
    struct schema has;
    enum pawl_status st = store_schema(&c->base, &has, err);
    if (st != PAWL_OK)
        return st;
    if (has.version == 0)
        return err_set(err, PAWL_STATE,
                       "database: it has no schema \"%s\" that this account can see: run pawl "
                       "migrate up as its owner first",
                       c->schema);
    if (has.version < has.wanted)
        return err_set(err, PAWL_STATE,
                       "database: schema \"%s\" has version %d, and the grants are for version "
                       "%d: run pawl migrate up as its owner first",
                       c->schema, has.version, has.wanted);
    return store_fits(&c->base, err);
}
