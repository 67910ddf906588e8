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

/* A URL taken apart; texts are NULL when it does not say. */
enum mydb_tls { MYDB_TLS_NONE, MYDB_TLS_REQUIRED, MYDB_TLS_VERIFIED };
struct mydb_url {
    char *host, *user, *password, *database, *socket, *ca, *cert, *key; /* in `block` */
    unsigned port;                                                      /* 0: the usual one */
    enum mydb_tls tls;
    char *block; /* owned; never printed: it may hold a password */
    size_t block_len;
};

/* What came back for one name of a batch. */
struct mydb_answer {
    int64_t changed;
    bool counted; /* or nobody can say how many changed */
    struct led_rows *rows;
    size_t cap;
};
/* So many statements on their way belong to one name. */
struct mydb_mark {
    size_t item, n;
    bool counted;
};

/* What a connection knows of one of the server's counters (numbers.c). */
struct mydb_counter {
    bool known;   /* the rest of this is */
    int64_t upto; /* numbers up to here are reserved, and that is committed */
    int64_t last; /* that it gave us */
    int64_t step; /* how many more are reserved at a time */
};
enum { MYDB_SEQ, MYDB_VERSION, MYDB_COUNTERS };
#ifdef PAWL_TEST
/* How many numbers a connection reserves at first; 0: those it uses, so that none is skipped. */
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
    bool pooled;      /* behind a proxy with numbers of its own for sessions */
    bool lost;        /* what `db` was connected to is gone */
    bool open;        /* a transaction was begun, and nothing ended it */
    bool wrote;       /* and something was changed in it */
    int idle_s;       /* how long a transaction may hold rows for nothing */
    int limit_s;      /* of statements, while it is not the usual one; 0: it is */
    int lock_waits;   /* in a row that lasted as long as the server lets them */
    struct mydb_counter counters[MYDB_COUNTERS];
    size_t send_max;         /* of one packet */
    char *texts[SQL_COUNT];  /* owned; with our names in them */
    struct buf out;          /* statements on their way */
    struct mydb_mark *marks; /* owned; whose they are */
    size_t n_marks, cap_marks;
};

static inline struct mydb *mydb_of(struct ledger *c)
{
    return (struct mydb *)c;
}

/* ---- Addresses (url.c) ----------------------------------------------------------------------- */

MUST_USE enum pawl_status mydb_url_read(const char *text, struct mydb_url *out,
                                        struct pawl_err *err);
void mydb_url_release(struct mydb_url *u);

/* ---- Texts (text.c) -------------------------------------------------------------------------- */

/* A statement's text with the schema's prefix instead of "pawl_", in `a`. NULL without memory. */
const char *mydb_own_names(const char *schema, struct arena *a, const char *text);
/* One statement of a text: what stands before the next ';' of its own. */
struct mydb_part {
    struct bytes text;
    bool counted;
    bool each;  /* it is said once a row */
    size_t row; /* the rows it is about */
    size_t end;
};
/* The next one; false at the end. *at is where to go on. */
bool mydb_part_next(const char **at, struct mydb_part *out);
/* The statement with its values, and how many statements it became: 0 when there is nothing to say.
 */
size_t mydb_expand(struct buf *to, const struct mydb_part *part, const struct led_params *p);
/* The columns' length; 1 when there are none. */
size_t mydb_rows(const struct led_params *p);
/* How many rows from `row` on make up some `len` bytes, at least one. */
size_t mydb_rows_within(const struct led_params *p, size_t row, size_t len);

/* ---- Numbers (numbers.c) --------------------------------------------------------------------- */

enum pawl_status mydb_numbers(struct ledger *l, int64_t *out, size_t n, struct pawl_err *err);
/* SQL_VERSION_NEXT: as many rows as p says, a version each. */
enum pawl_status mydb_versions(struct ledger *l, const struct led_params *p, struct led_rows **out,
                               struct pawl_err *err);

/* ---- Waiting (wait.c) ------------------------------------------------------------------------ */

/* Statements go, and the answer to the first of them comes; false: see what `db` says. Each further
 * answer is waited for as long, until mydb_answered() says that all are read. */
bool mydb_exec(struct mydb *c, const char *text, size_t len);
void mydb_answered(void);
#ifdef PAWL_TEST
extern int64_t mydb_answer_us; /* how long an answer may take */
#endif
/* Until something can be read on `db`, of this handle, or patience_us has passed and its socket is
 * shut down; longer while a commit waits for a replica (ledger/patience.c). */
void mydb_await(struct mydb *c, MYSQL *db, int64_t patience_us);
/* For the client library, which asks when it has to wait (MARIADB_OPT_IO_WAIT). */
int mydb_io_wait(my_socket fd, my_bool is_read, int timeout_ms);
/* One named statement, which commits, on a connection of its own, outside the transaction of this
 * handle's. */
MUST_USE enum pawl_status mydb_aside(struct mydb *c, enum sql_name name, const struct led_params *p,
                                     struct pawl_err *err);
/* Did the server close the connection while nobody used it? */
bool mydb_closed(const struct mydb *c);

/* ---- Statements (stmt.c) --------------------------------------------------------------------- */

enum pawl_status mydb_query(struct ledger *l, enum sql_name name, const struct led_params *p,
                            struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
enum pawl_status mydb_batch(struct ledger *l, const struct led_batch *b, struct pawl_err *err);
/* The same, b perhaps NULL, between BEGIN or its like (NULL: without) with the clock, and COMMIT.
 */
struct mydb_frame {
    const char *begin;
    size_t n_begin; /* so many statements */
    bool commit;
    bool sent, undone, committed; /* answer; neither of the last two: nobody knows */
};
enum pawl_status mydb_batch_framed(struct mydb *c, const struct led_batch *b, struct mydb_frame *f,
                                   struct pawl_err *err);
/* What mydb_query() does for every name but SQL_VERSION_NEXT. */
enum pawl_status mydb_ask(struct ledger *l, enum sql_name name, const struct led_params *p,
                          struct led_rows **out, int64_t *out_rows, struct pawl_err *err);
/* Text of ours without parameters: one or several statements. What the last one's first column says
 * as a number, if it says anything. */
enum pawl_status mydb_say(struct mydb *c, const char *text, int64_t *out, struct pawl_err *err);
enum pawl_status mydb_plain(struct ledger *l, const char *text, struct pawl_err *err);
/* The named statement's text, as the server is to see it; NULL without memory. */
const char *mydb_text(struct mydb *c, enum sql_name name);

/* ---- The connection (conn.c) ----------------------------------------------------------------- */

/* What the server or the client library said, as a status and a sentence. The only place where
 * error numbers are read. */
enum pawl_status mydb_fail(struct mydb *c, unsigned code, const char *text, const char *doing,
                           struct pawl_err *err);
/* The same for what `db` said last. */
enum pawl_status mydb_failed(struct mydb *c, const char *doing, struct pawl_err *err);
/* The same for what was said on another connection of this handle's: nothing is known of its own.
 */
enum pawl_status mydb_fail_aside(struct mydb *c, MYSQL *db, const char *doing,
                                 struct pawl_err *err);
/* Connected, or BUSY. One that is old is replaced, and one that the server closed meanwhile. */
MUST_USE enum pawl_status mydb_connect(struct mydb *c, struct pawl_err *err);
/* A second connection to the same place, for what must not meet the transaction. */
MUST_USE enum pawl_status mydb_second(struct mydb *c, MYSQL **out, struct pawl_err *err);

/* ---- Slots ----------------------------------------------------------------------------------- */

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
