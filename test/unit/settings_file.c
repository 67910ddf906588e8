/*
 * settings_file.c - pawl.conf: what is accepted, what is refused, and that the reported line is
 * right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/settings.h"

#include "base/buf.h"
#include "base/world.h"
#include "check.h"
#include "server/server.h"

static struct settings s;
static struct pawl_err err;

static enum pawl_status parse(const char *text)
{
    settings_release(&s);
    OK(settings_init(&s, &err), &err);
    return conf_parse(&s, "pawl.conf", bytes_of(text), &err);
}

static void refused(const char *text, const char *why)
{
    EQ_STATUS(parse(text), PAWL_INVALID, &err);
    EQ_STR(err.text, why);
    settings_release(&s);
}

static const char *from(int id)
{
    static char text[300];
    setting_from_text(&s, id, text, sizeof(text));
    return text;
}

TEST(values_of_every_kind_are_read)
{
    OK(parse("# a comment\n"
             "retention = 14d\n"
             "/* more\n of it */ worker_slots = 4 // to the end\n"
             "paused = yes\n"
             "poll_interval = \"10ms to 1s\"\n"
             "db = postgres://ann@host/db\n"
             "listen = \"[::1]:80\" # there\n"
             "queues = {mail, \"two words\"}\n"
             "tokens = {\"a:admin:1\",\n  \"b:app:2:x,y\"}\n"
             "tokens += {\"c:monitor:3\"}\n"),
       &err);
    EQ_INT(s.v[SET_RETENTION].number, 14 * 86400 * SEC_US);
    EQ_STR(from(SET_RETENTION), "pawl.conf:2");
    EQ_INT(s.v[SET_WORKER_SLOTS].number, 4);
    EQ_STR(from(SET_WORKER_SLOTS), "pawl.conf:4");
    EQ_INT(s.v[SET_PAUSED].number, 1);
    EQ_INT(s.v[SET_POLL_INTERVAL].last, SEC_US);
    EQ_STR(s.v[SET_DB].text, "postgres://ann@host/db");
    EQ_STR(s.v[SET_LISTEN].text, "[::1]:80");
    EQ_STR(from(SET_LISTEN), "pawl.conf:8");
    EQ_INT(s.v[SET_QUEUES].n_items, 2);
    EQ_STR(s.v[SET_QUEUES].items[1], "two words");
    EQ_INT(s.v[SET_TOKENS].n_items, 3);
    EQ_STR(s.v[SET_TOKENS].items[1], "b:app:2:x,y");
    EQ_STR(from(SET_TOKENS), "pawl.conf:12");
    EQ_STR(from(SET_GRACE), "default");
    settings_release(&s);
}

TEST(environment_and_command_line_are_stronger)
{
    setenv("PAWL_GRACE", "2s", 1);
    OK(settings_init(&s, &err), &err);
    OK(settings_set(&s, SET_REMEMBER, "3d", &err), &err);
    OK(conf_parse(&s, "f", BYTES("grace = 5s\nremember = 6d\nretention = 7d\n"), &err), &err);
    EQ_INT(s.v[SET_GRACE].number, 2 * SEC_US);
    EQ_INT(s.v[SET_REMEMBER].number, 3 * 86400 * SEC_US);
    EQ_STR(from(SET_RETENTION), "f:3");
    settings_release(&s);
    /* A wrong line is an error even when a stronger source has set the value. */
    refused("grace = soon\n", "pawl.conf:1: grace: \"soon\" is not a duration such as 500ms, 5s, "
                              "2m or 7d");
}

TEST(variables_are_followed)
{
    setenv("DB_PASSWORD", "p w", 1);
    OK(parse("db = \"postgres://ann:${DB_PASSWORD}@${NO_HOST:-here}/db\"\n"), &err);
    EQ_STR(s.v[SET_DB].text, "postgres://ann:p w@here/db");
    settings_release(&s);
}

TEST(what_is_wrong_is_named_with_its_line)
{
    refused("# one\n\n# three\nretenton = 7d\n",
            "pawl.conf:4: unknown setting \"retenton\"; did you mean retention?");
    refused("\nfrobnicate = 1\n",
            "pawl.conf:2: unknown setting \"frobnicate\"; pawl help settings lists them");
    refused("# x\nworker_slots = 0 # none\n", "pawl.conf:2: worker_slots: \"0\" must be 1 to 1024");
    refused("grace = 1s\n\ngrace = 2s\n", "pawl.conf:3: grace: was set before, on line 1");
    refused("grace 1s\n", "pawl.conf:1: missing equal sign after option 'grace'");
    refused("reclaim_action = retry\n",
            "pawl.conf:1: reclaim_action: \"retry\" is unknown; expected requeue, fail");
    refused("\nversions = none\n",
            "pawl.conf:2: versions: \"none\" is unknown; expected pin, follow");
    EQ_STATUS(parse("listen = \"never ends\n"), PAWL_INVALID, &err);
    EQ_STATUS(parse("queues = {a, b\n"), PAWL_INVALID, &err);
    EQ_STATUS(conf_parse(&s, "f", (struct bytes){ "grace = 1s\0", 11 }, &err), PAWL_INVALID, &err);
    settings_release(&s);
}

static void unsettled(const char *text, const char *why)
{
    OK(parse(text), &err);
    EQ_STATUS(settings_settle(&s, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, why);
    settings_release(&s);
}

/* A value that is only wrong together with others, or in its meaning, is reported with its line
 * too. */
TEST(what_does_not_fit_together_is_named_with_its_line)
{
    unsettled("grace = 1s\nheartbeat_grace = 3s\n",
              "pawl.conf:2: setting \"heartbeat_grace\": 3s must be at least twice "
              "heartbeat_interval (2s)");
    unsettled("\n\nheartbeat_interval = 20s\n",
              "pawl.conf:3: setting \"heartbeat_grace\": 10s must be at least twice "
              "heartbeat_interval (20s)");
    unsettled("roles = {worker,\n  cook,\n  gateway}\n",
              "pawl.conf:2: setting \"roles\": \"cook\" is unknown; expected gateway, worker, "
              "scheduler, all");
    unsettled("\ntls_key = k.pem\n",
              "pawl.conf:2: setting \"tls_cert\" is not set, but \"tls_key\" is: TLS needs both");
    unsettled("\ndb = \"env:NOT_SET_AT_ALL\"\n",
              "pawl.conf:2: setting \"db\" is env:NOT_SET_AT_ALL, and the environment variable "
              "NOT_SET_AT_ALL is not set");
}

TEST(a_token_that_is_wrong_is_named_with_its_line)
{
    OK(parse("worker_slots = 5\ntokens = {\n  \"ann:admin:"
             "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\n"
             "  \"a:b:c\"\n}\n"),
       &err);
    EQ_STATUS(guard_tokens(&s, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "pawl.conf:4: token of \"a\": role \"b\" is unknown; expected app, monitor or "
                     "admin");
    s.v[SET_TOKENS].n_items = 1;
    OK(guard_tokens(&s, &err), &err);
    settings_release(&s);
    OK(parse("\nlisten = \"there\"\n"), &err);
    EQ_STATUS(guard_listen(&s, &err), PAWL_INVALID, &err);
    EQ_STR(err.text,
           "pawl.conf:2: setting \"listen\": \"there\" is not ADDR:PORT, [ADDR]:PORT or unix:PATH");
    settings_release(&s);
}

TEST(long_lists_fit)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_add_text(&b, "tokens = {");
    for (int i = 0; i < 2000; i++)
        buf_addf(&b, "%s\"client-%d:app:%064d\"", i ? ",\n" : "", i, i);
    buf_add_text(&b, "}\n");
    OK(settings_init(&s, &err), &err);
    OK(conf_parse(&s, "f", buf_bytes(&b), &err), &err);
    EQ_INT(s.v[SET_TOKENS].n_items, 2000);
    buf_release(&b);
    settings_release(&s);
}

TEST(a_file_is_found_or_missed)
{
    OK(settings_init(&s, &err), &err);
    OK(conf_read(&s, NULL, &err), &err); /* there is none here */
    EQ_STATUS(conf_read(&s, "none.conf", &err), PAWL_NOT_FOUND, &err);
    HAS_STR(err.text, "none.conf");
    FILE *f = fopen("pawl.conf", "w");
    TRUE(f && fputs("grace = 9s\n", f) >= 0 && fclose(f) == 0);
    OK(conf_read(&s, NULL, &err), &err);
    EQ_INT(s.v[SET_GRACE].number, 9 * SEC_US);
    setenv("PAWL_CONFIG", "none.conf", 1);
    EQ_STATUS(conf_read(&s, NULL, &err), PAWL_NOT_FOUND, &err);
    EQ_STATUS(conf_read(&s, ".", &err), PAWL_INVALID, &err);
    settings_release(&s);
}

TEST(blocks_of_schedules)
{
    OK(parse(
           "retention = 3d\n"
           "schedule \"nightly\" {   # a comment\n"
           "  cron = \"0 3 * * 1-5\"\n"
           "  zone = Europe/Berlin\n"
           "  type = report\n"
           "  input = '{\"kind\": \"daily\"}'\n"
           "  timeout = 5m\n"
           "  max_attempts = 2\n"
           "  paused = yes\n"
           "  tags = {\"team:shop\", \"b:c:d\"}\n"
           "  backoff { base = 500ms\n factor = 1.5 }\n"
           "}\n"
           "schedule beat { every = 90s type = beat }\n"
           "schedule once { at = {\"2030-01-01T00:00:00Z\", \"2031-01-01T00:00:00Z\"}\n type = t }"
           "\n"
           "grace = 5s\n"),
       &err);
    EQ_INT(s.n_schedules, 3);
    EQ_STR(s.schedules[0].name, "nightly");
    EQ_INT(s.schedules[0].line, 2);
    EQ_STR(
        s.schedules[0].text.data,
        "{\"cron\":\"0 3 * * 1-5\",\"zone\":\"Europe/Berlin\",\"paused\":true,\"type\":\"report\","
        "\"input\":{\"kind\": \"daily\"},\"max_attempts\":2,\"backoff\":{\"base\":0.5,"
        "\"factor\":1.5},\"timeout\":300,\"tags\":{\"team\":\"shop\",\"b\":\"c:d\"}}");
    EQ_INT(s.schedules[1].line, 14);
    EQ_INT(s.schedules[2].line, 15);
    EQ_STR(s.schedules[1].text.data, "{\"every\":90,\"type\":\"beat\"}");
    EQ_STR(s.schedules[2].text.data,
           "{\"at\":[\"2030-01-01T00:00:00Z\",\"2031-01-01T00:00:00Z\"],\"type\":\"t\"}");
    EQ_INT(s.v[SET_GRACE].number, 5 * SEC_US);
    settings_release(&s);
}

TEST(blocks_of_schedules_are_refused_with_their_line)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "schedule a { every = 5s\n type = t\n crom = x }",
          "pawl.conf:3: schedule \"a\": field \"crom\": is unknown; did you mean cron?" },
        { "schedule a {\n every = 5s\n}\n",
          "pawl.conf:1: schedule \"a\": field \"type\": is missing" },
        { "retention = 5d\ntokens = {}\nschedule b { every = 5s type = t }\n\n"
          "schedule # {\n \"a }\"\n{\n every = 5s\n backoff { base = 5s }\n tags = { \"a:}\" }\n"
          "}\n",
          "pawl.conf:5: schedule \"a }\": field \"type\": is missing" },
        { "schedule a {\n type = t\n}\n",
          "pawl.conf:1: schedule \"a\": field \"cron\": is missing; a schedule has one of cron, "
          "every "
          "and at" },
        { "schedule a {\n type = t\n every = soon\n}\n",
          "pawl.conf:3: schedule \"a\": field \"every\": is \"soon\", not a number of seconds" },
        { "schedule a {\n type = t\n\n cron = \"0 24 * * *\"\n}\n",
          "pawl.conf:4: schedule \"a\": field \"cron\": \"24\" at column 3 " },
        { "schedule a {\n overlap = some\n type = t\n every = 5s\n}\n",
          "pawl.conf:2: schedule \"a\": overlap \"some\" is unknown; expected allow, skip, wait or "
          "replace" },
        { "schedule a {\n type = t\n every = 5s\n every = 6s\n}\n",
          "pawl.conf:4: schedule \"a\": field \"every\": was set before, on line 3" },
        { "schedule a {\n type = t\n every = 5s\n cron = \"@daily\"\n}\n",
          "pawl.conf:3: schedule \"a\": field \"every\": is given together with \"cron\"" },
        { "schedule a {\n type = t\n every = 5s\n input = {a}\n}\n", "pawl.conf:4: " },
        { "schedule a {\n type = t\n every = 5s\n input = nothing\n}\n",
          "pawl.conf:4: schedule \"a\": field \"input\": is not JSON" },
        { "schedule a {\n type = t\n every = 5s\n tags = {x}\n}\n",
          "pawl.conf:4: schedule \"a\": field \"tags\": its items must be NAME:VALUE" },
        { "schedule a {\n type = t\n every = 5s\n id = x\n}\n",
          "pawl.conf:4: schedule \"a\": field \"id\": is unknown" },
        { "schedule a { every = 5s type = t }\nschedule a { every = 6s type = t }\n",
          "pawl.conf:2: schedule \"a\": is there twice" },
        { "schedule a {\n type = t\n cron = 0 3 * * *\n}\n",
          "pawl.conf:3: schedule \"a\": field \"3\": is unknown; a value with blanks needs "
          "quotes" },
        { "schedule a {\n type = t\n every = 5s\n backoff {\n bse = 5s }\n}\n",
          "pawl.conf:5: field \"backoff.bse\": is unknown" },
        { "schedules a { every = 5s type = t }\n",
          "pawl.conf:1: unknown setting \"schedules\"; did you mean schedule?" },
        /* Half a file. */
        { "grace = 5s\nschedule a {\n type = t\n every = 5s\n",
          "pawl.conf:2: the closing brace } is missing" },
        { "schedule a {\n type = t # }\n every = 5s\n input = '{\n}' backoff {\n base = 5s",
          "pawl.conf:5: the closing brace } is missing" },
        { "schedule a {\n type = t\n every = 5s\n backoff { base = 5s }\n\n",
          "pawl.conf:1: the closing brace } is missing" },
        { "schedule { every = 5s type = t }\n", "pawl.conf:1: " },
        { "schedule \"\" { every = 5s type = t }\n",
          "pawl.conf:1: schedule \"\": field \"name\": is empty" },
        { "schedule a { every = 5s type = t zone = \"../x\" }\n",
          "pawl.conf:1: schedule \"a\": field \"zone\": " },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EQ_STATUS(parse(cases[i].text), PAWL_INVALID, &err);
        if (strncmp(err.text, cases[i].why, strlen(cases[i].why)) != 0)
            EQ_STR(err.text, cases[i].why);
        settings_release(&s);
    }
}
