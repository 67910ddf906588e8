/*
 * bare_store.h - a store as it is, without a machine around it: open it, put a call in, look.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BARE_STORE_H
#define BARE_STORE_H

#include "store/store.h"

/* schema NULL: "pawl". The caller's to end. */
struct store *bare_open(const char *url, const char *schema);
/* A call of type "t"; no input: BYTES_NONE. */
void bare_accept(struct store *s, const char *id, struct bytes input);
/* It is there, with this input. */
void bare_has(struct store *s, const char *id, struct bytes input);
struct schema bare_schema(struct store *s);

#endif
