/*
 * conf.c - read the settings file with libconfuse, checked against the table of settings.
 *
 *     # pawl.conf
 *     listen = "0.0.0.0:7295"
 *     retention = 14d
 *     tokens = { "ann:admin:5e88...", "mailer:app:9f86...:mail" }
 *     db = "postgres://pawl:${PGPASSWORD}@db/pawl"
 *     schedule "nightly" { cron = "@daily"  type = report }      (conf_schedule.c)
 *
 * libconfuse sees every option as a string (or a list of strings). settings_from_file() checks each
 * value while the file is parsed, because the line number is known only then. libconfuse 3.3 counts
 * a line with a comment three times, so comments are replaced by blanks first.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/conf_inside.h"

/* Room for thousands of tokens; a longer file is not a settings file. */
#define CONF_LEN_MAX (1 << 20)
#define CONF_ITEMS_MAX 10000

/* The state of the current parse: libconfuse's callbacks take no context pointer. One thread. */
static struct parse {
    struct settings *s;
    const char *path;
    struct pawl_err err;
    char *at; /* behind the last block in the text without comments, and its line */
    int at_line;
    int line_of[SETTING_COUNT]; /* where it was set; 0: not yet */
    struct {
        int *at;  /* the line of each item, in the settings' arena; NULL: not yet */
        size_t n; /* number of items at the last callback */
        bool over;
    } items[SETTING_COUNT]; /* of lists */
} now;

/* ---- Before libconfuse reads it -------------------------------------------------------------- */

/* Skip a quoted text; at its end, or that of the file. */
static char *quoted_end(char *at)
{
    char quote = *at;
    for (at++; *at && *at != quote; at++)
        if (*at == '\\' && at[1])
            at++;
    return at;
}

/* Replace comments by blanks and keep the line ends. `#` outside quotes begins one; `//` and `/ *`
 * only where a word could begin, so that postgres://host stays whole. */
static void blank_comments(char *text)
{
    bool word = false; /* inside an unquoted word */
    for (char *at = text; *at; at++) {
        if (*at == '"' || *at == '\'') {
            at = quoted_end(at);
            if (!*at)
                return;
            word = true;
        } else if (*at == '#' || (!word && at[0] == '/' && at[1] == '/')) {
            while (*at && *at != '\n')
                *at++ = ' ';
            if (!*at)
                return;
            word = false;
        } else if (!word && at[0] == '/' && at[1] == '*') {
            char *end = strstr(at + 2, "*/");
            for (end = end ? end + 2 : at + strlen(at); at < end; at++)
                *at = *at == '\n' ? '\n' : ' ';
            at--;
        } else {
            word = !strchr(" \t\r\n={},", *at);
        }
    }
}

/* The line of a brace that nothing closes, in a text without comments; 0: there is none. libconfuse
 * takes the end of the file for the end of a block, so half a file would pass. */
static int open_brace(char *text)
{
    int lines[8] = { 0 }, depth = 0, line = 1;
    for (char *at = text; *at; at++) {
        if (*at == '"' || *at == '\'') {
            char *end = quoted_end(at);
            for (; at < end; at++)
                line += *at == '\n';
            if (!*at)
                return 0; /* libconfuse says so */
        }
        line += *at == '\n';
        if (*at == '{' && depth < (int)COUNT_OF(lines))
            lines[depth] = line;
        depth += *at == '{' ? 1 : *at == '}' && depth ? -1 : 0;
    }
    return depth ? lines[MIN(depth, (int)COUNT_OF(lines)) - 1] : 0;
}

/* libconfuse knows only the line that it has reached, which is that of the closing brace. A brace
 * behind `=` is that of a list. */
int conf_block_line(void)
{
    int line = now.at_line, begin = 0, depth = 0;
    bool word = false, listed = false, block = false;
    for (char *at = now.at; *at; at++) {
        char c = *at, *end = c == '"' || c == '\'' ? quoted_end(at) : at;
        for (; at < end; at++)
            line += *at == '\n';
        if (!*at)
            break;
        line += c == '\n';
        if (depth == 0 && !word && strncmp(at, "schedule", 8) == 0)
            begin = line;
        word = !strchr(" \t\r\n={},", c);
        if (c == '{' && depth++ == 0)
            block = !listed;
        if (c == '}' && depth && --depth == 0 && block) {
            now.at = at + 1;
            now.at_line = line;
            return begin ? begin : line;
        }
        if (!strchr(" \t\r\n", c))
            listed = c == '=';
    }
    return line;
}

/* ---- Callbacks of libconfuse ----------------------------------------------------------------- */

void conf_refuse(int line, const char *text)
{
    if (now.err.status == PAWL_OK)
        err_set(&now.err, PAWL_INVALID, "%.150s:%d: %.300s", now.path, line, text);
}

struct settings *conf_settings(void)
{
    return now.s;
}

/* A name that is no setting, no member of a block, or no member of an object in a block. What is no
 * name at all comes from a value with blanks. */
static void unknown(cfg_t *cfg, const char *name, char *text, size_t size)
{
    struct nearest n = { .asked = name };
    if (cfg_title(cfg)) {
        const char *like = conf_schedule_nearest(name);
        bool word = *name >= 'a' && *name <= 'z';
        snprintf(text, size, "schedule \"%.100s\": field \"%s\": is unknown%s%s%s", cfg_title(cfg),
                 name,
                 like   ? "; did you mean "
                 : word ? ""
                        : "; a value with blanks needs quotes",
                 like ? like : "", like ? "?" : "");
    } else if (strcmp(cfg_name(cfg), "root") != 0) {
        snprintf(text, size, "field \"%s.%s\": is unknown", cfg_name(cfg), name);
    } else {
        for (int i = 0; i < SETTING_COUNT; i++)
            nearest_offer(&n, setting_table[i].name);
        nearest_offer(&n, "schedule");
        snprintf(text, size, "unknown setting \"%s\"%s%s%s", name,
                 nearest_name(&n) ? "; did you mean " : "; pawl help settings lists them",
                 nearest_name(&n) ? nearest_name(&n) : "", nearest_name(&n) ? "?" : "");
    }
}

/* Turn libconfuse's messages (`no such option 'retenton'`, syntax errors) into our wording. */
PRINTF_LIKE(2, 0)
static void on_error(cfg_t *cfg, const char *fmt, va_list args)
{
    char text[300], name[64] = "";
    vsnprintf(text, sizeof(text), fmt, args);
    if (sscanf(text, "found duplicate title '%60[^']'", name) == 1)
        snprintf(text, sizeof(text), "schedule \"%s\": is there twice", name);
    else if (sscanf(text, "no such option '%60[^']'", name) == 1)
        unknown(cfg, name, text, sizeof(text));
    conf_refuse(cfg->line, text);
}

static bool is_list(int id)
{
    enum setting_kind kind = setting_table[id].kind;
    return kind == SETTING_LIST || kind == SETTING_LINES;
}

/* Pass an option's value to the settings; returns 0 when it is valid. */
static int hand_over(cfg_opt_t *opt, int id)
{
    const char *texts[CONF_ITEMS_MAX];
    struct pawl_err err = { 0 };
    struct setting_texts given = { texts, now.items[id].at, cfg_opt_size(opt) };
    if (given.n > CONF_ITEMS_MAX) {
        char text[120];
        snprintf(text, sizeof(text), "%s: a list of %zu items, limit %d", setting_table[id].name,
                 given.n, CONF_ITEMS_MAX);
        conf_refuse(now.line_of[id], text);
        return -1;
    }
    for (size_t i = 0; i < given.n; i++)
        texts[i] = cfg_opt_getnstr(opt, (unsigned)i);
    if (settings_from_file(now.s, id, given, now.line_of[id], &err) == PAWL_OK)
        return 0;
    conf_refuse(now.line_of[id], err.text);
    return -1;
}

/* libconfuse calls this after each item of a list, and once more at its end. */
static void items_note(cfg_opt_t *opt, int id, int line)
{
    size_t n = cfg_opt_size(opt);
    if (n == now.items[id].n && !now.items[id].over) {
        now.items[id].over = true;
        return;
    }
    now.items[id].n = n;
    now.items[id].over = n == 0;
    if (!now.items[id].at)
        now.items[id].at = arena_alloc(&now.s->arena, CONF_ITEMS_MAX * sizeof(int));
    if (now.items[id].at && n && n <= CONF_ITEMS_MAX)
        now.items[id].at[n - 1] = line;
}

/* Called after each value, while the line number is known. A list is passed on when it has ended.
 */
static int on_value(cfg_t *cfg, cfg_opt_t *opt)
{
    int id = setting_find(cfg_opt_name(opt));
    CHECK(id >= 0);
    if (!is_list(id) && now.line_of[id]) {
        char text[120];
        snprintf(text, sizeof(text), "%s: was set before, on line %d", setting_table[id].name,
                 now.line_of[id]);
        conf_refuse(cfg->line, text);
        return -1;
    }
    now.line_of[id] = cfg->line;
    if (is_list(id))
        items_note(opt, id, cfg->line);
    return is_list(id) ? 0 : hand_over(opt, id);
}

/* ---- Parsing --------------------------------------------------------------------------------- */

static void options_fill(cfg_opt_t *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting *row = &setting_table[i];
        cfg_opt_t one = CFG_STR(row->name, 0, CFGF_NODEFAULT);
        cfg_opt_t many = CFG_STR_LIST(row->name, 0, CFGF_NODEFAULT);
        out[i] = is_list(i) ? many : one;
    }
    cfg_opt_t end = CFG_END();
    out[SETTING_COUNT] = conf_schedule_option();
    out[SETTING_COUNT + 1] = end;
}

enum pawl_status conf_parse(struct settings *s, const char *path, struct bytes text,
                            struct pawl_err *err)
{
    cfg_opt_t options[SETTING_COUNT + 2];
    char *copy = mem_alloc(text.len + 1);
    if (!copy)
        return err_no_memory(err, "reading the settings");
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    now = (struct parse){ .s = s, .path = path };
    s->file = arena_text(&s->arena, bytes_of(path));
    if (strlen(copy) != text.len)
        conf_refuse(1, "holds a NUL byte, so it is not a text file");
    blank_comments(copy);
    now.at = copy;
    now.at_line = 1;
    options_fill(options);
    cfg_t *cfg = now.err.status == PAWL_OK ? cfg_init(options, CFGF_NONE) : NULL;
    if (cfg) {
        cfg_set_error_function(cfg, on_error);
        conf_schedule_watch(cfg);
        for (int i = 0; i < SETTING_COUNT; i++)
            cfg_set_validate_func(cfg, setting_table[i].name, on_value);
        int open = open_brace(copy);
        if (cfg_parse_buf(cfg, copy) != CFG_SUCCESS)
            conf_refuse(cfg->line, "cannot be parsed");
        if (open)
            conf_refuse(open, "the closing brace } is missing");
        for (int i = 0; i < SETTING_COUNT && now.err.status == PAWL_OK; i++)
            if (is_list(i) && now.line_of[i])
                hand_over(cfg_getopt(cfg, setting_table[i].name), i);
        cfg_free(cfg);
    }
    mem_free(copy);
    if (now.err.status != PAWL_OK)
        return err_set(err, now.err.status, "%s", now.err.text);
    return cfg && s->file ? PAWL_OK : err_no_memory(err, "reading the settings");
}

/* Read the whole file into `a`. NOT_FOUND when there is no such file. */
static enum pawl_status slurp(struct arena *a, const char *path, struct bytes *out,
                              struct pawl_err *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(err, errno == ENOENT ? PAWL_NOT_FOUND : PAWL_INVALID,
                       "settings file \"%.300s\": %s", path, strerror(errno));
    char *data = arena_alloc(a, CONF_LEN_MAX + 1);
    size_t len = data ? fread(data, 1, CONF_LEN_MAX + 1, f) : 0;
    bool failed = ferror(f);
    fclose(f);
    if (!data)
        return err_no_memory(err, "reading the settings");
    if (failed || len > CONF_LEN_MAX)
        return err_set(err, PAWL_INVALID, "settings file \"%.300s\": %s", path,
                       failed ? "cannot be read" : "is longer than 1 MiB");
    *out = (struct bytes){ data, len };
    return PAWL_OK;
}

enum pawl_status conf_read(struct settings *s, const char *path, struct pawl_err *err)
{
    const char *named = path ? path : getenv("PAWL_CONFIG");
    bool must = named && *named;
    struct bytes text = BYTES("");
    struct arena a;
    arena_init(&a, 2 * CONF_LEN_MAX);
    named = must ? named : "pawl.conf";
    enum pawl_status st = slurp(&a, named, &text, err);
    if (st == PAWL_OK)
        st = conf_parse(s, named, text, err);
    else if (st == PAWL_NOT_FOUND && !must)
        st = PAWL_OK;
    arena_release(&a);
    return st;
}
