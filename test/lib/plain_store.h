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
/* Assert that the call exists and has this input. */
void plain_has(struct store *s, const char *id, struct bytes input);
/* The version of the store's schema. */
struct schema plain_schema(struct store *s);

#endif
