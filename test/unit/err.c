/*
 * err.c - the table of statuses matches the contract; messages are cut between characters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "base/text.h"
#include "check.h"

/* The table, repeated here on purpose. */
TEST(says_what_the_contract_says)
{
    static const struct {
        enum pawl_status status;
        const char *name;
        int http, exit;
        const char *retry;
    } rows[] = {
        { PAWL_OK, "OK", 200, 0, "never" },
        { PAWL_INVALID, "INVALID", 400, 2, "never" },
        { PAWL_UNAUTHORIZED, "UNAUTHORIZED", 401, 11, "never" },
        { PAWL_FORBIDDEN, "FORBIDDEN", 403, 12, "never" },
        { PAWL_NOT_FOUND, "NOT_FOUND", 404, 3, "never" },
        { PAWL_METHOD, "METHOD", 405, 2, "never" },
        { PAWL_TIMEOUT, "TIMEOUT", 408, 6, "soon" },
        { PAWL_CONFLICT, "CONFLICT", 409, 10, "never" },
        { PAWL_STATE, "STATE", 409, 13, "never" },
        { PAWL_LOST_LEASE, "LOST_LEASE", 409, 4, "never" },
        { PAWL_GONE, "GONE", 410, 15, "never" },
        { PAWL_STALE, "STALE", 412, 16, "never" },
        { PAWL_TOO_LARGE, "TOO_LARGE", 413, 17, "never" },
        { PAWL_MEDIA, "MEDIA", 415, 2, "never" },
        { PAWL_FULL, "FULL", 429, 5, "later" },
        { PAWL_BROKEN, "BROKEN", 500, 9, "never" },
        { PAWL_BUSY, "BUSY", 503, 6, "soon" },
        { PAWL_NO_MEMORY, "NO_MEMORY", 503, 8, "later" },
        { PAWL_UNKNOWN, "UNKNOWN", 504, 7, "readback" },
    };
    EQ_INT(sizeof rows / sizeof rows[0], PAWL_STATUS_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        EQ_STR(pawl_status_name(rows[i].status), rows[i].name);
        EQ_INT(err_http(rows[i].status), rows[i].http);
        EQ_INT(err_exit(rows[i].status), rows[i].exit);
        EQ_STR(err_retry_text(rows[i].status), rows[i].retry);
        TRUE(err_meaning(rows[i].status)[0] != 0);
    }
}

TEST(a_number_that_is_none)
{
    EQ_STR(pawl_status_name(PAWL_STATUS_COUNT), "?");
    EQ_STR(pawl_status_name((enum pawl_status) - 1), "?");
    EQ_INT(err_http((enum pawl_status)99), 500);
    EQ_STR(err_retry_text((enum pawl_status)99), "never");
}

TEST(fills_and_clears)
{
    struct pawl_err err = { .native = 7, .sqlstate = "12345" };
    EQ_INT(err_set(&err, PAWL_FULL, "queue \"%s\": %d", "mail", 3), PAWL_FULL);
    EQ_INT(err.status, PAWL_FULL);
    EQ_STR(err.text, "queue \"mail\": 3");
    EQ_INT(err.native, 0);
    EQ_STR(err.sqlstate, "");
    EQ_INT(err_set(NULL, PAWL_FULL, "%d", 1), PAWL_FULL);
    EQ_INT(err_no_memory(&err, "a lease"), PAWL_NO_MEMORY);
    EQ_STR(err.text, "no memory for a lease");
    err_clear(&err);
    EQ_INT(err.status, PAWL_OK);
    EQ_STR(err.text, "");
    err_clear(NULL);
}

TEST(cuts_a_long_sentence_at_a_character)
{
    char name[1201];
    for (size_t shift = 0; shift < 4; shift++) {
        struct pawl_err err;
        memset(name, 'x', sizeof name);
        name[shift + 800] = 0;
        for (size_t i = shift; i + 4 <= shift + 800; i += 4)
            memcpy(name + i, "\xf0\x9f\x98\x80", 4);
        err_set(&err, PAWL_INVALID, "%s", name);
        size_t len = strlen(err.text);
        GE_INT((int64_t)len, 500);
        LT_INT((int64_t)len, sizeof err.text);
        TRUE(utf8_valid(bytes_of(err.text)));
    }
}
