/*
 * migrate.c - bringing the schema up to date, a step at a time, all of it in one transaction.
 *
 * DDL is transactional here, so a step is there whole or not at all, and an advisory lock lets two
 * processes that start together take turns: the second finds everything done. A step that was
 * applied must still be the one we know: its checksum is kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/hook.h"
#include "base/ident.h"
#include "store/pg/pg.h"

/* Another process may be migrating: each try waits for lock_timeout. */
#define MIGRATE_TRIES 300
#define CHECKSUM_LEN 32
#define STEPS_MAX 1000

/* What the database says of itself. */
struct applied {
    int version;
    int64_t min_version;
    bool finished[STEPS_MAX + 1];
};

static int wanted(void)
{
    int n = 0;
    while (sql_pg_migrations[n].number)
        n++;
    return n;
}

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
static enum pawl_status same_step(int number, struct bytes stored, struct pawl_err *err)
{
    unsigned char ours[CHECKSUM_LEN];
    if (number > wanted())
        return PAWL_OK;
    const struct sql_migration *m = &sql_pg_migrations[number - 1];
    enum pawl_status st = checksum(m, ours, err);
    if (st == PAWL_OK && !bytes_eq(stored, (struct bytes){ (char *)ours, sizeof ours }))
        st = err_set(err, PAWL_BROKEN,
                     "database: step %d (%s) of its schema is not the one this program has", number,
                     m->word);
    return st;
}

static enum pawl_status steps_read(struct ledger *c, struct applied *out, struct pawl_err *err)
{
    struct led_rows *r;
    enum pawl_status st = led_query(c, SQL_MIGRATION_LIST, NULL, &r, err);
    for (int i = 0; st == PAWL_OK && i < r->n; i++) {
        int64_t number = led_get_int(r, i, 0);
        if (number != out->version + 1 || number > STEPS_MAX)
            return err_set(err, PAWL_BROKEN, "database: step %d of its schema is missing",
                           out->version + 1);
        out->version++;
        out->finished[number] = led_get_int(r, i, 2) != 0;
        st = same_step((int)number, led_get(r, i, 1), err);
    }
    return st;
}

static enum pawl_status applied_read(struct ledger *c, struct applied *out, struct pawl_err *err)
{
    struct led_params p = { 0 };
    bool there;
    *out = (struct applied){ 0 };
    enum pawl_status st = table_exists(c, "migration", &there, err);
    if (st == PAWL_OK && there)
        st = steps_read(c, out, err);
    if (st == PAWL_OK)
        st = table_exists(c, "meta", &there, err);
    led_text(&p, BYTES("min_version"));
    if (st == PAWL_OK && there)
        st = led_number(c, SQL_META_GET, &p, 0, &out->min_version, err);
    return st;
}

static enum pawl_status script(struct ledger *c, const char *text, struct pawl_err *err)
{
    char *own = pg_own_names(pg_of(c), &c->scratch, text);
    return own ? pg_plain(c, own, err) : err_no_memory(err, "a step of the schema");
}

static enum pawl_status step_apply(struct ledger *c, const struct sql_migration *m,
                                   struct pawl_err *err)
{
    unsigned char sum[CHECKSUM_LEN];
    struct led_params p = { 0 };
    enum pawl_status st = checksum(m, sum, err);
    if (st == PAWL_OK)
        st = script(c, m->expand, err);
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

static enum pawl_status step_finish(struct ledger *c, const struct sql_migration *m,
                                    struct pawl_err *err)
{
    struct led_params p = { 0 };
    enum pawl_status st = script(c, m->finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.finish");
    led_int(&p, m->number);
    return led_run(c, SQL_MIGRATION_FINISH, &p, NULL, err);
}

static enum pawl_status steps_run(struct ledger *c, struct applied *had, bool finish,
                                  struct pawl_err *err)
{
    enum pawl_status st = script(c, sql_pg[SQL_MIGRATION_SCHEMA], err);
    if (st == PAWL_OK)
        st = script(c, sql_pg[SQL_MIGRATION_TABLE], err);
    for (const struct sql_migration *m = sql_pg_migrations; m->number && st == PAWL_OK; m++) {
        if (m->number > had->version) {
            st = step_apply(c, m, err);
            had->finished[m->number] = m->finish[0] == 0;
        }
        if (st == PAWL_OK && finish && !had->finished[m->number])
            st = step_finish(c, m, err);
    }
    return st;
}

/* Nothing is due when every step we know is there, and its second half too if that was asked for.
 */
static bool steps_due(const struct applied *had, bool finish)
{
    if (had->version < wanted())
        return true;
    for (int i = 1; finish && i <= wanted(); i++)
        if (!had->finished[i])
            return true;
    return false;
}

static enum pawl_status migrate_once(struct ledger *c, bool finish, struct pawl_err *err)
{
    struct applied had;
    struct led_params p = { 0 };
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_WRITE, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    led_text(&p, bytes_of(c->schema));
    st = led_run(c, SQL_MIGRATION_LOCK, &p, NULL, err);
    if (st == PAWL_OK)
        st = applied_read(c, &had, err);
    if (st != PAWL_OK)
        return st;
    if (had.min_version > wanted())
        return err_set(err, PAWL_STATE,
                       "database: needs a program that knows schema %lld or later; this one "
                       "(pawl %s) knows %d",
                       (long long)had.min_version, PAWL_VERSION, wanted());
    if (!steps_due(&had, finish))
        return PAWL_OK;
    CRASH_POINT("migrate.begin");
    PAUSE_POINT("migrate.begin");
    st = steps_run(c, &had, finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.before_commit");
    st = led_commit(TAKE(tx), NULL, err);
    CRASH_POINT("migrate.after_commit");
    return st;
}

enum pawl_status pg_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (int i = 0; i < MIGRATE_TRIES && st == PAWL_BUSY; i++)
        st = migrate_once(led_of(s), finish, err);
    return st;
}

enum pawl_status pg_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    struct ledger *c = led_of(s);
    struct applied had;
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_READ, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = applied_read(c, &had, err);
    if (st != PAWL_OK)
        return st;
    *out = (struct schema){ .version = had.version,
                            .wanted = wanted(),
                            .min_version = (int)had.min_version };
    for (int i = 1; i <= MIN(had.version, wanted()); i++)
        if (!had.finished[i])
            out->finish_due = true;
    return PAWL_OK;
}
