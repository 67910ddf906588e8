/*
 * settings.c - the command line wins over the environment, that over the default; wrong values name
 * their origin.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/settings.h"

#include "base/world.h"
#include "check.h"

static const char *from(const struct settings *s, int id)
{
    static char text[300];
    setting_from_text(s, id, text, sizeof(text));
    return text;
}

TEST(defaults_come_from_the_table)
{
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    EQ_STR(s.v[SET_SCHEMA].text, "pawl");
    EQ_INT(s.v[SET_POOL_SIZE].number, 8);
    EQ_INT(s.v[SET_RETENTION].number, 7 * 86400 * SEC_US);
    for (int i = 0; i < SETTING_COUNT; i++)
        EQ_STR(from(&s, i), "default");
}

TEST(command_line_beats_environment_beats_default)
{
    struct settings s;
    struct pawl_err err;
    setenv("PAWL_POOL_SIZE", "9", 1);
    setenv("PAWL_RETENTION", "", 1);
    OK(settings_init(&s, &err), &err);
    EQ_INT(s.v[SET_POOL_SIZE].number, 9);
    EQ_INT(s.v[SET_POOL_SIZE].from, FROM_ENVIRONMENT);
    EQ_INT(s.v[SET_RETENTION].from, FROM_DEFAULT);
    OK(settings_set(&s, SET_POOL_SIZE, "10", &err), &err);
    EQ_INT(s.v[SET_POOL_SIZE].number, 10);
    EQ_STR(from(&s, SET_POOL_SIZE), "command line");
}

TEST(names_take_dash_and_underscore)
{
    EQ_INT(setting_find("pool_size"), SET_POOL_SIZE);
    EQ_INT(setting_find("pool-size"), SET_POOL_SIZE);
    EQ_INT(setting_find("pool"), -1);
    EQ_INT(setting_find("pool_size_"), -1);
}

TEST(a_wrong_value_names_where_it_came_from)
{
    struct settings s;
    struct pawl_err err;
    setenv("PAWL_POOL_SIZE", "many", 1);
    setenv("PAWL_RETENTION", "long", 1);
    EQ_STATUS(settings_init(&s, &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "PAWL_POOL_SIZE: \"many\" is not a whole number");
    EQ_INT(s.v[SET_POOL_SIZE].number, 8);
    EQ_STATUS(settings_set(&s, SET_RETENTION, "1 week", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "--retention: \"1 week\" is not a duration such as 500ms, 5s, 2m or 7d");
}

TEST(bounds_hold_at_the_edge_and_one_past_it)
{
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    OK(settings_set(&s, SET_POOL_SIZE, "1", &err), &err);
    OK(settings_set(&s, SET_POOL_SIZE, "256", &err), &err);
    EQ_STATUS(settings_set(&s, SET_POOL_SIZE, "0", &err), PAWL_INVALID, &err);
    EQ_STATUS(settings_set(&s, SET_POOL_SIZE, "257", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "--pool-size: \"257\" must be 1 to 256");
    OK(settings_set(&s, SET_HEARTBEAT_INTERVAL, "1ms", &err), &err);
    EQ_STATUS(settings_set(&s, SET_HEARTBEAT_INTERVAL, "0.5ms", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "--heartbeat-interval: \"0.5ms\" must be at least 1ms");
}

TEST(grace_is_twice_the_interval)
{
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    OK(settings_set(&s, SET_HEARTBEAT_INTERVAL, "5s", &err), &err);
    OK(settings_settle(&s, &err), &err);
    OK(settings_set(&s, SET_HEARTBEAT_INTERVAL, "6s", &err), &err);
    EQ_STATUS(settings_settle(&s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "heartbeat_grace");
}

TEST(db_follows_env)
{
    struct settings s;
    struct pawl_err err;
    setenv("ORDERS_URL", "sqlite:orders.db", 1);
    OK(settings_init(&s, &err), &err);
    OK(settings_set(&s, SET_DB, "env:ORDERS_URL", &err), &err);
    OK(settings_settle(&s, &err), &err);
    EQ_STR(s.v[SET_DB].text, "sqlite:orders.db");
    EQ_STR(s.v[SET_DB].via, "ORDERS_URL");
    OK(settings_set(&s, SET_DB, "env:NOBODY_SET_THIS", &err), &err);
    EQ_STATUS(settings_settle(&s, &err), PAWL_INVALID, &err);
    EQ_STR(err.text,
           "setting \"db\" is env:NOBODY_SET_THIS, and the environment variable NOBODY_SET_THIS "
           "is not set");
}

TEST(what_is_no_url_is_refused_and_not_repeated)
{
    static const char *const wrong[] = { "host=h password=hush", "pawl.db", "/tmp/hush:x",
                                         ":hush" };
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        OK(settings_set(&s, SET_DB, wrong[i], &err), &err);
        EQ_STATUS(settings_settle(&s, &err), PAWL_INVALID, &err);
        EQ_STR(err.text,
               "setting \"db\" (command line): must be a URL: sqlite:PATH, postgres://..., "
               "mysql://...");
    }
}

TEST(options_say_not_at_all_where_zero_means_default)
{
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    OK(settings_set(&s, SET_RETENTION, "0", &err), &err);
    OK(settings_set(&s, SET_GC_INTERVAL, "0", &err), &err);
    struct pawl_options o = settings_options(&s);
    EQ_INT(o.retention_us, 1);
    EQ_INT(o.gc_interval_us, -1);
    EQ_PTR(o.node, NULL);
    EQ_STR(o.schema, "pawl");
}

TEST(lists_are_split_and_grow_on_the_command_line)
{
    struct settings s;
    struct pawl_err err;
    setenv("PAWL_QUEUES", "mail, , default ,", 1);
    setenv("PAWL_TOKENS", " a:app:1:x,y\n b:admin:2 ", 1);
    OK(settings_init(&s, &err), &err);
    EQ_INT(s.v[SET_QUEUES].n_items, 2);
    EQ_STR(s.v[SET_QUEUES].items[1], "default");
    EQ_STR(s.v[SET_QUEUES].text, "mail,default");
    EQ_INT(s.v[SET_TOKENS].n_items, 2);
    EQ_STR(s.v[SET_TOKENS].items[0], "a:app:1:x,y");
    EQ_INT(s.v[SET_MODULE].n_items, 0);
    OK(settings_set(&s, SET_MODULE, "a.so", &err), &err);
    OK(settings_set(&s, SET_MODULE, "b.so,c.so", &err), &err);
    EQ_INT(s.v[SET_MODULE].n_items, 3);
    EQ_STR(s.v[SET_MODULE].text, "a.so,b.so,c.so");
    OK(settings_set(&s, SET_QUEUES, "only", &err), &err);
    EQ_STR(s.v[SET_QUEUES].text, "only");
    settings_release(&s);
}

TEST(yes_no_choices_and_ranges)
{
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    EQ_INT(s.v[SET_PAUSED].number, 0);
    OK(settings_set(&s, SET_PAUSED, "", &err), &err);
    EQ_INT(s.v[SET_PAUSED].number, 1);
    OK(settings_set(&s, SET_PAUSED, "off", &err), &err);
    EQ_INT(s.v[SET_PAUSED].number, 0);
    EQ_STATUS(settings_set(&s, SET_PAUSED, "maybe", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "--paused: \"maybe\" is neither yes nor no");
    EQ_STATUS(settings_set(&s, SET_LOG_LEVEL, "inf", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "--log-level: \"inf\" is unknown; expected debug, info, warn, error");
    OK(settings_set(&s, SET_LOG_LEVEL, "error", &err), &err);
    EQ_INT(s.v[SET_POLL_INTERVAL].number, 5 * MS_US);
    EQ_INT(s.v[SET_POLL_INTERVAL].last, 250 * MS_US);
    OK(settings_set(&s, SET_POLL_INTERVAL, "20ms", &err), &err);
    EQ_INT(s.v[SET_POLL_INTERVAL].last, 20 * MS_US);
    EQ_STATUS(settings_set(&s, SET_POLL_INTERVAL, "20ms to 10ms", &err), PAWL_INVALID, &err);
    OK(settings_set(&s, SET_RECLAIM_ACTION, "fail", &err), &err);
    TRUE(settings_options(&s).fail_lost);
    FALSE(settings_options(&s).pin_versions);
    OK(settings_set(&s, SET_VERSIONS, "pin", &err), &err);
    TRUE(settings_options(&s).pin_versions);
    OK(settings_set(&s, SET_VERSIONS, "follow", &err), &err);
    FALSE(settings_options(&s).pin_versions);
    EQ_STATUS(settings_set(&s, SET_VERSIONS, "stay", &err), PAWL_INVALID, &err);
    EQ_STR(err.text, "--versions: \"stay\" is unknown; expected pin, follow");
    settings_release(&s);
}

TEST(secrets_are_not_shown)
{
    struct settings s;
    struct pawl_err err;
    char shown[100];
    setenv("PAWL_TOKEN", "hush", 1);
    setenv("PAWL_TOKENS", "a:app:hush b:app:hush", 1);
    setenv("PAWL_DB", "postgres://ann:hush@h/d", 1);
    OK(settings_init(&s, &err), &err);
    for (int i = 0; i < SETTING_COUNT; i++) {
        setting_shown(&s, i, shown, sizeof(shown));
        FALSE(strstr(shown, "hush"));
    }
    setting_shown(&s, SET_TOKENS, shown, sizeof(shown));
    EQ_STR(shown, "2 set");
    settings_release(&s);
}

TEST(tls_needs_both_files)
{
    struct settings s;
    struct pawl_err err;
    OK(settings_init(&s, &err), &err);
    OK(settings_set(&s, SET_TLS_CERT, "cert.pem", &err), &err);
    EQ_STATUS(settings_settle(&s, &err), PAWL_INVALID, &err);
    HAS_STR(err.text, "TLS needs both");
    OK(settings_set(&s, SET_TLS_KEY, "key.pem", &err), &err);
    OK(settings_settle(&s, &err), &err);
    settings_release(&s);
}
