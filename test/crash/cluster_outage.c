/*
 * cluster_outage.c - three nodes lose their database at the same time, under load: no node is
 * declared dead and no attempt is lost.
 *
 * PAWL_OUTAGE_SECONDS is the length of the outage (2 s more than the grace).
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "db_server.h"
#include "fleet.h"
#include "fleet_load.h"
#include "wallet_fixture.h"

RUNS_ON(ENGINE_SERVER)

/* Longer than a machine stalls; a sanitizer needs more. */
#define GRACE_US (MAX(4, check_scale()) * FIXTURE_SEC)

TEST(nothing_is_lost_when_the_database_comes_back, .deadline_s = 400)
{
    struct db_server *s = engine_own(param);
    fleet_begin(&(struct fleet_conf){ .db = engine_url(param), .grace_us = GRACE_US });
    for (int i = 0; i < FLEET_NODES; i++)
        fleet_start(i);
    fleet_ready();
    fleet_load_begin(6);
    UNTIL((fleet_tend(), fleet_load_done() > 50));
    int64_t seconds = wallet_setting("PAWL_OUTAGE_SECONDS", (int)(GRACE_US / FIXTURE_SEC) + 2);
    db_stop(s, DB_CLEAN);
    int64_t back = fixture_mono() + seconds * FIXTURE_SEC;
    while (fixture_mono() < back) {
        fleet_tend();
        usleep(10000);
    }
    db_up(s);
    int64_t up = fixture_mono();
    int before = fleet_load_done();
    UNTIL((fleet_tend(), fleet_load_done() > before));
    printf("away for %lld s; the next call ended %lld ms after it was back\n", (long long)seconds,
           (long long)(fixture_mono() - up) / 1000);
    UNTIL((fleet_tend(), fleet_load_done() > before + 50));
    int calls = fleet_load_end();
    EQ_INT(engine_int(param, "SELECT COUNT(*) FROM pawl_node WHERE dead = 1"), 0);
    fleet_end();
    fleet_load_check(param, calls, true);
    EQ_INT(fleet_starts(), FLEET_NODES); /* no node's process ended */
}
