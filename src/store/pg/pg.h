/*
 * pg.h - one PostgreSQL connection as Pawl uses it. Private to store/pg.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_PG_PG_H
#define STORE_PG_PG_H

#include <libpq-fe.h>

#include "store/ledger/ledger.h"

/* The channel on which processes tell each other to look: this and the schema's name. Functions in
 * SQL say it too. */
#define PG_CHANNEL_PREFIX "pawl_"
#define PG_CHANNEL_LEN_MAX (5 + SCHEMA_LEN_MAX)
static_assert(sizeof PG_CHANNEL_PREFIX - 1 == 5 && PG_CHANNEL_LEN_MAX <= 63, "it is a name");

/* Since when the server's plans of our statements are as they are. */
struct pg_plans {
    int64_t made_us;         /* world_mono */
    int64_t rows, made_rows; /* that we wrote: all in all, and before that */
    int used;                /* transactions */
};

/* One shape of an insert (shape.c). */
struct pg_shape {
    struct pg_shape *next;
    uint32_t mask; /* columns that are one value */
    char *text;    /* owned */
    char label[48];
    bool prepared;
};

struct pg {
    struct ledger ledger;
    struct led_conn conn;
    PGconn *db; /* owned; NULL: not connected */
    char *url;  /* owned; never printed: it may hold a password */
    bool prepared[SQL_COUNT];
    char *texts[SQL_COUNT]; /* owned; statements with the schema's name in them, as they are needed
                             */
    struct pg_shape *shapes[SQL_COUNT]; /* owned */
    bool known;                         /* it was connected before */
    bool driver_only;                   /* none of the ledger's tables are there */
    bool pooled;     /* between us and the server is a pooler: no session is ours for longer than a
                        transaction, so nothing may rely on one */
    int64_t idle_us; /* how long a transaction may hold rows while nothing is asked of it */
    int64_t own_commits; /* of ours that the server counts among its transactions */
    struct pg_plans plans;
    char said[200];         /* the last refusal of a statement, in the server's words alone */
    bool warned;            /* the server had something to say about the last commit */
    bool wrote;             /* the running transaction did, for certain */
    bool listening, others; /* listen.c: we do; others did, at others_us (world_mono; 0: unknown) */
    int64_t others_us;
};

static inline struct pg *pg_of(struct ledger *c)
{
    return (struct pg *)c;
}

/* What SQL_SETTINGS asks for: for this transaction alone, or for the session. */
struct led_params pg_settings(const struct pg *c, bool local);

/* ---- Statements (stmt.c) --------------------------------------------------------------------- */

void pg_clear(PGresult **r); /* for AUTO */
/* PQgetResult with a deadline, after which the connection is lost. NULL: there is no more. */
PGresult *pg_next(struct pg *c);
/* The last of what there is; NULL: the connection is lost. */
PGresult *pg_answer(struct pg *c);
/* What PQexec does, with that deadline. */
PGresult *pg_exec(struct pg *c, const char *text);
/* A text in which "pawl." is the schema's name; in `a`. NULL without memory. */
const char *pg_own_names(const char *schema, struct arena *a, const char *text);
enum pawl_status pg_query(struct ledger *l, enum sql_name name, const struct led_params *p,
                          struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
enum pawl_status pg_batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err);
/* The same, b perhaps NULL, between BEGIN or its like (NULL: without) with the clock, and COMMIT.
 */
struct pg_frame {
    const char *begin;
    bool commit;
    bool discard; /* answer: with plans made anew */
    bool much;    /* answer: what is before COMMIT is answered by itself */
    enum pg_committed { PG_NOT_SENT, PG_SENT, PG_COMMITTED, PG_UNDONE } committed; /* answer */
};
enum pawl_status pg_batch_framed(struct pg *c, const struct led_batch *b, struct pg_frame *f,
                                 struct pawl_err *err);
enum pawl_status pg_numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err);

/* The shape in which these columns are to be inserted; NULL: as the text is, with arrays. */
struct pg_shape *pg_shape(struct pg *c, enum sql_name name, const char *text,
                          const struct led_params *p);
void pg_shapes_forget(struct pg *c); /* by the server */
void pg_shapes_end(struct pg *c);

/* ---- The connection (conn.c) ----------------------------------------------------------------- */

/* What the server or libpq said, as a status and a sentence. The only place where SQLSTATEs are
 * read. r may be NULL. */
enum pawl_status pg_fail(struct pg *c, const PGresult *r, const char *doing, struct pawl_err *err);
/* Connected, or BUSY. */
MUST_USE enum pawl_status pg_connect(struct pg *c, struct pawl_err *err);
/* What the server says, on another connection, of the commit that we sent. Takes up to 4 s.
 * (standby.c) */
enum led_commit pg_commit_state(const struct pg *c);
/* Text of ours without parameters: BEGIN and its like, or a script. */
enum pawl_status pg_plain(struct ledger *l, const char *text, struct pawl_err *err);

/* ---- Slots ----------------------------------------------------------------------------------- */

enum pawl_status pg_script(struct ledger *l, struct bytes text, struct pawl_err *err);
enum pawl_status pg_migrate(struct store *s, bool finish, struct pawl_err *err);
enum pawl_status pg_schema(struct store *s, struct schema *out, struct pawl_err *err);
enum pawl_status pg_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                          struct pawl_err *err);
enum pawl_status pg_grants(const struct store_conf *conf, const struct roles *roles,
                           struct arena *a, const char **out, struct pawl_err *err);
enum pawl_status pg_grant(struct store *s, const char *sql, struct pawl_err *err);
enum pawl_status pg_doctor(struct store *s, struct arena *a, struct findings *out,
                           struct pawl_err *err);
enum pawl_status pg_hint(struct store *s, struct hint *h, struct pawl_err *err);
enum pawl_status pg_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                        struct pawl_rows *out, struct pawl_err *err);

extern const struct store_ops store_pg;

#endif
