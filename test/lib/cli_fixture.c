/*
 * cli_fixture.c - see cli_fixture.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <pty.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_fixture.h"

char cli_out[CLI_TEXT_MAX], cli_err_out[CLI_TEXT_MAX];
static struct arena parsed;

void cli_read_file(const char *path, char *to)
{
    FILE *f = fopen(path, "r");
    TRUE(f != NULL);
    to[fread(to, 1, CLI_TEXT_MAX - 1, f)] = 0;
    fclose(f);
}

int cli_run_with(const char *assignments, const char *args)
{
    char line[4096];
    snprintf(line, sizeof(line), "%s " CLI_PROGRAM " %s >out.txt 2>err.txt", assignments, args);
    int status = system(line);
    TRUE(WIFEXITED(status));
    cli_read_file("out.txt", cli_out);
    cli_read_file("err.txt", cli_err_out);
    return WEXITSTATUS(status);
}

int cli_run(const char *args)
{
    return cli_run_with("", args);
}

int cli_on_terminal(const char *line)
{
    int master, status = 0;
    size_t len = 0;
    ssize_t n;
    pid_t child = forkpty(&master, NULL, NULL, NULL);
    if (child < 0)
        skip("needs a terminal, and none can be made here: %s", strerror(errno));
    if (child == 0)
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    while (len < CLI_TEXT_MAX - 1 && (n = read(master, cli_out + len, CLI_TEXT_MAX - 1 - len)) > 0)
        len += (size_t)n;
    cli_out[len] = 0;
    close(master);
    EQ_INT(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

struct json *cli_answer(void)
{
    struct json *v = NULL;
    struct pawl_err err;
    arena_release(&parsed);
    arena_init(&parsed, 16 << 20);
    size_t len = strlen(cli_out);
    TRUE(len > 1 && cli_out[len - 1] == '\n');
    OK(json_parse(&parsed, (struct bytes){ cli_out, len - 1 }, &v, &err), &err);
    return v;
}

int64_t cli_number(const struct json *v, const char *name)
{
    int64_t n = -1;
    TRUE(json_int(json_member(v, name), &n));
    return n;
}

const char *cli_text(const struct json *v, const char *name)
{
    return json_string(&parsed, json_member(v, name)).data;
}

void cli_sql(const char *path, const char *statement)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    EQ_INT(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, statement, NULL, NULL, &why);
    EQ_STR(why, NULL);
    sqlite3_close(db);
}

void cli_write_file(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    TRUE(f && fputs(content, f) >= 0 && fclose(f) == 0);
}
