/*
 * plain_store.h - a store without exec around it: open it, add a call, look at it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BARE_STORE_H
#define BARE_STORE_H

#include "store/store.h"

/* Open the store without migrating it; schema NULL: "pawl". The caller closes it. */
struct store *plain_open(const char *url, const char *schema);
/* Accept a call of type "t"; BYTES_NONE: no input. */
void plain_accept(struct store *s, const char *id, struct bytes input);
/* Accept a call that needs "gpu". Returns the answer. */
enum pawl_status plain_needing(struct store *s, const char *id, struct pawl_err *err);
/* Before the second half of step 8 (lanes) has run, calls with needs are refused, alone, in a batch
 * and when they are sent. */
void plain_refuses_needs(struct store *s);
/* Let a call of this queue pass through the database, and then a day with gc. Returns whether the
 * queue is still listed. */
bool plain_lane_stays(const char *url, const char *queue);
/* Assert that the call exists and has this input. */
void plain_has(struct store *s, const char *id, struct bytes input);
/* The version of the store's schema. */
struct schema plain_schema(struct store *s);

#endif
