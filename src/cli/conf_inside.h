/*
 * conf_inside.h - what the files that read pawl.conf share. One thread: libconfuse's callbacks take
 * no context pointer, so the state of the parse is global to these files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_CONF_INSIDE_H
#define CLI_CONF_INSIDE_H

#include <confuse.h>

#include "cli/settings.h"

/* Refuse the file with `FILE:LINE: TEXT`; the first refusal stays. conf.c. */
void conf_refuse(int line, const char *text);
/* The line on which the block begins that was just read; once for each block. conf.c. */
int conf_block_line(void);
/* The settings that are being filled. */
struct settings *conf_settings(void);

/* ---- conf_schedule.c: `schedule "NAME" { ... }` ---------------------------------------------- */

/* The option for libconfuse. Its tables live as long as the process. */
cfg_opt_t conf_schedule_option(void);
/* Watch the blocks of a parse that begins. */
void conf_schedule_watch(cfg_t *cfg);
/* The name in a block that is most like this one, for "did you mean"; NULL: none is. */
const char *conf_schedule_nearest(const char *name);

#endif
