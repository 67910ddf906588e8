/*
 * schedules - a module that brings its own schedules: `tidy.run` is submitted every five minutes
 * and `report.run` at three in the morning on working days, from the first process that loads it.
 *
 * Declaring a schedule is safe in every process and at every start: one that is stored already is
 * not written again, and each tick is one call, however many processes there are. An operator may
 * pause or change them; a change lasts until a process with this module starts again, a pause
 * stays.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pawl.h>

#include <stdio.h>

/* The id says which tick it is: cron:tidy@2026-11-15T02:05:00Z. Anything that is made from it is
 * made once, because a retry has the same id. */
static int tidy(struct pawl_call *c)
{
    char text[300];
    snprintf(text, sizeof(text), "tidied up by %.200s", pawl_call_id(c));
    return pawl_reply_text(c, text);
}

static int report(struct pawl_call *c)
{
    return pawl_reply(c, pawl_input(c));
}

PAWL_MODULE(m)
{
    if (pawl_on(m, "tidy", "run", tidy) != PAWL_OK ||
        pawl_on(m, "report", "run", report) != PAWL_OK)
        return;
    /* A run that takes longer than five minutes is not joined by a second one. */
    pawl_schedule(m, &(struct pawl_schedule){
                         PAWL_SCHEDULE_INIT, .name = "tidy", .every_us = 5 * 60 * INT64_C(1000000),
                         .overlap = PAWL_OVERLAP_SKIP,
                         .call = &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "tidy" } });
    /* After a night without a process the newest report is made up for, up to six hours late. */
    pawl_schedule(m,
                  &(struct pawl_schedule){
                      PAWL_SCHEDULE_INIT, .name = "report", .cron = "0 3 * * MON-FRI",
                      .zone = "Europe/Berlin", .catch_up_for_us = 6 * 3600 * INT64_C(1000000),
                      .call = &(struct pawl_spec){ PAWL_SPEC_INIT, .type = "report",
                                                   .input = PAWL_TEXT("{\"kind\":\"daily\"}") } });
}
