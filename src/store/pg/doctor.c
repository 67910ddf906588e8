/*
 * doctor.c - how healthy the server is: its version, and its settings about durability.
 *
 * Everything here only reads.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "store/pg/pg.h"

#define STRANGERS_MAX 5

/* A setting's text; "" when it cannot be read. */
static void show(struct led_visit *v, const char *sql, char *out, size_t size)
{
    AUTO(pg_clear) PGresult *r = pg_exec(pg_of(v->c), sql);
    out[0] = 0;
    if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) > 0)
        snprintf(out, size, "%s", PQgetvalue(r, 0, 0));
}

static void look_at_settings(struct led_visit *v)
{
    char text[80];
    show(v, "SHOW server_version", text, sizeof text);
    led_found(v, FINDING_OK, "postgres", "%s", text);
    bool ok;
    led_found(v, FINDING_OK, "isolation", "read committed, said with each transaction");
    if (pg_of(v->c)->pooled)
        led_found(
            v, FINDING_OK, "pooler",
            "pooler detected: statements are not prepared, and other nodes' work is polled for");
    else
        led_found(v, FINDING_OK, "pooler", "none");
    show(v, "SHOW fsync", text, sizeof text);
    ok = strcmp(text, "on") == 0;
    led_found(v, ok ? FINDING_OK : FINDING_BAD, "fsync",
              ok ? "%s" : "%s: an accepted call may be lost", text);
    show(v, "SHOW full_page_writes", text, sizeof text);
    ok = strcmp(text, "on") == 0;
    led_found(v, ok ? FINDING_OK : FINDING_WARN, "full_page_writes",
              ok ? "%s" : "%s: the disk must never write half a page", text);
    show(v, "SHOW synchronous_commit", text, sizeof text);
    ok = strcmp(text, "off") != 0;
    led_found(v, ok ? FINDING_OK : FINDING_BAD, "synchronous_commit",
              ok ? "%s" : "%s: an accepted call may be lost with the power", text);
    show(v, "SELECT CASE WHEN pg_is_in_recovery() THEN 'a standby' ELSE 'primary' END", text,
         sizeof text);
    ok = strcmp(text, "primary") == 0;
    led_found(v, ok ? FINDING_OK : FINDING_BAD, "role", ok ? "%s" : "%s: it cannot be written to",
              text);
}

/* Objects that a role could add to the schema after `migrate grants` of an older version. */
static void look_at_strangers(struct led_visit *v)
{
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    led_text(&p, bytes_of(v->c->schema));
    led_int(&p, STRANGERS_MAX);
    if (led_query(v->c, SQL_MIGRATION_STRANGERS, &p, &r, NULL) != PAWL_OK)
        return;
    for (int i = 0; i < r->n; i++)
        led_found(
            v, FINDING_WARN, "stranger",
            "%.*s: not of this schema, and it may run with the owner's rights; drop it unless you "
            "know it",
            BYTES_ARG(led_get(r, i, 0)));
}

/* Roles that may still add objects to it. */
static void look_at_grantees(struct led_visit *v)
{
    struct led_params p = { 0 };
    struct led_rows *r = NULL;
    led_text(&p, bytes_of(v->c->schema));
    led_int(&p, STRANGERS_MAX);
    if (led_query(v->c, SQL_MIGRATION_GRANTEES, &p, &r, NULL) != PAWL_OK)
        return;
    for (int i = 0; i < r->n; i++) {
        struct bytes role = led_get(r, i, 0), what = led_get(r, i, 1);
        if (bytes_eq(role, BYTES("PUBLIC")))
            led_found(
                v, FINDING_WARN, "grants",
                "every role has %.*s, and may run code with the owner's rights; revoke it FROM "
                "PUBLIC",
                BYTES_ARG(what));
        else
            led_found(
                v, FINDING_WARN, "grants",
                "role \"%.*s\" has %.*s, and may run code with the owner's rights; take it back: "
                "pawl migrate grants --admin %.*s --app '' --monitor '' --apply",
                BYTES_ARG(role), BYTES_ARG(what), BYTES_ARG(role));
    }
}

static enum pawl_status look(struct led_visit *v, struct pawl_err *err)
{
    enum pawl_status st = pg_connect(pg_of(v->c), err);
    if (st != PAWL_OK)
        return st;
    look_at_settings(v);
    look_at_strangers(v);
    look_at_grantees(v);
    return PAWL_OK;
}

enum pawl_status pg_doctor(struct store *s, struct arena *a, struct findings *out,
                           struct pawl_err *err)
{
    return led_doctor(&(struct led_visit){ led_of(s), a, out }, look, err);
}
