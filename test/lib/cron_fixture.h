/*
 * cron_fixture.h - schedules without nodes: connections that know the feature, and the operations
 * that cases about crashes and races run on them, on a clock that the case moves.
 *
 * Every function ends the case when it cannot do its work. Any thread, with a connection of its
 * own.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CRON_FIXTURE_H
#define CRON_FIXTURE_H

#include "check.h"
#include "feature/cron.h"
#include "own_world.h"
#include "store/feature.h"

/* Open the database, with the features; `w` outlives the connection. */
struct store *cron_fixture_open(const char *url, const struct own_world *w);
/* Commit, again while the answer is BUSY: a process that was killed, or another connection, may
 * hold a row. Returns the answer. */
enum pawl_status cron_fixture_commit(struct store *s, struct op *op);
/* The operation on a schedule. `q` is borrowed. */
struct op cron_fixture_op(struct arena *a, struct cron_op *q);
/* A PUT of this JSON. */
struct cron_op cron_fixture_put_op(struct arena *a, const char *name, const char *json);
/* Store a schedule; it must be taken. */
void cron_fixture_put(struct store *s, struct arena *a, const char *name, const char *json);
/* Decide what is due until nothing is left. Returns how many ticks were submitted. */
int cron_fixture_tick(struct store *s, struct arena *a, const char *node);
/* Claim up to max calls, always with the same token: what a process that was killed held is got
 * back with it. */
struct claim cron_fixture_claim(struct store *s, struct arena *a, int max);
/* An operation that completes what was claimed. `c` is borrowed. */
struct op cron_fixture_finish(struct arena *a, const struct claim *c);

#endif
