/*
 * db_command.c - opening the database and writing to it in small steps (db_command.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/db_command.h"

#include <time.h>

#include "feature/all.h"

/* Memory for the answer of one step: the ids of calls that ended. */
#define STEP_LEN_MAX (64 << 20)
#define PAUSE_MAX_US (100 * MS_US)

struct store_conf db_command_conf(const struct cli *cli, enum store_role role)
{
    size_t n;
    const struct feature *const *features = features_all(&n);
    return (struct store_conf){ .url = cli_db(cli),
                                .schema = cli_schema(cli),
                                .role = role,
                                .retention_us = cli->settings.v[SET_RETENTION].number,
                                .remember_us = cli->settings.v[SET_REMEMBER].number,
                                .features = features,
                                .n_features = n };
}

enum pawl_status db_command_open(const struct cli *cli, enum store_role role, struct store **out,
                                 struct pawl_err *err)
{
    AUTO(store_end) struct store *s = NULL;
    struct store_conf conf = db_command_conf(cli, role);
    enum pawl_status st = cli_db_exists(cli, err);
    if (st == PAWL_OK)
        st = store_open(&conf, &s, err);
    if (st == PAWL_OK)
        st = store_fits(s, err);
    if (st == PAWL_OK)
        *out = TAKE(s);
    return st;
}

enum pawl_status db_command_open_before(const struct cli *cli, const char *option,
                                        struct store **out, int64_t *out_us, struct pawl_err *err)
{
    int64_t now_us = 0, ago_us = 0;
    enum pawl_status st = cli_duration(cli, option, &ago_us, err);
    if (st == PAWL_OK)
        st = db_command_open(cli, STORE_WRITER, out, err);
    if (st == PAWL_OK)
        st = store_now(*out, &now_us, err);
    *out_us = MAX(now_us - ago_us, 1);
    return st;
}

enum pawl_status db_command_step(struct store *s, struct op *op, struct pawl_err *err)
{
    struct arena a;
    int64_t began_us = world_mono(&world_real);
    arena_init(&a, STEP_LEN_MAX);
    op->a = &a;
    enum pawl_status st = store_commit(s, &op, 1);
    if (st == PAWL_OK)
        st = op->status;
    if (st != PAWL_OK)
        *err = op->err;
    op->a = NULL;
    op->ended = NULL; /* the array is released with the arena; n_ended stays valid */
    arena_release(&a);
    int64_t took_us = MIN(world_mono(&world_real) - began_us, PAUSE_MAX_US);
    nanosleep(&(struct timespec){ .tv_nsec = took_us * 1000 }, NULL);
    return st;
}
