/*
 * wait.c - waiting for the server, never for ever.
 *
 * A server that is stopped, or a network that swallows what it is given, answers nothing and closes
 * nothing. Past the deadline the socket is shut down, and from there on it is a lost connection
 * like any other. What comes behind the first answer of several is waited for by the client
 * library, which has a limit of its own.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <poll.h>
#include <sys/socket.h>

#include "store/mysql/mydb.h"

/* Somewhat longer than the server itself lets a statement run. */
#define ANSWER_US (65 * SEC_US)

static void await(MYSQL *db, int64_t until_us)
{
    struct pollfd v = { .fd = mysql_get_socket(db), .events = POLLIN };
    for (;;) {
        int64_t left_us = until_us - world_mono(&world_real);
        if (left_us <= 0) {
            shutdown(v.fd, SHUT_RDWR);
            return;
        }
        if (poll(&v, 1, (int)(left_us / MS_US + 1)) > 0)
            return;
    }
}

bool mydb_exec(struct mydb *c, const char *text, size_t len)
{
    int64_t patience_us = c->patience_us ? c->patience_us : ANSWER_US;
    if (mysql_send_query(c->db, text, len) != 0)
        return false;
    await(c->db, world_mono(&world_real) + patience_us);
    return mysql_read_query_result(c->db) == 0;
}

bool mydb_closed(const struct mydb *c)
{
    /* Between two questions there is nothing to read, but a last word or the end. */
    struct pollfd v = { .fd = mysql_get_socket(c->db), .events = POLLIN };
    return poll(&v, 1, 0) != 0;
}
