/*
 * zone_read.c - from the compiled file of a zone (TZif, RFC 8536) to its table (zone.h).
 *
 *     header | the block for 32 bits, passed over | header | the block for 64 bits | \n RULE \n
 *     block: times | types of the times | types (offset, dst, name) | names | leap seconds | flags
 *
 * Any thread. Every count is checked against the length of the file before it is used. What the
 * file says twice or what we do not need (names, standard or UT flags) is passed over.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/zone_inside.h"

#define HEADER_LEN 44
#define TYPE_LEN 6

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

const char *zone_name_fault(struct bytes name)
{
    if (name.len == 0)
        return "is empty";
    if (name.len > ZONE_NAME_LEN_MAX)
        return "is longer than 64 bytes";
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool begins = i == 0 || name.data[i - 1] == '/';
        if (begins && (c < 'A' || c > 'Z'))
            return "is no IANA name: each part begins with a capital, as in Europe/Berlin";
        if (!is_letter(c) && (c < '0' || c > '9') && (c == 0 || !strchr("+-_/", c)))
            return "is no IANA name: it has a character other than A-Z, a-z, 0-9, +, -, _ and /";
    }
    return name.data[name.len - 1] == '/' ? "is no IANA name: it ends with /" : NULL;
}
static_assert(ZONE_NAME_LEN_MAX == 64, "the sentence says so");

/* ---- The bytes of a file --------------------------------------------------------------------- */

struct file {
    struct bytes zone;
    const char *name;
    const unsigned char *at, *end;
    struct pawl_err *err;
};

static enum pawl_status damaged(const struct file *f, const char *why)
{
    return err_set(f->err, PAWL_BROKEN, "zone \"%.*s\": the file %s is damaged: %s",
                   BYTES_ARG(f->zone), f->name, why);
}

static int64_t big_endian(const unsigned char *at, int len)
{
    uint64_t n = at[0] & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < len; i++)
        n = n << 8 | at[i];
    return (int64_t)n;
}

/* The counts of a header, in their order in the file. */
enum { UT_FLAGS, STD_FLAGS, LEAPS, TIMES, TYPES, NAMES, COUNTS };

struct block {
    size_t n[COUNTS];
    const unsigned char *times, *time_types, *types;
};

/* Take a header and its block, whose times have `width` bytes each. NULL, or what is wrong. */
static const char *take_block(struct file *f, int width, struct block *b)
{
    if (f->end - f->at < HEADER_LEN)
        return "it ends within a header";
    if (memcmp(f->at, "TZif", 4) != 0)
        return "a header does not begin with TZif";
    for (int i = 0; i < COUNTS; i++)
        b->n[i] = (size_t)(uint32_t)big_endian(f->at + 20 + 4 * i, 4);
    f->at += HEADER_LEN;
    /* Each is below 2^32, so the sum does not overflow. */
    size_t each[COUNTS] = { 1, 1, (size_t)width + 4, (size_t)width + 1, TYPE_LEN, 1 }, len = 0;
    for (int i = 0; i < COUNTS; i++)
        len += b->n[i] * each[i];
    if (len > (size_t)(f->end - f->at))
        return "it is shorter than its header says";
    b->times = f->at;
    b->time_types = b->times + b->n[TIMES] * (size_t)width;
    b->types = b->time_types + b->n[TIMES];
    f->at += len;
    return NULL;
}

static int type_offset(const struct block *b, size_t type)
{
    return (int)big_endian(b->types + type * TYPE_LEN, 4);
}

static const char *block_fault(const struct block *b)
{
    if (b->n[TYPES] == 0 || b->n[TYPES] > 256)
        return "it does not have 1 to 256 types of local time";
    if (b->n[TIMES] > ZONE_CHANGES_MAX)
        return "it has too many transitions";
    for (size_t i = 0; i < b->n[TYPES]; i++) {
        int64_t s = big_endian(b->types + i * TYPE_LEN, 4);
        if (s <= -ZONE_OFFSET_MAX + 3600 || s >= ZONE_OFFSET_MAX)
            return "an offset is not between -25 and 26 hours";
    }
    for (size_t i = 0; i < b->n[TIMES]; i++) {
        if (b->time_types[i] >= b->n[TYPES])
            return "a transition names a type that does not exist";
        if (i > 0 && big_endian(b->times + 8 * i, 8) <= big_endian(b->times + 8 * (i - 1), 8))
            return "its transitions are not in ascending order";
        if (big_endian(b->times + 8 * i, 8) > ZONE_LAST_S)
            return "a transition is after the year 9999";
    }
    return NULL;
}

/* The last line of the file, without its newlines. False when there is none. */
static bool take_footer(struct file *f, struct bytes *out)
{
    size_t len = (size_t)(f->end - f->at);
    if (len < 2 || f->at[0] != '\n' || f->at[len - 1] != '\n')
        return false;
    *out = (struct bytes){ (const char *)f->at + 1, len - 2 };
    return !memchr(out->data, '\n', out->len);
}

/* ---- The table ------------------------------------------------------------------------------- */

/* Append a change that is not before the last one. */
static void add(struct zone *z, struct zone_change c)
{
    if (z->n > 0 && z->change[z->n - 1].at_s == c.at_s)
        z->n--; /* the later word counts */
    int offset_s = z->n > 0 ? z->change[z->n - 1].offset_s : z->before_s;
    if (c.offset_s != offset_s)
        z->change[z->n++] = c;
}

static void add_table(struct zone *z, const struct block *b)
{
    z->before_s = type_offset(b, 0);
    for (size_t i = 0; i < b->n[TIMES]; i++) {
        int64_t at_s = big_endian(b->times + 8 * i, 8);
        int offset_s = type_offset(b, b->time_types[i]);
        /* Some files begin at the Big Bang. */
        if (at_s < ZONE_FIRST_S)
            z->before_s = offset_s;
        else
            add(z, (struct zone_change){ at_s, offset_s, false });
    }
}

static bool in_order(const struct zone_change *a, const struct zone_change *b)
{
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->dst <= b->dst);
}

/* Continue the table by the rule, from the last transition on: 400 years and some. Changes at the
 * same instant are possible: daylight time all year is written as one that ends as it begins. */
static void add_rule(struct zone *z, const struct zone_rule *rule, const struct block *b)
{
    struct zone_change v[ZONE_RULE_CHANGES_MAX], swap;
    int64_t last_s = INT64_MIN;
    int year = 2;
    if (b->n[TIMES] > 0)
        last_s = big_endian(b->times + 8 * (b->n[TIMES] - 1), 8);
    if (last_s >= ZONE_FIRST_S)
        year = MAX(year, ymd_of(floor_div(last_s, ZONE_DAY_S)).year);
    for (int i = 0; i < ZONE_RULE_YEARS; i++)
        zone_rule_year(rule, year - 1 + i, v + 2 * i);
    for (int i = 1; i < ZONE_RULE_CHANGES_MAX; i++)
        for (int k = i; k > 0 && !in_order(&v[k - 1], &v[k]); k--) {
            swap = v[k];
            v[k] = v[k - 1];
            v[k - 1] = swap;
        }
    /* The last year but one is complete: the first changes of the year after the last one, which
     * were not made, are not before its end. */
    int64_t complete_s = ymd_days((struct ymd){ year + 403, 1, 1 }) * ZONE_DAY_S;
    for (int i = 0; i < ZONE_RULE_CHANGES_MAX; i++)
        if (v[i].at_s > last_s && v[i].at_s < complete_s)
            add(z, v[i]);
    /* A year after the last transition everything follows the rule. Where that changes nothing, as
     * in daylight time all year, there is nothing to repeat. */
    int64_t end_s = ymd_days((struct ymd){ year + 402, 1, 1 }) * ZONE_DAY_S;
    if (z->n > 0 && z->change[z->n - 1].at_s >= end_s)
        z->cycle_end_s = end_s;
}

static enum pawl_status zone_make(const struct file *f, const struct block *b,
                                  const struct zone_rule *rule, struct zone **out)
{
    size_t most = b->n[TIMES] + (rule->has_dst ? ZONE_RULE_CHANGES_MAX : 0);
    struct zone *z = mem_zalloc(sizeof *z + most * sizeof z->change[0]);
    if (!z)
        return err_no_memory(f->err, "a time zone");
    memcpy(z->name, f->zone.data, f->zone.len);
    z->cycle_end_s = INT64_MAX;
    add_table(z, b);
    if (rule->has_dst)
        add_rule(z, rule, b);
    *out = z;
    return PAWL_OK;
}

static bool hash_version(struct zone *z, struct bytes data)
{
    unsigned char hash[32];
    if (!digest_plain(data, hash))
        return false;
    int n = snprintf(z->version, sizeof z->version, "sha256:");
    for (int i = 0; i < 8; i++)
        n += snprintf(z->version + n, sizeof z->version - (size_t)n, "%02x", hash[i]);
    return true;
}

enum pawl_status zone_parse(struct bytes name, const char *file, struct bytes data,
                            struct zone **out, struct pawl_err *err)
{
    struct file f = { name, file, (const unsigned char *)data.data, NULL, err };
    struct block b;
    struct bytes footer;
    struct zone_rule rule = { 0 };
    f.end = f.at + data.len;
    assert(!zone_name_fault(name));
    if (data.len >= 5 && memcmp(data.data, "TZif", 4) == 0 && (unsigned char)data.data[4] < '2')
        return damaged(&f, "it is TZif version 1; expected 2 or later");
    const char *fault = take_block(&f, 4, &b);
    fault = fault ? fault : take_block(&f, 8, &b);
    fault = fault ? fault : block_fault(&b);
    if (fault)
        return damaged(&f, fault);
    if (b.n[LEAPS] > 0)
        return err_set(err, PAWL_INVALID,
                       "zone \"%.*s\": the file %s counts leap seconds; expected one that does not",
                       BYTES_ARG(name), file);
    if (!take_footer(&f, &footer))
        return damaged(&f, "it does not end with one line");
    fault = footer.len > 0 ? zone_rule_read(footer, &rule) : NULL;
    if (fault)
        return err_set(err, PAWL_BROKEN, "zone \"%.*s\": the file %s is damaged: its last line %s",
                       BYTES_ARG(name), file, fault);
    AUTO(zone_end) struct zone *z = NULL;
    enum pawl_status st = zone_make(&f, &b, &rule, &z);
    if (st != PAWL_OK)
        return st;
    if (!hash_version(z, data))
        return err_no_memory(err, "the hash of a time zone");
    *out = TAKE(z);
    return PAWL_OK;
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* Why a file was not read: an unknown zone, a missing folder, or trouble of the machine. */
static enum pawl_status not_read(const char *dir, struct bytes name, const char *path, int error,
                                 struct pawl_err *err)
{
    struct stat st;
    if (error == EMFILE || error == ENFILE)
        return err_set(err, PAWL_BUSY, "zone \"%.*s\": the file %s cannot be read: %s",
                       BYTES_ARG(name), path, strerror(error));
    if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return err_set(err, PAWL_BROKEN,
                       "zone \"%.*s\": the folder %s does not exist; install the time zones "
                       "(package tzdata), or use UTC",
                       BYTES_ARG(name), dir);
    if (error == ENOENT || error == ENOTDIR || error == EISDIR)
        return err_set(err, PAWL_INVALID,
                       "zone \"%.*s\" is unknown: there is no file %s; expected an IANA name such "
                       "as Europe/Berlin",
                       BYTES_ARG(name), path);
    return err_set(err, PAWL_BROKEN, "zone \"%.*s\": the file %s cannot be read: %s",
                   BYTES_ARG(name), path, strerror(error));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* Read at most `max` bytes of a file and return their number, or max + 1 when there are more. On
 * failure -errno; EISDIR for everything that is not a regular file. */
static ssize_t read_file(const char *path, char *out, size_t max)
{
    struct stat st;
    size_t len = 0;
    /* Without waiting, in case it is a pipe. */
    AUTO(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return -EISDIR;
    while (len < max) {
        ssize_t n = read(fd, out + len, max - len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return (ssize_t)len;
        len += n > 0 ? (size_t)n : 0;
    }
    return st.st_size > (off_t)max ? (ssize_t)max + 1 : (ssize_t)len;
}

/* The release of the database, from the first line of one of its files. */
static void folder_version(const char *dir, struct zone *z)
{
    static const struct {
        const char *file, *before;
    } sources[] = { { "tzdata.zi", "# version " }, { "+VERSION", "" } };
    char path[4096], head[64];
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        int n = snprintf(path, sizeof path, "%s/%s", dir, sources[i].file);
        ssize_t len = n < (int)sizeof path ? read_file(path, head, sizeof head) : -1;
        size_t skip = strlen(sources[i].before);
        if (len < 0)
            continue;
        struct bytes line = { head, MIN((size_t)len, sizeof head) };
        if (line.len <= skip || memcmp(line.data, sources[i].before, skip) != 0)
            continue;
        line = (struct bytes){ head + skip, line.len - skip };
        const char *newline = memchr(line.data, '\n', line.len);
        line.len = newline ? (size_t)(newline - line.data) : 0;
        if (line.len < ZONE_VERSION_LEN && zone_version_newer(line, BYTES("0000"))) {
            memcpy(z->version, line.data, line.len);
            z->version[line.len] = 0;
            return;
        }
    }
}

static enum pawl_status load_utc(struct zone **out, struct pawl_err *err)
{
    struct zone *z = mem_zalloc(sizeof *z);
    if (!z)
        return err_no_memory(err, "a time zone");
    memcpy(z->name, "UTC", 4);
    memcpy(z->version, "UTC", 4);
    z->cycle_end_s = INT64_MAX;
    *out = z;
    return PAWL_OK;
}

static void free_data(char **data)
{
    mem_free(*data);
}

enum pawl_status zone_load(const char *dir, struct bytes name, struct zone **out,
                           struct pawl_err *err)
{
    char path[4096], shown[TEXT_QUOTE_LEN];
    const char *fault = zone_name_fault(name);
    if (fault)
        return err_set(err, PAWL_INVALID, "zone \"%s\" %s", text_quote(name, shown), fault);
    if (bytes_eq(name, BYTES("UTC")))
        return load_utc(out, err);
    dir = dir ? dir : ZONE_DIR;
    if (snprintf(path, sizeof path, "%s/%.*s", dir, BYTES_ARG(name)) >= (int)sizeof path)
        return err_set(err, PAWL_INVALID, "zone \"%.*s\": the name of its folder is too long",
                       BYTES_ARG(name));

    AUTO(free_data) char *data = mem_alloc(ZONE_FILE_LEN_MAX);
    if (!data)
        return err_no_memory(err, "the file of a time zone");
    ssize_t len = read_file(path, data, ZONE_FILE_LEN_MAX);
    if (len < 0)
        return not_read(dir, name, path, (int)-len, err);
    if (len > ZONE_FILE_LEN_MAX)
        return err_set(err, PAWL_BROKEN, "zone \"%.*s\": the file %s is longer than %d bytes",
                       BYTES_ARG(name), path, ZONE_FILE_LEN_MAX);
    enum pawl_status st = zone_parse(name, path, (struct bytes){ data, (size_t)len }, out, err);
    if (st == PAWL_OK)
        folder_version(dir, *out);
    return st;
}
