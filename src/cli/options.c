/*
 * options.c - read a command line against three tables: the command's own options, the options that
 * commands share, and the settings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cli/cli.h"

/* A letter means the same option in every command that has it. */
static const struct {
    char letter;
    const char *name;
} letters[] = { { 'h', "help" }, { 'n', "limit" } };

char option_letter(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(letters); i++)
        if (strcmp(letters[i].name, name) == 0)
            return letters[i].letter;
    return 0;
}

static const char *letter_name(char letter)
{
    for (size_t i = 0; i < COUNT_OF(letters); i++)
        if (letters[i].letter == letter)
            return letters[i].name;
    return NULL;
}

/* One argument such as `--pool-size=8`, `-n 8` or `-n8`, split. Names may use `-` or `_`. */
struct piece {
    char name[64];
    const char *value; /* NULL: not in this argument */
};

static bool piece_read(const char *arg, struct piece *out)
{
    bool is_short = arg[1] != '-';
    const char *text = is_short ? letter_name(arg[1]) : arg + 2;
    size_t len = text ? strcspn(text, "=") : 0;
    if (len == 0 || len >= sizeof(out->name))
        return false;
    memcpy(out->name, text, len);
    out->name[len] = 0;
    out->value = text[len] ? text + len + 1 : NULL;
    if (is_short)
        out->value = arg[2] ? arg + 2 : NULL;
    return true;
}

static const struct option_row *row_find(const struct option_row *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

static void offer_rows(struct nearest *n, const struct option_row *rows)
{
    for (; rows && rows->name; rows++)
        nearest_offer(n, rows->name);
}

static enum pawl_status unknown_option(const struct cli *cli, const char *name,
                                       struct pawl_err *err)
{
    struct nearest n = { .asked = name };
    offer_rows(&n, cli->command->options);
    offer_rows(&n, options_of(cli->command->reach));
    offer_rows(&n, options_common);
    for (int i = 0; i < SETTING_COUNT; i++)
        nearest_offer(&n, setting_table[i].name);
    if (nearest_name(&n))
        return err_set(err, PAWL_INVALID, "unknown option --%s; did you mean --%s?", name,
                       nearest_name(&n));
    return err_set(err, PAWL_INVALID, "unknown option --%s; pawl %s --help lists them", name,
                   cli->command->name);
}

/* Record one option; when it is a setting, set that as well. */
static enum pawl_status keep(struct cli *cli, const struct option_row *row, int setting,
                             const char *value, struct pawl_err *err)
{
    if (cli->n_given == CLI_OPTIONS_MAX)
        return err_set(err, PAWL_INVALID, "more than %d options on one command line",
                       CLI_OPTIONS_MAX);
    if (row) {
        cli->given[cli->n_given].row = row;
        cli->given[cli->n_given++].value = value;
    }
    return setting >= 0 ? settings_set(&cli->settings, setting, value, err) : PAWL_OK;
}

/* Read the option at argv[*at]. When its value is the next argument, *at moves to that. */
static enum pawl_status option_read(struct cli *cli, int argc, char **argv, int *at,
                                    struct pawl_err *err)
{
    struct piece p;
    if (!piece_read(argv[*at], &p))
        return err_set(err, PAWL_INVALID, "unknown option \"%.60s\"; pawl %s --help lists them",
                       argv[*at], cli->command->name);
    const struct option_row *row = row_find(cli->command->options, p.name);
    if (!row)
        row = row_find(options_of(cli->command->reach), p.name);
    if (!row)
        row = row_find(options_common, p.name);
    int setting = setting_find(p.name);
    if (!row && setting < 0)
        return unknown_option(cli, p.name, err);
    bool flag = row ? !row->arg : setting_table[setting].kind == SETTING_BOOL;
    if (flag && p.value && setting < 0)
        return err_set(err, PAWL_INVALID, "option --%s takes no argument", p.name);
    if (!flag && !p.value) {
        if (*at + 1 >= argc)
            return err_set(err, PAWL_INVALID, "option --%s needs %s", p.name,
                           row ? row->arg : "a value");
        p.value = argv[++*at];
    }
    return keep(cli, row, setting, p.value ? p.value : "", err);
}

/* `-` means stdin and -5 is a number: both are positional arguments. */
static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1] && !(arg[1] >= '0' && arg[1] <= '9');
}

/* Does the option take the next argument as its value? The command is not known yet, so all tables
 * are searched; *out_known: it is in one of them. */
static bool takes_next(const struct piece *p, bool *out_known)
{
    int setting = setting_find(p->name);
    const struct option_row *row = row_find(options_common, p->name);
    for (int i = 0; !row && i <= REACH_NOTHING; i++)
        row = row_find(options_of((enum reach)i), p->name);
    for (size_t i = 0; !row && setting < 0 && commands[i]; i++)
        row = row_find(commands[i]->options, p->name);
    *out_known = row || setting >= 0;
    bool flag = row ? !row->arg : setting >= 0 && setting_table[setting].kind == SETTING_BOOL;
    return *out_known && !flag && !p->value;
}

enum pawl_status command_place(int argc, char **argv, int *out_at, struct pawl_err *err)
{
    int i = 0;
    for (; i < argc && is_option(argv[i]); i++) {
        struct piece p = { 0 };
        bool known = strcmp(argv[i], "--version") == 0;
        bool next = !known && piece_read(argv[i], &p) && takes_next(&p, &known);
        if (next && i + 1 == argc)
            return err_set(err, PAWL_INVALID, "option --%s needs a value", p.name);
        i += next;
        if (!known)
            return err_set(
                err, PAWL_INVALID,
                "unknown option \"%.60s\"; pawl help lists the commands, and pawl COMMAND "
                "--help the options of each",
                argv[i]);
    }
    *out_at = i;
    return PAWL_OK;
}

enum pawl_status options_read(struct cli *cli, int argc, char **argv, int *out_n,
                              struct pawl_err *err)
{
    int n = 0;
    bool names_over = false;
    for (int i = 0; i < argc; i++) {
        if (!names_over && strcmp(argv[i], "--") == 0) {
            names_over = true;
        } else if (!names_over && is_option(argv[i])) {
            enum pawl_status st = option_read(cli, argc, argv, &i, err);
            if (st != PAWL_OK)
                return st;
        } else {
            argv[n++] = argv[i]; /* n <= i, so no unread argument is overwritten */
        }
    }
    if (n > cli->command->args_max)
        return err_set(err, PAWL_INVALID, "unexpected argument \"%.100s\"; usage: pawl %s%s%s",
                       argv[cli->command->args_max], cli->command->name,
                       *cli->command->usage ? " " : "", cli->command->usage);
    *out_n = n;
    return PAWL_OK;
}

/* ---- Reading options ------------------------------------------------------------------------- */

static const char *given(const struct cli *cli, const char *name)
{
    for (int i = cli->n_given - 1; i >= 0; i--)
        if (strcmp(cli->given[i].row->name, name) == 0)
            return cli->given[i].value;
    return NULL;
}

const char *cli_option(const struct cli *cli, const char *name)
{
    const struct option_row *row = row_find(cli->command->options, name);
    const char *value = given(cli, name);
    return value ? value : row ? row->fallback : NULL;
}

int cli_count(const struct cli *cli, const char *name)
{
    int n = 0;
    for (int i = 0; i < cli->n_given; i++)
        n += strcmp(cli->given[i].row->name, name) == 0;
    return n;
}

const char *cli_nth(const struct cli *cli, const char *name, int at)
{
    for (int i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].row->name, name) == 0 && at-- == 0)
            return cli->given[i].value;
    return NULL;
}

bool cli_flag(const struct cli *cli, const char *name)
{
    return given(cli, name) != NULL;
}

enum pawl_status cli_int(const struct cli *cli, const char *name, int64_t min, int64_t max,
                         int64_t *out, struct pawl_err *err)
{
    const char *text = cli_option(cli, name);
    if (!text || !int_parse(bytes_of(text), out))
        return err_set(err, PAWL_INVALID, "option --%s: \"%.100s\" is not a whole number", name,
                       text ? text : "");
    if (*out < min || *out > max)
        return err_set(err, PAWL_INVALID, "option --%s: %s must be %" PRId64 " to %" PRId64, name,
                       text, min, max);
    return PAWL_OK;
}

enum pawl_status cli_duration(const struct cli *cli, const char *name, int64_t *out_us,
                              struct pawl_err *err)
{
    const char *text = cli_option(cli, name);
    if (!text || !duration_parse(bytes_of(text), out_us))
        return err_set(err, PAWL_INVALID,
                       "option --%s: \"%.100s\" is not a duration such as 500ms, 5s or 2m", name,
                       text ? text : "");
    return PAWL_OK;
}
