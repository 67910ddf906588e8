/*
 * pages.c - `pawl completion bash` and `pawl man`, printed from the tables that read the command
 * line, so that they always match it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "cli/cli.h"

/* ---- completion ------------------------------------------------------------------------------ */

static void words(struct cli *cli, const struct option_row *row)
{
    for (; row && row->name; row++) {
        if (option_letter(row->name))
            fprintf(cli->out, " -%c", option_letter(row->name));
        fprintf(cli->out, " --%s", row->name);
    }
}

/* All tables of options, the commands' own last; NULL ends them. A command may have no table. */
static const struct option_row *const *tables(void)
{
    static const struct option_row *all[64];
    size_t n = 0;
    all[n++] = options_common;
    for (int i = 0; i < REACH_NOTHING; i++)
        all[n++] = options_of((enum reach)i);
    for (size_t i = 0; commands[i]; i++) {
        CHECK(n < COUNT_OF(all) - 1);
        if (commands[i]->options)
            all[n++] = commands[i]->options;
    }
    all[n] = NULL;
    return all;
}

static bool said_before(const struct option_row *const *first, const struct option_row *row)
{
    for (; *first; first++)
        for (const struct option_row *r = *first; r->name; r++) {
            if (r == row)
                return false;
            if (r->arg && strcmp(r->name, row->name) == 0)
                return true;
        }
    return false;
}

/* Options that take a value: the word behind such an option is not the command. */
static void words_with_value(struct cli *cli)
{
    const struct option_row *const *all = tables();
    for (size_t i = 0; all[i]; i++)
        for (const struct option_row *row = all[i]; row->name; row++)
            if (row->arg && !said_before(all, row))
                words(cli, (const struct option_row[]){ *row, { 0 } });
}

/* The subcommands that a usage begins with: of "[status|up] NAME" status and up. A usage that
 * begins with anything else has none. */
static void subcommands(struct cli *cli, const char *usage)
{
    size_t n = strcspn(usage, " ");
    bool several = memchr(usage, '|', n) != NULL;
    if (!several || strspn(usage, "abcdefghijklmnopqrstuvwxyz-|[]") < n)
        return;
    fputs("; subcommands=\"", cli->out);
    for (const char *p = usage; p < usage + n; p++)
        if (*p != '[' && *p != ']')
            fputc(*p == '|' ? ' ' : *p, cli->out);
    fputc('"', cli->out);
}

static void words_of_command(struct cli *cli, const struct command *c)
{
    fprintf(cli->out, "    %s) words=\"", c->name);
    words(cli, c->options);
    words(cli, options_of(c->reach));
    words(cli, options_common);
    fputc('"', cli->out);
    subcommands(cli, c->usage);
    fputs(" ;;\n", cli->out);
}

/* bash splits words at : and = as well, so a value may be several words. The command is the first
 * word that is a command's name and does not follow an option with a value. */
static int run_completion(struct cli *cli, int argc, char **argv)
{
    if (argc != 1 || strcmp(argv[0], "bash") != 0)
        return cli_unknown(cli, "shell", argc ? argv[0] : "", "bash");
    fputs("# bash completion of pawl, printed by `pawl completion bash`\n_pawl()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} command= subcommands= words i\n"
          "    local commands=\"",
          cli->out);
    for (size_t i = 0; commands[i]; i++)
        fprintf(cli->out, "%s%s", i ? " " : "", commands[i]->name);
    fputs("\"\n    local with_value=\"", cli->out);
    words_with_value(cli);
    fputs(" \"\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        if [[ $with_value == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
          "            i=$((i + 1))\n"
          "            [[ ${COMP_WORDS[i]} == = ]] && i=$((i + 1))\n"
          "        elif [[ \" $commands \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
          "            command=${COMP_WORDS[i]}\n            break\n        fi\n    done\n"
          "    case $command in\n    '') words=\" --version",
          cli->out);
    words(cli, options_common);
    for (int i = 0; i < REACH_NOTHING; i++)
        words(cli, options_of((enum reach)i));
    fputs("\" ;;\n", cli->out);
    for (size_t i = 0; commands[i]; i++)
        words_of_command(cli, commands[i]);
    fputs(
        "    esac\n"
        "    case $cur in\n"
        "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
        "    *)\n"
        "        if [ -z \"$command\" ] && [ \"$i\" = \"$COMP_CWORD\" ]; then\n"
        "            COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
        "        elif [ -n \"$subcommands\" ] && [ \"$((i + 1))\" = \"$COMP_CWORD\" ]; then\n"
        "            COMPREPLY=($(compgen -W \"$subcommands\" -- \"$cur\"))\n"
        "        else\n            COMPREPLY=($(compgen -f -- \"$cur\"))\n        fi\n        ;;\n"
        "    esac\n}\ncomplete -F _pawl pawl\n",
        cli->out);
    return cli_done(cli);
}

const struct command cmd_completion = {
    .name = "completion",
    .summary = "print the completion for a shell",
    .usage = "bash",
    .example = "pawl completion bash > pawl.bash && . ./pawl.bash",
    .args_max = 1,
    .reach = REACH_NOTHING,
    .run = run_completion,
};

/* ---- man ------------------------------------------------------------------------------------- */

/* A troff line must not begin with a control character, and a backslash needs escaping anywhere. */
static void roff(struct cli *cli, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", cli->out);
        if (*text == '\\')
            fputs("\\e", cli->out);
        else if (*text == '-')
            fputs("\\-", cli->out);
        else
            fputc(*text, cli->out);
        start = *text == '\n';
    }
}

static void roff_options(struct cli *cli, const struct option_row *row)
{
    for (; row && row->name; row++) {
        char letter = option_letter(row->name);
        fputs(".TP\n.B ", cli->out);
        if (letter)
            fprintf(cli->out, "\\-%c, ", letter);
        roff(cli, "--");
        roff(cli, row->name);
        if (row->arg) {
            fputs(" \\fI", cli->out);
            roff(cli, row->arg);
            fputs("\\fR", cli->out);
        }
        fputc('\n', cli->out);
        roff(cli, row->help);
        if (row->fallback) {
            fputs(" (default ", cli->out);
            roff(cli, row->fallback);
            fputc(')', cli->out);
        }
        fputc('\n', cli->out);
    }
}

static void roff_command(struct cli *cli, const struct command *c)
{
    fputs(".SS pawl ", cli->out);
    roff(cli, c->name);
    fprintf(cli->out, "%s", *c->usage ? " " : "");
    roff(cli, c->usage);
    fputc('\n', cli->out);
    roff(cli, c->about ? c->about : c->summary);
    fputc('\n', cli->out);
    roff_options(cli, c->options);
    fputs(".PP\n.nf\n.RS 4\n", cli->out);
    roff(cli, c->example);
    fputs("\n.RE\n.fi\n", cli->out);
}

static int run_man(struct cli *cli, int argc, char **argv)
{
    (void)argc, (void)argv;
    fputs(".TH PAWL 1 \"\" \"pawl " PAWL_VERSION "\" \"User Commands\"\n.SH NAME\n"
          "pawl \\- durable execution on the database you already run\n.SH SYNOPSIS\n"
          ".B pawl\n\\fICOMMAND\\fR [arguments] [options]\n.SH COMMANDS\n",
          cli->out);
    for (size_t i = 0; commands[i]; i++)
        roff_command(cli, commands[i]);
    fputs(".SH OPTIONS OF EVERY COMMAND\n", cli->out);
    roff_options(cli, options_common);
    fputs(".SS Commands that open a database\n", cli->out);
    roff_options(cli, options_of(REACH_DATABASE));
    fputs(".SS Commands that ask a server\n", cli->out);
    roff_options(cli, options_of(REACH_SERVER));
    fputs(".SH SETTINGS\nEach is an option, a variable PAWL_NAME, and a line of pawl.conf.\n",
          cli->out);
    for (int i = 0; i < SETTING_COUNT; i++) {
        fprintf(cli->out, ".TP\n.B %s\n", setting_table[i].name);
        roff(cli, setting_table[i].meaning);
        fprintf(cli->out, "%s", *setting_table[i].fallback ? " (default " : "");
        roff(cli, setting_table[i].fallback);
        fprintf(cli->out, "%s\n", *setting_table[i].fallback ? ")" : "");
    }
    return cli_done(cli);
}

const struct command cmd_man = {
    .name = "man",
    .summary = "print the man page",
    .usage = "",
    .example = "pawl man > pawl.1",
    .reach = REACH_NOTHING,
    .run = run_man,
};
