/*
 * conn.c - opening a connection, its transactions, and what the server's errors mean.
 *
 * What must stay true: transactions are READ COMMITTED, so that a statement after a lock sees what
 * the former holder of the lock committed; times are UTC; a value that does not fit is an error;
 * and a caller is answered only after a commit that waited for the disk. The last is a setting of
 * the server, which the doctor checks.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mariadb/errmsg.h>
#include <mariadb/mysqld_error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/hook.h"
#include "base/limits.h"
#include "base/mem.h"
#include "store/mysql/mydb.h"

/* The client library's limit for connecting. */
#define CONNECT_S 2
/* The client library's limit for answers that wait.c does not time, which are those to a handler's
 * statements. Where handlers run, the limit is longer than any attempt. */
#define ANSWER_S 70
#define COMMIT_S (20 * 86400)
/* TCP keepalive finds a dead connection there. */
#define KEEPALIVE_IDLE_S 10
#define KEEPALIVE_EACH_S 5
#define KEEPALIVE_COUNT 3
#define UNANSWERED_MS 30000
/* How long a transaction may be idle when the settings do not say. */
#define IDLE_S 60
/* Statements in one packet: far below the server's limit (16 MB unless it was lowered), and so many
 * that one more packet adds little. */
#define SEND_LEN_MAX (4 << 20)
/* The longest packet: the above and one more row, in hex. */
#define OUT_LEN_MAX (64 << 20)
/* The server waits one second for a lock, its shortest time; how often in a row we let it. */
#define LOCK_WAITS_MAX 2

/* Numbers of one server that the other's headers do not have. */
enum {
    CODE_SNAPSHOT = 1020,       /* MariaDB: the record has changed */
    CODE_TABLE_CHANGED = 1412,  /* a snapshot is older than the table */
    CODE_KILLED = 1927,         /* MariaDB */
    CODE_STATEMENT_TIME = 1969, /* MariaDB */
    CODE_EXECUTION_TIME = 3024, /* MySQL */
    CODE_IDLE_TOO_LONG = 4031,  /* MySQL */
    CODE_READ_ONLY_MODE = 1836,
    CODE_ACCESS_DENIED_SOCKET = 1698,
};

/* ---- Errors ---------------------------------------------------------------------------------- */

enum meaning {
    IS_STATUS,  /* just its status */
    IS_PASSING, /* lost a race with another transaction: retry */
    IS_LOST,    /* the connection is gone */
    IS_DENIED,  /* the account lacks a right; a login that fails is not this */
};

static const struct {
    unsigned code;
    enum pawl_status status;
    enum meaning meaning;
} codes[] = {
    { ER_LOCK_DEADLOCK, PAWL_BUSY, IS_PASSING },
    { ER_LOCK_WAIT_TIMEOUT, PAWL_BUSY, IS_PASSING },
    { ER_DUP_ENTRY, PAWL_BROKEN, IS_PASSING },
    { CODE_SNAPSHOT, PAWL_BUSY, IS_PASSING },
    { CODE_TABLE_CHANGED, PAWL_BUSY, IS_PASSING },
    { CR_SERVER_GONE_ERROR, PAWL_BUSY, IS_LOST },
    { CR_SERVER_LOST, PAWL_BUSY, IS_LOST },
    { CR_SERVER_LOST_EXTENDED, PAWL_BUSY, IS_LOST },
    { CR_COMMANDS_OUT_OF_SYNC, PAWL_BUSY, IS_LOST },
    { CR_MALFORMED_PACKET, PAWL_BUSY, IS_LOST },
    { CODE_KILLED, PAWL_BUSY, IS_LOST },
    { CODE_IDLE_TOO_LONG, PAWL_BUSY, IS_LOST },
    { ER_SERVER_SHUTDOWN, PAWL_BUSY, IS_LOST },
    { ER_NORMAL_SHUTDOWN, PAWL_BUSY, IS_LOST },
    { ER_FORCING_CLOSE, PAWL_BUSY, IS_LOST },
    { ER_ABORTING_CONNECTION, PAWL_BUSY, IS_LOST },
    { ER_NEW_ABORTING_CONNECTION, PAWL_BUSY, IS_LOST },
    { ER_NET_READ_ERROR, PAWL_BUSY, IS_LOST },
    { ER_NET_READ_INTERRUPTED, PAWL_BUSY, IS_LOST },
    { ER_NET_ERROR_ON_WRITE, PAWL_BUSY, IS_LOST },
    { ER_NET_WRITE_INTERRUPTED, PAWL_BUSY, IS_LOST },
    { ER_QUERY_INTERRUPTED, PAWL_BUSY, IS_STATUS },
    { CODE_STATEMENT_TIME, PAWL_BUSY, IS_STATUS },
    { CODE_EXECUTION_TIME, PAWL_BUSY, IS_STATUS },
    { CR_CONNECTION_ERROR, PAWL_BUSY, IS_LOST },
    { CR_CONN_HOST_ERROR, PAWL_BUSY, IS_LOST },
    { CR_UNKNOWN_HOST, PAWL_BUSY, IS_LOST },
    { CR_SERVER_HANDSHAKE_ERR, PAWL_BUSY, IS_LOST },
    { ER_CON_COUNT_ERROR, PAWL_BUSY, IS_STATUS },
    { ER_TOO_MANY_USER_CONNECTIONS, PAWL_BUSY, IS_STATUS },
    { ER_USER_LIMIT_REACHED, PAWL_BUSY, IS_STATUS },
    { ER_OPTION_PREVENTS_STATEMENT, PAWL_BUSY, IS_STATUS }, /* read-only: a replica */
    { ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, PAWL_BUSY, IS_STATUS },
    { CODE_READ_ONLY_MODE, PAWL_BUSY, IS_STATUS },
    { ER_DISK_FULL, PAWL_BUSY, IS_STATUS },
    { ER_RECORD_FILE_FULL, PAWL_BUSY, IS_STATUS },
    { ER_GET_ERRNO, PAWL_BUSY, IS_STATUS },
    { ER_ERROR_DURING_COMMIT, PAWL_BUSY, IS_STATUS },
    { ER_OUTOFMEMORY, PAWL_BUSY, IS_STATUS },
    { ER_OUT_OF_RESOURCES, PAWL_BUSY, IS_STATUS },
    { ER_LOCK_TABLE_FULL, PAWL_BUSY, IS_STATUS },
    { CR_OUT_OF_MEMORY, PAWL_NO_MEMORY, IS_LOST },
    { ER_ACCESS_DENIED_ERROR, PAWL_INVALID, IS_STATUS },
    { CODE_ACCESS_DENIED_SOCKET, PAWL_INVALID, IS_STATUS },
    { ER_DBACCESS_DENIED_ERROR, PAWL_INVALID, IS_DENIED },
    { ER_TABLEACCESS_DENIED_ERROR, PAWL_INVALID, IS_DENIED },
    { ER_COLUMNACCESS_DENIED_ERROR, PAWL_INVALID, IS_DENIED },
    { ER_SPECIFIC_ACCESS_DENIED_ERROR, PAWL_INVALID, IS_DENIED },
    { ER_BAD_DB_ERROR, PAWL_INVALID, IS_STATUS },
    { ER_PASSWORD_NO_MATCH, PAWL_INVALID, IS_STATUS }, /* a GRANT to an account that does not exist
                                                        */
    { ER_CANT_CREATE_USER_WITH_GRANT, PAWL_INVALID, IS_STATUS },
    { ER_HOST_NOT_PRIVILEGED, PAWL_INVALID, IS_STATUS },
    { CR_SSL_CONNECTION_ERROR, PAWL_INVALID, IS_LOST },
    { ER_NET_PACKET_TOO_LARGE, PAWL_TOO_LARGE, IS_LOST },
    { CR_NET_PACKET_TOO_LARGE, PAWL_TOO_LARGE, IS_LOST },
};

/* Should the transaction be repeated? Not for a lock that was not released after several waits: an
 * application may hold it for long. */
static bool worth_again(struct mydb *c, unsigned code)
{
    if (code == ER_LOCK_WAIT_TIMEOUT)
        return ++c->lock_waits <= LOCK_WAITS_MAX;
    return true;
}

enum pawl_status mydb_fail(struct mydb *c, unsigned code, const char *text, const char *doing,
                           struct pawl_err *err)
{
    enum pawl_status st = PAWL_BROKEN;
    bool denied = false;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        if (codes[i].code != code)
            continue;
        st = codes[i].status;
        c->lost = c->lost || codes[i].meaning == IS_LOST;
        denied = codes[i].meaning == IS_DENIED && !c->driver_only;
        if (codes[i].meaning == IS_PASSING && worth_again(c, code))
            c->ledger.redo = true;
        c->ledger.blocked = c->ledger.blocked || code == ER_LOCK_WAIT_TIMEOUT;
    }
    /* The server has rolled back the whole transaction, or the connection is gone. */
    if (code == ER_LOCK_DEADLOCK || c->lost)
        c->open = false;
    st = denied ? led_denied(c->url.user ? c->url.user : "?", text, err)
                : err_set(err, st, "database: %s: %.300s", doing, text);
    if (err)
        err->native = (int)code;
    return st;
}

enum pawl_status mydb_failed(struct mydb *c, const char *doing, struct pawl_err *err)
{
    enum pawl_status st = mydb_fail(c, mysql_errno(c->db), mysql_error(c->db), doing, err);
    if (err && !store_denied(err))
        snprintf(err->sqlstate, sizeof err->sqlstate, "%s", mysql_sqlstate(c->db));
    return st;
}

enum pawl_status mydb_fail_aside(struct mydb *c, MYSQL *db, const char *doing, struct pawl_err *err)
{
    bool lost = c->lost, open = c->open, redo = c->ledger.redo, blocked = c->ledger.blocked;
    int waits = c->lock_waits;
    enum pawl_status st = mydb_fail(c, mysql_errno(db), mysql_error(db), doing, err);
    c->lost = lost;
    c->open = open;
    c->ledger.redo = redo;
    c->ledger.blocked = blocked;
    c->lock_waits = waits;
    return st;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void library_begin(void)
{
    mysql_library_init(0, NULL, NULL);
}

static void options(const struct mydb *c, MYSQL *db)
{
    const struct mydb_url *u = &c->url;
    unsigned connect_s = CONNECT_S, answer_s = c->reads ? ANSWER_S : COMMIT_S, no = 0;
    unsigned send_s = ANSWER_S;
    enum mysql_protocol_type tcp = MYSQL_PROTOCOL_TCP, local = MYSQL_PROTOCOL_SOCKET;
    my_bool yes = 1;
    mysql_options(db, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
    mysql_options(db, MYSQL_OPT_READ_TIMEOUT, &answer_s);
    mysql_options(db, MYSQL_OPT_WRITE_TIMEOUT, &send_s);
    mysql_options(db, MARIADB_OPT_IO_WAIT, (void *)mydb_io_wait);
    mysql_options(db, MYSQL_OPT_LOCAL_INFILE, &no);
    mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options4(db, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "pawl");
    if (u->socket)
        mysql_options(db, MYSQL_OPT_PROTOCOL, &local);
    else if (u->host)
        mysql_options(db, MYSQL_OPT_PROTOCOL, &tcp);
    if (u->tls == MYDB_TLS_NONE)
        return;
    mysql_ssl_set(db, u->key, u->cert, u->ca, NULL, NULL);
    mysql_options(db, MYSQL_OPT_SSL_ENFORCE, &yes);
    if (u->tls == MYDB_TLS_VERIFIED)
        mysql_options(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
}

/* On a local socket the options of TCP have no effect. */
static void keep_alive(MYSQL *db)
{
    static const struct {
        int level, name, value;
    } v[] = { { SOL_SOCKET, SO_KEEPALIVE, 1 },
              { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
              { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EACH_S },
              { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT },
              { IPPROTO_TCP, TCP_USER_TIMEOUT, UNANSWERED_MS } };
    /* With TLS the client library waits inside a read, and in mydb_io_wait() only after that. */
    struct timeval read = { .tv_sec = 1 };
    for (size_t i = 0; i < COUNT_OF(v); i++)
        (void)setsockopt(mysql_get_socket(db), v[i].level, v[i].name, &v[i].value,
                         sizeof v[i].value);
    (void)setsockopt(mysql_get_socket(db), SOL_SOCKET, SO_RCVTIMEO, &read, sizeof read);
}

/* found_rows: an update that changes nothing still found its row. */
static MYSQL *open_one(struct mydb *c, struct pawl_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct mydb_url *u = &c->url;
    pthread_once(&once, library_begin);
    MYSQL *db = mysql_init(NULL);
    if (!db) {
        err_no_memory(err, "a connection");
        return NULL;
    }
    options(c, db);
    if (mysql_real_connect(db, u->host, u->user, u->password, u->database, u->port, u->socket,
                           CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS)) {
        keep_alive(db);
        return db;
    }
    mydb_fail(c, mysql_errno(db), mysql_error(db), "connecting", err);
    mysql_close(db);
    return NULL;
}

static enum pawl_status version_fits(struct mydb *c, struct pawl_err *err)
{
    unsigned long version = mysql_get_server_version(c->db), least;
    c->maria = strstr(mysql_get_server_info(c->db), "MariaDB") != NULL;
    least = c->maria ? 100600 : 80000;
    if (version < least)
        return err_set(err, PAWL_INVALID, "database: %s %lu.%lu is too old, Pawl needs %s",
                       c->maria ? "MariaDB" : "MySQL", version / 10000, version / 100 % 100,
                       c->maria ? "10.6" : "8.0");
    return PAWL_OK;
}

/* lock_wait_timeout is the wait for a table that is being altered. */
static enum pawl_status settings(struct mydb *c, struct pawl_err *err)
{
    static const char common[] =
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
        "SET SESSION autocommit = 1, time_zone = '+00:00', innodb_lock_wait_timeout = 1,"
        " lock_wait_timeout = 30, sql_safe_updates = 0, sql_select_limit = DEFAULT,"
        " max_error_count = 0,"
        " sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';";
    char maria[120];
    snprintf(maria, sizeof maria,
             "SET SESSION max_statement_time = 60, idle_transaction_timeout = %d,"
             " max_recursive_iterations = 1000000;",
             c->idle_s);
    static const char mysql[] =
        "SET SESSION max_execution_time = 60000, cte_max_recursion_depth = 1000000;";
    int64_t packet, id = 0;
    enum pawl_status st = mydb_say(c, common, NULL, err);
    if (st == PAWL_OK)
        st = mydb_say(c, c->maria ? maria : mysql, NULL, err);
    if (st == PAWL_OK)
        st = mydb_say(c, "SELECT @@max_allowed_packet", &packet, err);
    if (st == PAWL_OK)
        st = mydb_say(c, "SELECT CONNECTION_ID()", &id, err);
    c->pooled = st == PAWL_OK && id != (int64_t)mysql_thread_id(c->db);
    if (st == PAWL_OK)
        c->send_max = (size_t)MIN((int64_t)SEND_LEN_MAX, packet / 4);
    return st;
}

static void disconnect(struct ledger *l)
{
    struct mydb *c = mydb_of(l);
    if (c->db)
        mysql_close(c->db);
    c->db = NULL;
    c->lost = c->open = c->wrote = false;
    c->limit_s = 0;
    /* The next connection may be to another server, with counters of its own. */
    memset(c->counters, 0, sizeof c->counters);
}

static enum pawl_status connect_now(struct ledger *l, struct pawl_err *err)
{
    struct mydb *c = mydb_of(l);
    struct pawl_err own = { 0 };
    c->db = open_one(c, &own);
    enum pawl_status st = c->db ? PAWL_OK : own.status;
    if (st != PAWL_OK && err)
        *err = own;
    if (st == PAWL_OK)
        st = version_fits(c, err);
    return st == PAWL_OK ? settings(c, err) : st;
}

static bool usable(struct ledger *l, bool stale)
{
    const struct mydb *c = mydb_of(l);
    return c->db && !c->lost && !(stale && mydb_closed(c));
}

enum pawl_status mydb_connect(struct mydb *c, struct pawl_err *err)
{
    static const struct led_conn_ops ops = { usable, disconnect, connect_now };
    return led_connect(&c->ledger, &c->conn, &ops, err);
}

enum pawl_status mydb_second(struct mydb *c, MYSQL **out, struct pawl_err *err)
{
    struct pawl_err own = { 0 };
    bool lost = c->lost, open = c->open;
    *out = open_one(c, &own);
    c->lost = lost; /* the error was the second connection's */
    c->open = open;
    if (!*out && err)
        *err = own;
    return *out ? PAWL_OK : own.status;
}

/* ---- Transactions ---------------------------------------------------------------------------- */

static bool in_tx(struct ledger *l)
{
    const struct mydb *c = mydb_of(l);
    return c->db && !c->lost && c->open;
}

static enum pawl_status begin_once(struct mydb *c, enum led_begin how,
                                   const struct led_batch *first, struct pawl_err *err)
{
    char text[240];
    struct mydb_frame f = { .begin = text, .n_begin = 1 };
    const char *usual =
        c->maria ? "SET SESSION max_statement_time = 60;"
                 : "SET SESSION max_execution_time = 60000, cte_max_recursion_depth = 1000000,"
                   " wait_timeout = DEFAULT;";
    snprintf(text, sizeof text, "%s%s%s", c->open ? "ROLLBACK;" : "", c->limit_s ? usual : "",
             how == LED_READ ? "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
                               "START TRANSACTION READ ONLY"
                             : "START TRANSACTION");
    f.n_begin += (size_t)c->open + (c->limit_s != 0) + (how == LED_READ);
    c->open = true;
    c->wrote = false;
    c->limit_s = 0;
    return mydb_batch_framed(c, first, &f, err);
}

static void rollback(struct ledger *l)
{
    struct mydb *c = mydb_of(l);
    if (in_tx(l)) {
        enum pawl_status undone = mydb_say(c, "ROLLBACK", NULL, NULL);
        (void)undone;
    }
    c->open = c->wrote = false;
}

/* A transaction that a handler left open is rolled back. */
static enum pawl_status autocommit(struct ledger *l, struct pawl_err *err)
{
    struct mydb *c = mydb_of(l);
    enum pawl_status st = mydb_connect(c, err);
    led_conn_autocommits(&c->conn);
    if (st == PAWL_OK && c->open)
        rollback(l);
    return st;
}

static enum pawl_status begin(struct ledger *l, enum led_begin how, const struct led_batch *first,
                              struct pawl_err *err)
{
    struct mydb *c = mydb_of(l);
    enum pawl_status st = mydb_connect(c, err);
    led_conn_begins(&c->conn, how, first);
    if (st == PAWL_OK)
        st = begin_once(c, how, first, err);
    c->conn.patience_us = 0;
    return st;
}

/* After COMMIT is sent, a lost answer leaves open whether it committed: UNKNOWN. So does an error
 * of COMMIT, unless it says that the transaction was rolled back. */
static enum pawl_status commit(struct ledger *l, const struct led_batch *last, struct pawl_err *err)
{
    struct mydb *c = mydb_of(l);
    struct mydb_frame f = { .commit = true };
    if (!in_tx(l))
        return err_set(err, PAWL_BUSY, "database: the transaction is gone");
    enum pawl_status st = mydb_batch_framed(c, last, &f, err);
    store_commits(&l->base, false);
    unsigned code = st == PAWL_OK || !f.sent ? 0 : mysql_errno(c->db);
    bool undone = !f.sent || f.undone || code == ER_LOCK_DEADLOCK || code == ER_ERROR_DURING_COMMIT;
    if (f.committed || !undone)
        c->open = false;
    if (f.committed)
        c->lock_waits = 0;
    if (st == PAWL_OK || (undone && !f.committed))
        return st;
    c->ledger.redo = false;
    if (f.committed)
        return err_set(err, PAWL_BROKEN, "database: a row that was locked was not there");
    return err_set(err, PAWL_UNKNOWN, "database: the answer to COMMIT was lost");
}

static const struct led_driver driver = {
    .cursors = true,
    .begin = begin,
    .autocommit = autocommit,
    .commit = commit,
    .rollback = rollback,
    .in_tx = in_tx,
    .query = mydb_query,
    .batch = mydb_batch,
    .numbers = mydb_numbers,
    .plain = mydb_plain,
    .script = mydb_script,
};

/* ---- Opening --------------------------------------------------------------------------------- */

static enum pawl_status open_mysql(const struct store_conf *conf, struct store **out,
                                   struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct mydb *c = mem_zalloc(sizeof *c);
    if (!c)
        return err_no_memory(err, "a connection");
    c->ledger.base.ops = &store_mysql;
    s = &c->ledger.base;
    led_init(&c->ledger, conf, &driver);
    buf_init(&c->out, OUT_LEN_MAX);
    c->driver_only = conf->role == STORE_DRIVER_ONLY;
    c->reads = conf->role == STORE_READER;
    led_conn_init(&c->conn, conf);
    c->idle_s = conf->idle_us ? (int)MIN((conf->idle_us + SEC_US - 1) / SEC_US, 86400) : IDLE_S;
    enum pawl_status st = mydb_url_read(conf->url, &c->url, err);
    if (st == PAWL_OK)
        st = mydb_connect(c, err);
    if (st != PAWL_OK)
        return st;
    *out = TAKE(s);
    return PAWL_OK;
}

static void close_mysql(struct store *s)
{
    struct mydb *c = mydb_of(led_of(s));
    disconnect(&c->ledger);
    led_end(&c->ledger);
    mydb_url_release(&c->url);
    for (size_t i = 0; i < SQL_COUNT; i++)
        mem_free(c->texts[i]);
    mem_free(c->marks);
    buf_release(&c->out);
    mem_free(c);
}

/* ---- Small slots ----------------------------------------------------------------------------- */

static enum pawl_status version(struct store *s, int64_t *out, struct pawl_err *err)
{
    return led_number_alone(led_of(s), SQL_CHANGE_SUM, out, err);
}

const struct store_ops store_mysql = {
    .name = "mariadb",
    .traits = STORE_DURABLE | STORE_SHARED | STORE_DRIVEN,
    .open = open_mysql,
    .close = close_mysql,
    .migrate = mydb_migrate,
    .schema = mydb_schema,
    .commit = led_commit_ops,
    .get = led_get_calls,
    .list = led_list,
    .attempts = led_attempts,
    .archived = led_archived,
    .object = led_read_object,
    .keys = led_read_keys,
    .queues = led_queues,
    .nodes = led_nodes,
    .leaders = led_leaders,
    .cancel_requests = led_cancel_requests,
    .look = led_feature_look,
    .now = led_now,
    .version = version,
    .steps = mydb_steps,
    .grants = mydb_grants,
    .grant = mydb_grant,
    .doctor = mydb_doctor,
    .sql = mydb_sql,
};
