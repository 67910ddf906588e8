/*
 * table.c - rounds, medians, and the one table that every benchmark prints (table.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bench/table.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/world.h"

double bench_clock(void)
{
    return (double)world_mono(&world_real) / 1e6;
}

void bench_rounds_add(struct bench_rounds *r, double figure, double floor)
{
    if (r->n == BENCH_ROUNDS_MAX)
        return;
    r->figure[r->n] = figure;
    r->floor[r->n++] = floor;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *v, size_t n, double share)
{
    if (n == 0)
        return 0;
    qsort(v, n, sizeof *v, compare);
    return v[MIN((size_t)((double)n * share), n - 1)];
}

double bench_median(double *v, size_t n)
{
    if (n == 0)
        return 0;
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- The table ------------------------------------------------------------------------------- */

static void load_now(double out[3])
{
    if (getloadavg(out, 3) != 3)
        out[0] = out[1] = out[2] = -1;
}

void bench_table_load(struct bench_table *t)
{
    load_now(t->load);
    t->loaded = true;
}

void bench_table_begin(struct bench_table *t, const char *title)
{
    if (!t->loaded)
        bench_table_load(t);
    const double *load = t->load;
    if (t->json)
        fprintf(t->out, "{\"title\":\"%s\",\"cores\":%ld,\"load\":[%.2f,%.2f,%.2f],\"rows\":[",
                title, sysconf(_SC_NPROCESSORS_ONLN), load[0], load[1], load[2]);
    else
        fprintf(t->out, "%s: %ld cores, load %.2f %.2f %.2f\n%-44s %12s %12s %7s  %-12s %s\n",
                title, sysconf(_SC_NPROCESSORS_ONLN), load[0], load[1], load[2], "", "figure",
                "beside", "ratio", "goal", "");
    fflush(t->out);
}

static void number_text(double n, const char *unit, char *out, size_t size)
{
    snprintf(out, size, "%.*f%s", n < 10 ? 2 : n < 100 ? 1 : 0, n, unit);
}

struct summary {
    double figure, floor, ratio;
    bool has_floor, met;
};

static bool is_met(const struct bench_row *row, const struct summary *s)
{
    switch (row->goal) {
    case BENCH_NO_GOAL:
        return true;
    case BENCH_RATIO_MIN:
        return s->ratio >= row->bound;
    case BENCH_RATIO_MAX:
        return s->ratio <= row->bound;
    case BENCH_FIGURE_MIN:
        return s->figure >= row->bound;
    case BENCH_FIGURE_MAX:
        return s->figure < row->bound;
    case BENCH_FIGURE_EXACT:
        return s->figure == row->bound;
    }
    return false;
}

static struct summary summarize(const struct bench_row *row)
{
    const struct bench_rounds *r = row->rounds;
    double figure[BENCH_ROUNDS_MAX], floor[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
    struct summary s = { .has_floor = true };
    for (size_t i = 0; i < r->n; i++) {
        figure[i] = r->figure[i];
        floor[i] = r->floor[i];
        s.has_floor &= r->floor[i] > 0;
        ratio[i] = r->floor[i] > 0 ? r->figure[i] / r->floor[i] : 0;
    }
    s.figure = bench_median(figure, r->n);
    s.floor = bench_median(floor, r->n);
    s.ratio = bench_median(ratio, r->n);
    s.met = is_met(row, &s);
    return s;
}

static void goal_text(const struct bench_row *row, char *out, size_t size)
{
    char bound[32];
    number_text(row->bound, "", bound, sizeof bound);
    static const char *const sign[] = {
        [BENCH_NO_GOAL] = "",      [BENCH_RATIO_MIN] = "x >=", [BENCH_RATIO_MAX] = "x <=",
        [BENCH_FIGURE_MIN] = ">=", [BENCH_FIGURE_MAX] = "<",   [BENCH_FIGURE_EXACT] = "==",
    };
    if (row->goal == BENCH_NO_GOAL)
        out[0] = 0;
    else
        snprintf(out, size, "%s %s", sign[row->goal], bound);
}

static void row_json(struct bench_table *t, const struct bench_row *row, const struct summary *s)
{
    char goal[48];
    goal_text(row, goal, sizeof goal);
    fprintf(t->out, "%s\n{\"name\":\"%s\",\"unit\":\"%s\",\"figure\":%.3f", t->rows ? "," : "",
            row->name, row->unit, s->figure);
    if (s->has_floor)
        fprintf(t->out, ",\"beside\":%.3f,\"ratio\":%.3f", s->floor, s->ratio);
    else
        fprintf(t->out, ",\"beside\":null,\"ratio\":null");
    if (row->goal)
        fprintf(t->out, ",\"goal\":\"%s\",\"met\":%s}", goal, s->met ? "true" : "false");
    else
        fprintf(t->out, ",\"goal\":null,\"met\":null}");
}

static void row_text(struct bench_table *t, const struct bench_row *row, const struct summary *s)
{
    char figure[48], floor[48] = "", ratio[16] = "", goal[48];
    number_text(s->figure, row->unit, figure, sizeof figure);
    if (s->has_floor) {
        number_text(s->floor, row->unit, floor, sizeof floor);
        snprintf(ratio, sizeof ratio, "%.2f", s->ratio);
    }
    goal_text(row, goal, sizeof goal);
    fprintf(t->out, "%-44s %12s %12s %7s  %-12s %s\n", row->name, figure, floor, ratio, goal,
            !row->goal ? ""
            : s->met   ? "met"
                       : "NOT MET");
}

void bench_table_row(struct bench_table *t, const struct bench_row *row)
{
    struct summary s = summarize(row);
    if (t->json)
        row_json(t, row, &s);
    else
        row_text(t, row, &s);
    fflush(t->out);
    t->rows++;
    t->missed += !s.met;
}

void bench_table_end(struct bench_table *t)
{
    double load[3];
    load_now(load);
    if (t->json)
        fprintf(t->out, "],\"load_after\":%.2f,\"missed\":%zu}\n", load[0], t->missed);
    else
        fprintf(t->out, "%zu rows, %zu missed; load after %.2f\n", t->rows, t->missed, load[0]);
    fflush(t->out);
}
