/*
 * doctor.c - how healthy the server is: its version, and its settings about durability.
 *
 * Everything here only reads.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "store/mysql/mydb.h"

/* The largest call is one packet: its input as hex, and as much again. */
#define PACKET_MIN (8 << 20)

/* A variable's text; "" when the server has no such variable. */
static void show(struct led_visit *v, const char *name, char *out, size_t size)
{
    char sql[120];
    MYSQL *db = mydb_of(v->c)->db;
    out[0] = 0;
    snprintf(sql, sizeof sql, "SHOW VARIABLES LIKE '%s'", name);
    if (mysql_query(db, sql) != 0)
        return;
    MYSQL_RES *res = mysql_store_result(db);
    MYSQL_ROW row = res ? mysql_fetch_row(res) : NULL;
    if (row && row[1])
        snprintf(out, size, "%s", row[1]);
    mysql_free_result(res);
}

/* A setting that must have one value; what it means when it has another. */
static void look_at(struct led_visit *v, const char *name, const char *want,
                    enum finding_level level, const char *else_what)
{
    char text[80];
    show(v, name, text, sizeof text);
    if (!text[0])
        return;
    bool ok = strcmp(text, want) == 0;
    led_found(v, ok ? FINDING_OK : level, name, "%s%s%s", text, ok ? "" : ": ",
              ok ? "" : else_what);
}

static void look_at_settings(struct led_visit *v)
{
    char text[80];
    const struct mydb *c = mydb_of(v->c);
    led_found(v, FINDING_OK, c->maria ? "mariadb" : "mysql", "%s", mysql_get_server_info(c->db));
    show(v, "transaction_isolation", text, sizeof text);
    look_at(v, text[0] ? "transaction_isolation" : "tx_isolation", "READ-COMMITTED", FINDING_BAD,
            "Pawl needs READ-COMMITTED");
    look_at(v, "innodb_flush_log_at_trx_commit", "1", FINDING_BAD,
            "an accepted call may be lost with the power");
    look_at(v, "innodb_doublewrite", "ON", FINDING_WARN, "the disk must never write half a page");
    show(v, "log_bin", text, sizeof text);
    if (strcmp(text, "ON") == 0) {
        look_at(v, "sync_binlog", "1", FINDING_WARN,
                "after a power cut a replica may know less than this server");
        show(v, "binlog_format", text, sizeof text);
        if (strcmp(text, "STATEMENT") == 0)
            led_found(v, FINDING_BAD, "binlog_format",
                      "STATEMENT: READ COMMITTED cannot be written to such a log");
    }
    look_at(v, "read_only", "OFF", FINDING_BAD, "a replica cannot be written to");
    show(v, "max_allowed_packet", text, sizeof text);
    bool ok = strtoll(text, NULL, 10) >= PACKET_MIN;
    led_found(v, ok ? FINDING_OK : FINDING_WARN, "max_allowed_packet", "%s%s", text,
              ok ? "" : ": the largest inputs and results may not fit");
}

static enum pawl_status look(struct led_visit *v, struct pawl_err *err)
{
    enum pawl_status st = mydb_connect(mydb_of(v->c), err);
    if (st == PAWL_OK)
        look_at_settings(v);
    return st;
}

enum pawl_status mydb_doctor(struct store *s, struct arena *a, struct findings *out,
                             struct pawl_err *err)
{
    return led_doctor(&(struct led_visit){ led_of(s), a, out }, look, err);
}
