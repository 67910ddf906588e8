/*
 * term.c - error messages, questions, progress and colour on the terminal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/cli.h"

#define ERROR_JSON_LEN_MAX 4096

static void fail_json(FILE *to, const struct pawl_err *err, const char *id)
{
    struct buf b;
    buf_init(&b, ERROR_JSON_LEN_MAX);
    buf_add_text(&b, "{\"error\":{\"code\":");
    json_add_string(&b, bytes_of(pawl_status_name(err->status)));
    buf_add_text(&b, ",\"message\":");
    json_add_string(&b, bytes_of(err->text));
    if (id) {
        json_add_name(&b, "id");
        json_add_string(&b, bytes_of(id));
    }
    buf_addf(&b, ",\"retry\":\"%s\"}}", err_retry_text(err->status));
    fprintf(to, "%.*s\n", BYTES_ARG(buf_bytes(&b)));
    buf_release(&b);
}

int cli_fail(struct cli *cli, const struct pawl_err *err)
{
    return cli_fail_id(cli, err, NULL);
}

int cli_fail_id(struct cli *cli, const struct pawl_err *err, const char *id)
{
    cli_progress_end(cli);
    fflush(cli->out); /* earlier output comes before the error */
    if (cli->json)
        fail_json(cli->err, err, id);
    else
        fprintf(cli->err, "pawl%s%s: %s\n", cli->command ? " " : "",
                cli->command ? cli->command->name : "", err->text);
    return err_exit(err->status);
}

int cli_failf(struct cli *cli, enum pawl_status status, const char *fmt, ...)
{
    struct pawl_err err = { .status = status };
    va_list args;
    va_start(args, fmt);
    vsnprintf(err.text, sizeof(err.text), fmt, args);
    va_end(args);
    return cli_fail(cli, &err);
}

int cli_missing(struct cli *cli, const char *what)
{
    return cli_failf(cli, PAWL_INVALID, "%s is missing; usage: pawl %s %s", what,
                     cli->command->name, cli->command->usage);
}

int cli_unknown(struct cli *cli, const char *what, const char *argument, const char *expected)
{
    if (!*argument)
        return cli_failf(cli, PAWL_INVALID, "%s is missing; expected %s", what, expected);
    return cli_failf(cli, PAWL_INVALID, "unknown %s \"%.60s\"; expected %s", what, argument,
                     expected);
}

int cli_done(struct cli *cli)
{
    cli_progress_end(cli);
    if (fflush(cli->out) == 0 && !ferror(cli->out))
        return 0;
    return cli_failf(cli, PAWL_BUSY, "the answer could not be written to stdout: %s",
                     strerror(errno));
}

bool cli_ask(struct cli *cli, const char *fmt, ...)
{
    char line[16] = "";
    va_list args;
    cli_progress_end(cli);
    fflush(cli->out);
    fprintf(cli->err, "pawl %s: ", cli->command->name);
    va_start(args, fmt);
    vfprintf(cli->err, fmt, args);
    va_end(args);
    fputs(" [y/N] ", cli->err);
    fflush(cli->err);
    if (!fgets(line, sizeof(line), stdin))
        fputc('\n', cli->err); /* at the end of the input there is no answer and no line end */
    line[strcspn(line, "\r\n")] = 0;
    return strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
}

void cli_progress(struct cli *cli, const char *fmt, ...)
{
    va_list args;
    if (!cli->live || cli->json)
        return;
    fputs("\r\033[K", cli->err);
    va_start(args, fmt);
    vfprintf(cli->err, fmt, args);
    va_end(args);
    fflush(cli->err);
    cli->drawn = true;
}

void cli_progress_end(struct cli *cli)
{
    if (cli->drawn)
        fputs("\r\033[K", cli->err);
    cli->drawn = false;
}

const char *paint_on(const struct cli *cli, enum paint paint)
{
    static const char *const codes[] = {
        [PAINT_NONE] = "",          [PAINT_GOOD] = "\033[32m", [PAINT_WARN] = "\033[33m",
        [PAINT_BAD] = "\033[1;31m", [PAINT_HEAD] = "\033[1m",  [PAINT_DIM] = "\033[2m",
    };
    return cli->colour ? codes[paint] : "";
}

const char *paint_off(const struct cli *cli, enum paint paint)
{
    return cli->colour && paint != PAINT_NONE ? "\033[0m" : "";
}
