/*
 * mydb.h - one connection to MariaDB or MySQL as Pawl uses it. Private to store/mysql.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STORE_MYSQL_MYDB_H
#define STORE_MYSQL_MYDB_H

#include <mariadb/mysql.h>

#include "base/buf.h"
#include "store/ledger/ledger.h"

/* The parts of a URL; those that it does not have are NULL. */
enum mydb_tls { MYDB_TLS_NONE, MYDB_TLS_REQUIRED, MYDB_TLS_VERIFIED };
struct mydb_url {
    char *host, *user, *password, *database, *socket, *ca, *cert, *key; /* in `block` */
    unsigned port;                                                      /* 0: the default */
    enum mydb_tls tls;
    char *block; /* owned; never printed: it may hold a password */
    size_t block_len;
};

/* The answer to one item of a batch. */
struct mydb_answer {
    int64_t changed;
    bool counted; /* `changed` is known */
    struct led_rows *rows;
    size_t cap;
};
/* The next n statements that were sent belong to one item of the batch. */
struct mydb_mark {
    size_t item, n;
    int counts; /* of a mydb_part */
};

/* What a connection knows of one of the server's counters (numbers.c). */
struct mydb_counter {
    bool known;   /* the other fields are valid */
    int64_t upto; /* numbers up to this are reserved in a committed row */
    int64_t last; /* the last number it gave us */
    int64_t step; /* how many are reserved at a time */
};
enum { MYDB_SEQ, MYDB_VERSION, MYDB_COUNTERS };
#ifdef PAWL_TEST
/* How many numbers a connection reserves at first; 0: only those it uses, so none is skipped. */
extern int64_t mydb_reserve_first;
#endif

struct mydb {
    struct ledger ledger;
    struct led_conn conn;
    MYSQL *db; /* owned; NULL: not connected */
    struct mydb_url url;
    bool maria;       /* else MySQL */
    bool driver_only; /* none of the ledger's tables are there */
    bool reads;       /* it commits nothing */
    bool pooled;      /* a proxy reports other session numbers than the server */
    bool lost;        /* the connection is broken, `db` not yet closed */
    bool open;        /* a transaction is open */
    bool wrote;       /* it changed rows */
    int idle_s;       /* how long a transaction may be idle while it holds locks */
    int limit_s;      /* statement timeout for a handler; 0: the usual one is set */
    int lock_waits;   /* lock waits in a row that timed out */
    struct mydb_counter counters[MYDB_COUNTERS];
    size_t send_max;         /* bytes of statements in one packet */
    char *texts[SQL_COUNT];  /* owned; with the schema's names */
    struct buf out;          /* statements to send */
    struct mydb_mark *marks; /* owned; to which items they belong */
    size_t n_marks, cap_marks;
};

static inline struct mydb *mydb_of(struct ledger *c)
{
    return (struct mydb *)c;
}

/* ---- Addresses (url.c) ----------------------------------------------------------------------- */

/* Take a URL apart. INVALID: it is malformed, or has an unknown option. The caller releases *out in
 * any case. */
MUST_USE enum pawl_status mydb_url_read(const char *text, struct mydb_url *out,
                                        struct pawl_err *err);
/* Wipe and free it. */
void mydb_url_release(struct mydb_url *u);

/* ---- Texts (text.c) -------------------------------------------------------------------------- */

/* A statement's text with the schema's prefix instead of "pawl_", in `a`. NULL without memory. */
const char *mydb_own_names(const char *schema, struct arena *a, const char *text);
/* One statement of a text, up to its ';'. */
struct mydb_part {
    struct bytes text;
    int counts; /* what the server counts for each row that is changed as it should be: 1; 2: of an
                   insert that updates the row, 1 would be a new one; 0: it is not looked at */
    bool each;  /* it is sent once for each row */
    size_t row; /* from this row of the columns */
    size_t end; /* up to this one, exclusive */
};
/* The next statement from *at, which is advanced; false at the end. */
bool mydb_part_next(const char **at, struct mydb_part *out);
/* Append the statement with its values. Returns how many statements it became; 0: all rows that it
 * names are null, and nothing is sent. */
size_t mydb_expand(struct buf *to, const struct mydb_part *part, const struct led_params *p);
/* The columns' length; 1 when there are none. */
size_t mydb_rows(const struct led_params *p);
/* How many rows from `row` on take about `len` bytes; at least one. */
size_t mydb_rows_within(const struct led_params *p, size_t row, size_t len);

/* ---- Numbers (numbers.c) --------------------------------------------------------------------- */

/* The `numbers` of struct led_driver. */
enum pawl_status mydb_numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err);
/* The answer to SQL_VERSION_NEXT: as many rows as p says, each a new version. */
enum pawl_status mydb_versions(struct ledger *l, const struct led_params *p, struct led_rows **out,
                               struct pawl_err *err);

/* ---- Waiting (wait.c) ------------------------------------------------------------------------ */

/* Send statements and wait for the first answer; false: `db` has the error. Further answers have
 * the same deadline each, until mydb_answered() ends that. */
bool mydb_exec(struct mydb *c, const char *text, size_t len);
/* This thread has read all answers of its mydb_exec(). */
void mydb_answered(void);
#ifdef PAWL_TEST
extern int64_t mydb_answer_us; /* how long an answer may take by default */
#endif
/* Wait until something can be read on `db`, of this handle. After patience_us its socket is shut
 * down; later while a commit waits for a replica (ledger/patience.c). */
void mydb_await(struct mydb *c, MYSQL *db, int64_t patience_us);
/* The client library calls it when it has to wait (MARIADB_OPT_IO_WAIT). */
int mydb_io_wait(my_socket fd, my_bool is_read, int timeout_ms);
/* Run one named statement on a connection of its own, outside this handle's transaction; it commits
 * by itself. */
MUST_USE enum pawl_status mydb_aside(struct mydb *c, enum sql_name name, const struct led_params *p,
                                     struct pawl_err *err);
/* Did the server close the connection while it was idle? */
bool mydb_closed(const struct mydb *c);

/* ---- Statements (stmt.c) --------------------------------------------------------------------- */

/* The `query` and `batch` of struct led_driver. */
enum pawl_status mydb_query(struct ledger *l, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
enum pawl_status mydb_batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err);
/* What is sent around a batch. */
struct mydb_frame {
    const char *begin;            /* BEGIN, followed by the clock; NULL: none */
    size_t n_begin;               /* statements in `begin` */
    bool commit;                  /* COMMIT at the end */
    bool sent, undone, committed; /* answer; only `sent`: it may have committed */
};
/* mydb_batch() with what `f` adds; b may be NULL. Whether it committed is in `f`, also when a
 * status other than OK is returned. */
enum pawl_status mydb_batch_framed(struct mydb *c, const struct led_batch *b, struct mydb_frame *f,
                                   struct pawl_err *err);
/* What mydb_query() does for every name but SQL_VERSION_NEXT. */
enum pawl_status mydb_ask(struct ledger *l, enum sql_name name, const struct led_params *p,
                          struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
/* Text of ours without parameters: one or several statements. *out (may be NULL): the first column
 * of the last answer as a number, 0 when there is none. */
enum pawl_status mydb_say(struct mydb *c, const char *text, int64_t *out, struct pawl_err *err);
/* The same as the `plain` of struct led_driver. */
enum pawl_status mydb_plain(struct ledger *l, const char *text, struct pawl_err *err);
/* The text of a named statement with the schema's names, kept by the handle; NULL without memory.
 */
const char *mydb_text(struct mydb *c, enum sql_name name);

/* ---- The connection (conn.c) ----------------------------------------------------------------- */

/* An error of the server or of the client library as a status and a sentence. Sets `lost`, `open`,
 * ledger.redo and ledger.blocked. */
enum pawl_status mydb_fail(struct mydb *c, unsigned code, const char *text, struct led_doing doing,
                           struct pawl_err *err);
/* The same for the last error of `db`. */
enum pawl_status mydb_failed(struct mydb *c, struct led_doing doing, struct pawl_err *err);
/* The same for an error on another connection of this handle: its own state does not change. */
enum pawl_status mydb_fail_aside(struct mydb *c, MYSQL *db, struct pawl_err *err);
/* Make sure there is a connection: led_connect(). */
MUST_USE enum pawl_status mydb_connect(struct mydb *c, struct pawl_err *err);
/* Open a second connection, for statements outside the transaction. The caller closes *out. */
MUST_USE enum pawl_status mydb_second(struct mydb *c, MYSQL **out, struct pawl_err *err);

/* ---- Slots ----------------------------------------------------------------------------------- */

/* What struct led_driver (mydb_script) and struct store_ops promise of the slot of this name. */
enum pawl_status mydb_script(struct ledger *l, struct bytes text, struct pawl_err *err);
enum pawl_status mydb_migrate(struct store *s, bool finish, struct pawl_err *err);
enum pawl_status mydb_schema(struct store *s, struct schema *out, struct pawl_err *err);
enum pawl_status mydb_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                            struct pawl_err *err);
enum pawl_status mydb_grants(const struct store_conf *conf, const struct roles *roles,
                             struct arena *a, const char **out, struct pawl_err *err);
enum pawl_status mydb_grant(struct store *s, const char *sql, struct pawl_err *err);
enum pawl_status mydb_doctor(struct store *s, struct arena *a, struct findings *out,
                             struct pawl_err *err);
enum pawl_status mydb_sql(struct sql_tx *tx, struct arena *a, const struct sql_query *q,
                          struct pawl_rows *out, struct pawl_err *err);

extern const struct store_ops store_mysql;

#endif
