/*
 * limits.h - every bound with its reason. tools/docs.sh prints doc/limits.md from this file.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/* Three names take at most 765 bytes, well inside the 2704 bytes of PostgreSQL's index row, the
 * smallest limit of the engines. */
#define NAME_LEN_MAX 255
/* The input of one call, its result, and the state that it leaves in an object. */
#define INPUT_LEN_MAX (1 << 20)
#define RESULT_LEN_MAX (1 << 20)
#define STATE_LEN_MAX (1 << 20)
/* Room for a cause, not for a log. A longer text is cut at a character. */
#define ERROR_LEN_MAX 4096
/* A deeper input, result or state is refused. The parser keeps one byte for each level. */
#define JSON_DEPTH_MAX 512
/* Levels of a document around such a value: {"results":[{"calls":[{"input":...}]}]} has five. */
#define JSON_AROUND_MAX 8
/* One batch is one commit; a larger one would hold the writer for too long. */
#define BATCH_MAX 10000
#define BATCH_LEN_MAX (64 << 20)
/* One claim must commit well inside the shortest lease, on the slowest disk we test. */
#define CLAIM_MAX 1000
/* Bytes of input in one claim. The first call is always claimed, so that the largest input is
 * too. */
#define CLAIM_LEN_MAX (16 << 20)
/* Calls that a handler may send with one outcome. */
#define SEND_MAX 10000
#define TAG_MAX 16
#define TAG_NAME_LEN_MAX 64
#define TAG_VALUE_LEN_MAX 255
#define PRIORITY_MIN (-1000)
#define PRIORITY_MAX 1000
#define ATTEMPTS_MAX 1000
/* With a larger factor the second back-off would be the longest already. */
#define BACKOFF_FACTOR_MAX 1000
/* Lanes: sets of queue, type and needs that calls have. Each costs a row, and a few bytes in every
 * process; types are code, not data. */
#define LANES_MAX 10000
/* Capabilities that one call needs, and that one worker has: a claim compares them in memory. */
#define NEEDS_MAX 16
#define HAS_MAX 64
/* 16 names of this length fit into a column that every engine can keep in a row. */
#define NEED_LEN_MAX 64
/* The version of a module. The needs of a run that is pinned to one stand beside 16 names of its
 * call in that column, which has 1100 bytes on MariaDB. */
#define VERSION_LEN_MAX 50
/* The longest duration in an option: 100 years. It keeps every sum of times inside 63 bits. */
#define DURATION_MAX_US (INT64_C(100) * 366 * 86400 * 1000000)
/* Attempts shown by GET /attempts. */
#define ATTEMPTS_SHOWN_MAX 100
#define LIST_MAX 1000
#define LIST_DEFAULT 100
/* Rows that one page of a list may read before it returns a short page and a cursor. */
#define LIST_LOOK_MAX 10000
/* A count of pending calls stops here: an exact count costs a scan and is rarely needed. */
#define COUNT_MAX 100000
/* The longest time that a caller may wait for an answer. */
#define WAIT_MAX_US (INT64_C(300) * 1000000)
/* Calls in one group commit, and the bytes that they carry: about 20 ms of work on SQLite, so that
 * the next caller and other processes on the file need not wait long. A larger batch is a group by
 * itself. */
#define GROUP_MAX 1024
#define GROUP_LEN_MAX (64 << 20)
/* Requests that wait for the store; a further one is refused with BUSY. */
#define STORE_QUEUE_MAX 65536
/* A commit without an answer for this long, as while a synchronous standby is away: its callers are
 * told UNKNOWN and further ones BUSY. As long as a caller waits before BUSY when the database is
 * away. */
#define COMMIT_WAIT_US (INT64_C(2) * 1000000)
/* A database that answers but has refused every write for this long (a full disk, a read-only
 * server): /readyz and the log say so. The same time as a commit may take to answer. */
#define REFUSED_WAIT_US COMMIT_WAIT_US
/* SQLite: a handler's transaction holds the only write lock, and all other writers wait for it. */
#define SQLITE_TX_US 1000000
#define SQL_ROWS_MAX 10000
#define SQL_LEN_MAX (1 << 20)
#define SQL_PARAMS_MAX 100
/* Memory of one attempt: its input, what it asks for, and its answer. */
#define ATTEMPT_LEN_MAX (64 << 20)
#define LEASE_MIN_US (INT64_C(1) * 1000000)
#define LEASE_MAX_US (INT64_C(3600) * 1000000)
#define SLOTS_MAX 1024
/* HTTP, unless set otherwise. Bytes of request line and headers, twice the most that browsers send;
 * a longer head gets 431. */
#define HTTP_HEAD_LEN_MAX (16 << 10)
/* Headers in one request; more get 431. */
#define HTTP_HEADERS_MAX 100
/* Bytes of a body; a longer one gets 413, and the connection is closed. */
#define HTTP_BODY_LEN_MAX BATCH_LEN_MAX
/* Bytes of the bodies of all requests together, eight of the largest batches; past it 503. */
#define HTTP_HELD_LEN_MAX (512 << 20)
/* Bytes that a handler may take from the request's arena: the largest batch, parsed. */
#define HTTP_ARENA_LEN_MAX (512 << 20)
/* Bytes of an answer; when one is longer, the connection is closed. */
#define HTTP_ANSWER_LEN_MAX (512 << 20)
/* Connections; a further one gets 503 and is closed. */
#define HTTP_CONNS_MAX 10000
/* Connections beyond the limit that are being sent their 503; more are closed without an answer. */
#define HTTP_REFUSING_MAX 64
/* Time from the first byte to the end of the headers, then to the end of the body; past it 408. */
#define HTTP_HEAD_US (INT64_C(10) * 1000000)
#define HTTP_BODY_US (INT64_C(60) * 1000000)
/* Time that a connection may be without a request: more than the 60 s after which common proxies
 * close it. */
#define HTTP_IDLE_US (INT64_C(75) * 1000000)
/* A client that reads nothing of its answer for this long is disconnected. */
#define HTTP_WRITE_US (INT64_C(30) * 1000000)
/* Threads whose handler ran out of time and has not returned; beyond this a node stops claiming. */
#define HUNG_MAX 64
/* Ended calls that one step of gc removes: short enough to fit between two groups. */
#define GC_STEP_MAX 200
/* Leases that one step of `pawl requeue-stuck` ends, with at most CLAIM_MAX calls each. */
#define REQUEUE_STEP_MAX 20
/* Leases and expired calls that one step of the sweeper handles. */
#define SWEEP_STEP_MAX 1000
/* A schedule's expression and its `at`: more times than a person lists, in a row that is read at
 * every tick. */
#define SCHEDULE_TIMES_MAX 1000
/* The shortest `every`. */
#define SCHEDULE_EVERY_MIN_US (INT64_C(1) * 1000000)
/* The longest jitter: a day. A tick should not run after the next ones of most schedules. */
#define SCHEDULE_JITTER_MAX_US (INT64_C(86400) * 1000000)
/* Stored text in one page of schedules: what is read from it has many times its size. A page ends
 * before the schedule that does not fit, unless that is its first. */
#define SCHEDULE_PAGE_LEN_MAX (4 << 20)
/* Times that one preview answers. */
#define SCHEDULE_PREVIEW_MAX 1000
/* Coming times that an answer about a schedule shows. */
#define SCHEDULE_NEXT_SHOWN 10
/* pawl events: requests of each kind that wait for the database; a further one is refused with
 * BUSY. */
#define EVENTS_QUEUE_MAX 10000
/* New events in one transaction. It locks the counter, so that other transactions wait for it. */
#define EVENTS_GROUP_MAX 1000
/* Events that one scan of the table looks for, and the bytes that it reads. */
#define EVENTS_LOOK_MAX 256
#define EVENTS_LOOK_LEN_MAX (4 << 20)
/* Pending events that one worker holds at a time. */
#define EVENTS_BATCH_MAX 1000
/* Failed events that are skipped for a while. When there are more, the one that is due first is
 * dropped from the list. */
#define EVENTS_SKIP_MAX 1000
/* Failed and lost attempts that get a log line of their own, each second and process: enough to see
 * what goes wrong. The rest are counted, and one line gives the count. */
#define LOG_FAILURES_MAX 20
/* Lost attempts that one store operation reports by name; the rest are counted. */
#define LOST_TOLD_MAX LOG_FAILURES_MAX
/* The name of a time zone. The longest in the IANA database has 32 bytes. */
#define ZONE_NAME_LEN_MAX 64
/* The file of a time zone. The largest of the database has less than 4 KiB. */
#define ZONE_FILE_LEN_MAX (64 << 10)
/* Transitions in such a file. The most in the database are 310; its compiler allows 2000. */
#define ZONE_CHANGES_MAX 2000
/* A cron expression in bytes: room for lists of every second, minute and hour. */
#define CRON_LEN_MAX 1000
/* Missed ticks that one catch-up submits, the newest ones: one commit, and not a night's work at
 * once. */
#define CATCH_UP_MAX 100
/* A tick that is handled later than this was missed, unless it is the only one that is due: then
 * up to TICK_LATE_ALONE_US. The first is a commit under load, the second a leader that died
 * (heartbeat_grace, 10 s) together with its database. */
#define TICK_LATE_US (INT64_C(3) * 1000000)
#define TICK_LATE_ALONE_US (INT64_C(60) * 1000000)
/* Steps of one run, without its undos: they are read again at each pass. A longer run restarts. */
#define STEPS_MAX 10000
/* Results of all steps of one run: a pass has them in memory. */
#define STEPS_LEN_MAX (64 << 20)
/* What results of undos may come to beside them; one without a result always fits, so that a run
 * can be undone that has all the results it may have. */
#define UNDOS_LEN_MAX (16 << 20)
/* The name of a step: with its number, and behind the id of its run, it is the id of a child. */
#define STEP_NAME_LEN_MAX 100
/* Names under which one run shows values, which are shown together; a further name is refused. */
#define PUBLISHED_MAX 1000
/* All values that one run shows, as much as the results of its steps; what exceeds it is refused.
 */
#define PUBLISHED_LEN_MAX (64 << 20)
/* Signals of a run that no step has consumed; a further one is refused. */
#define SIGNALS_MAX 10000
/* Keys of consumed signals are known for so long, and at least the last of a run. */
#define SIGNAL_KEYS_US (INT64_C(24) * 3600 * 1000000)
#define SIGNAL_KEYS_MIN 1000
/* Children of a run that are read at once. */
#define CHILDREN_PAGE 1000
/* Signals and children of a run that are shown. */
#define SIGNALS_SHOWN_MAX 1000
#define CHILDREN_SHOWN_MAX 10000
/* Steps of a run that a claim or a page of them carries, and values that it shows. */
#define STEPS_PAGE_LEN_MAX (8 << 20)
/* Runs above a child that are looked at for its key. */
#define WORKFLOW_DEPTH_MAX 100
/* Steps that one operation of a worker may store. */
#define STEPS_AT_ONCE_MAX 1000
/* Limits: every node has all of them in memory, and compares each with each lane. */
#define LIMITS_MAX 1000
/* Limits for prefixes of which each begins with the one before: they stand in the name of a lane.
 */
#define LIMIT_PREFIXES_MAX 8
/* How many calls of a limit run at once: each is a row. */
#define LIMIT_MAX 10000
/* Calls that begin in the time of a limit; and that time, a day. */
#define LIMIT_RATE_MAX 1000000
#define LIMIT_PER_MAX_US (INT64_C(24) * 3600 * 1000000)

#endif
