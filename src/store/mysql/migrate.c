/*
 * migrate.c - bringing the schema up to date, a step at a time.
 *
 * DDL commits by itself here, so a step may be half done when the power goes: its statements can be
 * run again, and its row is written when all of them were. A lock of the server's lets two
 * processes that start together take turns; it belongs to the connection and goes with it. A step
 * that was applied must still be the one we know: its checksum is kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/hook.h"
#include "base/ident.h"
#include "base/mem.h"
#include "store/mysql/mydb.h"

/* Another process may be migrating: so often, and so long each time. */
#define MIGRATE_TRIES 30
#define LOCK_S 10
#define CHECKSUM_LEN 32
#define STEPS_MAX 1000
/* Rows of connections that have written nothing for so long are dropped. */
#define CHANGE_OLD_US (24 * 3600 * SEC_US)

/* What the database says of itself. */
struct applied {
    int version;
    int64_t min_version;
    bool finished[STEPS_MAX + 1];
};

static int wanted(void)
{
    int n = 0;
    while (sql_mysql_migrations[n].number)
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
static enum pawl_status same_step(int number, struct bytes stored, struct pawl_err *err)
{
    unsigned char ours[CHECKSUM_LEN];
    if (number > wanted())
        return PAWL_OK;
    const struct sql_migration *m = &sql_mysql_migrations[number - 1];
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

/* ---- Steps ----------------------------------------------------------------------------------- */

static enum pawl_status script(struct ledger *c, const char *text, struct pawl_err *err)
{
    char *own = mydb_own_names(c->schema, text);
    enum pawl_status st =
        own ? mydb_plain(c, own, err) : err_no_memory(err, "a step of the schema");
    mem_free(own);
    return st;
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
    enum pawl_status st = script(c, sql_mysql[SQL_MIGRATION_TABLE], err);
    for (const struct sql_migration *m = sql_mysql_migrations; m->number && st == PAWL_OK; m++) {
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

/* ---- Under the lock -------------------------------------------------------------------------- */

static enum pawl_status lock(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 };
    int64_t got = 0;
    led_text(&p, bytes_of(c->schema));
    led_int(&p, LOCK_S);
    enum pawl_status st = led_number(c, SQL_MIGRATION_LOCK, &p, 0, &got, err);
    if (st == PAWL_OK && !got)
        st = err_set(err, PAWL_BUSY, "database: somebody else is changing its schema");
    return st;
}

static void unlock(struct ledger *c)
{
    struct led_params p = { 0 };
    led_text(&p, bytes_of(c->schema));
    enum pawl_status gone = led_run(c, SQL_MIGRATION_UNLOCK, &p, NULL, NULL);
    (void)gone; /* a connection that cannot say so has lost it */
}

/* Every process that was here left a row a connection. */
static enum pawl_status forget_connections(struct ledger *c, struct pawl_err *err)
{
    struct led_params p = { 0 }, old = { 0 };
    struct led_column conns;
    struct led_rows *r = NULL;
    led_int(&p, world_now(&world_real) - CHANGE_OLD_US);
    enum pawl_status st = led_query(c, SQL_CHANGE_OLD, &p, &r, err);
    led_column_init(&conns, &c->scratch, LED_INTS);
    for (int i = 0; st == PAWL_OK && i < r->n; i++)
        led_add_int(&conns, led_get_int(r, i, 0));
    led_column(&old, &conns);
    return st == PAWL_OK && conns.n ? led_run(c, SQL_CHANGE_REMOVE, &old, NULL, err) : st;
}

static enum pawl_status migrate_locked(struct ledger *c, bool finish, struct pawl_err *err)
{
    struct applied had;
    enum pawl_status st = applied_read(c, &had, err);
    if (st != PAWL_OK)
        return st;
    if (had.min_version > wanted())
        return err_set(err, PAWL_STATE,
                       "database: needs a program that knows schema %lld or later; this one "
                       "(pawl %s) knows %d",
                       (long long)had.min_version, PAWL_VERSION, wanted());
    if (steps_due(&had, finish)) {
        CRASH_POINT("migrate.begin");
        PAUSE_POINT("migrate.begin");
        st = steps_run(c, &had, finish, err);
    }
    if (st == PAWL_OK)
        st = forget_connections(c, err);
    CRASH_POINT("migrate.before_commit");
    return st;
}

static enum pawl_status migrate_once(struct ledger *c, bool finish, struct pawl_err *err)
{
    AUTO(led_undo) struct ledger *tx = NULL;
    enum pawl_status st = led_begin(c, LED_WRITE, NULL, err);
    if (st != PAWL_OK)
        return st;
    tx = c;
    st = lock(c, err);
    if (st != PAWL_OK)
        return st;
    st = migrate_locked(c, finish, err);
    if (st == PAWL_OK)
        st = led_commit(TAKE(tx), NULL, err);
    unlock(c);
    CRASH_POINT("migrate.after_commit");
    return st;
}

enum pawl_status mydb_migrate(struct store *s, bool finish, struct pawl_err *err)
{
    enum pawl_status st = PAWL_BUSY;
    for (int i = 0; i < MIGRATE_TRIES && st == PAWL_BUSY; i++)
        st = migrate_once(led_of(s), finish, err);
    return st;
}

enum pawl_status mydb_schema(struct store *s, struct schema *out, struct pawl_err *err)
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
