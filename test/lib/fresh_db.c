/*
 * fresh_db.c - copies of an empty database (fresh_db.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fresh_db.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "store/store.h"

void fresh_db_make(struct fresh_db *p)
{
    struct store *s = NULL;
    struct pawl_err err;
    snprintf(p->dir, sizeof p->dir, "/dev/shm/pawl-diff-XXXXXX");
    if (!mkdtemp(p->dir))
        snprintf(p->dir, sizeof p->dir, "."); /* the case's own folder */
    snprintf(p->empty, sizeof p->empty, "%s/empty.db", p->dir);
    snprintf(p->file, sizeof p->file, "%s/diff.db", p->dir);
    snprintf(p->url, sizeof p->url, "sqlite:%s", p->empty);
    struct store_conf conf = { .url = p->url };
    OK(store_open(&conf, &s, &err), &err);
    OK(store_migrate(s, true, &err), &err);
    store_close(s);
    snprintf(p->url, sizeof p->url, "sqlite:%s", p->file);
}

static void remove_file(const struct fresh_db *p, const char *name)
{
    char path[160];
    static const char *const tails[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        snprintf(path, sizeof path, "%s/%s%s", p->dir, name, tails[i]);
        unlink(path);
    }
}

void fresh_db_reset(const struct fresh_db *p)
{
    char block[1 << 16];
    ssize_t n;
    remove_file(p, "diff.db");
    int in = open(p->empty, O_RDONLY | O_CLOEXEC);
    int out = open(p->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    TRUE(in >= 0 && out >= 0);
    while ((n = read(in, block, sizeof block)) > 0)
        EQ_INT(write(out, block, (size_t)n), n);
    EQ_INT(n, 0);
    close(in);
    close(out);
}

void fresh_db_end(const struct fresh_db *p)
{
    remove_file(p, "diff.db");
    remove_file(p, "empty.db");
    rmdir(p->dir);
}
