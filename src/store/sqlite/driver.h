/*
 * driver.h - a connection as the ledger drives it. Private to store/sqlite.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_SQLITE_DRIVER_H
#define STORE_SQLITE_DRIVER_H

#include "store/ledger/ledger.h"
#include "store/sqlite/engine.h"

/* Numbers of calls and versions of objects: rows of pawl_meta, read when a transaction first needs
 * one and written once, before its commit. */
enum { LITE_SEQ, LITE_VERSION, LITE_COUNTERS };
struct lite_counter {
    int64_t last, stored; /* the last one given out, and what the row says */
    bool known;
};

struct lite_ledger {
    struct ledger ledger;
    struct lite *c;        /* owned */
    bool bare;             /* tables of another kind: the ledger's are not touched */
    bool lists[SQL_COUNT]; /* the statement takes a column as a JSON array */
    struct lite_counter counters[LITE_COUNTERS];
};

/* A question, and a change: *out_rows rows were written (driver_stmt.c). */
MUST_USE enum pawl_status lite_drive_ask(struct ledger *l, enum sql_name name,
                                         const struct led_params *p, struct led_rows **out,
                                         struct pawl_err *err);
MUST_USE enum pawl_status lite_drive_change(struct ledger *l, enum sql_name name,
                                            const struct led_params *p, int64_t *out_rows,
                                            struct pawl_err *err);
/* A connection for tables that are not the ledger's (STORE_BARE), or for the ledger's; the handle's
 * operations are `ops`. */
MUST_USE enum pawl_status lite_drive(const struct store_conf *conf, const struct store_ops *ops,
                                     struct store **out, struct pawl_err *err);
/* The `close` slot of a handle that lite_drive() opened: closes its connection and frees it. */
void lite_drive_close(struct store *s);

#endif
