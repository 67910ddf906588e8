/*
 * steps.c - the steps of a schema: which were applied, which are due, and applying them.
 *
 * The same on every server; an engine brings their texts and a way to run one, and takes the lock
 * under which processes that start together take turns. A step that was applied must still be the
 * one we know: its checksum is kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/hook.h"
#include "base/ident.h"
#include "store/ledger/ledger.h"

#define CHECKSUM_LEN 32

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
    while (led_steps_known(s)[n].number)
        n++;
    return n;
}

/* ---- What was applied ------------------------------------------------------------------------ */

static enum pawl_status table_exists(struct ledger *c, const char *table, bool *out,
                                     struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t one = 0;
    led_text(&p, bytes_of(c->schema));
    led_text(&p, bytes_of(table));
    enum pawl_status st = led_number(c, SQL_MIGRATION_EXISTS, &p, 0, &one, err);
    *out = one != 0;
    return st;
}

static enum pawl_status checksum(const struct sql_migration *m, unsigned char out[CHECKSUM_LEN],
                                 struct pawl_err *err)
{
    struct bytes halves[] = { bytes_of(m->expand), bytes_of(m->finish) };
    return digest_parts(halves, 2, out) ? PAWL_OK : err_no_memory(err, "a checksum");
}

/* An applied step that we know must be the one we know. Those beyond are a newer program's. */
static enum pawl_status same_step(const struct led_steps *s, int number, struct bytes stored,
                                  struct pawl_err *err)
{
    unsigned char ours[CHECKSUM_LEN];
    if (number > led_steps_wanted(s))
        return PAWL_OK;
    const struct sql_migration *m = &led_steps_known(s)[number - 1];
    enum pawl_status st = checksum(m, ours, err);
    if (st == PAWL_OK && !bytes_eq(stored, (struct bytes){ (char *)ours, sizeof ours }))
        st = err_set(err, PAWL_BROKEN,
                     "database: step %d (%s) of its schema is not the one this program has", number,
                     m->word);
    return st;
}

/* The table has other columns than ours. */
static enum pawl_status taken(struct ledger *c, const char *table, struct pawl_err *err)
{
    if (!err || (strcmp(err->sqlstate, "42703") != 0 && strcmp(err->sqlstate, "42S22") != 0 &&
                 !strstr(err->text, "no such column")))
        return err ? err->status : PAWL_BROKEN;
    return err_set(err, PAWL_BROKEN,
                   "database: table \"%s\" of schema \"%s\" already exists, with other columns",
                   table, c->schema);
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
            return err_set(err, PAWL_BROKEN, "database: step %d of its schema is missing",
                           out->version + 1);
        out->version++;
        out->finished[number] = led_get_int(r, i, 2) != 0;
        st = same_step(s, (int)number, led_get(r, i, 1), err);
    }
    return st;
}

enum pawl_status led_applied_read(struct ledger *c, const struct led_steps *s,
                                  struct led_applied *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    bool there;
    *out = (struct led_applied){ 0 };
    enum pawl_status st = table_exists(c, "migration", &there, err);
    if (st == PAWL_OK && there)
        st = steps_read(c, s, out, err);
    if (st == PAWL_OK)
        st = table_exists(c, "meta", &there, err);
    if (st != PAWL_OK || !there)
        return st;
    led_text(&p, BYTES("min_version"));
    st = led_number(c, SQL_META_GET, &p, 0, &out->min_version, err);
    return st == PAWL_BROKEN ? taken(c, "meta", err) : st;
}

/* A program that knows less than the database needs is told which one it needs. */
enum pawl_status led_steps_fit(const struct led_steps *s, const struct led_applied *had,
                               struct pawl_err *err)
{
    if (had->min_version <= led_steps_wanted(s))
        return PAWL_OK;
    return err_set(
        err, PAWL_STATE,
        "database: needs a program that knows schema %lld or later; this one (pawl %s) knows %d",
        (long long)had->min_version, PAWL_VERSION, led_steps_wanted(s));
}

/* ---- Applying -------------------------------------------------------------------------------- */

static enum pawl_status step_apply(struct ledger *c, const struct led_steps *s,
                                   const struct sql_migration *m, struct pawl_err *err)
{
    unsigned char sum[CHECKSUM_LEN];
    struct led_params p = { 0 };
    enum pawl_status st = checksum(m, sum, err);
    if (st == PAWL_OK)
        st = s->script(c, m->expand, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.step");
    led_int(&p, m->number);
    led_text(&p, bytes_of(m->word));
    led_text(&p, (struct bytes){ (char *)sum, sizeof sum });
    led_int(&p, c->now_us);
    led_int(&p, m->finish[0] == 0);
    return led_run(c, SQL_MIGRATION_ADD, &p, NULL, err);
}

static enum pawl_status step_finish(struct ledger *c, const struct led_steps *s,
                                    const struct sql_migration *m, struct pawl_err *err)
{
    struct led_params p = { 0 };
    enum pawl_status st = s->script(c, m->finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.finish");
    led_int(&p, m->number);
    return led_run(c, SQL_MIGRATION_FINISH, &p, NULL, err);
}

enum pawl_status led_steps_run(struct ledger *c, const struct led_steps *s, struct led_applied *had,
                               bool finish, struct pawl_err *err)
{
    enum pawl_status st = PAWL_OK;
    for (int i = 0; i < s->n_first && st == PAWL_OK; i++)
        st = s->script(c, s->texts[s->first[i]], err);
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

bool led_steps_due(const struct led_steps *s, const struct led_applied *had, bool finish)
{
    if (had->version < led_steps_wanted(s))
        return true;
    for (int i = 1; finish && i <= led_steps_wanted(s); i++)
        if (!had->finished[i])
            return true;
    return false;
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
    st = led_applied_read(c, s, &had, err);
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
