/*
 * batch.c - `pawl batch`: submit a file of calls, one JSON object a line, 1,000 at a time.
 *
 * A line without an id gets one before it is sent. So a chunk whose answer was lost can be sent
 * again and no call is stored twice.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/ident.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/world.h"
#include "cli/remote.h"

#define CHUNK_MAX 1000
/* Below the server's limit for one batch. */
#define CHUNK_LEN_MAX ((size_t)32 << 20)
#define BAR_WIDTH 24
/* How often a chunk is sent when its answer is lost or the server asks for a later attempt. */
#define SENDS_MAX 5

struct batch {
    struct remote r;
    FILE *in;
    int64_t size, done; /* size of the file in bytes, 0: unknown; bytes read so far */
    struct buf chunk;
    size_t n;                 /* calls in the chunk */
    int64_t line;             /* lines read */
    int64_t lines[CHUNK_MAX]; /* the line number of each call in the chunk */
    int64_t accepted, duplicates, refused;
    enum pawl_status first; /* the status of the first refused line */
    int64_t began_us;
};

static void progress(struct batch *b)
{
    char bar[BAR_WIDTH + 1];
    double seconds = (double)(world_mono(&world_real) - b->began_us) / 1e6;
    int64_t n = b->accepted + b->duplicates + b->refused;
    int rate = seconds > 0 ? (int)((double)n / seconds) : 0;
    if (!b->size) {
        cli_progress(b->r.cli, "batch: %" PRId64 " call%s, %d/s", n, plural(n), rate);
        return;
    }
    int full = (int)(b->done * BAR_WIDTH / b->size);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)MIN(full, BAR_WIDTH));
    bar[BAR_WIDTH] = 0;
    cli_progress(b->r.cli, "batch: [%s] %d%%, %" PRId64 " call%s, %d/s", bar,
                 (int)(b->done * 100 / b->size), n, plural(n), rate);
}

static void refuse(struct batch *b, int64_t line, enum pawl_status status, const char *text)
{
    cli_progress_end(b->r.cli);
    fprintf(b->r.cli->err, "pawl batch: line %" PRId64 ": %s\n", line, text);
    b->refused++;
    if (b->first == PAWL_OK)
        b->first = status;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static enum pawl_status take_one(struct batch *b, const struct json *one, int64_t line)
{
    const struct json *error = json_member(one, "error");
    const struct json *duplicate = json_member(one, "duplicate");
    /* A stored call also has a member `error`, a string or null; in a refusal it is an object. */
    if (error && error->kind == JSON_OBJECT) {
        const char *code = shown(&b->r.arena, error, "code");
        const char *text = shown(&b->r.arena, error, "message");
        enum pawl_status st = PAWL_INVALID;
        for (int i = 1; code && i < PAWL_STATUS_COUNT; i++)
            if (strcmp(code, pawl_status_name((enum pawl_status)i)) == 0)
                st = (enum pawl_status)i;
        refuse(b, line, st, text ? text : "refused");
    } else if (duplicate && duplicate->kind == JSON_TRUE) {
        b->duplicates++;
    } else if (duplicate && duplicate->kind == JSON_FALSE) {
        b->accepted++;
    } else {
        return err_set(&b->r.err, PAWL_BROKEN,
                       "line %" PRId64 ": the answer is neither a call of Pawl nor an error of it; "
                       "is --url right?",
                       line);
    }
    if (b->r.cli->json) {
        fwrite(one->raw.data, 1, one->raw.len, b->r.cli->out);
        fputc('\n', b->r.cli->out);
    }
    return PAWL_OK;
}

/* One call of the chunk whose answer was lost: print its id, because ids that were generated here
 * are recorded nowhere else. With --json in the form of a refusal. */
static void unknown_line(struct batch *b, int64_t line, const struct json *id)
{
    if (b->r.cli->json)
        fprintf(b->r.cli->out,
                "{\"id\":%.*s,\"error\":{\"code\":\"UNKNOWN\",\"message\":\"it may have been "
                "accepted\",\"retry\":\"readback\"}}\n",
                BYTES_ARG(id->raw));
    else
        fprintf(b->r.cli->out, "line %" PRId64 ": %.*s may have been accepted\n", line,
                BYTES_ARG(id->raw));
}

/* The answer to this chunk was lost: print its calls. */
static enum pawl_status unknown_chunk(struct batch *b)
{
    struct bytes rest = buf_bytes(&b->chunk);
    for (size_t i = 0; i < b->n; i++) {
        const char *end = memchr(rest.data, '\n', rest.len);
        struct json *call = NULL, *id;
        size_t len = (size_t)(end - rest.data);
        if (json_parse(&b->r.arena, (struct bytes){ rest.data, len }, &call, NULL) == PAWL_OK &&
            (id = json_member(call, "id")) != NULL)
            unknown_line(b, b->lines[i], id);
        rest = (struct bytes){ end + 1, rest.len - len - 1 };
    }
    return err_set(&b->r.err, PAWL_UNKNOWN,
                   "the calls of lines %" PRId64 " to %" PRId64
                   " may have been accepted: they were "
                   "sent, and the answer was lost; lines with an \"id\" can be sent again, the "
                   "others would run twice: `pawl get ID` tells. Lines before them were answered, "
                   "lines after them were not sent",
                   b->lines[0], b->lines[b->n - 1]);
}

static enum pawl_status send_chunk(struct batch *b)
{
    struct json *answer = NULL;
    struct client_ask ask = { .path = "/v1/calls/batch",
                              .body = buf_bytes(&b->chunk),
                              .type = "application/x-ndjson",
                              .list = "calls" };
    if (!b->n)
        return PAWL_OK;
    enum pawl_status st = PAWL_UNKNOWN;
    bool lost = false;
    for (int i = 0; i < SENDS_MAX && (st == PAWL_UNKNOWN || (lost && st == PAWL_BUSY)); i++) {
        st = remote_ask(&b->r, &ask, &answer);
        lost |= st == PAWL_UNKNOWN;
    }
    if (st != PAWL_OK)
        return lost && (st == PAWL_UNKNOWN || st == PAWL_BUSY) ? unknown_chunk(b) : st;
    const struct json *calls = json_member(answer, "calls");
    size_t i = 0;
    for (const struct json *c = calls->first; c && i < b->n && st == PAWL_OK; c = c->next)
        st = take_one(b, c, b->lines[i++]);
    if (st != PAWL_OK)
        return st;
    if (i != b->n)
        return err_set(&b->r.err, PAWL_BROKEN, "the server answered %zu of %zu calls", i, b->n);
    buf_reset(&b->chunk);
    b->n = 0;
    arena_reset(&b->r.arena);
    progress(b);
    return PAWL_OK;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool blank(struct bytes line)
{
    for (size_t i = 0; i < line.len; i++)
        if (!strchr(" \t\r\n", line.data[i]))
            return false;
    return true;
}

/* The line, with a generated id added in front when it has none. */
static enum pawl_status add_line(struct batch *b, struct bytes line)
{
    struct json *v = NULL;
    struct pawl_err err;
    struct arena a;
    arena_init(&a, 64 << 20);
    enum pawl_status st = json_parse(&a, line, &v, &err);
    if (st == PAWL_OK && v->kind != JSON_OBJECT)
        st = err_set(&err, PAWL_INVALID, "is not a JSON object");
    if (st != PAWL_OK) {
        refuse(b, b->line, st, err.text);
    } else {
        struct json *id = json_member(v, "id");
        char made[UUID_TEXT_LEN + 1];
        uuid7_make(&world_real, made);
        b->lines[b->n++] = b->line;
        if (!id)
            buf_addf(&b->chunk, "{\"id\":\"%s\"%s", made, v->count ? "," : "");
        buf_add(&b->chunk, v->raw.data + !id, v->raw.len - !id);
        buf_add_char(&b->chunk, '\n');
    }
    arena_release(&a);
    return buf_ok(&b->chunk) ? PAWL_OK : err_no_memory(&b->r.err, "reading the batch");
}

static enum pawl_status read_all(struct batch *b)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t len;
    enum pawl_status st = PAWL_OK;
    while (st == PAWL_OK && (len = getline(&text, &cap, b->in)) >= 0) {
        struct bytes line = { text, (size_t)len };
        b->line++;
        b->done += len;
        while (line.len && strchr("\r\n", line.data[line.len - 1]))
            line.len--;
        if (blank(line))
            continue;
        if (b->n == CHUNK_MAX || b->chunk.len + line.len > CHUNK_LEN_MAX)
            st = send_chunk(b);
        if (st == PAWL_OK)
            st = add_line(b, line);
    }
    if (st == PAWL_OK && ferror(b->in))
        st = err_set(&b->r.err, PAWL_INVALID, "line %" PRId64 " cannot be read: %s", b->line + 1,
                     strerror(errno));
    free(text);
    return st == PAWL_OK ? send_chunk(b) : st;
}

static int answer(struct batch *b)
{
    struct cli *cli = b->r.cli;
    cli_progress_end(cli);
    if (!cli->json)
        fprintf(cli->out,
                "%" PRId64 " accepted, %" PRId64 " already stored, %" PRId64 " refused in %.3f s\n",
                b->accepted, b->duplicates, b->refused,
                (double)(world_mono(&world_real) - b->began_us) / 1e6);
    int code = cli_done(cli);
    return code ? code : err_exit(b->first);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct stat st;
    if (!argc)
        return cli_missing(cli, "FILE (or - for stdin)");
    struct batch *b = calloc(1, sizeof(*b));
    if (!b)
        return cli_failf(cli, PAWL_NO_MEMORY, "no memory for a batch");
    b->began_us = world_mono(&world_real);
    b->in = strcmp(argv[0], "-") == 0 ? stdin : fopen(argv[0], "re");
    buf_init(&b->chunk, CHUNK_LEN_MAX + ((size_t)8 << 20));
    int code;
    if (!b->in)
        code = cli_failf(cli, PAWL_INVALID, "file \"%.300s\": %s", argv[0], strerror(errno));
    else if (remote_open(&b->r, cli) != PAWL_OK)
        code = remote_fail(&b->r);
    else {
        if (fstat(fileno(b->in), &st) == 0 && S_ISREG(st.st_mode))
            b->size = st.st_size;
        code = read_all(b) == PAWL_OK ? answer(b) : remote_fail(&b->r);
    }
    if (b->in && b->in != stdin)
        fclose(b->in);
    buf_release(&b->chunk);
    remote_close(&b->r);
    free(b);
    return code;
}

const struct command cmd_batch = {
    .name = "batch",
    .summary = "submit many calls from a file",
    .usage = "FILE|-",
    .about =
        "Each line of FILE (- for stdin) is a JSON object with the fields of a call, as in POST\n"
        "/v1/calls; only type is required. 1,000 lines are sent at a time and stored in one\n"
        "commit. A line that is refused is reported on stderr with its number; the other lines\n"
        "are still accepted, and the exit code is that of the first refusal. With --json, prints\n"
        "one JSON object a line for each call.",
    .example =
        "printf '%s\\n' '{\"type\":\"echo\",\"input\":1}' '{\"type\":\"echo\",\"input\":2}' |"
        " pawl batch -",
    .args_max = 1,
    .reach = REACH_SERVER,
    .run = run,
};
