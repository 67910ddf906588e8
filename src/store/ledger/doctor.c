/*
 * doctor.c - collecting what an engine finds out about the health of its database.
 *
 * The engines bring the questions; this collects the answers in the caller's arena.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>

#include "store/ledger/ledger.h"

void led_found(struct led_visit *v, enum finding_level level, const char *name, const char *fmt,
               ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *kept = arena_text(v->a, bytes_of(text));
    assert(v->out->n < LED_FINDINGS_MAX);
    if (kept) /* without memory the arena has failed, and led_doctor() says so */
        v->out->v[v->out->n++] = (struct finding){ level, name, kept };
}

enum pawl_status led_doctor(struct led_visit *v, led_look_fn *look, struct pawl_err *err)
{
    *v->out = (struct findings){ .v = arena_zalloc(v->a, LED_FINDINGS_MAX, sizeof *v->out->v) };
    if (!v->out->v)
        return err_no_memory(err, "looking at the database");
    arena_reset(&v->c->scratch);
    enum pawl_status st = look(v, err);
    if (st == PAWL_OK && v->a->failed)
        st = err_no_memory(err, "looking at the database");
    return st;
}
