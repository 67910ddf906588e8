/*
 * cli.c - the program `pawl`: help, options, wrong arguments, error messages, JSON.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_fixture.h"

/* ---- Help ------------------------------------------------------------------------------------ */

TEST(every_command_has_help_with_an_example)
{
    EQ_INT(cli_run("help --json"), 0);
    const char *names[64];
    int n = 0;
    for (struct json *c = json_member(cli_answer(), "commands")->first; c && n < 64; c = c->next)
        names[n++] = strdup(cli_text(c, "name"));
    GE_INT(n, 23);
    for (int i = 0; i < n; i++) {
        char args[64], example[64];
        snprintf(args, sizeof(args), "%s --help", names[i]);
        snprintf(example, sizeof(example), "pawl %s", names[i]);
        EQ_INT(cli_run(args), 0);
        HAS_STR(cli_out, "usage: pawl ");
        HAS_STR(cli_out, "--json");
        const char *examples = strstr(cli_out, "\nexample\n  ");
        TRUE(examples != NULL);
        HAS_STR(examples, example);
        EQ_STR(cli_err_out, "");
        snprintf(args, sizeof(args), "help %s --json", names[i]);
        EQ_INT(cli_run(args), 0);
        EQ_STR(cli_text(cli_answer(), "name"), names[i]);
        free((char *)names[i]);
    }
}

TEST(help_lists_commands_and_settings)
{
    EQ_INT(cli_run("help"), 0);
    HAS_STR(cli_out, "  migrate ");
    EQ_INT(cli_run("--help"), 0);
    HAS_STR(cli_out, "  migrate ");
    EQ_INT(cli_run("help settings"), 0);
    HAS_STR(cli_out, "PAWL_POOL_SIZE");
    EQ_INT(cli_run("help settings --json"), 0);
    EQ_STR(cli_text(cli_answer()->first, "setting"), "db");
    EQ_INT(cli_run("help nobody"), 2);
    HAS_STR(cli_err_out, "unknown command \"nobody\"");
    EQ_INT(cli_run(""), 2);
    HAS_STR(cli_err_out, "usage: pawl [options] COMMAND");
    EQ_STR(cli_out, "");
}

TEST(the_page_in_doc_is_what_the_program_prints)
{
    EQ_INT(cli_run("help --markdown"), 0);
    EQ_INT(system("diff -u " PAWL_SOURCE_DIR "/doc/cli.md out.txt >&2"), 0);
    EQ_INT(cli_run("help settings --markdown"), 0);
    EQ_INT(system("diff -u " PAWL_SOURCE_DIR "/doc/settings.md out.txt >&2"), 0);
}

TEST(version_is_the_headers)
{
    EQ_INT(cli_run("version"), 0);
    EQ_STR(cli_out, "pawl " PAWL_VERSION "\n");
    EQ_INT(cli_run("--version"), 0);
    EQ_STR(cli_out, "pawl " PAWL_VERSION "\n");
    EQ_INT(cli_run("version --json"), 0);
    EQ_STR(cli_text(cli_answer(), "version"), PAWL_VERSION);
}

/* The installed pawl.conf sets nothing, and every line in it is valid when its # is removed. */
TEST(the_printed_conf_holds_the_defaults)
{
    static char defaults[CLI_TEXT_MAX];
    EQ_INT(cli_run("migrate up"), 0);
    EQ_INT(cli_run("help settings --conf"), 0);
    EQ_INT(system("cp out.txt as-printed.conf"), 0);
    EQ_INT(system("sed 's/^#\\([a-z_]* = \\)/\\1/' out.txt >all.conf"), 0);
    EQ_INT(cli_run("doctor --json --config as-printed.conf"), 0);
    for (struct json *s = json_member(cli_answer(), "settings")->first; s; s = s->next)
        EQ_STR(cli_text(s, "from"), "default");
    snprintf(defaults, sizeof(defaults), "%s", cli_out);
    EQ_INT(cli_run("doctor --json --config all.conf"), 0);
    int n = 0;
    for (struct json *s = json_member(cli_answer(), "settings")->first; s; s = s->next, n++) {
        char same[600];
        if (*cli_text(s, "value")) /* an empty list in the file counts as none */
            HAS_STR(cli_text(s, "from"), "all.conf:");
        snprintf(same, sizeof(same), "{\"setting\":\"%s\",\"value\":\"%s\",",
                 cli_text(s, "setting"), cli_text(s, "value"));
        HAS_STR(defaults, same);
    }
    GE_INT(n, 30);
    EQ_INT(cli_run("help --conf"), 2);
    HAS_STR(cli_err_out, "option --conf can only be used with pawl help settings");
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

TEST(wrong_names_are_invalid_and_hinted_at)
{
    EQ_INT(cli_run("migrat"), 2);
    EQ_STR(cli_err_out, "pawl: unknown command \"migrat\"; did you mean migrate?\n");
    EQ_INT(cli_run("schedules list"), 2);
    EQ_STR(cli_err_out, "pawl: unknown command \"schedules\"; did you mean cron?\n");
    EQ_INT(cli_run("serve-coffee"), 2);
    HAS_STR(cli_err_out, "pawl help lists them");
    EQ_INT(cli_run("migrate --prnt"), 2);
    EQ_STR(cli_err_out, "pawl migrate: unknown option --prnt; did you mean --print?\n");
    EQ_INT(cli_run("migrate --frobnicate"), 2);
    HAS_STR(cli_err_out, "pawl migrate --help lists them");
    EQ_INT(cli_run("gc -m 5"), 2);
    EQ_STR(cli_err_out, "pawl gc: unknown option \"-m\"; pawl gc --help lists them\n");
    EQ_INT(cli_run("gc -n 5"), 2); /* gc has no --limit */
    HAS_STR(cli_err_out, "unknown option --limit");
    EQ_INT(cli_run("gc --=5"), 2);
    EQ_STR(cli_out, "");
}

TEST(wrong_arguments_are_invalid)
{
    EQ_INT(cli_run("migrate sideways"), 2);
    EQ_STR(cli_err_out,
           "pawl migrate: unknown subcommand \"sideways\"; expected status, up, finish or "
           "grants\n");
    EQ_INT(cli_run("migrate up down"), 2);
    HAS_STR(cli_err_out,
            "unexpected argument \"down\"; usage: pawl migrate [status|up|finish|grants]");
    EQ_INT(cli_run("gc --max"), 2);
    HAS_STR(cli_err_out, "option --max needs N");
    EQ_INT(cli_run("gc --retention"), 2);
    HAS_STR(cli_err_out, "option --retention needs a value");
    EQ_INT(cli_run("gc --max=many"), 2);
    HAS_STR(cli_err_out, "option --max: \"many\" is not a whole number");
    EQ_INT(cli_run("gc --max 0"), 2);
    EQ_INT(cli_run("gc --json=yes"), 2);
    HAS_STR(cli_err_out, "takes no argument");
    EQ_INT(cli_run_with("PAWL_POOL_SIZE=x", "gc"), 2);
    HAS_STR(cli_err_out, "PAWL_POOL_SIZE");
    EQ_INT(cli_run_with("PAWL_POOL_SIZE=x", "version"), 0);
    EQ_INT(cli_run("gc --schema 1x --db mem:x"), 2);
    HAS_STR(cli_err_out, "schema \"1x\"");
}

TEST(a_token_line_has_all_queues)
{
    char text[2000] = "token new ann app --queues-of q0";
    for (int i = 1; i < 200; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",q%d", i);
    EQ_INT(cli_run(text), 0);
    HAS_STR(cli_err_out, ":q0,q1,");
    HAS_STR(cli_err_out, ",q198,q199\"}");
}

/* Messages name what is missing or unknown, and what would be right. */
TEST(errors_say_what_was_expected)
{
    static const struct {
        const char *args, *says;
    } rows[] = {
        { "events", "pawl events: subcommand is missing; expected serve or work" },
        { "events sreve", "pawl events: unknown subcommand \"sreve\"; expected serve or work" },
        { "get", "pawl get: ID is missing; usage: pawl get ID" },
        { "attempts", "ID is missing; usage: pawl attempts ID" },
        { "call", "TYPE is missing; usage: pawl call TYPE[.METHOD] [INPUT]" },
        { "submit", "TYPE is missing; usage: pawl submit" },
        { "batch", "FILE (or - for stdin) is missing" },
        { "backup", "FILE is missing; usage: pawl backup FILE" },
        { "cancel", "ID, or a filter such as --status, is missing; usage: pawl cancel ID..." },
        { "retry x --type t", "give IDs or filters such as --status, not both" },
        { "pause", "QUEUE, or --all, is missing; usage: pawl pause QUEUE..." },
        { "resume q --all", "give QUEUE or --all, not both" },
        { "unblock", "KEY is missing; usage: pawl unblock KEY skip|retry" },
        { "unblock k", "action is missing; expected skip or retry" },
        { "unblock k go", "unknown action \"go\"; expected skip or retry" },
        { "object", "TYPE is missing; usage: pawl object TYPE KEY" },
        { "object Counter", "KEY is missing; usage: pawl object TYPE KEY" },
        { "drain", "NODE is missing; usage: pawl drain NODE" },
        { "token", "usage: pawl token new NAME ROLE; ROLE is admin, app or monitor" },
        { "token new ann king", "ROLE \"king\" is unknown; expected admin, app or monitor" },
        { "token new a:b app", "NAME \"a:b\" must have no colon, space, quote or backslash" },
        { "token new ann admin --queues-of q", "option --queues-of is for the role app" },
        { "token new ann app --queues-of a,,b", "option --queues-of: queue \"\" is empty" },
        { "token new ann app --queues-of a:b", "queue \"a:b\" must have no colon" },
        { "completion", "shell is missing; expected bash" },
        { "completion zsh", "unknown shell \"zsh\"; expected bash" },
        { "get x --wait 5s --archived", "--wait cannot be used with --archived" },
        { "work --type t", "option --exec is missing: the program to run for each call" },
        { "work --exec cat", "option --type is missing: the type of the calls to run it for" },
        { "doctor --config no.conf", "settings file \"no.conf\": No such file or directory" },
        { "archive --db sqlite:none.db --older-than x",
          "option --older-than: \"x\" is not a duration" },
        { "requeue-stuck --db sqlite:none.db --older-than x",
          "option --older-than: \"x\" is not a duration" },
        { "serve --listen here", "\"here\" is not ADDR:PORT, [ADDR]:PORT or unix:PATH" },
        { "serve --tls-cert c.pem", "setting \"tls_key\" is not set, but \"tls_cert\" is" },
        { "serve --db env:NOT_SET",
          "env:NOT_SET, and the environment variable NOT_SET is not set" },
        { "--bogus list", "pawl: unknown option \"--bogus\"; pawl help lists the commands" },
        { "--url", "pawl: option --url needs a value" },
        { "list --url http://nowhere.invalid:80", "host \"nowhere.invalid\": " },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        NE_INT(cli_run(rows[i].args), 0);
        HAS_STR(cli_err_out, rows[i].says);
        EQ_STR(cli_out, "");
    }
}

/* The settings file is logged before anything is opened, so a start that fails logs it too. */
TEST(events_say_which_settings_file_was_found)
{
    FILE *f = fopen("pawl.conf", "w");
    TRUE(f != NULL);
    fputs("db = \"sqlite:e.db\"\n", f);
    fclose(f);
    EQ_INT(cli_run("events work --schema x"), 2);
    HAS_STR(cli_err_out, "settings are from ./pawl.conf, in ");
    EQ_INT(cli_run("events serve --schema x"), 2);
    HAS_STR(cli_err_out, "settings are from ./pawl.conf, in ");
    EQ_INT(cli_run("events work --schema x --config pawl.conf"), 2);
    FALSE(strstr(cli_err_out, "settings are from"));
}

/* Asserts what bash offers for the last of these words, split as bash splits them. */
static void completes(const char *words, const char *want)
{
    char line[600];
    snprintf(line, sizeof(line),
             "bash -c '. ./pawl.bash; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
             "_pawl; echo \"${COMPREPLY[@]}\"' >out.txt 2>err.txt",
             words);
    EQ_INT(system(line), 0);
    cli_read_file("out.txt", cli_out);
    cli_out[strcspn(cli_out, "\n")] = 0;
    EQ_STR(cli_out, want);
}

TEST(completion_knows_letters_and_options_before_the_command)
{
    EQ_INT(cli_run("completion bash >pawl.bash;"), 0);
    completes("pawl doc", "doctor");
    completes("pawl list --lim", "--limit");
    completes("pawl --url http : //x lis", "list");
    completes("pawl --url http : //x list --lim", "--limit");
    completes("pawl --node list get --arch", "--archived");
    completes("pawl --schema = get lis", "list");
    completes("pawl --json --u", "--url");
    completes("pawl --vers", "--version");
    completes("pawl get -", "--wait --result --archived --url --config --json -h --help");
    completes("pawl gc --max", "--max");
    completes("pawl cron pau", "pause");
    completes("pawl cron r", "resume run rm runs");
    completes("pawl --url http : //x cron app", "apply");
    completes("pawl cron put --if-v", "--if-version");
    completes("pawl migrate f", "finish");
    completes("pawl batch pawl.b", "pawl.bash"); /* FILE|- */
    EQ_INT(cli_run("completion bash"), 0);
    HAS_STR(cli_out, " -n --limit");
}

/* `pawl --url X list` is `pawl list --url X`. */
TEST(options_may_stand_before_the_command)
{
    EQ_INT(cli_run("--db sqlite:b.db migrate up --json"), 0);
    EQ_INT(access("b.db", F_OK), 0);
    EQ_STR(cli_text(cli_answer(), "state"), "up to date");
    EQ_INT(cli_run("--json --db=sqlite:b.db --schema pawl migrate"), 0);
    EQ_STR(cli_text(cli_answer(), "state"), "up to date");
    /* An option of the command, and a flag. */
    EQ_INT(cli_run("--max 5 --paused gc --db sqlite:b.db --json"), 0);
    EQ_INT(cli_number(cli_answer(), "removed"), 0);
    EQ_INT(cli_run("--url http://127.0.0.1:1 list"), 6);
    HAS_STR(cli_err_out, "pawl list: cannot reach http://127.0.0.1:1: ");
    EQ_INT(cli_run("--max 5 list"), 2); /* an option of another command */
    HAS_STR(cli_err_out, "pawl list: unknown option --max");
    EQ_INT(cli_run("--json --version"), 0);
    EQ_STR(cli_text(cli_answer(), "version"), PAWL_VERSION);
}

TEST(short_options)
{
    EQ_INT(cli_run("-h"), 0);
    HAS_STR(cli_out, "usage: pawl [options] COMMAND");
    EQ_INT(cli_run("list -h"), 0);
    HAS_STR(cli_out, "usage: pawl list ");
    HAS_STR(cli_out, "  -n, --limit N ");
    HAS_STR(cli_out, "  -h, --help ");
    EQ_INT(cli_run("-h list"), 0);
    HAS_STR(cli_out, "usage: pawl list ");
    EQ_INT(cli_run("list -n many"), 2);
    HAS_STR(cli_err_out, "option --limit: \"many\" is not a whole number");
    EQ_INT(cli_run("keys -n0"), 2);
    HAS_STR(cli_err_out, "option --limit: 0 must be 1 to ");
    EQ_INT(cli_run("list -n"), 2);
    HAS_STR(cli_err_out, "option --limit needs N");
    EQ_INT(cli_run("list -n 5 --url http://127.0.0.1:1"), 6);
    EQ_INT(cli_run("man"), 0);
    HAS_STR(cli_out, ".B \\-n, \\-\\-limit");
}

TEST(errors_are_json_when_asked)
{
    EQ_INT(cli_run("migrate --db sqlite:none.db --json"), 3);
    EQ_STR(cli_out, "");
    snprintf(cli_out, sizeof(cli_out), "%s", cli_err_out);
    struct json *e = json_member(cli_answer(), "error");
    EQ_STR(cli_text(e, "code"), "NOT_FOUND");
    HAS_STR(cli_text(e, "message"), "none.db");
    EQ_STR(cli_text(e, "retry"), "never");
}

TEST(a_full_disk_behind_stdout_is_an_error)
{
    int status = system(CLI_PROGRAM " help >/dev/full 2>err.txt");
    EQ_INT(WEXITSTATUS(status), 6);
}

TEST(looking_makes_no_file)
{
    EQ_INT(cli_run("migrate --db sqlite:none.db"), 3);
    EQ_INT(cli_run("gc --db sqlite:none.db"), 3);
    EQ_INT(cli_run("doctor --db sqlite:none.db"), 9);
    NE_INT(access("none.db", F_OK), 0);
}

TEST(no_password_is_printed)
{
    EQ_INT(cli_run("doctor --db postgres://ann:hush@host/db"), 9);
    FALSE(strstr(cli_out, "hush") || strstr(cli_err_out, "hush"));
    HAS_STR(cli_out, "postgres://ann:***@host/db");
    NE_INT(
        cli_run_with("DATABASE_URL=postgres://ann:hush@host/db", "migrate --db env:DATABASE_URL"),
        0);
    FALSE(strstr(cli_out, "hush") || strstr(cli_err_out, "hush"));
}
