/*
 * dump.h - everything a store can be asked about, as text, so that two moments or two engines
 * compare with strcmp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DUMP_H
#define DUMP_H

#include "base/buf.h"
#include "store/store.h"

/* Every call with its tries, keys, queues, nodes and wishes; pages of `limit`. Ends the case when a
 * read fails. */
void dump_store(struct buf *b, struct store *s, int limit);
/* The same for these ids, which also shows tombstones. */
void dump_ids(struct buf *b, struct store *s, const struct bytes *ids, size_t n);
/* One object, one line, also when there is none. */
void dump_object(struct buf *b, struct store *s, struct bytes type, struct bytes key);
/* One call, one line. */
void dump_call(struct buf *b, const struct call *c);
/* An operation's answer: every field that means something, side effects in sorted order. */
void dump_answer(struct buf *b, const struct op *op);
/* What was asked, short. */
void dump_question(struct buf *b, const struct op *op);
/* Bytes with everything unprintable escaped; "-" for absent. */
void dump_bytes(struct buf *b, struct bytes v);

#endif
