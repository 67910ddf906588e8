/*
 * zone.c - time zones compared with the C library's, every kind of damaged file refused, and gaps
 * and folds at instants that are written out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/zone.h"
#include "check.h"
#include "zone_ref.h"

#define YEARS_400 (INT64_C(146097) * 86400)

/* Zones with something of their own: half an hour, a whole day, negative daylight time, the
 * southern half, Ramadan, decrees, seconds in the offset. */
static const char *const sample[] = {
    "Australia/Lord_Howe", "Pacific/Apia",      "America/Santiago", "Europe/Berlin",
    "America/New_York",    "Africa/Casablanca", "Europe/Dublin",    "Asia/Gaza",
    "Africa/Monrovia",     "America/Nuuk",      "Antarctica/Troll", "Asia/Kathmandu",
};

static struct zone *zone_of(const char *name)
{
    struct pawl_err err = { 0 };
    struct zone *z = NULL;
    if (access(ZONE_DIR, R_OK) != 0 && strcmp(name, "UTC") != 0)
        skip("there are no time zones in %s", ZONE_DIR);
    OK(zone_load(NULL, bytes_of(name), &z, &err), &err);
    EQ_STR(zone_name(z), name);
    return z;
}

static int64_t at(const char *text)
{
    int64_t us = 0;
    if (!time_parse(bytes_of(text), &us))
        FAIL("not a time: %s", text);
    return us / SEC_US;
}

static const char *shown(int64_t at_s)
{
    static char text[2][TIME_TEXT_LEN + 1];
    static int which;
    which = !which;
    time_text(at_s * SEC_US, text[which]);
    memcpy(text[which] + 19, "Z", 2);
    return text[which];
}

/* ---- Compared with the C library ------------------------------------------------------------- */

static void same_spans(const char *name, int64_t from_s, int64_t to_s, int64_t step_s)
{
    static struct ref_span ref[2000];
    struct zone *z = zone_of(name);
    ref_use(name);
    size_t n = ref_spans(from_s, to_s, step_s, ref, 2000);
    int64_t next;
    printf("%s\n", name);
    for (size_t i = 0; i < n; i++) {
        struct zone_span span = zone_span(z, ref[i].from_s);
        EQ_INT(span.offset_s, ref[i].offset_s);
        EQ_INT(zone_offset(z, ref[i].to_s - 1), ref[i].offset_s);
        if (i > 0)
            EQ_INT(span.from_s, ref[i].from_s);
        if (i + 1 < n) {
            TRUE(zone_next_change(z, ref[i].from_s, &next));
            EQ_INT(next, ref[i].to_s);
        } else if (zone_next_change(z, ref[i].from_s, &next)) {
            GE_INT(next, to_s);
        }
    }
    zone_free(z);
}

TEST(the_same_changes_as_the_c_library, .deadline_s = 900)
{
    if (!check_long()) {
        for (size_t i = 0; i < COUNT_OF(sample); i++)
            same_spans(sample[i], REF_FROM_S, REF_TO_S, 12 * 3600);
        return;
    }
    for (const char *const *name = ref_zones(0); *name; name++)
        same_spans(*name, REF_FROM_S, REF_TO_S, 3 * 3600);
}

TEST(beyond_the_table_as_the_c_library)
{
    for (size_t i = 0; i < COUNT_OF(sample); i++)
        same_spans(sample[i], at("2030-01-01T00:00:00Z"), at("2120-01-01T00:00:00Z"), 24 * 3600);
}

/* All zones, at our own changes and once a month. */
TEST(every_zone_at_its_changes)
{
    int n = 0;
    for (const char *const *name = ref_zones(0); *name; name++, n++) {
        struct zone *z = zone_of(*name);
        int64_t change = -1;
        ref_use(*name);
        while (zone_next_change(z, change, &change) && change < REF_TO_S)
            for (int64_t s = change - 1; s <= change + 1; s++)
                if (zone_offset(z, s) != ref_offset(s))
                    FAIL("%s at %s: %d, want %d", *name, shown(s), zone_offset(z, s),
                         ref_offset(s));
        for (int64_t s = INT64_C(-4000000000); s < REF_TO_S; s += 2629800)
            if (zone_offset(z, s) != ref_offset(s))
                FAIL("%s at %s: %d, want %d", *name, shown(s), zone_offset(z, s), ref_offset(s));
        zone_free(z);
    }
    GE_INT(n, 300);
}

static void same_changes(const struct zone *x, const struct zone *y, int64_t from_s, int64_t to_s)
{
    int64_t a = from_s, b = from_s;
    for (bool more = true; more && a < to_s; EQ_INT(b, a)) {
        EQ_INT(zone_offset(y, a), zone_offset(x, a));
        more = zone_next_change(x, a, &a);
        EQ_INT(zone_next_change(y, b, &b), more);
    }
}

/* The same zones compiled without the years that follow from the rule: all comes from the last line
 * then, and must be the same. */
TEST(slim_files_mean_the_same, .deadline_s = 120)
{
    char dir[PATH_MAX], *here = getcwd(dir, sizeof dir);
    struct pawl_err err = { 0 };
    int n = 0;
    TRUE(here != NULL);
    if (access(ZONE_DIR "/tzdata.zi", R_OK) != 0 ||
        system("PATH=$PATH:/usr/sbin zic -b slim -d . " ZONE_DIR "/tzdata.zi >zic.log 2>&1") != 0)
        skip("zic does not compile %s/tzdata.zi", ZONE_DIR);
    for (const char *const *name = ref_zones(1); *name; name++, n++) {
        struct zone *fat = zone_of(*name), *slim = NULL;
        printf("%s\n", *name);
        OK(zone_load(dir, bytes_of(*name), &slim, &err), &err);
        same_changes(fat, slim, 0, at("2070-01-01T00:00:00Z"));
        /* Between them the zic of glibc 2.36 leaves out some of the changes of Gaza. */
        same_changes(fat, slim, at("2090-01-01T00:00:00Z"), at("2500-01-01T00:00:00Z"));
        zone_free(fat);
        zone_free(slim);
    }
    GE_INT(n, 250);
}

/* ---- Files made here ------------------------------------------------------------------------- */

struct made {
    unsigned char data[100 << 10];
    size_t len;
};

static void put(struct made *m, int64_t n, int len)
{
    for (int i = len - 1; i >= 0; i--)
        m->data[m->len++] = (unsigned char)(n >> (8 * i));
}

static void header(struct made *m, char version, int leaps, int times, int types)
{
    int64_t counts[] = { 0, 0, leaps, times, types, 4 };
    memcpy(m->data + m->len, "TZif", 4);
    m->len += 4;
    put(m, version, 1);
    memset(m->data + m->len, 0, 15);
    m->len += 15;
    for (int i = 0; i < 6; i++)
        put(m, counts[i], 4);
}

static void types(struct made *m, int n, const int *offsets)
{
    for (int i = 0; i < n; i++) {
        put(m, offsets[i], 4);
        put(m, 0, 2);
    }
    memcpy(m->data + m->len, "ABC", 4);
    m->len += 4;
}

/* A file of version 2 with two types, transitions between them in turn, and a last line. */
static void make(struct made *m, const int64_t *times, int n, int first, int second,
                 const char *footer)
{
    int zero = 0, offsets[] = { first, second };
    m->len = 0;
    header(m, '2', 0, 0, 1);
    types(m, 1, &zero);
    header(m, '2', 0, n, 2);
    for (int i = 0; i < n; i++)
        put(m, times[i], 8);
    for (int i = 0; i < n; i++)
        put(m, (i + 1) % 2, 1);
    types(m, 2, offsets);
    m->len += (size_t)snprintf((char *)m->data + m->len, 200, "\n%s\n", footer);
}

static enum pawl_status parse(const struct made *m, size_t len, struct zone **out,
                              struct pawl_err *err)
{
    /* A block of its own, so that a read past the end is found. */
    char *copy = malloc(len + 1);
    memcpy(copy, m->data, len);
    *out = NULL;
    enum pawl_status st =
        zone_parse(BYTES("Test/Zone"), "test.tz", (struct bytes){ copy, len }, out, err);
    free(copy);
    return st;
}

static struct zone *made_zone(const struct made *m)
{
    struct pawl_err err = { 0 };
    struct zone *z;
    OK(parse(m, m->len, &z, &err), &err);
    return z;
}

/* A zone that is only its last line. */
static struct zone *rule_zone(const char *rule, int std)
{
    static struct made m;
    make(&m, NULL, 0, std, 0, rule);
    return made_zone(&m);
}

static void refused(const struct made *m, size_t len, enum pawl_status want, const char *why)
{
    struct pawl_err err = { 0 };
    struct zone *z;
    EQ_STATUS(parse(m, len, &z, &err), want, &err);
    HAS_STR(err.text, "zone \"Test/Zone\": the file test.tz ");
    HAS_STR(err.text, why);
    EQ_PTR(z, NULL);
}

TEST(every_cut_file_is_refused)
{
    static struct made m;
    static const int64_t times[] = { 100, 200, 300 };
    make(&m, times, 3, 3600, 7200, "CET-1CEST,M3.5.0,M10.5.0/3");
    zone_free(made_zone(&m));
    for (size_t len = 0; len < m.len; len++) {
        struct pawl_err err = { 0 };
        struct zone *z;
        EQ_STATUS(parse(&m, len, &z, &err), PAWL_BROKEN, &err);
    }
}

TEST(damaged_files)
{
    static struct made m;
    int64_t times[3] = { 100, 200, 200 };
    make(&m, times, 3, 0, 3600, "");
    refused(&m, m.len, PAWL_BROKEN, "not in ascending order");
    times[2] = ZONE_LAST_S;
    make(&m, times, 3, 0, 3600, "");
    zone_free(made_zone(&m));
    times[2]++;
    make(&m, times, 3, 0, 3600, "");
    refused(&m, m.len, PAWL_BROKEN, "after the year 9999");
    make(&m, times, 2, 0, 93599, "");
    zone_free(made_zone(&m));
    make(&m, times, 2, 0, 93600, "");
    refused(&m, m.len, PAWL_BROKEN, "not between -25 and 26 hours");
    make(&m, times, 2, -89999, 0, "");
    zone_free(made_zone(&m));
    make(&m, times, 2, -90000, 0, "");
    refused(&m, m.len, PAWL_BROKEN, "not between -25 and 26 hours");
    make(&m, times, 2, INT32_MIN, 0, "");
    refused(&m, m.len, PAWL_BROKEN, "not between -25 and 26 hours");

    make(&m, times, 2, 0, 3600, "");
    m.data[44 + 10 + 44 + 16] = 2; /* the type of the first transition */
    refused(&m, m.len, PAWL_BROKEN, "names a type that does not exist");
    make(&m, times, 2, 0, 3600, "");
    m.data[44 + 10] = 'X';
    refused(&m, m.len, PAWL_BROKEN, "does not begin with TZif");
    m.data[0] = 'X';
    refused(&m, m.len, PAWL_BROKEN, "does not begin with TZif");
    make(&m, times, 2, 0, 3600, "UTC0\nUTC0");
    refused(&m, m.len, PAWL_BROKEN, "does not end with one line");
    make(&m, times, 2, 0, 3600, "");
    m.data[4] = 0;
    refused(&m, m.len, PAWL_BROKEN, "TZif version 1; expected 2 or later");
    make(&m, times, 2, 0, 3600, "");
    memset(m.data + 44 + 10 + 20, 0xff, 24); /* counts whose sum would pass 32 bits */
    refused(&m, m.len, PAWL_BROKEN, "shorter than its header says");
}

TEST(leap_seconds_are_refused)
{
    static struct made m;
    int zero = 0;
    header(&m, '2', 0, 0, 1);
    types(&m, 1, &zero);
    header(&m, '2', 1, 0, 1);
    types(&m, 1, &zero);
    put(&m, 78796800, 8);
    put(&m, 1, 4);
    put(&m, '\n', 1);
    put(&m, '\n', 1);
    refused(&m, m.len, PAWL_INVALID, "counts leap seconds");

    struct pawl_err err = { 0 };
    struct zone *z = NULL;
    if (access(ZONE_DIR "/right", R_OK) == 0) {
        EQ_STATUS(zone_load(ZONE_DIR "/right", BYTES("Europe/Berlin"), &z, &err), PAWL_INVALID,
                  &err);
        HAS_STR(err.text, "right/Europe/Berlin counts leap seconds");
    }
}

TEST(limits_of_types_and_transitions)
{
    static struct made m;
    static int64_t times[ZONE_CHANGES_MAX + 1];
    static int offsets[257];
    for (int i = 0; i <= ZONE_CHANGES_MAX; i++)
        times[i] = i * INT64_C(100000);
    make(&m, times, ZONE_CHANGES_MAX, 0, 3600, "");
    struct zone *z = made_zone(&m);
    EQ_INT(zone_offset(z, times[ZONE_CHANGES_MAX - 1]), 0);
    EQ_INT(zone_offset(z, times[ZONE_CHANGES_MAX - 1] - 1), 3600);
    zone_free(z);
    make(&m, times, ZONE_CHANGES_MAX + 1, 0, 3600, "");
    refused(&m, m.len, PAWL_BROKEN, "too many transitions");
    for (int n = 256; n <= 257; n++) {
        m.len = 0;
        header(&m, '2', 0, 0, 1);
        types(&m, 1, offsets);
        header(&m, '2', 0, 0, n);
        types(&m, n, offsets);
        put(&m, '\n', 1);
        put(&m, '\n', 1);
        if (n == 256)
            zone_free(made_zone(&m));
        else
            refused(&m, m.len, PAWL_BROKEN, "1 to 256 types");
    }
}

/* ---- The last line --------------------------------------------------------------------------- */

/* The C library reads the same texts. It decides by the year in UTC, so texts whose dates leave
 * their year are below, with their instants. */
TEST(rules_as_the_c_library_reads_them)
{
    static const struct {
        const char *rule;
        int std;
    } rules[] = {
        { "CET-1CEST,M3.5.0,M10.5.0/3", 3600 },
        { "EST5EDT,M3.2.0,M11.1.0", -18000 },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", 3600 },
        { "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 37800 },
        { "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", -7200 },
        { "EET-2EEST,M3.4.4/50,M10.4.4/50", 7200 },
        { "IST-2IDT,M3.4.4/26,M10.5.0", 7200 },
        { "<+03>-3", 10800 },
        { "AAA-1:02:03BBB-2:03:04,J60/1:02:03,J300/23:59:59", 3723 },
        { "AAA3BBB,59/0,300/0", -10800 },
        { "AAA3BBB,J59/0,J300/0", -10800 },
        { "AAA-12BBB-13,M2.5.6/0,M9.5.6/0", 43200 },
        { "AAA+3BBB+2,M12.1.1/+3,M6.5.6/-167", -10800 },
    };
    static struct ref_span ref[1000];
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct zone *z = rule_zone(rules[i].rule, rules[i].std);
        printf("%s\n", rules[i].rule);
        ref_use(rules[i].rule);
        size_t n = ref_spans(0, at("2100-01-01T00:00:00Z"), 43200, ref, 1000);
        for (size_t k = 0; k < n; k++) {
            EQ_INT(zone_offset(z, ref[k].from_s), ref[k].offset_s);
            EQ_INT(zone_offset(z, ref[k].to_s - 1), ref[k].offset_s);
            if (k > 0)
                EQ_INT(zone_span(z, ref[k].from_s).from_s, ref[k].from_s);
        }
        GE_INT(n, strchr(rules[i].rule, ',') ? 260 : 1);
        zone_free(z);
    }
}

TEST(daylight_time_all_year)
{
    struct zone *z = rule_zone("EST5EDT4,0/0,J365/25", -18000);
    int64_t next;
    EQ_INT(zone_offset(z, 0), -14400);
    FALSE(zone_next_change(z, 0, &next));
    EQ_INT(zone_offset(z, ZONE_LAST_S), -14400);
    zone_free(z);
}

TEST(dates_that_leave_their_year)
{
    struct zone *z = rule_zone("AAA0BBB,J1/-167,J100", 0);
    struct zone_span span = zone_span(z, at("2026-01-01T00:00:00Z"));
    EQ_STR(shown(span.from_s), "2025-12-25T01:00:00Z");
    EQ_STR(shown(span.to_s), "2026-04-10T01:00:00Z");
    EQ_INT(span.offset_s, 3600);
    zone_free(z);

    z = rule_zone("AAA0BBB,J365/100,J365/150", 0);
    span = zone_span(z, at("2026-01-05T00:00:00Z"));
    EQ_STR(shown(span.from_s), "2026-01-04T04:00:00Z");
    EQ_STR(shown(span.to_s), "2026-01-06T05:00:00Z");
    EQ_INT(span.offset_s, 3600);
    EQ_STR(shown(zone_span(z, at("2026-01-01T00:00:00Z")).from_s), "2025-01-06T05:00:00Z");
    zone_free(z);
}

TEST(damaged_rules)
{
    static const struct {
        const char *rule, *why;
    } bad[] = {
        { "A-1", "abbreviation" },
        { "AB-1", "abbreviation" },
        { "<A>-1", "abbreviation" },
        { "<ABC-1", "abbreviation" },
        { "ABC", "offset" },
        { "ABC25", "offset" },
        { "ABC1:60", "offset" },
        { "ABC1:", "offset" },
        { "ABC1:00:60", "offset" },
        { "CET-1CEST", "without the two dates" },
        { "CET-1CEST,M3.5.0", "without the two dates" },
        { "CET-1CEST,M3.5.0,", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M13.5.0,M10.5.0", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M0.5.0,M10.5.0", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M3.0.0,M10.5.0", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M3.6.0,M10.5.0", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M3.5.7,M10.5.0", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M3.5,M10.5.0", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,J0,J365", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,J1,J366", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,0,366", "not Jn, n or Mm.w.d" },
        { "CET-1CEST,M3.5.0/168,M10.5.0", "within 167 hours" },
        { "CET-1CEST,M3.5.0/-168,M10.5.0", "within 167 hours" },
        { "CET-1CEST,M3.5.0,M10.5.0/3x", "goes on after its end" },
    };
    static struct made m;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        make(&m, NULL, 0, 3600, 0, bad[i].rule);
        refused(&m, m.len, PAWL_BROKEN, bad[i].why);
    }
}

/* ---- Names, folders, versions ---------------------------------------------------------------- */

static void write_file(const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    TRUE(f != NULL);
    TRUE(fwrite(data, 1, len, f) == len);
    TRUE(fclose(f) == 0);
}

static void not_loaded(const char *dir, const char *name, enum pawl_status want, const char *why)
{
    struct pawl_err err = { 0 };
    struct zone *z = NULL;
    EQ_STATUS(zone_load(dir, bytes_of(name), &z, &err), want, &err);
    HAS_STR(err.text, why);
    EQ_PTR(z, NULL);
}

TEST(names)
{
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "../Europe/Berlin",
        "/etc/passwd",
        "Europe/../UTC",
        "Europe//",
        "Europe/",
        "A//B",
        "/UTC",
        "localtime",
        "right/UTC",
        "europe",
        "tzdata.zi",
        "E\xc3\xa9t",
        "Europe/Berlin\n",
        "Europe Berlin",
        "A%s",
        "posix/CET",
        "posixrules",
        "+VERSION",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (!zone_name_fault(bytes_of(bad[i])))
            FAIL("taken for the name of a zone: %s", bad[i]);
        not_loaded(NULL, bad[i], PAWL_INVALID, "zone \"");
    }
    TRUE(zone_name_fault(BYTES("UTC\0")) != NULL);
    TRUE(zone_name_fault(BYTES_NONE) != NULL);
    char name[ZONE_NAME_LEN_MAX + 2];
    memset(name, 'A', sizeof name);
    EQ_STR(zone_name_fault((struct bytes){ name, ZONE_NAME_LEN_MAX }), NULL);
    HAS_STR(zone_name_fault((struct bytes){ name, ZONE_NAME_LEN_MAX + 1 }), "longer than 64");
    for (const char *const *good = ref_zones(0); *good; good++)
        EQ_STR(zone_name_fault(bytes_of(*good)), NULL);
}

TEST(what_a_folder_may_hold)
{
    static struct made m;
    static char big[ZONE_FILE_LEN_MAX + 1];
    make(&m, NULL, 0, 3600, 0, "CET-1");
    write_file("Good", m.data, m.len);
    write_file("Cut", m.data, m.len - 3);
    write_file("Empty", "", 0);
    write_file("Edge", big, ZONE_FILE_LEN_MAX);
    write_file("Long", big, ZONE_FILE_LEN_MAX + 1);
    TRUE(mkdir("Folder", 0777) == 0 && mkfifo("Pipe", 0777) == 0);
    struct pawl_err err = { 0 };
    struct zone *z = NULL;
    OK(zone_load(".", BYTES("Good"), &z, &err), &err);
    EQ_INT(zone_offset(z, 0), 3600);
    zone_free(z);
    not_loaded(".", "None", PAWL_INVALID, "zone \"None\" is unknown: there is no file ./None");
    not_loaded(".", "Good/Bad", PAWL_INVALID, "is unknown");
    not_loaded(".", "Folder", PAWL_INVALID, "is unknown");
    not_loaded(".", "Pipe", PAWL_INVALID, "is unknown");
    not_loaded(".", "Cut", PAWL_BROKEN, "the file ./Cut is damaged");
    not_loaded(".", "Empty", PAWL_BROKEN, "the file ./Empty is damaged: it ends within a header");
    not_loaded(".", "Edge", PAWL_BROKEN, "does not begin with TZif");
    not_loaded(".", "Long", PAWL_BROKEN, "the file ./Long is longer than 65536 bytes");
    not_loaded("./nowhere", "Good", PAWL_BROKEN, "the folder ./nowhere does not exist");
    not_loaded("./Good", "Good", PAWL_BROKEN, "the folder ./Good does not exist");
}

TEST(utc_needs_no_folder)
{
    struct pawl_err err = { 0 };
    struct zone *z = NULL;
    int64_t next;
    OK(zone_load("./nowhere", BYTES("UTC"), &z, &err), &err);
    EQ_STR(zone_name(z), "UTC");
    EQ_STR(zone_version(z), "UTC");
    EQ_INT(zone_offset(z, 0), 0);
    FALSE(zone_next_change(z, 0, &next));
    EQ_INT(zone_reached(z, 77), 77);
    EQ_INT(zone_local(z, 77).first_s, 77);
    EQ_INT(zone_local(z, 77).fit, ZONE_ONCE);
    zone_free(z);
}

static const char *version_here(void)
{
    static char version[ZONE_VERSION_LEN];
    struct zone *z = NULL;
    OK(zone_load(".", BYTES("Good"), &z, NULL), NULL);
    snprintf(version, sizeof version, "%s", zone_version(z));
    zone_free(z);
    return version;
}

TEST(versions)
{
    static struct made m;
    char hash[ZONE_VERSION_LEN];
    make(&m, NULL, 0, 3600, 0, "CET-1");
    write_file("Good", m.data, m.len);
    snprintf(hash, sizeof hash, "%s", version_here());
    EQ_INT(strlen(hash), 7 + 16);
    EQ_INT(strncmp(hash, "sha256:", 7), 0);
    write_file("tzdata.zi", "# version", 9);
    EQ_STR(version_here(), hash);
    write_file("tzdata.zi", "# version unknown\nmore", 22);
    EQ_STR(version_here(), hash);
    write_file("+VERSION", "2024a\n", 6);
    EQ_STR(version_here(), "2024a");
    write_file("tzdata.zi", "# version 2031c\n# This file", 27);
    EQ_STR(version_here(), "2031c");

    TRUE(zone_version_newer(BYTES("2025b"), BYTES("2025a")));
    TRUE(zone_version_newer(BYTES("2026a"), BYTES("2025z")));
    TRUE(zone_version_newer(BYTES("2025za"), BYTES("2025z")));
    FALSE(zone_version_newer(BYTES("2025b"), BYTES("2025b")));
    FALSE(zone_version_newer(BYTES("2025a"), BYTES("2025b")));
    TRUE(zone_version_newer(BYTES("2025a"), bytes_of(hash)));
    TRUE(zone_version_newer(BYTES("2025a"), BYTES_NONE));
    FALSE(zone_version_newer(bytes_of(hash), BYTES("2025a")));
    FALSE(zone_version_newer(bytes_of(hash), BYTES("sha256:0000000000000000")));
    FALSE(zone_version_newer(BYTES("UTC"), BYTES("UTC")));
}

TEST(without_memory)
{
    static struct made m;
    make(&m, NULL, 0, 3600, 0, "CET-1");
    write_file("Good", m.data, m.len);
    for (int n = 1; n <= 3; n++) {
        struct pawl_err err = { 0 };
        struct zone *z = NULL;
        mem_torture(n, 0);
        enum pawl_status st = zone_load(".", n < 3 ? BYTES("Good") : BYTES("UTC"), &z, &err);
        if (n < 3)
            EQ_STATUS(st, PAWL_NO_MEMORY, &err);
        mem_torture(0, 0);
        zone_free(z);
        EQ_INT(mem_live(), 0);
    }
}

/* ---- Gaps and folds -------------------------------------------------------------------------- */

static const struct {
    const char *zone, *local;
    enum zone_fit fit;
    const char *first, *second;
} known[] = {
    { "Europe/Berlin", "2026-03-29T01:59:59Z", ZONE_ONCE, "2026-03-29T00:59:59Z", NULL },
    { "Europe/Berlin", "2026-03-29T02:00:00Z", ZONE_GAP, "2026-03-29T01:00:00Z", NULL },
    { "Europe/Berlin", "2026-03-29T02:59:59Z", ZONE_GAP, "2026-03-29T01:00:00Z", NULL },
    { "Europe/Berlin", "2026-03-29T03:00:00Z", ZONE_ONCE, "2026-03-29T01:00:00Z", NULL },
    { "Europe/Berlin", "2026-10-25T01:59:59Z", ZONE_ONCE, "2026-10-24T23:59:59Z", NULL },
    { "Europe/Berlin", "2026-10-25T02:00:00Z", ZONE_FOLD, "2026-10-25T00:00:00Z",
      "2026-10-25T01:00:00Z" },
    { "Europe/Berlin", "2026-10-25T02:59:59Z", ZONE_FOLD, "2026-10-25T00:59:59Z",
      "2026-10-25T01:59:59Z" },
    { "Europe/Berlin", "2026-10-25T03:00:00Z", ZONE_ONCE, "2026-10-25T02:00:00Z", NULL },
    { "America/New_York", "2026-03-08T02:30:00Z", ZONE_GAP, "2026-03-08T07:00:00Z", NULL },
    { "America/New_York", "2026-11-01T01:30:00Z", ZONE_FOLD, "2026-11-01T05:30:00Z",
      "2026-11-01T06:30:00Z" },
    /* Half an hour. */
    { "Australia/Lord_Howe", "2026-10-04T02:15:00Z", ZONE_GAP, "2026-10-03T15:30:00Z", NULL },
    { "Australia/Lord_Howe", "2026-10-04T02:30:00Z", ZONE_ONCE, "2026-10-03T15:30:00Z", NULL },
    { "Australia/Lord_Howe", "2026-04-05T01:30:00Z", ZONE_FOLD, "2026-04-04T14:30:00Z",
      "2026-04-04T15:00:00Z" },
    { "Australia/Lord_Howe", "2026-04-05T02:00:00Z", ZONE_ONCE, "2026-04-04T15:30:00Z", NULL },
    /* 30 December 2011 does not exist; Kwajalein went the same way in 1993, Manila in 1844. */
    { "Pacific/Apia", "2011-12-29T23:59:59Z", ZONE_ONCE, "2011-12-30T09:59:59Z", NULL },
    { "Pacific/Apia", "2011-12-30T00:00:00Z", ZONE_GAP, "2011-12-30T10:00:00Z", NULL },
    { "Pacific/Apia", "2011-12-30T23:59:59Z", ZONE_GAP, "2011-12-30T10:00:00Z", NULL },
    { "Pacific/Apia", "2011-12-31T00:00:00Z", ZONE_ONCE, "2011-12-30T10:00:00Z", NULL },
    { "Pacific/Kwajalein", "1993-08-21T12:00:00Z", ZONE_GAP, "1993-08-21T12:00:00Z", NULL },
    /* The southern half: forward in September, back in April, at midnight. */
    { "America/Santiago", "2026-09-06T00:30:00Z", ZONE_GAP, "2026-09-06T04:00:00Z", NULL },
    { "America/Santiago", "2026-04-04T23:30:00Z", ZONE_FOLD, "2026-04-05T02:30:00Z",
      "2026-04-05T03:30:00Z" },
    { "Australia/Sydney", "2026-10-04T02:30:00Z", ZONE_GAP, "2026-10-03T16:00:00Z", NULL },
    /* Back for Ramadan, forward after it. */
    { "Africa/Casablanca", "2026-02-15T02:30:00Z", ZONE_FOLD, "2026-02-15T01:30:00Z",
      "2026-02-15T02:30:00Z" },
    { "Africa/Casablanca", "2026-03-22T02:30:00Z", ZONE_GAP, "2026-03-22T02:00:00Z", NULL },
    /* Winter time is the daylight time of the file, with a negative difference. */
    { "Europe/Dublin", "2026-03-29T01:30:00Z", ZONE_GAP, "2026-03-29T01:00:00Z", NULL },
    { "Europe/Dublin", "2026-10-25T01:30:00Z", ZONE_FOLD, "2026-10-25T00:30:00Z",
      "2026-10-25T01:30:00Z" },
    /* Two hours. */
    { "Antarctica/Troll", "2026-03-29T02:30:00Z", ZONE_GAP, "2026-03-29T01:00:00Z", NULL },
    { "Antarctica/Troll", "2026-10-25T01:30:00Z", ZONE_FOLD, "2026-10-24T23:30:00Z",
      "2026-10-25T01:30:00Z" },
    /* The day before, in the evening. */
    { "America/Nuuk", "2026-03-28T23:30:00Z", ZONE_GAP, "2026-03-29T01:00:00Z", NULL },
    /* Seconds in the offset: -0:44:30 until 1972. */
    { "Africa/Monrovia", "1972-01-07T00:20:00Z", ZONE_GAP, "1972-01-07T00:44:30Z", NULL },
    /* Beyond the table: by the rule, in the years 2400 and 9000. */
    { "Europe/Berlin", "2400-03-26T02:30:00Z", ZONE_GAP, "2400-03-26T01:00:00Z", NULL },
    { "Europe/Berlin", "9000-10-26T02:30:00Z", ZONE_FOLD, "9000-10-26T00:30:00Z",
      "9000-10-26T01:30:00Z" },
};

TEST(known_gaps_and_folds)
{
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        struct zone *z = zone_of(known[i].zone);
        struct zone_local l = zone_local(z, at(known[i].local));
        printf("%s %s\n", known[i].zone, known[i].local);
        EQ_INT(l.fit, known[i].fit);
        EQ_STR(shown(l.first_s), known[i].first);
        EQ_STR(shown(l.second_s), known[i].second ? known[i].second : known[i].first);
        zone_free(z);
    }
}

/* Walk minute by minute around each change, with the C library's offsets: the first instant of each
 * local time, and the latest local time so far. */
static void walk(const struct zone *z, int64_t change)
{
    static int64_t local[4 * 1440 + 1];
    int64_t from = change - 2 * 86400, step = 60, most = INT64_MIN;
    int n = 0;
    for (int64_t s = from; s <= change + 2 * 86400; s += step) {
        int64_t shown_s = s + ref_offset(s);
        local[n++] = shown_s;
        most = MAX(most, shown_s);
        LE_INT(most, zone_reached(z, s)); /* the minute before a change was not walked to its end */
        LT_INT(zone_reached(z, s), most + step);
        struct zone_local l = zone_local(z, shown_s);
        int first = 0, second = 0;
        while (local[first] != shown_s)
            first++;
        for (second = n - 1; second > first && local[second] != shown_s; second--)
            continue;
        if (shown_s < local[0] + 86400) /* its first time may be before the walk */
            continue;
        EQ_INT(l.first_s, from + first * step);
        NE_INT(l.fit, ZONE_GAP);
        if (second > first) {
            EQ_INT(l.fit, ZONE_FOLD);
            EQ_INT(l.second_s, s);
        }
    }
}

TEST(local_times_as_walked)
{
    static const char *const zones[] = { "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia",
                                         "Antarctica/Troll" };
    for (size_t i = 0; i < COUNT_OF(zones); i++) {
        struct zone *z = zone_of(zones[i]);
        int64_t change = at("2009-01-01T00:00:00Z");
        ref_use(zones[i]);
        for (int n = 0; n < 8 && zone_next_change(z, change, &change); n++)
            walk(z, change);
        zone_free(z);
    }
}

/* Every local time of a gap leads to its end, and the later the local time, the later the instant.
 */
TEST(instants_never_decrease)
{
    for (size_t i = 0; i < COUNT_OF(sample); i++) {
        struct zone *z = zone_of(sample[i]);
        int64_t before = INT64_MIN, change = at("2010-06-01T00:00:00Z");
        while (change < at("2012-02-01T00:00:00Z") && zone_next_change(z, change, &change))
            for (int64_t l = change - 200000; l < change + 200000; l += 97) {
                struct zone_local local = zone_local(z, l);
                LE_INT(before, local.first_s);
                before = local.first_s;
                GE_INT(zone_reached(z, local.first_s), l);
                LT_INT(zone_reached(z, local.first_s - 1), l);
                if (local.fit != ZONE_GAP)
                    EQ_INT(local.second_s + zone_offset(z, local.second_s), l);
            }
        before = INT64_MIN;
        zone_free(z);
    }
}

/* ---- All times ------------------------------------------------------------------------------- */

TEST(repeats_after_400_years)
{
    for (size_t i = 0; i < COUNT_OF(sample); i++) {
        struct zone *z = zone_of(sample[i]);
        int64_t a = at("2100-01-01T00:00:00Z");
        for (int n = 0; n < 1000; n++) {
            struct zone_span near = zone_span(z, a), far = zone_span(z, a + YEARS_400);
            EQ_INT(far.offset_s, near.offset_s);
            if (near.to_s == INT64_MAX || far.to_s > ZONE_LAST_S)
                break;
            EQ_INT(far.to_s, near.to_s + YEARS_400);
            EQ_INT(zone_span(z, far.to_s).from_s, far.to_s);
            a = near.to_s;
        }
        zone_free(z);
    }
}

TEST(the_first_the_last_and_beyond)
{
    static const int64_t ends[] = { INT64_MIN,   INT64_MIN + 1, ZONE_FIRST_S, 0,
                                    ZONE_LAST_S, INT64_MAX - 1, INT64_MAX };
    for (size_t i = 0; i < COUNT_OF(sample); i++) {
        struct zone *z = zone_of(sample[i]);
        for (size_t k = 0; k < COUNT_OF(ends); k++) {
            int64_t next, s = ends[k];
            struct zone_span span = zone_span(z, s);
            TRUE(span.offset_s > -ZONE_OFFSET_MAX && span.offset_s < ZONE_OFFSET_MAX);
            zone_reached(z, s);
            struct zone_local l = zone_local(z, s);
            LE_INT(l.first_s, l.second_s);
            while (s > 0 && zone_next_change(z, s, &next)) {
                GT_INT(next, s);
                s = next;
            }
        }
        zone_free(z);
    }
}
