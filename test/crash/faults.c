/*
 * faults.c - money moves between wallets while the database server cuts connections, is stopped or
 * killed, and sometimes Pawl with it.
 *
 * Pawl must survive everything but its own kill. PAWL_SEED repeats the times of the faults;
 * PAWL_CRASH_SECONDS is the length of the test.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "db_server.h"
#include "wallet_fixture.h"

RUNS_ON(ENGINE_SERVER)

struct faults {
    int cuts, cut, restarts, crashes, kills;
};

/* One fault after a pause. */
static void one(struct db_server *s, struct server_client *dice, struct faults *f, bool harder)
{
    usleep((unsigned)(1000 + server_client_dice(dice, 500000) * check_scale())); /* a random time */
    switch (server_client_dice(dice, harder ? 6 : 1)) {
    case 0:
    case 1:
    case 2:
        f->cut += db_kill_connections(s);
        f->cuts++;
        break;
    case 3:
        db_restart(s, DB_CLEAN);
        f->restarts++;
        break;
    case 4:
        db_restart(s, DB_KILL);
        f->crashes++;
        break;
    default:
        server_process_kill();
        server_process_start();
        server_process_ready();
        f->kills++;
    }
}

static struct faults stress(void *param, bool harder)
{
    int64_t otherwise = !check_long() ? 4 : check_scale() > 1 ? 20 : 8;
    int64_t seconds = wallet_setting("PAWL_CRASH_SECONDS", otherwise);
    uint64_t seed = (uint64_t)wallet_setting("PAWL_SEED", fixture_mono());
    struct db_server *s = engine_own(param);
    struct server_client dice;
    struct faults f = { 0 };
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    server_client_init(&dice, seed);
    wallet_begin(param, seed);
    server_process_start();
    server_process_ready();
    /* A minimum number of faults, however long each takes. */
    int64_t until = fixture_mono() + seconds * FIXTURE_SEC;
    while (fixture_mono() < until || f.cuts + f.restarts + f.crashes + f.kills < 3)
        one(s, &dice, &f, harder);
    printf("%d cuts of %d connections, %d restarts, %d crashes, %d kills\n", f.cuts, f.cut,
           f.restarts, f.crashes, f.kills);
    wallet_end(param);
    server_client_release(&dice);
    return f;
}

TEST(connections_are_cut_at_random, .deadline_s = 1200)
{
    struct faults f = stress(param, false);
    GT_INT(f.cuts, 2);
    GT_INT(f.cut, f.cuts); /* some client was connected */
}

TEST(the_server_restarts_at_random, .deadline_s = 1200)
{
    struct faults f = stress(param, true);
    GT_INT(f.cuts + f.restarts + f.crashes + f.kills, 2);
}
