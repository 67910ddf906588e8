/*
 * wait.c - waiting for an answer of the server, with a deadline.
 *
 * A server that is stopped, or a network that drops packets, neither answers nor closes the
 * connection. At the deadline the socket is shut down, which makes it a lost connection. One
 * exception: a commit that waits for a semi-synchronous replica
 * (ledger/patience.c). The answers of one packet come one by one, and the client library may have
 * some of them already. So the library calls mydb_io_wait() when it has to wait.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "store/mysql/mydb.h"

/* A little more than the statement timeout of the server. */
#define ANSWER_US (65 * SEC_US)
/* How long an answer on a second connection may take. */
#define ASK_US (2 * SEC_US)
/* And a commit on it; the transaction that waits for it is idle in the meantime. */
#define COMMIT_ASIDE_US (10 * SEC_US)

#ifdef PAWL_TEST
int64_t mydb_answer_us = ANSWER_US;
#else
static const int64_t mydb_answer_us = ANSWER_US;
#endif

/* The handle whose answers this thread reads. */
static _Thread_local struct mydb *reading;

/* Wait until an answer can be read; false: the time is up. */
static bool comes(MYSQL *db, int64_t until_us)
{
    struct pollfd v = { .fd = mysql_get_socket(db), .events = POLLIN };
    for (;;) {
        int64_t left_us = until_us - world_mono(&world_real);
        if (left_us <= 0)
            return false;
        if (poll(&v, 1, (int)(left_us / MS_US + 1)) > 0)
            return true;
    }
}

/* ---- A second connection --------------------------------------------------------------------- */

/* Send one statement of a text and read its answer: the last column of its first row as a number.
 * The caller limits the time. */
static enum pawl_status answer(struct mydb *c, MYSQL *db, int64_t *out, struct pawl_err *err)
{
    if (mysql_read_query_result(db) != 0)
        return mydb_fail_aside(c, db, err);
    MYSQL_RES *res = mysql_store_result(db);
    MYSQL_ROW row = res ? mysql_fetch_row(res) : NULL;
    const char *last = row ? row[mysql_num_fields(res) - 1] : NULL;
    if (last && out)
        *out = strtoll(last, NULL, 10);
    mysql_free_result(res);
    return PAWL_OK;
}

static enum pawl_status say(struct mydb *c, MYSQL *db, struct bytes text, int64_t *out,
                            struct pawl_err *err)
{
    if (mysql_send_query(db, text.data, text.len) != 0)
        return mydb_fail_aside(c, db, err);
    if (!comes(db, world_mono(&world_real) + ASK_US))
        shutdown(mysql_get_socket(db), SHUT_RDWR);
    return answer(c, db, out, err);
}

/* The same for a statement that commits, which may have to wait for a replica. */
static enum pawl_status say_commit(struct mydb *c, MYSQL *db, struct bytes text,
                                   struct pawl_err *err)
{
    if (mysql_send_query(db, text.data, text.len) != 0)
        return mydb_fail_aside(c, db, err);
    mydb_await(c, db, COMMIT_ASIDE_US);
    return answer(c, db, NULL, err);
}

/* Run the statements of a name one by one. `out`: one number each; NULL: they commit. */
static enum pawl_status say_all(struct mydb *c, MYSQL *db, enum sql_name name,
                                const struct led_params *p, int64_t *out, struct pawl_err *err)
{
    struct buf text;
    struct mydb_part part;
    const char *at = mydb_text(c, name);
    enum pawl_status st = at ? PAWL_OK : err_no_memory(err, "a statement");
    buf_init(&text, 64 << 10);
    while (st == PAWL_OK && mydb_part_next(&at, &part)) {
        buf_reset(&text);
        part.row = 0;
        part.end = mydb_rows(p);
        mydb_expand(&text, &part, p);
        if (!buf_ok(&text))
            st = err_no_memory(err, "a statement");
        else
            st = out ? say(c, db, buf_bytes(&text), out++, err)
                     : say_commit(c, db, buf_bytes(&text), err);
    }
    buf_release(&text);
    return st;
}

enum pawl_status mydb_aside(struct mydb *c, enum sql_name name, const struct led_params *p,
                            struct pawl_err *err)
{
    MYSQL *db;
    enum pawl_status st = mydb_second(c, &db, err);
    if (st != PAWL_OK)
        return st;
    st = say(c, db, BYTES("SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1"), NULL, err);
    if (st == PAWL_OK)
        st = say_all(c, db, name, p, NULL, err);
    mysql_close(db);
    return st;
}

/* What the server says of the commit that was sent on `db`. Takes up to 6 s. */
static enum led_commit commit_state(struct mydb *c, MYSQL *db)
{
    struct led_params p = { 0 };
    struct pawl_err err;
    MYSQL *second;
    int64_t said[2] = { 0, 0 };
    led_int(&p, c->pooled ? 0 : (int64_t)mysql_thread_id(db));
    if (mydb_second(c, &second, &err) != PAWL_OK)
        return LED_COMMIT_SILENT;
    enum pawl_status st = say_all(c, second, SQL_STANDBY_WAIT, &p, said, &err);
    mysql_close(second);
    if (st != PAWL_OK || !said[0])
        return LED_COMMIT_SILENT;
    return said[1] ? LED_COMMIT_WAITS : LED_COMMIT_WORKS;
}

/* ---- The first ------------------------------------------------------------------------------- */

void mydb_await(struct mydb *c, MYSQL *db, int64_t patience_us)
{
    struct led_patience p = led_patience(&c->ledger, world_mono(&world_real), patience_us);
    while (!comes(db, p.next_us)) {
        enum led_commit said = p.commits ? commit_state(c, db) : LED_COMMIT_SILENT;
        if (!led_patient(&c->ledger, &p, world_mono(&world_real), said)) {
            shutdown(mysql_get_socket(db), SHUT_RDWR);
            return;
        }
    }
}

int mydb_io_wait(my_socket fd, my_bool is_read, int timeout_ms)
{
    struct mydb *c = reading;
    struct pollfd v = { .fd = fd, .events = is_read ? POLLIN : POLLOUT };
    int n;
    if (c && is_read && fd == mysql_get_socket(c->db)) {
        mydb_await(c, c->db, mydb_answer_us);
        return 1;
    }
    do {
        n = poll(&v, 1, timeout_ms > 0 ? timeout_ms : -1);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ETIMEDOUT;
    return n;
}

bool mydb_exec(struct mydb *c, const char *text, size_t len)
{
    if (mysql_send_query(c->db, text, len) != 0)
        return false;
    reading = c;
    mydb_await(c, c->db, c->conn.patience_us ? c->conn.patience_us : mydb_answer_us);
    return mysql_read_query_result(c->db) == 0;
}

void mydb_answered(void)
{
    reading = NULL;
}

bool mydb_closed(const struct mydb *c)
{
    /* On an idle connection only the server's last error or its end can be read. */
    struct pollfd v = { .fd = mysql_get_socket(c->db), .events = POLLIN };
    return poll(&v, 1, 0) != 0;
}
