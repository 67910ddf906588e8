/*
 * patience.c - how long a connection waits for an answer, and what the server is asked meanwhile.
 *
 * A COMMIT without an answer looks the same whether it waits for a synchronous standby, the server
 * is slow, or the connection is dead. So the engine asks the server on a second connection. While
 * the server says that the commit waits for a standby, the wait goes on: giving up would each time
 * leave a session behind that goes on waiting. While the server works on the commit, it has not
 * stalled, and its clock (store_commits) begins again. The first question comes early enough that
 * its answer is there before callers are told UNKNOWN.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/hook.h"
#include "base/limits.h"
#include "store/ledger/ledger.h"

/* The time between two questions about a commit: before it counts as stalled, and while it waits
 * for a standby. */
#define ASK_EACH_US (SLOWER(COMMIT_WAIT_US) / 2)
#define STANDBY_US (10 * SEC_US)
/* A server that works on a commit for longer counts as stalled: its disk may hang. */
#define WORKS_US (10 * SEC_US)

struct led_patience led_patience(const struct ledger *c, int64_t now_us, int64_t patience_us)
{
    bool commits = atomic_load(&c->base.commit_us) != 0;
    int64_t until_us = now_us + patience_us;
    return (struct led_patience){
        .began_us = now_us,
        .until_us = until_us,
        .next_us = commits ? MIN(now_us + ASK_EACH_US, until_us) : until_us,
        .commits = commits,
    };
}

bool led_patient(struct ledger *c, struct led_patience *p, int64_t now_us, enum led_commit said)
{
    if (p->commits && said == LED_COMMIT_WAITS) {
        p->until_us = p->next_us = now_us + STANDBY_US;
        return true;
    }
    if (now_us >= p->until_us)
        return false;
    p->next_us = p->until_us;
    if (said == LED_COMMIT_WORKS && now_us - p->began_us < WORKS_US) {
        store_commits(&c->base, true);
        p->next_us = MIN(now_us + ASK_EACH_US, p->until_us);
    }
    return true;
}
