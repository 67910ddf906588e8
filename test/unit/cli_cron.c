/*
 * cli_cron.c - `pawl cron` with a server, and the schedules that pawl.conf declares.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/world.h"
#include "check.h"
#include "cli_fixture.h"
#include "cli_server.h"

TEST(put_get_list_and_rm)
{
    serve("");
    EQ_INT(
        run("pawl cron put nightly --cron '0 3 * * 1-5' --zone Europe/Berlin --type echo --method "
            "m "
            "--queue q --key k --input '{\"n\": 1}' --catch-up all --catch-up-for 2h --overlap "
            "wait "
            "--jitter 30s --starts-at 2026-01-01T00:00:00Z --ends-at 2100-01-01T00:00:00Z"),
        0);
    HAS_STR(out, "nightly created; next 20");
    EQ_INT(run("pawl cron get nightly --json"), 0);
    HAS_STR(out, "\"call\":{\"type\":\"echo\",\"method\":\"m\",\"queue\":\"q\",\"key\":\"k\","
                 "\"input\":{\"n\": 1}}");
    HAS_STR(out, "\"catch_up\":\"all\",\"catch_up_for\":7200,\"overlap\":\"wait\",\"jitter\":30,");
    EQ_INT(run("pawl cron put nightly --cron '@daily' --type echo"), 0);
    HAS_STR(out, "nightly stored; next 20");
    EQ_INT(run("pawl cron put nightly --cron '@daily' --type echo --new"), 16);
    EQ_INT(run("pawl cron put nightly --cron '@daily' --type echo --if-version 1"), 16);
    EQ_INT(run("pawl cron put beat '{\"every\": 60, \"call\": {\"type\": \"echo\"}}'"), 0);
    EQ_INT(run("echo '{\"at\": [\"2100-01-01T00:00:00Z\"], \"call\": {\"type\": \"echo\"}}' | "
               "pawl cron put once -"),
           0);
    HAS_STR(out, "once created; next 2100-01-01T00:00:00Z");
    EQ_INT(run("pawl cron list"), 0);
    HAS_STR(out, "name     rule");
    HAS_STR(out, "every 60 s");
    HAS_STR(out, "at 1 time ");
    EQ_INT(run("pawl cron list --json | jq -r '.schedules[].name' | tr '\\n' ' '"), 0);
    EQ_STR(out, "beat nightly once ");
    EQ_INT(run("pawl cron list -n 2 --json | jq '.schedules | length'"), 0);
    EQ_STR(out, "2\n");
    EQ_INT(run("pawl cron pause beat once"), 0);
    EQ_STR(out, "beat paused\nonce paused\n");
    EQ_INT(run("pawl cron list"), 0);
    HAS_STR(out, "paused");
    EQ_INT(run("pawl cron resume beat"), 0);
    EQ_INT(run("pawl cron rm nightly none beat"), 3);
    EQ_STR(out, "nightly deleted\nbeat deleted\n");
    HAS_STR(err_out, "none");
    EQ_INT(run("pawl cron get nightly"), 3);
}

/* TYPE.METHOD is split as by `pawl submit`, and the call's options are the same. */
TEST(the_call_of_a_schedule_is_written_as_for_submit)
{
    static const struct {
        const char *options, *call;
    } cases[] = {
        { "--type lab.sleep", "{\"type\":\"lab\",\"method\":\"sleep\"}" },
        { "--type a.b.c", "{\"type\":\"a.b\",\"method\":\"c\"}" },
        { "--type lab.sleep --method m", "{\"type\":\"lab.sleep\",\"method\":\"m\"}" },
        { "--type lab --needs a,b --needs c --tag a:shop --tag k=v --timeout 90s",
          "{\"type\":\"lab\",\"timeout\":90,\"tags\":{\"a\":\"shop\",\"k\":\"v\"},"
          "\"needs\":[\"a\",\"b\",\"c\"]}" },
    };
    char command[300];
    serve("");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(command, sizeof(command), "pawl cron put s --every 1h %s --json | jq -c .call",
                 cases[i].options);
        EQ_INT(run(command), 0);
        out[strcspn(out, "\n")] = 0;
        EQ_STR(out, cases[i].call);
    }
}

TEST(the_list_says_what_is_over)
{
    serve("");
    EQ_INT(run("pawl cron put s --every 1h --type echo"), 0);
    EQ_INT(run("pawl cron list"), 0);
    FALSE(strstr(out, "is over"));
    cli_sql("s.db", "UPDATE pawl_schedule SET next_at = NULL, due_at = NULL");
    EQ_INT(run("pawl cron list"), 0);
    HAS_STR(out, "is over");
    EQ_INT(run("pawl cron pause s"), 0);
    EQ_INT(run("pawl cron list"), 0);
    HAS_STR(out, "paused");
}

/* A list that is cut says so. */
TEST(a_long_list_says_that_there_is_more)
{
    serve("");
    EQ_INT(run("jq -n '[range(101) | {name: \"s\\(.)\", every: 3600, call: {type: \"echo\"}}]' | "
               "pawl cron apply - --json | jq .created"),
           0);
    EQ_STR(out, "101\n");
    EQ_INT(run("pawl cron list | wc -l"), 0);
    EQ_STR(out, "101\n"); /* the head and 100 */
    EQ_STR(err_out, "pawl cron: there are more schedules; --limit N prints more\n");
    EQ_INT(run("pawl cron list --json | jq '[(.schedules | length), (.next | type)]' -c"), 0);
    EQ_STR(out, "[100,\"string\"]\n");
    EQ_INT(run("pawl cron list --limit 100 | wc -l"), 0); /* as asked for */
    EQ_STR(err_out, "");
    EQ_INT(run("pawl cron list --limit 101 --json | jq '[(.schedules | length), .next]' -c"), 0);
    EQ_STR(out, "[101,null]\n");
    EQ_INT(run("pawl cron list --limit 1000 | wc -l"), 0);
    EQ_STR(out, "102\n");
    EQ_STR(err_out, "");
}

TEST(wrong_words_are_refused)
{
    static const struct {
        const char *args, *why;
    } cases[] = {
        { "pawl cron", "subcommand" },
        { "pawl cron lst", "unknown subcommand \"lst\"; expected list, get" },
        { "pawl cron get", "NAME is missing; usage: pawl cron get NAME" },
        { "pawl cron get a b", "unexpected argument \"b\"" },
        { "pawl cron list --prune", "option --prune cannot be used with pawl cron list" },
        { "pawl cron put s", "the schedule is missing" },
        { "pawl cron put s '{}' --cron x", "option --cron: is given together with JSON" },
        { "pawl cron put s --cron '@daily' --type t --new --if-version 3",
          "cannot be used together" },
        { "pawl cron put s --every soon --type t", "option --every: \"soon\"" },
        { "pawl cron put s --every 5s --type t --input '{'", "option --input: is not JSON" },
        { "pawl cron put s --cron '0 24 * * *' --type t", "field \"cron\": \"24\" at column 3" },
        { "pawl cron put s --every 5s --method m", "field \"call.type\": is missing" },
        { "pawl cron put s --every 5s --type t --tag x", "option --tag: \"x\" is not NAME:VALUE" },
        { "pawl cron put s --every 5s --type t --timeout x", "option --timeout: \"x\"" },
        { "pawl cron put s '{}' --tag a:b", "option --tag: is given together with JSON" },
        { "pawl cron put s --every 5s", "field \"call.type\": is missing" },
        { "pawl cron next '61 * * * *'", "field \"cron\": \"61\" at column 1" },
        { "pawl cron next name --zone UTC", "need an expression" },
        { "pawl cron apply none.json", "none.json" },
    };
    serve("");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EQ_INT(run(cases[i].args), 2);
        HAS_STR(err_out, cases[i].why);
    }
}

TEST(runs_and_times)
{
    serve("--module " PAWL_BUILD_DIR "/samples/echo.so");
    EQ_INT(run("pawl cron put s --cron '@yearly' --type echo"), 0);
    EQ_INT(run("pawl cron run s"), 0);
    HAS_STR(out, "cron:s@");
    EQ_INT(run("pawl cron run s --id 'a \"b\" \\\\'"), 0);
    EQ_STR(out, "cron:s!a \"b\" \\\\\n");
    EQ_INT(run("pawl cron run s --id 'a \"b\" \\\\' --json | jq .duplicate"), 0);
    EQ_STR(out, "true\n");
    EQ_INT(run("pawl cron runs s --json | jq '.runs | length'"), 0);
    EQ_STR(out, "2\n");
    EQ_INT(run("pawl cron runs s"), 0);
    HAS_STR(out, "manual");
    EQ_INT(run("pawl cron runs none"), 3);
    EQ_INT(
        run("pawl cron next '30 2 * * *' --zone Europe/Berlin --from 2027-03-28T00:00:00Z --count "
            "1"),
        0);
    HAS_STR(out, "2027-03-28T01:00:00Z  2027-03-28T03:00:00+02:00  gap");
    EQ_INT(run("pawl cron next '0 9 1 * MON' --count 1"), 0);
    HAS_STR(out, "note: ");
    EQ_INT(run("pawl cron next s"), 0);
    HAS_STR(out, "-01-01T00:00:00Z");
    EQ_INT(run("pawl cron next s --json | jq '.next | length'"), 0);
    EQ_STR(out, "10\n");
}

/* The sample declares two; another start finds them as they are. */
TEST(a_module_brings_its_schedules)
{
    char first[200];
    serve("--module " PAWL_BUILD_DIR "/samples/schedules.so");
    EQ_INT(run("pawl cron list --json | jq -c '[.schedules[] | .name, .overlap, .every]'"), 0);
    EQ_STR(out, "[\"report\",\"allow\",null,\"tidy\",\"skip\",300]\n");
    EQ_INT(run("pawl cron list --json | jq -c '[.schedules[].version]'"), 0);
    snprintf(first, sizeof(first), "%.190s", out);
    EQ_INT(run("pawl get \"$(pawl cron run tidy)\" --wait 10s --json | jq -r .result"), 0);
    HAS_STR(out, "tidied up by cron:tidy@");
    EQ_INT(kill(server, SIGKILL), 0);
    serve("--module " PAWL_BUILD_DIR "/samples/schedules.so");
    EQ_INT(run("pawl cron list --json | jq -c '[.schedules[].version]'"), 0);
    EQ_STR(out, first);
}

/* ---- A clock that was set back -------------------------------------------------------------- */

static void last_tick_in(const char *name, int seconds)
{
    char text[200];
    snprintf(text, sizeof(text), "UPDATE pawl_schedule SET last_at = %lld WHERE name = '%s'",
             (long long)(world_now(&world_real) + seconds * SEC_US), name);
    cli_sql("s.db", text);
}

TEST(doctor_warns_of_ticks_that_are_to_come)
{
    serve("");
    EQ_INT(run("pawl cron put a --every 1h --type echo"), 0);
    EQ_INT(run("pawl cron put b --every 1h --type echo"), 0);
    EQ_INT(run("pawl cron put c --every 1h --type echo"), 0);
    last_tick_in("a", 30);
    EQ_INT(run("pawl doctor --db sqlite:s.db"), 0);
    HAS_STR(out, "schedules     none has ticked for a time that is to come");
    last_tick_in("c", 3600);
    EQ_INT(run("pawl doctor --db sqlite:s.db"), 0);
    HAS_STR(out, "1 has ticked for times up to 20");
    HAS_STR(out, "which is to come: \"c\"; the clock was set back");
    last_tick_in("b", 7200);
    EQ_INT(run("pawl doctor --db sqlite:s.db --json | jq -r '.checks[] | select(.check == "
               "\"schedules\") | .level, .finding'"),
           0);
    HAS_STR(out, "warn\n2 have ticked for times up to 20");
    HAS_STR(out,
            "which are to come: \"b\" and others; the clock was set back, and they do not tick");
}

/* ---- apply ----------------------------------------------------------------------------------- */

#define THREE                                                                                      \
    "[{\"name\": \"a\", \"every\": 60, \"call\": {\"type\": \"echo\"}},"                           \
    " {\"name\": \"b\", \"cron\": \"@daily\", \"call\": {\"type\": \"echo\", \"input\": [1, 2]}}," \
    " {\"name\": \"c\", \"cron\": \"@daily\", \"paused\": true, \"call\": {\"type\": \"echo\"}}]"

static const char *versions(void)
{
    static char text[1000];
    EQ_INT(run("pawl cron list --json | jq -c '[.schedules[] | .name, .version]'"), 0);
    snprintf(text, sizeof(text), "%.990s", out);
    return text;
}

TEST(apply_twice_writes_once)
{
    char before[1000];
    serve("");
    cli_write_file("three.json", THREE);
    EQ_INT(run("pawl cron apply three.json --dry-run"), 0);
    HAS_STR(out, "dry run: 3 created, 0 updated, 0 unchanged, 0 deleted");
    EQ_STR(versions(), "[]\n");
    EQ_INT(run("pawl cron apply three.json"), 0);
    HAS_STR(out, "3 created, 0 updated, 0 unchanged, 0 deleted");
    snprintf(before, sizeof(before), "%.990s", versions());
    EQ_INT(run("pawl cron apply three.json --json"), 0);
    HAS_STR(out, "\"created\":0,\"updated\":0,\"unchanged\":3,\"deleted\":0}");
    EQ_STR(versions(), before);
    EQ_INT(run("sed 's/60/61/' three.json | pawl cron apply -"), 0);
    HAS_STR(out, "0 created, 1 updated, 2 unchanged, 0 deleted");
    EQ_INT(run("pawl cron get a --json | jq .every"), 0);
    EQ_STR(out, "61\n");
}

TEST(a_file_with_a_mistake_changes_nothing)
{
    static const struct {
        const char *file, *why;
    } cases[] = {
        { "{}", "must be a JSON array of schedules" },
        { "[", "is not JSON" },
        { "[{\"every\": 60, \"call\": {\"type\": \"t\"}}]", "schedule 1 of the array has no name" },
        { "[{\"name\": \"x\", \"every\": 60, \"call\": {\"type\": \"t\"}}, {\"name\": \"x\"}]",
          "schedule \"x\" is there twice" },
        { "[{\"name\": \"x\", \"every\": 60, \"call\": {\"type\": \"t\"}},"
          " {\"name\": \"y\", \"every\": 0, \"call\": {\"type\": \"t\"}},"
          " {\"name\": \"z\", \"cron\": \"* * *\", \"call\": {\"type\": \"t\"}}]",
          "2 schedules were refused; nothing was changed" },
    };
    serve("");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cli_write_file("f.json", cases[i].file);
        EQ_INT(run("pawl cron apply f.json --prune"), 2);
        HAS_STR(err_out, cases[i].why);
        EQ_STR(versions(), "[]\n");
    }
    cli_write_file("f.json", cases[4].file);
    EQ_INT(run("pawl cron apply f.json"), 2);
    HAS_STR(err_out, "f.json: schedule \"y\": field \"every\"");
    HAS_STR(err_out, "f.json: schedule \"z\": field \"cron\"");
}

TEST(prune_deletes_what_is_not_in_the_file)
{
    serve("");
    cli_write_file("three.json", THREE);
    cli_write_file("one.json",
                   "[{\"name\": \"b\", \"cron\": \"@daily\", \"call\": {\"type\": \"echo\", "
                   "\"input\": [1, 2]}}]");
    EQ_INT(run("pawl cron apply three.json"), 0);
    EQ_INT(run("pawl cron apply one.json --dry-run --prune"), 0);
    HAS_STR(out, "dry run: 0 created, 0 updated, 1 unchanged, 2 deleted");
    EQ_INT(run_on_terminal("cron apply one.json --prune",
                           "delete 2 schedules that are not in one.json: \"a\", \"c\"? [y/N] ",
                           "n\n"),
           2);
    HAS_STR(out, "nothing was changed");
    EQ_INT(run("pawl cron list --json | jq '.schedules | length'"), 0);
    EQ_STR(out, "3\n");
    EQ_INT(run_on_terminal("cron apply one.json --prune", "? [y/N] ", "y\n"), 0);
    EQ_INT(run("pawl cron list --json | jq -r '.schedules[].name'"), 0);
    EQ_STR(out, "b\n");
    EQ_INT(run("pawl cron apply three.json && pawl cron apply one.json --prune"), 0);
    HAS_STR(out, "2 deleted");
    EQ_INT(run("echo '[]' | pawl cron apply - --prune"), 0);
    EQ_STR(versions(), "[]\n");
}

/* ---- pawl.conf ------------------------------------------------------------------------------- */

#define NIGHTLY                                                                                    \
    "schedule \"nightly\" {\n cron = \"0 3 * * *\"\n zone = Europe/Berlin\n type = echo\n}\n"

TEST(the_settings_declare_schedules)
{
    cli_write_file("pawl.conf", NIGHTLY "schedule beat { every = 90s type = echo }\n");
    serve("--config pawl.conf");
    EQ_INT(run("pawl cron list --json | jq -r '.schedules[].name' | tr '\\n' ' '"), 0);
    EQ_STR(out, "beat nightly ");
    EQ_INT(run("pawl cron pause nightly"), 0);
    EQ_INT(run("pawl cron get nightly --json | jq .version"), 0);
    char version[100];
    snprintf(version, sizeof(version), "%.90s", out);
    /* Changed, taken out, and as it was but paused by hand. */
    cli_write_file("pawl.conf", NIGHTLY "schedule more { every = 60s type = echo }\n");
    EQ_INT(kill(server, SIGHUP), 0);
    serve_logged("schedule \\\"more\\\": created, from pawl.conf:6");
    serve_logged("2 schedules of the settings: 1 stored");
    EQ_INT(run("pawl cron list --json | jq -r '.schedules[].name' | tr '\\n' ' '"), 0);
    EQ_STR(out, "beat more nightly ");
    EQ_INT(run("pawl cron get nightly --json | jq .version"), 0);
    EQ_STR(out, version);
    EQ_INT(run("pawl cron get nightly --json | jq .paused"), 0);
    EQ_STR(out, "true\n");
    cli_write_file("pawl.conf", "schedule more {\n every = 61s\n}\n");
    EQ_INT(kill(server, SIGHUP), 0);
    serve_logged("pawl.conf:1: schedule \\\"more\\\": field \\\"type\\\": is missing");
    EQ_INT(run("pawl cron get more --json --config /dev/null | jq .every"), 0);
    EQ_STR(out, "60\n");
}

TEST(a_wrong_block_stops_the_start)
{
    cli_write_file("pawl.conf", "schedule a {\n type = t\n cron = \"0 24 * * *\"\n}\n");
    EQ_INT(run("pawl serve --db sqlite:x.db --config pawl.conf"), 2);
    HAS_STR(err_out, "pawl.conf:3: schedule \"a\": field \"cron\": \"24\" at column 3");
    /* Only a start knows the zones of the machine and the time. */
    cli_write_file("pawl.conf", "schedule a {\n type = t\n every = 5s\n zone = Mars/Base\n}\n");
    EQ_INT(run("pawl serve --db sqlite:x.db --config pawl.conf --listen 127.0.0.1:0"), 2);
    HAS_STR(err_out, "pawl.conf:4: schedule \"a\": ");
    HAS_STR(err_out, "Mars/Base");
}
