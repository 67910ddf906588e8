/*
 * pg_numbers.c - numbers of calls on PostgreSQL rise, or the database is broken.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plain_store.h"
#include "check.h"
#include "db_server.h"
#include "store/ledger/ledger.h"

TEST(a_sequence_that_falls_is_broken)
{
    struct pawl_err err = { 0 };
    int64_t v[3];
    if (!db_there(&db_postgres))
        skip("no PostgreSQL is installed");
    AUTO(store_end) struct store *s = plain_open(db_database(&db_postgres), NULL);
    struct ledger *c = led_of(s);
    OK(store_migrate(s, false, &err), &err);
    OK(led_begin(c, LED_WRITE, NULL, &err), &err);
    OK(c->db->numbers(c, v, 3, &err), &err);
    TRUE(v[0] > 0 && v[1] > v[0] && v[2] > v[1]);
    c->db->rollback(c);
    db_ask(&db_postgres, "ALTER SEQUENCE pawl.seq INCREMENT BY -1");
    OK(led_begin(c, LED_WRITE, NULL, &err), &err);
    EQ_STATUS(c->db->numbers(c, v, 2, &err), PAWL_BROKEN, &err);
    HAS_STR(err.text, "the sequence \"seq\" gives numbers below");
    c->db->rollback(c);
}
