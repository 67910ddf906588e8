/*
 * steps.c - the schema's steps as a script, for whoever may not let a program run DDL.
 *
 * What must stay true: a database made by running the printed script is the one migrate.c would
 * have made, its own table of steps included, so that the two ways can be mixed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "base/ident.h"
#include "base/mem.h"
#include "store/sqlite/engine.h"

#define CHECKSUM_LEN 32

static enum pawl_status checksum_text(const struct sql_migration *m, char out[2 * CHECKSUM_LEN + 1],
                                      struct pawl_err *err)
{
    unsigned char sum[CHECKSUM_LEN];
    struct bytes halves[] = { bytes_of(m->expand), bytes_of(m->finish) };
    if (!digest_parts(halves, 2, sum))
        return err_no_memory(err, "a checksum");
    for (size_t i = 0; i < CHECKSUM_LEN; i++)
        snprintf(out + 2 * i, 3, "%02x", sum[i]);
    return PAWL_OK;
}

/* The step and the row that says it was done; the first makes the table of such rows as well. */
static enum pawl_status step_text(struct lite *c, struct arena *a, const struct sql_migration *m,
                                  struct step *out, struct pawl_err *err)
{
    char sum[2 * CHECKSUM_LEN + 1];
    enum pawl_status st = checksum_text(m, sum, err);
    if (st != PAWL_OK)
        return st;
    char *expand = arena_printf(
        a,
        "%s%s%s\n"
        "INSERT INTO pawl_migration (number, word, checksum, applied_at, finished)\n"
        "  VALUES (%d, '%s', X'%s', CAST(strftime('%%s', 'now') AS INTEGER) * 1000000, %d);\n",
        m->number == 1 ? sql_sqlite[SQL_MIGRATION_TABLE] : "", m->number == 1 ? ";\n" : "",
        m->expand, m->number, m->word, sum, m->finish[0] == 0);
    char *finish =
        m->finish[0]
            ? arena_printf(a, "%s\nUPDATE pawl_migration SET finished = 1 WHERE number = %d;\n",
                           m->finish, m->number)
            : "";
    *out = (struct step){ .number = m->number,
                          .word = m->word,
                          .expand = expand ? lite_own_names(c, a, expand) : NULL,
                          .finish = finish ? lite_own_names(c, a, finish) : NULL };
    return out->expand && out->finish ? PAWL_OK : err_no_memory(err, "printing the schema");
}

enum pawl_status lite_steps(const struct store_conf *conf, struct arena *a, struct steps *out,
                            struct pawl_err *err)
{
    size_t n = 0;
    while (lite_migrations[n].number)
        n++;
    struct step *v = arena_zalloc(a, MAX(n, 1), sizeof *v);
    struct lite *c = mem_zalloc(sizeof *c); /* for its schema's name alone; nothing is opened */
    enum pawl_status st = v && c ? PAWL_OK : err_no_memory(err, "printing the schema");
    if (st == PAWL_OK)
        snprintf(c->ledger.schema, sizeof c->ledger.schema, "%s",
                 conf->schema ? conf->schema : "pawl");
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = step_text(c, a, &lite_migrations[i], &v[i], err);
    mem_free(c);
    *out = (struct steps){ .v = v, .n = st == PAWL_OK ? n : 0 };
    return st;
}
