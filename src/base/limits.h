/*
 * limits.h - every bound with its reason. doc/limits.md is printed from this file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* Three such names, in bytes, make 765: well inside Postgres's 2704-byte index row, the smallest we
 * meet. */
#define NAME_LEN_MAX 255
/* What one call may carry in, carry out, and leave as an object's state. */
#define INPUT_LEN_MAX (1 << 20)
#define RESULT_LEN_MAX (1 << 20)
#define STATE_LEN_MAX (1 << 20)
/* A cause fits in it; a log does not. Longer texts are cut at a character. */
#define ERROR_LEN_MAX 4096
/* JSON deeper than this is refused: the parser keeps one byte a level and nobody means it. */
#define JSON_DEPTH_MAX 512
/* One batch is one commit; larger ones would hold the writer for too long. */
#define BATCH_MAX 10000
#define BATCH_LEN_MAX (64 << 20)
/* One claim must commit well inside the shortest lease, on the slowest disk we test. */
#define CLAIM_MAX 1000
/* Inputs in one claim; the first call is always taken, so that the largest still moves. */
#define CLAIM_LEN_MAX (16 << 20)
/* Calls a handler may send with one outcome. */
#define SEND_MAX 10000
#define TAG_MAX 16
#define TAG_NAME_LEN_MAX 64
#define TAG_VALUE_LEN_MAX 255
#define PRIORITY_MIN (-1000)
#define PRIORITY_MAX 1000
#define TRIES_MAX 1000
/* Beyond it the second wait is the longest already. */
#define BACKOFF_FACTOR_MAX 1000
/* (queue, type) pairs. Each costs a row and a few bytes in every process; types are code, not data.
 */
#define LANES_MAX 10000
/* Longest duration in an option: 100 years. Keeps every sum of times inside 63 bits. */
#define DURATION_MAX_US (INT64_C(100) * 366 * 86400 * 1000000)
/* Tries shown by GET /attempts. */
#define ATTEMPTS_SHOWN_MAX 100
#define LIST_MAX 1000
#define LIST_DEFAULT 100
/* Rows one page of a list may look at before it returns a short page and a cursor. */
#define LIST_LOOK_MAX 10000
/* "How many are pending" stops counting here: nobody reads the digits beyond, everybody pays for
 * them. */
#define COUNT_MAX 100000
/* Longest a caller may wait for an answer. */
#define WAIT_MAX_US (INT64_C(300) * 1000000)
/* Calls in one group commit, and how much they may carry: some 20 ms of work on SQLite, so that a
 * caller behind it and another process on the file get their turn. A larger batch is a group of its
 * own. */
#define GROUP_MAX 1024
#define GROUP_LEN_MAX (64 << 20)
/* Requests waiting for the store before a further one is told BUSY. */
#define STORE_QUEUE_MAX 65536
/* A commit that has no answer by then, as while a synchronous standby is away: its callers hear
 * UNKNOWN, further ones BUSY. As long as a caller waits for BUSY while the database is away. */
#define COMMIT_WAIT_US (INT64_C(2) * 1000000)
/* A database that answers and has refused every write for so long, a full disk or a read-only
 * server: /readyz says so, and the log. As long as a commit may be without an answer. */
#define REFUSED_WAIT_US COMMIT_WAIT_US
/* SQLite: a handler's transaction holds the only write lock; everybody else waits for it. */
#define SQLITE_TX_US 1000000
#define SQL_ROWS_MAX 10000
#define SQL_LEN_MAX (1 << 20)
#define SQL_PARAMS_MAX 100
/* Memory of one try: its input, what it asked for, what it answers. */
#define TRY_LEN_MAX (64 << 20)
#define LEASE_MIN_US (INT64_C(1) * 1000000)
#define LEASE_MAX_US (INT64_C(3600) * 1000000)
#define SLOTS_MAX 1024
/* HTTP, unless set otherwise. Request line and headers; twice what browsers send at their worst.
 * Past it 431. */
#define HTTP_HEAD_LEN_MAX (16 << 10)
/* Headers in one request, past it 431. */
#define HTTP_HEADERS_MAX 100
/* A body is read to its end up to here; past it 413 and the connection is closed. */
#define HTTP_BODY_LEN_MAX BATCH_LEN_MAX
/* Bodies held for all requests together; past it 503. Eight of the largest batches. */
#define HTTP_HELD_LEN_MAX (512 << 20)
/* What a handler may take from a request's arena: the largest batch, parsed. */
#define HTTP_ARENA_LEN_MAX (512 << 20)
/* The bytes of an answer; past it the connection is cut. */
#define HTTP_ANSWER_LEN_MAX (512 << 20)
/* Connections; past it 503 and close. */
#define HTTP_CONNS_MAX 10000
/* Clients that are being told 503 at the same time; more are closed without a word. */
#define HTTP_REFUSING_MAX 64
/* From the first byte to the end of the headers, then to the end of the body; past it 408. */
#define HTTP_HEAD_US (INT64_C(10) * 1000000)
#define HTTP_BODY_US (INT64_C(60) * 1000000)
/* A connection without a request, longer than the 60 s after which common proxies let go. */
#define HTTP_IDLE_US (INT64_C(75) * 1000000)
/* A client that reads none of its answer for so long is cut. */
#define HTTP_WRITE_US (INT64_C(30) * 1000000)
/* Threads whose handler ran out of time and did not return; past this a node stops claiming. */
#define HUNG_MAX 64
/* Ended calls removed by one step of gc: short enough to hide between two groups. */
#define GC_STEP_MAX 200
/* Leases one step of `pawl requeue-stuck` ends: CLAIM_MAX calls each at the most. */
#define REQUEUE_STEP_MAX 20
/* Leases and expired calls one step of the sweeper takes. */
#define SWEEP_STEP_MAX 1000
/* pawl events: requests that wait for the database, of each kind, before a further one is told
 * BUSY. */
#define EVENTS_QUEUE_MAX 10000
/* New events of one transaction, for which everybody else's wait at the counter. */
#define EVENTS_GROUP_MAX 1000
/* Events looked for in one scan of the table. */
#define EVENTS_LOOK_MAX 256
#define EVENTS_LOOK_LEN_MAX (4 << 20)
/* Pending events one worker holds at a time. */
#define EVENTS_BATCH_MAX 1000
/* Events that failed and are passed by for a while; of more, the one that comes back first makes
 * way.
 */
#define EVENTS_SKIP_MAX 1000
/* Failed and lost attempts with a line of their own in a process's log, each second: enough to see
 * what goes wrong. The others are counted, and one line says how many there were. */
#define LOG_FAILURES_MAX 20
/* Lost attempts that one operation of the store tells of by name; it counts the others. */
#define LOST_TOLD_MAX LOG_FAILURES_MAX

#endif
