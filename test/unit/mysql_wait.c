/*
 * mysql_wait.c - a server that stops in the middle of its answers: every wait has a timeout.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "plain_store.h"
#include "engines.h"
#include "my_proxy.h"
#include "fixture.h"
#include "store/mysql/mydb.h"

RUNS_ON_ENGINE("mariadb")

#define ANSWER_US (1500 * MS_US)

/* As when the server is frozen behind a proxy, and new connections reach its successor. The answer
 * to COMMIT is one of several, and the client library waits for it. */
TEST(the_answer_to_commit_is_not_waited_for_for_ever, .deadline_s = 60)
{
    struct pawl_err err;
    struct store *s = plain_open(my_proxy_url(engine_url(param)), NULL);
    OK(store_migrate(s, false, &err), &err);
    plain_accept(s, "first", BYTES_NONE);
    mydb_answer_us = ANSWER_US;
    my_proxy_cut_commit(PROXY_STUCK, 0);
    int64_t began_us = fixture_mono();
    plain_accept(s, "a", BYTES_NONE); /* the second time, on a new connection */
    TRUE(my_proxy_was_cut());
    GE_INT(fixture_mono() - began_us, ANSWER_US);
    EQ_INT(store_committing(s), 0);
    plain_has(s, "a", BYTES_NONE);
    my_proxy_let_go();
    store_close(s);
}
