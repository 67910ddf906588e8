/*
 * pg.h - one PostgreSQL connection as Pawl uses it. Private to store/pg.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_PG_PG_H
#define STORE_PG_PG_H

#include <libpq-fe.h>

#include "store/ledger/ledger.h"

/* The channel of hints between processes is this and the schema's name. Functions in SQL have the
 * same prefix. */
#define PG_CHANNEL_PREFIX "pawl_"
#define PG_CHANNEL_LEN_MAX (5 + SCHEMA_LEN_MAX)
static_assert(sizeof PG_CHANNEL_PREFIX - 1 == 5 && PG_CHANNEL_LEN_MAX <= 63,
              "the server cuts longer names");

/* When the server's plans of our statements were discarded last, and what was written since. */
struct pg_plans {
    int64_t made_us;         /* world_mono */
    int64_t rows, made_rows; /* rows we wrote: in all, and until then */
    int used;                /* transactions since then */
};

/* One shape of an insert (shape.c). */
struct pg_shape {
    struct pg_shape *next;
    uint32_t mask; /* columns that are one value instead of an array */
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
    bool known;                         /* it was connected once */
    bool driver_only;                   /* none of the ledger's tables are there */
    bool pooled;         /* a pooler is between us and the server: each transaction may have another
                            session, so nothing may rely on one */
    int64_t idle_us;     /* how long a transaction may be idle while it holds locks */
    int64_t own_commits; /* commits of ours that version() must not count */
    struct pg_plans plans;
    char said[200];         /* the server's last error text */
    bool warned;            /* the last commit came with a WARNING */
    bool wrote;             /* the running transaction changed rows */
    bool listening, others; /* listen.c: we do; others did at others_us (world_mono; 0: not known)
                             */
    int64_t others_us;
};

static inline struct pg *pg_of(struct ledger *c)
{
    return (struct pg *)c;
}

/* The parameters of SQL_SETTINGS: for this transaction alone (`local`), or for the session. */
struct led_params pg_settings(const struct pg *c, bool local);

/* ---- Statements (stmt.c) --------------------------------------------------------------------- */

/* PQclear for AUTO. */
void pg_clear(PGresult **r);
/* PQgetResult with a deadline: past it the connection is shut down. NULL: there is no more. */
PGresult *pg_next(struct pg *c);
/* The last result of what was sent, the others dropped; NULL: the connection is lost. */
PGresult *pg_answer(struct pg *c);
/* PQexec with that deadline. */
PGresult *pg_exec(struct pg *c, const char *text);
/* Our text with the schema's name instead of the word `pawl`, in `a`. NULL without memory. */
const char *pg_own_names(const char *schema, struct arena *a, const char *text);
/* The `query`, `batch` and `numbers` of struct led_driver. */
enum pawl_status pg_query(struct ledger *l, enum sql_name name, const struct led_params *p,
                          struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
enum pawl_status pg_batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err);
enum pawl_status pg_numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err);
/* What is sent around a batch. */
struct pg_frame {
    const char *begin; /* BEGIN, followed by the clock; NULL: none */
    bool commit;       /* COMMIT at the end */
    bool discard;      /* answer: plans were discarded */
    bool much;         /* answer: the answers before COMMIT were asked for separately */
    enum pg_committed { PG_NOT_SENT, PG_SENT, PG_COMMITTED, PG_UNDONE } committed; /* answer */
};
/* pg_batch() with what `f` adds; b may be NULL. Whether it committed is in f->committed, also when
 * a status other than OK is returned. */
enum pawl_status pg_batch_framed(struct pg *c, const struct led_batch *b, struct pg_frame *f,
                                 struct pawl_err *err);

/* The shape in which these columns are to be inserted; NULL: as in the text, with arrays. */
struct pg_shape *pg_shape(struct pg *c, enum sql_name name, const char *text,
                          const struct led_params *p);
/* The connection is gone, and its prepared statements with it. */
void pg_shapes_forget(struct pg *c);
/* Free all shapes, when the handle closes. */
void pg_shapes_end(struct pg *c);

/* ---- The connection (conn.c) ----------------------------------------------------------------- */

/* An error of the server or of libpq as a status and a sentence. r NULL: the connection's own
 * error. Sets ledger.redo and ledger.blocked. */
enum pawl_status pg_fail(struct pg *c, const PGresult *r, struct led_doing doing,
                         struct pawl_err *err);
/* Make sure there is a connection: led_connect(). */
MUST_USE enum pawl_status pg_connect(struct pg *c, struct pawl_err *err);
/* Ask on a second connection what became of the commit that we sent. Takes up to 4 s. (standby.c)
 */
enum led_commit pg_commit_state(const struct pg *c);
/* The `plain` of struct led_driver: text of ours without parameters, one or several statements. */
enum pawl_status pg_plain(struct ledger *l, const char *text, struct pawl_err *err);

/* ---- Slots ----------------------------------------------------------------------------------- */

/* What struct led_driver (pg_script) and struct store_ops promise of the slot of this name. */
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
