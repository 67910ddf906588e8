/*
 * reload.c - SIGHUP: read the settings again, apply what can change now, and name the rest.
 *
 * The environment and the command line are those of the start; the file may have changed. A file
 * with a mistake changes nothing.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "base/log.h"
#include "lib/lib.h"
#include "server/server.h"

struct api_conf server_api_conf(struct server *s, const struct settings *settings)
{
    const struct setting_value *v = settings->v;
    return (struct api_conf){
        .loop = s->loop,
        .tokens = v[SET_TOKENS].items,
        .n_tokens = v[SET_TOKENS].n_items,
        .origins = v[SET_ORIGINS].items,
        .n_origins = v[SET_ORIGINS].n_items,
        .hosts = v[SET_HOSTS].items,
        .n_hosts = v[SET_HOSTS].n_items,
        .metrics_open = v[SET_METRICS_OPEN].number != 0,
        .lease_us = v[SET_LEASE_FOR].number,
        .call_timeout_us = v[SET_CALL_TIMEOUT].number,
        .session_wait_us = MAX(v[SET_SESSION_WAIT].number, 1), /* 0 would mean the default there */
        .input_len_max = (size_t)v[SET_MAX_INPUT].number,
        .batch_len_max = (size_t)v[SET_MAX_BATCH].number,
        .audit = logs_audit,
    };
}

/* Tokens may be replaced while the server runs, but not all removed: without any, every client that
 * reaches the address may do everything, and a file that is empty for a moment must not cause
 * that. */
static enum pawl_status tokens_stay(const struct settings *old, const struct settings *new,
                                    struct pawl_err *err)
{
    if (!old->v[SET_TOKENS].n_items || new->v[SET_TOKENS].n_items)
        return PAWL_OK;
    return err_set(
        err, PAWL_FORBIDDEN,
        "setting \"tokens\": the file has none any more, which would open this server to "
        "every client; restart it if that is meant");
}

/* Read the settings as a start would. */
static enum pawl_status read_again(const struct server *s, struct settings *out,
                                   struct pawl_err *err)
{
    const struct settings *start = &s->cli->settings;
    enum pawl_status st = settings_init(out, err);
    for (int i = 0; i < SETTING_COUNT; i++)
        if (start->v[i].from == FROM_COMMAND_LINE)
            out->v[i] = start->v[i];
    if (st == PAWL_OK)
        st = conf_read(out, cli_option(s->cli, "config"), err);
    if (st == PAWL_OK)
        st = settings_settle(out, err);
    if (st == PAWL_OK)
        st = guard_tokens(out, err);
    if (st == PAWL_OK)
        st = tokens_stay(&s->settings, out, err);
    if (st != PAWL_OK)
        return st;
    /* The listen address stays as it was. */
    struct settings both = *out;
    both.v[SET_LISTEN] = s->settings.v[SET_LISTEN];
    return guard_listen(&both, err);
}

/* Log one line for a change; true when it needs a restart. */
static bool tell_change(const struct settings *old, const struct settings *new, int id)
{
    char was[300], is[300];
    if (strcmp(old->v[id].text, new->v[id].text) == 0)
        return false;
    setting_shown(old, id, was, sizeof(was));
    setting_shown(new, id, is, sizeof(is));
    const char *name = setting_table[id].name;
    if (setting_table[id].when == SETTING_LIVE) {
        log_line(LOG_INFO, "setting \"%s\": \"%s\" is now \"%s\"", name, was, is);
        return false;
    }
    log_line(LOG_WARN, "setting \"%s\": \"%s\" needs a restart to become \"%s\"", name, was, is);
    return true;
}

/* Apply the values that can change now. Others keep the value of the start, so that the next reload
 * reports them again. */
static void adopt(struct server *s, struct settings *new)
{
    const struct settings *start = &s->cli->settings;
    bool waiting = false;
    for (int i = 0; i < SETTING_COUNT; i++) {
        bool live = setting_table[i].when == SETTING_LIVE;
        waiting |= tell_change(live ? &s->settings : start, new, i);
        if (!live)
            new->v[i] = start->v[i]; /* its texts live as long as the process */
    }
    log_line(LOG_INFO, "settings read again%s", waiting ? "; some need a restart" : "");
    settings_release(&s->settings);
    s->settings = *new;
}

void server_reload(struct server *s)
{
    struct settings new;
    struct pawl_err err = { 0 };
    notify("RELOADING=1");
    enum pawl_status st = read_again(s, &new, &err);
    struct api_conf conf = server_api_conf(s, &new);
    if (st == PAWL_OK)
        st = api_reload(s->api, &conf, &err);
    if (st != PAWL_OK) {
        log_line(LOG_ERROR, "settings not read again, the old ones stay in force: %s", err.text);
        settings_release(&new);
    } else {
        logs_use(&new, exec_node(s->pawl->e));
        adopt(s, &new);
        schedules_store_again(s);
    }
    notify("READY=1");
}
