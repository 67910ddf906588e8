/*
 * settings.c - fuzz: any settings file is read, or refused with the line number.
 *
 * Built for libFuzzer; test/unit/corpus_settings.c runs the corpus.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Values have their kind and are within their limits, or they were refused. */
static void settings_check(const struct settings *s)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting *row = &setting_table[i];
        const struct setting_value *v = &s->v[i];
        char shown[200];
        CHECK(v->text != NULL);
        if (row->kind == SETTING_INT || row->kind == SETTING_DURATION || row->kind == SETTING_RANGE)
            CHECK(v->number >= row->min && (!row->max || v->number <= row->max));
        if (row->kind == SETTING_RANGE)
            CHECK(v->number <= v->last);
        CHECK(v->n_items == 0 || row->kind == SETTING_LIST || row->kind == SETTING_LINES);
        for (size_t k = 0; k < v->n_items; k++)
            CHECK(v->items[k] != NULL);
        setting_shown(s, i, shown, sizeof(shown));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct settings s;
    struct pawl_err err = { 0 };
    CHECK(settings_init(&s, &err) == PAWL_OK);
    enum pawl_status st = conf_parse(&s, "f", (struct bytes){ (const char *)data, len }, &err);
    CHECK(st == PAWL_OK || (st == PAWL_INVALID && strncmp(err.text, "f:", 2) == 0));
    settings_check(&s);
    if (st == PAWL_OK && settings_settle(&s, &err) == PAWL_OK)
        settings_check(&s);
    settings_release(&s);
    return 0;
}
