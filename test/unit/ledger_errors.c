/*
 * ledger_errors.c - what a driver's error says: the database's own sentence, and the name of a
 * statement only where it helps a bug report.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"
#include "store/ledger/ledger.h"

static struct pawl_err err;

static void says(enum pawl_status st, const char *file, struct led_doing doing, const char *want)
{
    EQ_STATUS(led_failed(st, file, doing, BYTES("disk full"), &err), st, &err);
    EQ_STR(err.text, want);
}

TEST(trouble_of_the_database_names_no_statement)
{
    struct led_doing adding = LED_STATEMENT(SQL_CALL_ADD);
    says(PAWL_BUSY, NULL, adding, "database: disk full");
    says(PAWL_BUSY, "x.db", adding, "database \"x.db\": disk full");
    says(PAWL_UNKNOWN, NULL, adding, "database: disk full");
    says(PAWL_NO_MEMORY, NULL, adding, "database: disk full");
    says(PAWL_TOO_LARGE, NULL, adding, "database: disk full");
    says(PAWL_BUSY, NULL, LED_PHASE("connecting"), "database: connecting: disk full");
    says(PAWL_BUSY, "x.db", LED_PLAIN, "database \"x.db\": disk full");
}

TEST(what_is_broken_names_the_statement_behind_it)
{
    says(PAWL_BROKEN, NULL, LED_STATEMENT(SQL_CALL_ADD), "database: disk full [call_add]");
    says(PAWL_BROKEN, "x.db", LED_STATEMENT(SQL_CALL_ADD),
         "database \"x.db\": disk full [call_add]");
    says(PAWL_BROKEN, NULL, LED_PHASE("a step of the schema"),
         "database: a step of the schema: disk full");
    says(PAWL_BROKEN, NULL, LED_PLAIN, "database: disk full");
}

TEST(a_row_that_has_changed_is_no_statement)
{
    struct led_driver db = { .one_writer = false };
    struct ledger l = { .db = &db };
    EQ_STATUS(led_row_changed(&l, SQL_CALL_MOVE, &err), PAWL_BUSY, &err);
    EQ_STR(err.text, "database: another transaction changed it first (a row)");
    TRUE(l.redo);
    db.one_writer = true;
    EQ_STATUS(led_row_changed(&l, SQL_CALL_MOVE, &err), PAWL_BROKEN, &err);
    EQ_STR(err.text, "database: a row is not as it was read [call_move]");
}
