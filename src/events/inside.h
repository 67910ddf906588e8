/*
 * inside.h - the parts of the server: errands, the two lanes in which they wait for the database,
 * requests.
 *
 * A request that needs the database becomes an errand. It waits in a lane, a bounded queue whose
 * thread takes everything that waits and does it together; then it returns to the loop thread,
 * which answers. Private to the room.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVENTS_INSIDE_H
#define EVENTS_INSIDE_H

#include <pthread.h>

#include "api/auth.h"
#include "api/service.h"
#include "events/table.h"

enum errand_kind { ERRAND_ADD, ERRAND_ADD_LATER, ERRAND_COUNT, ERRAND_FIND, ERRAND_READY };
/* Its owner: QUEUED -> TAKEN by the lane's thread, QUEUED -> DROPPED by the loop when its time is
 * up. */
enum errand_stage { ERRAND_QUEUED, ERRAND_TAKEN, ERRAND_DROPPED };

struct errand {
    struct loop_task back;
    struct loop_timer timer;
    struct events_server *s;
    struct http_request *r;     /* NULL: it is answered; loop thread */
    struct errand *next;        /* in the lane */
    struct errand *newer, **at; /* in the list of all errands; loop thread */
    enum errand_kind kind;
    _Atomic(enum errand_stage) stage;
    _Atomic(int64_t) id; /* FIND: the id to find; ADD: 0 until it is known */
    int64_t count;
    bool there; /* FIND: the event exists */
    bool pending;
    size_t value_len;
    char value[EVENT_VALUE_MAX * 4 + 1]; /* other programs may write values, whose characters may
                                            have four bytes */
    enum pawl_status status;
    struct pawl_err err;
};

/* A queue of errands, and the thread and connection that do them a group at a time. */
struct lane {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct errand *first, **last;
    size_t n, max, group_max;
    bool over; /* no more is taken */
    bool runs;
    pthread_t thread;
    struct events_db *db; /* owned; used by its thread only */
    /* Do n errands; each has its status afterwards. */
    void (*run)(struct events_db *db, struct errand **v, size_t n);
    struct loop *loop;
};

/* Start the thread. NO_MEMORY when it cannot start. The fields above are filled in before. */
MUST_USE enum pawl_status lane_open(struct lane *l, struct pawl_err *err);
/* Append an errand. Any thread. False: the lane is full or closed. */
MUST_USE bool lane_post(struct lane *l, struct errand *j);
/* End the thread: errands that wait return BUSY, and the group that has begun is finished. */
void lane_close(struct lane *l);

/* For lane.run: add all events of a group in one transaction. */
void group_add(struct events_db *db, struct errand **v, size_t n);
/* For lane.run: answer all questions of a group with as few scans as possible. */
void group_look(struct events_db *db, struct errand **v, size_t n);

struct events_server {
    struct loop *loop;
    struct http_server *http;
    struct auth *auth;
    struct lane adds, looks;
    struct errand *errands; /* all errands; loop thread */
    atomic_bool stopping;
    struct loop_task on_stop;
    bool stops; /* on_stop has run */
};

/* What a request asks for (request.c). */
enum events_path { PATH_EVENTS, PATH_ASYNC, PATH_EVENT, PATH_HEALTHZ, PATH_READYZ, PATH_NONE };
struct events_question {
    enum events_path path;
    int64_t id;        /* PATH_EVENT: the id */
    const char *allow; /* the methods of the path; static */
};
/* A request needs no body; a client library may send {} nevertheless. */
#define EVENTS_BODY_MAX 4096
/* The path alone, which decides on access. PATH_NONE: there is no such path. */
enum events_path events_path_of(const struct http_request *r);
/* Read what a request asks for. NOT_FOUND, INVALID, METHOD (`allow` is filled in), TOO_LARGE, MEDIA
 * or NO_MEMORY: it is refused. */
MUST_USE enum pawl_status events_question_read(struct http_request *r, struct events_question *out,
                                               struct pawl_err *err);

/* The handler of http_conf. Loop thread. */
void events_handle(struct http_request *r, void *server);
/* body_max of http_conf. */
size_t events_body_max(const struct http_request *r, void *server);
/* Answer the request of an errand with its result. Loop thread, or after it has ended. */
void errand_answer(struct errand *j);
/* Remove an errand from the list and free it. Loop thread, or after it has ended. */
void errand_free(struct errand *j);

#endif
