/*
 * wallet.c - money moves between wallets while the server is killed repeatedly.
 *
 * PAWL_SEED repeats the times of the kills; PAWL_CRASH_SECONDS is the length of the test.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "wallet_fixture.h"

RUNS_ON(ENGINES_DURABLE)

/* A minimum number of kills, however slow the machine is. */
enum { KILLS = 4 };

static int kill_until(struct server_client *dice, int64_t until)
{
    int kills = 0;
    for (; fixture_mono() < until || kills < KILLS; kills++) {
        server_process_start();
        server_process_ready();
        usleep((unsigned)(1000 + server_client_dice(dice, 700000) * check_scale()));
        server_process_kill(); /* a random time */
    }
    server_process_start();
    server_process_ready();
    return kills;
}

TEST(every_balance_is_what_the_clients_were_told, .deadline_s = 1200)
{
    int64_t otherwise = !check_long() ? 4 : check_scale() > 1 ? 20 : 10;
    int64_t seconds = wallet_setting("PAWL_CRASH_SECONDS", otherwise);
    uint64_t seed = (uint64_t)wallet_setting("PAWL_SEED", fixture_mono());
    struct server_client dice;
    printf("PAWL_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    server_client_init(&dice, seed);
    wallet_begin(param, seed);
    int kills = kill_until(&dice, fixture_mono() + seconds * FIXTURE_SEC);
    printf("%d kills\n", kills);
    GE_INT(kills, KILLS);
    wallet_end(param);
    GT_INT(wallet_lost(), 0);
    server_client_release(&dice);
}
