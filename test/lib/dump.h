/*
 * dump.h - everything a store can return, as text, so that two states or two engines can be
 * compared with strcmp().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DUMP_H
#define DUMP_H

#include "base/buf.h"
#include "store/store.h"

/* Every call with its attempts, keys, queues, nodes and cancel requests; read in pages of `limit`.
 * Ends the case when a read fails. */
void dump_store(struct buf *b, struct store *s, int limit);
/* The same for these ids, with tombstones of removed calls. */
void dump_ids(struct buf *b, struct store *s, const struct bytes *ids, size_t n);
/* One object in one line, also when it does not exist. */
void dump_object(struct buf *b, struct store *s, struct bytes type, struct bytes key);
/* One call in one line. */
void dump_call(struct buf *b, const struct call *c);
/* The answer to an operation: every field that is defined, side effects sorted. */
void dump_answer(struct buf *b, const struct op *op);
/* The operation, in short. */
void dump_question(struct buf *b, const struct op *op);
/* Bytes with unprintable ones escaped; "-" when there are none. */
void dump_bytes(struct buf *b, struct bytes v);

#endif
