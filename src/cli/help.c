/*
 * help.c - `pawl help`, `--help` of every command, and doc/cli.md, printed from the tables.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/json.h"
#include "cli/table.h"

#define HELP_LEN_MAX (1 << 20)
#define OPTION_WIDTH 18

/* ---- For people ------------------------------------------------------------------------------ */

static void heading(struct cli *cli, const char *text)
{
    fprintf(cli->out, "\n%s%s%s\n", paint_on(cli, PAINT_HEAD), text, paint_off(cli, PAINT_HEAD));
}

/* Print each line of `text`, with `before` in front of it. */
static void lines(struct cli *cli, const char *before, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        fprintf(cli->out, "%s%.*s\n", before, (int)len, text);
        text += len + (text[len] == '\n');
    }
}

static void option_text(const struct option_row *row, char *out, size_t size)
{
    char letter = option_letter(row->name), before[8] = "";
    if (letter)
        snprintf(before, sizeof(before), "-%c, ", letter);
    snprintf(out, size, "%s--%s%s%s", before, row->name, row->arg ? " " : "",
             row->arg ? row->arg : "");
}

static void option_lines(struct cli *cli, const struct option_row *row)
{
    for (; row && row->name; row++) {
        char name[80];
        option_text(row, name, sizeof(name));
        fprintf(cli->out, "  %-*s %s", OPTION_WIDTH, name, row->help);
        if (row->fallback)
            fprintf(cli->out, " (default %s)", row->fallback);
        fputc('\n', cli->out);
    }
}

void help_command(struct cli *cli, const struct command *c)
{
    fprintf(cli->out, "usage: pawl %s%s%s [options]\n\n", c->name, *c->usage ? " " : "", c->usage);
    if (c->about)
        fprintf(cli->out, "%s\n", c->about);
    else
        fprintf(cli->out, "pawl %s: %s.\n", c->name, c->summary);
    heading(cli, "options");
    option_lines(cli, c->options);
    option_lines(cli, options_of(c->reach));
    option_lines(cli, options_common);
    if (c->reach != REACH_NOTHING)
        fputs("  Every setting is an option as well: pawl help settings.\n"
              "  D is a duration: 500ms, 5s, 2m, 3h, 7d. TIME is 2030-01-31T08:00:00Z.\n",
              cli->out);
    heading(cli, "example");
    lines(cli, "  ", c->example);
}

void help_overview(struct cli *cli)
{
    fprintf(cli->out,
            "pawl %s - durable execution on the database you already run\n"
            "usage: pawl [options] COMMAND [arguments] [options]\n",
            PAWL_VERSION);
    heading(cli, "commands");
    for (size_t i = 0; commands[i]; i++)
        fprintf(cli->out, "  %-13s %s\n", commands[i]->name, commands[i]->summary);
    heading(cli, "example");
    fputs("  pawl serve --db sqlite:orders.db --module build/samples/echo.so\n"
          "  pawl call echo '{\"hello\": \"world\"}'\n\n"
          "pawl COMMAND --help explains a command; pawl help settings lists the settings.\n",
          cli->out);
}

static void settings_fill(struct cli_table *s)
{
    static const char *const columns[] = { "setting", "default", "variable", "meaning", NULL };
    cli_table_init(s, columns);
    for (int i = 0; i < SETTING_COUNT; i++) {
        char variable[64];
        setting_variable(i, variable, sizeof(variable));
        cli_table_text(s, "%s", setting_table[i].name);
        cli_table_text(s, "%s", setting_table[i].fallback);
        cli_table_text(s, "%s", variable);
        cli_table_text(s, "%s", setting_table[i].meaning);
    }
}

static int help_settings(struct cli *cli)
{
    struct cli_table s;
    struct buf b;
    int code;
    settings_fill(&s);
    buf_init(&b, HELP_LEN_MAX);
    if (cli->json) {
        cli_table_json(&b, &s);
        code = cli_table_send(cli, &b);
    } else {
        cli_table_print(cli, &s);
        fputs("\nA setting is --name on the command line, else its variable, else its line in\n"
              "pawl.conf, else the default.\n"
              "Durations are 500ms, 5s, 2m, 3h, 7d; a number alone is seconds.\n",
              cli->out);
        code = cli_done(cli);
    }
    buf_release(&b);
    cli_table_release(&s);
    return code;
}

/* ---- For programs ---------------------------------------------------------------------------- */

static void member(struct buf *b, const char *name, const char *text)
{
    json_add_name(b, name);
    if (text)
        json_add_string(b, bytes_of(text));
    else
        buf_add_text(b, "null");
}

static void options_json(struct buf *b, const struct option_row *row)
{
    for (; row && row->name; row++) {
        json_add_comma(b);
        buf_add_char(b, '{');
        member(b, "name", row->name);
        member(b, "argument", row->arg);
        member(b, "default", row->fallback);
        member(b, "help", row->help);
        buf_add_char(b, '}');
    }
}

static void command_json(struct buf *b, const struct command *c)
{
    json_add_comma(b);
    buf_add_char(b, '{');
    member(b, "name", c->name);
    member(b, "summary", c->summary);
    member(b, "usage", c->usage);
    member(b, "about", c->about);
    member(b, "example", c->example);
    json_add_name(b, "options");
    buf_add_char(b, '[');
    options_json(b, c->options);
    options_json(b, options_of(c->reach));
    options_json(b, options_common);
    buf_add_text(b, "]}");
}

static int help_json(struct cli *cli, const struct command *only)
{
    struct buf b;
    buf_init(&b, HELP_LEN_MAX);
    if (only) {
        command_json(&b, only);
    } else {
        buf_add_text(&b, "{\"commands\":[");
        for (size_t i = 0; commands[i]; i++)
            command_json(&b, commands[i]);
        buf_add_text(&b, "]}");
    }
    int code = cli_table_send(cli, &b);
    buf_release(&b);
    return code;
}

/* ---- doc/cli.md ------------------------------------------------------------------------------ */

static void markdown_options(struct cli *cli, const struct option_row *row)
{
    fputs("| option | default | |\n|---|---|---|\n", cli->out);
    for (; row && row->name; row++) {
        char name[80];
        option_text(row, name, sizeof(name));
        fputs("| `", cli->out);
        for (const char *c = name; *c; c++) /* an unescaped | would end the table cell */
            fprintf(cli->out, "%s%c", *c == '|' ? "\\" : "", *c);
        fprintf(cli->out, "` | %s | %s |\n", row->fallback ? row->fallback : "", row->help);
    }
    fputc('\n', cli->out);
}

static void markdown_command(struct cli *cli, const struct command *c)
{
    fprintf(cli->out, "## pawl %s%s%s\n\n", c->name, *c->usage ? " " : "", c->usage);
    if (c->about)
        fprintf(cli->out, "%s\n\n", c->about);
    else
        fprintf(cli->out, "`pawl %s`: %s.\n\n", c->name, c->summary);
    if (c->options)
        markdown_options(cli, c->options);
    lines(cli, "    ", c->example);
    fputc('\n', cli->out);
}

static int help_markdown(struct cli *cli)
{
    fputs(
        "<!-- Printed by `pawl help --markdown`; change src/cli instead. -->\n"
        "# The program\n\n"
        "`pawl [options] COMMAND [arguments] [options]`. Answers go to stdout, as aligned text,\n"
        "or with `--json` as one JSON value. Errors go to stderr as one sentence, or with\n"
        "`--json` as `{\"error\":{\"code\",\"message\",\"retry\"}}`; when the answer to a\n"
        "request was lost, the error also has the `id` of the call that may be stored. Output\n"
        "on a terminal is coloured unless `NO_COLOR` is set; `TERM=dumb` switches off colour and\n"
        "progress lines. Exit codes are those of [status.md](status.md).\n\n"
        "D is a duration: `500ms`, `5s`, `2m`, `3h`, `7d`; a number alone is seconds. TIME is\n"
        "RFC 3339: `2030-01-31T08:00:00Z`. N is a whole number.\n\n"
        "Every command has these options, and every [setting](settings.md) is an option too:\n\n",
        cli->out);
    markdown_options(cli, options_common);
    fputs("Commands that open a database have these:\n\n", cli->out);
    markdown_options(cli, options_of(REACH_DATABASE));
    fputs("Commands that ask a server have this one, and take the token from `PAWL_TOKEN`:\n\n",
          cli->out);
    markdown_options(cli, options_of(REACH_SERVER));
    for (size_t i = 0; commands[i]; i++)
        markdown_command(cli, commands[i]);
    return cli_done(cli);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(struct cli *cli, int argc, char **argv)
{
    bool settings = argc && strcmp(argv[0], "settings") == 0;
    if (cli_flag(cli, "conf") && !settings)
        return cli_failf(cli, PAWL_INVALID,
                         "option --conf can only be used with pawl help settings");
    if (cli_flag(cli, "conf"))
        return help_settings_conf(cli);
    if (cli_flag(cli, "markdown"))
        return settings ? help_settings_page(cli) : help_markdown(cli);
    if (settings)
        return help_settings(cli);
    const struct command *c = argc ? command_find(argv[0]) : NULL;
    if (argc && !c)
        return cli_failf(cli, PAWL_INVALID, "unknown command \"%.60s\"; pawl help lists them",
                         argv[0]);
    if (cli->json)
        return help_json(cli, c);
    if (c)
        help_command(cli, c);
    else
        help_overview(cli);
    return cli_done(cli);
}

static const struct option_row options[] = {
    { "markdown", NULL, NULL, "print all help as Markdown; with settings, the page of settings" },
    { "conf", NULL, NULL, "with settings: print a pawl.conf with every setting commented out" },
    { 0 },
};

const struct command cmd_help = {
    .name = "help",
    .summary = "list the commands, or explain one command",
    .usage = "[COMMAND|settings]",
    .example = "pawl help\npawl help migrate\npawl help settings\n"
               "pawl help settings --conf > pawl.conf",
    .options = options,
    .args_max = 1,
    .reach = REACH_NOTHING,
    .run = run,
};
