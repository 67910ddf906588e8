/*
 * steps_text.c - the schema's steps as a script, for databases in which no program may run DDL.
 *
 * What must stay true: a database made by running the printed script is the one led_migrate() would
 * have made, its table of steps included, so that both ways can be mixed.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "store/ledger/ledger.h"

/* The statements that come before the first step; NULL without memory. */
static const char *first_texts(const struct led_steps *s, struct arena *a)
{
    const char *out = "";
    for (int i = 0; i < s->n_first && out; i++)
        out = arena_printf(a, "%s%s;\n", out, s->texts[s->first[i]]);
    return out;
}

/* The step and the row that says it was applied. */
static const char *expand_text(const struct led_steps *s, struct arena *a,
                               const struct sql_migration *m,
                               const unsigned char sum[LED_CHECKSUM_LEN])
{
    char hex[2 * LED_CHECKSUM_LEN + 1];
    const char *first = m->number == 1 ? first_texts(s, a) : "";
    for (size_t i = 0; i < LED_CHECKSUM_LEN; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return first ? arena_printf(a,
                                "%s%s%s\n"
                                "INSERT INTO %s (number, word, checksum, applied_at, finished)\n"
                                "  VALUES (%d, '%s', %s%s', %s, %d);\n",
                                s->print.before, first, m->expand, s->print.table, m->number,
                                m->word, s->print.hex, hex, s->print.clock, m->finish[0] == 0)
                 : NULL;
}

static const char *finish_text(const struct led_steps *s, struct arena *a,
                               const struct sql_migration *m)
{
    if (!m->finish[0])
        return "";
    return arena_printf(a, "%s\nUPDATE %s SET finished = 1 WHERE number = %d;\n", m->finish,
                        s->print.table, m->number);
}

static enum pawl_status step_text(const struct led_steps *s, const char *schema, struct arena *a,
                                  const struct sql_migration *m, struct step *out,
                                  struct pawl_err *err)
{
    unsigned char sum[LED_CHECKSUM_LEN];
    enum pawl_status st = led_step_checksum(m, sum, err);
    if (st != PAWL_OK)
        return st;
    const char *expand = expand_text(s, a, m, sum), *finish = finish_text(s, a, m);
    *out = (struct step){ .number = m->number,
                          .word = m->word,
                          .expand = expand ? s->own_names(schema, a, expand) : NULL,
                          .finish = finish ? s->own_names(schema, a, finish) : NULL };
    return out->expand && out->finish ? PAWL_OK : err_no_memory(err, "printing the schema");
}

enum pawl_status led_steps_print(const struct led_steps *s, const struct store_conf *conf,
                                 struct arena *a, struct steps *out, struct pawl_err *err)
{
    const char *schema = conf->schema ? conf->schema : "pawl";
    size_t n = (size_t)led_steps_wanted(s);
    struct step *v = arena_zalloc(a, MAX(n, 1), sizeof *v);
    enum pawl_status st = v ? PAWL_OK : err_no_memory(err, "printing the schema");
    for (size_t i = 0; i < n && st == PAWL_OK; i++)
        st = step_text(s, schema, a, &led_steps_known(s)[i], &v[i], err);
    *out = (struct steps){ .v = v, .n = st == PAWL_OK ? n : 0 };
    return st;
}
