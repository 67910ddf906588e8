/*
 * migrate.c - bringing the schema up to date, a step at a time, all of it in one transaction.
 *
 * DDL is transactional here, so a step is there whole or not at all, and the write lock lets two
 * processes that start together take turns: the second finds everything done. A step that was
 * applied must still be the one we know: its checksum is kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/hook.h"
#include "store/sqlite/engine.h"

/* Another process may be migrating, which takes as long as it takes: ten times the usual wait. */
#define MIGRATE_TRIES 10
#define CHECKSUM_LEN 32
#define STEPS_MAX 1000

#ifdef PAWL_TEST
const struct sql_migration *lite_migrations = sql_sqlite_migrations;
#endif

/* What the database says of itself. */
struct applied {
    int version;
    int64_t min_version;
    bool finished[STEPS_MAX + 1];
};

static int wanted(void)
{
    int n = 0;
    while (lite_migrations[n].number)
        n++;
    return n;
}

static enum pawl_status table_exists(struct lite *c, const char *table, bool *out,
                                     struct pawl_err *err)
{
    char name[SCHEMA_LEN_MAX + 32];
    int64_t one = 0;
    snprintf(name, sizeof name, "%s_%s", c->ledger.schema, table);
    enum pawl_status st =
        lite_number(c, SQL_MIGRATION_EXISTS, ARGS(TEXT(bytes_of(name))), 0, &one, err);
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
static enum pawl_status same_step(struct lite *c, int number, struct bytes stored,
                                  struct pawl_err *err)
{
    unsigned char ours[CHECKSUM_LEN];
    if (number > wanted())
        return PAWL_OK;
    const struct sql_migration *m = &lite_migrations[number - 1];
    enum pawl_status st = checksum(m, ours, err);
    if (st == PAWL_OK && !bytes_eq(stored, (struct bytes){ (char *)ours, sizeof ours }))
        st = err_set(err, PAWL_BROKEN,
                     "database \"%s\": step %d (%s) of its schema is not the one this program has",
                     c->path, number, m->word);
    return st;
}

static enum pawl_status steps_read(struct lite *c, struct applied *out, struct pawl_err *err)
{
    AUTO(lite_reset) sqlite3_stmt *q = NULL;
    bool row = false;
    enum pawl_status st = lite_query(c, SQL_MIGRATION_LIST, NO_ARGS, &q, err);
    while (st == PAWL_OK && (st = lite_next(c, q, &row, err)) == PAWL_OK && row) {
        int64_t number = lite_int(q, 0);
        if (number != out->version + 1 || number > STEPS_MAX)
            return err_set(err, PAWL_BROKEN, "database \"%s\": step %d of its schema is missing",
                           c->path, out->version + 1);
        out->version++;
        out->finished[number] = lite_int(q, 2) != 0;
        st = same_step(c, (int)number, lite_column(q, 1), err);
    }
    return st;
}

static enum pawl_status applied_read(struct lite *c, struct applied *out, struct pawl_err *err)
{
    bool there;
    *out = (struct applied){ 0 };
    enum pawl_status st = table_exists(c, "migration", &there, err);
    if (st == PAWL_OK && there)
        st = steps_read(c, out, err);
    if (st == PAWL_OK)
        st = table_exists(c, "meta", &there, err);
    if (st == PAWL_OK && there)
        st = lite_number(c, SQL_META_GET, ARGS(TEXT(BYTES("min_version"))), 0, &out->min_version,
                         err);
    return st;
}

static enum pawl_status step_apply(struct lite *c, const struct sql_migration *m,
                                   struct pawl_err *err)
{
    unsigned char sum[CHECKSUM_LEN];
    enum pawl_status st = checksum(m, sum, err);
    if (st == PAWL_OK)
        st = lite_script(c, m->expand, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.step");
    return lite_run(c, SQL_MIGRATION_ADD,
                    ARGS(INT(m->number), TEXT(bytes_of(m->word)),
                         BLOB(((struct bytes){ (char *)sum, sizeof sum })), INT(c->ledger.now_us),
                         INT(m->finish[0] == 0)),
                    NULL, err);
}

static enum pawl_status step_finish(struct lite *c, const struct sql_migration *m,
                                    struct pawl_err *err)
{
    enum pawl_status st = lite_script(c, m->finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.finish");
    return lite_run(c, SQL_MIGRATION_FINISH, ARGS(INT(m->number)), NULL, err);
}

static enum pawl_status steps_run(struct lite *c, struct applied *had, bool finish,
                                  struct pawl_err *err)
{
    enum pawl_status st = lite_run(c, SQL_MIGRATION_TABLE, NO_ARGS, NULL, err);
    for (const struct sql_migration *m = lite_migrations; m->number && st == PAWL_OK; m++) {
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

static enum pawl_status migrate_once(struct lite *c, bool finish, struct pawl_err *err)
{
    struct applied had;
    AUTO(lite_undo) struct lite *tx = NULL;
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN_WRITE, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = applied_read(c, &had, err);
    if (st != PAWL_OK)
        return st;
    if (had.min_version > wanted())
        return err_set(err, PAWL_STATE,
                       "database \"%s\": needs a program that knows schema %lld or later; this one "
                       "(pawl %s) knows %d",
                       c->path, (long long)had.min_version, PAWL_VERSION, wanted());
    if (!steps_due(&had, finish))
        return PAWL_OK;
    CRASH_POINT("migrate.begin");
    PAUSE_POINT("migrate.begin");
    st = steps_run(c, &had, finish, err);
    if (st != PAWL_OK)
        return st;
    CRASH_POINT("migrate.before_commit");
    st = lite_commit(TAKE(tx), err);
    CRASH_POINT("migrate.after_commit");
    return st;
}

enum pawl_status lite_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (int i = 0; i < MIGRATE_TRIES && st == PAWL_BUSY; i++)
        st = migrate_once(lite_of(s), finish, err);
    return st;
}

enum pawl_status lite_schema(struct store *s, struct schema *out, struct pawl_err *err)
{
    struct lite *c = lite_of(s);
    struct applied had;
    AUTO(lite_undo) struct lite *tx = NULL;
    enum pawl_status st = lite_begin(c, PLAIN_BEGIN, err);
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
