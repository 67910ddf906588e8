/*
 * inside.h - the server's parts: errands, the two lanes in which they wait for the database,
 * requests.
 *
 * A request that needs the database becomes an errand. It waits in a bounded lane, whose thread
 * takes everything that is there and does it together; then it comes back to the loop's thread,
 * which answers. Private to the room.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVENTS_INSIDE_H
#define EVENTS_INSIDE_H

#include <pthread.h>

#include "api/auth.h"
#include "api/front.h"
#include "events/table.h"

enum errand_kind { ERRAND_ADD, ERRAND_ADD_LATER, ERRAND_COUNT, ERRAND_FIND, ERRAND_READY };
/* Who has it: QUEUED -> TAKEN by the lane, QUEUED -> DROPPED by the loop when its time is up. */
enum errand_stage { ERRAND_QUEUED, ERRAND_TAKEN, ERRAND_DROPPED };

struct errand {
    struct loop_task back;
    struct loop_timer timer;
    struct events_server *s;
    struct http_request *r;     /* NULL: it was answered; loop thread */
    struct errand *next;        /* in the lane */
    struct errand *newer, **at; /* among all there are; loop thread */
    enum errand_kind kind;
    _Atomic(enum errand_stage) stage;
    _Atomic(int64_t) id; /* FIND: which; ADD: 0 until it is known */
    int64_t count;
    bool there; /* FIND: there is such an event */
    bool pending;
    size_t value_len;
    char value[EVENT_VALUE_MAX * 4 + 1]; /* characters may have four bytes: others may have made it
                                          */
    enum pawl_status status;
    struct pawl_err err;
};

/* Errands that are done one group at a time, on a thread and a connection of their own. */
struct lane {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct errand *first, **last;
    size_t n, max, group_max;
    bool over; /* nothing more is taken */
    bool runs;
    pthread_t thread;
    struct events_db *db; /* owned; the thread's */
    /* Does n errands, of which each has its status after it. */
    void (*run)(struct events_db *db, struct errand **v, size_t n);
    struct loop *loop;
};

MUST_USE enum pawl_status lane_open(struct lane *l, struct pawl_err *err);
/* False: it is full. */
MUST_USE bool lane_post(struct lane *l, struct errand *j);
/* What waits is not done any more and comes back BUSY; what is under way ends. */
void lane_close(struct lane *l);

/* For lane.run: ids and events of a group; questions that share their looks. */
void group_add(struct events_db *db, struct errand **v, size_t n);
void group_look(struct events_db *db, struct errand **v, size_t n);

struct events_server {
    struct loop *loop;
    struct http_server *http;
    struct doors *doors;
    struct lane adds, looks;
    struct errand *errands; /* all there are; loop thread */
    atomic_bool stopping;
    struct loop_task on_stop;
    bool stops; /* the task was run */
};

/* What a request asks for (request.c). */
enum events_path { PATH_EVENTS, PATH_ASYNC, PATH_EVENT, PATH_HEALTHZ, PATH_READYZ, PATH_NONE };
struct events_question {
    enum events_path path;
    int64_t id;        /* PATH_EVENT: which */
    const char *allow; /* the methods its path takes; static */
};
/* There is nothing to say in a body; a client library may say {} all the same. */
#define EVENTS_BODY_MAX 4096
/* Its path alone, which decides who may. PATH_NONE: there is no such. */
enum events_path events_path_of(const struct http_request *r);
/* NOT_FOUND, INVALID, METHOD (`allow` is filled in), TOO_LARGE, MEDIA or NO_MEMORY: refused. */
MUST_USE enum pawl_status events_question_read(struct http_request *r, struct events_question *out,
                                               struct pawl_err *err);

/* http_conf's. */
void events_handle(struct http_request *r, void *server);
size_t events_body_max(const struct http_request *r, void *server);
/* Answer what an errand found out, and forget it. Loop thread, or after it. */
void errand_answer(struct errand *j);
void errand_free(struct errand *j);

#endif
