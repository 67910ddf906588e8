/*
 * mysql_text.c - statements with their values inserted, and addresses, without a server.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "check.h"
#include "store/mysql/mydb.h"

static struct arena a;
static struct buf out;

/* What a text becomes: all of its statements. */
static const char *expanded(const char *text, const struct led_params *p)
{
    struct mydb_part part;
    buf_release(&out);
    buf_init(&out, 1 << 20);
    while (mydb_part_next(&text, &part)) {
        part.end = mydb_rows(p);
        mydb_expand(&out, &part, p);
    }
    buf_add_char(&out, 0);
    TRUE(buf_ok(&out));
    return out.data;
}

static void ints(struct led_params *p, size_t n, const int64_t *v)
{
    struct led_column k;
    led_column_init(&k, &a, LED_INTS);
    for (size_t i = 0; i < n; i++)
        led_add_int(&k, v[i]);
    led_column(p, &k);
}

static void texts(struct led_params *p, size_t n, const char *const *v)
{
    struct led_column k;
    led_column_init(&k, &a, LED_TEXTS);
    for (size_t i = 0; i < n; i++)
        led_add_bytes(&k, bytes_of(v[i]));
    led_column(p, &k);
}

#define INTS(p, ...)                                                                               \
    ints((p), sizeof(int64_t[]){ __VA_ARGS__ } / sizeof(int64_t), (int64_t[]){ __VA_ARGS__ })
#define TEXTS(p, ...)                                                                              \
    texts((p), sizeof(const char *[]){ __VA_ARGS__ } / sizeof(char *),                             \
          (const char *[]){ __VA_ARGS__ })

TEST(values_are_numbers_and_hex, .plain = true)
{
    struct led_params p = { 0 };
    arena_init(&a, 1 << 20);
    led_int(&p, -7);
    led_text(&p, BYTES("a'\\\n"));
    led_text(&p, BYTES(""));
    led_text(&p, BYTES_NONE);
    EQ_STR(expanded("SELECT $1, $2, $3, $4, '$1' FROM `$2`", &p),
           "SELECT -7, x'61275c0a', x'', NULL, '$1' FROM `$2`;");
}

TEST(rows_come_one_by_one, .plain = true)
{
    struct led_params p = { 0 };
    arena_init(&a, 1 << 20);
    INTS(&p, 1, 2, LED_NULL);
    TEXTS(&p, "x", NULL, "z");
    led_int(&p, 9);
    EQ_STR(expanded("INSERT INTO t VALUES rows($1, IF($3 > 0, $2, 0))", &p),
           "INSERT INTO t VALUES (1, IF(9 > 0, x'78', 0)),(2, IF(9 > 0, NULL, 0)),"
           "(NULL, IF(9 > 0, x'7a', 0));");
    EQ_STR(expanded("INSERT INTO t VALUES rows($2:$2)", &p),
           "INSERT INTO t VALUES (x'78'),(x'7a');");
    EQ_STR(expanded("each{UPDATE t SET a = $2 WHERE b = $1}; uncounted COMMIT", &p),
           "UPDATE t SET a = x'78' WHERE b = 1;UPDATE t SET a = NULL WHERE b = 2;"
           "UPDATE t SET a = x'7a' WHERE b = NULL;COMMIT;");
    EQ_STR(expanded("SELECT (each UNION ALL {(SELECT $1)}) t", &p),
           "SELECT ((SELECT 1)UNION ALL (SELECT 2)UNION ALL (SELECT NULL)) t;");
}

TEST(a_word_says_what_the_server_counts, .plain = true)
{
    const char *at = "SELECT 1; uncounted SELECT 2; twice SELECT 3";
    struct mydb_part part;
    for (int i = 0; i < 3; i++) {
        TRUE(mydb_part_next(&at, &part));
        EQ_INT(part.counts, i == 0 ? 1 : i == 1 ? 0 : 2);
        TRUE(bytes_eq(part.text, bytes_of(i == 0 ? "SELECT 1" : i == 1 ? "SELECT 2" : "SELECT 3")));
    }
    FALSE(mydb_part_next(&at, &part));
}

TEST(columns_without_values_are_left_out, .plain = true)
{
    struct led_params p = { 0 };
    arena_init(&a, 1 << 20);
    INTS(&p, 1, 2);
    TEXTS(&p, NULL, NULL);
    TEXTS(&p, NULL, "c");
    EQ_STR(expanded("INSERT INTO t into(a = $1, b = $2, `c` = $3, d = NULLIF($1, 2))", &p),
           "INSERT INTO t (a,`c`,d) VALUES (1,NULL,NULLIF(1, 2)),(2,x'63',NULLIF(2, 2));");
    EQ_STR(expanded("INSERT INTO t VALUES rows($2: $1)", &p), ""); /* nothing to send */
}

TEST(json_is_sorted_and_says_things_once, .plain = true)
{
    struct led_params p = { 0 }, q = { 0 };
    arena_init(&a, 1 << 20);
    INTS(&p, 3, 1, 3, 2);
    EQ_STR(expanded("SELECT json($1)", &p), "SELECT '[1,2,3]';");
    TEXTS(&q, "b", "a", "b");
    INTS(&q, 1, LED_NULL, 1);
    EQ_STR(expanded("SELECT json($1), json($1, $2)", &q),
           "SELECT '[\"61\",\"62\"]', '[[\"61\",null],[\"62\",1],[\"62\",1]]';");
}

TEST(rows_are_cut_by_their_length, .plain = true)
{
    struct led_params p = { 0 };
    arena_init(&a, 1 << 20);
    TEXTS(&p, "0123456789", "0123456789", "0123456789");
    EQ_INT(mydb_rows_within(&p, 0, 1), 1);
    EQ_INT(mydb_rows_within(&p, 0, 29), 2);
    EQ_INT(mydb_rows_within(&p, 1, 1000), 2);
    EQ_INT(mydb_rows_within(NULL, 0, 1), 1);
}

TEST(tables_have_the_schemas_prefix, .plain = true)
{
    struct arena own;
    arena_init(&own, 1 << 16);
    EQ_STR(mydb_own_names("s1", &own, "SELECT @pawl_x FROM pawl_call, `pawl_id`, xpawl_id"),
           "SELECT @pawl_x FROM s1_call, `s1_id`, xpawl_id");
    arena_release(&own);
}

TEST(an_address_is_taken_apart, .plain = true)
{
    struct mydb_url u;
    struct pawl_err err;
    OK(mydb_url_read(
           "mysql://me:p%40ss%2Fw@db.example:3307/my%20db?ssl-mode=VERIFY_IDENTITY&ssl-ca="
           "/c%61",
           &u, &err),
       &err);
    EQ_STR(u.user, "me");
    EQ_STR(u.password, "p@ss/w");
    EQ_STR(u.host, "db.example");
    EQ_INT(u.port, 3307);
    EQ_STR(u.database, "my db");
    EQ_STR(u.ca, "/ca");
    EQ_INT(u.tls, MYDB_TLS_VERIFIED);
    mydb_url_release(&u);
    OK(mydb_url_read("mariadb://[::1]/d?socket=/run/x", &u, &err), &err);
    EQ_STR(u.host, "::1");
    EQ_STR(u.socket, "/run/x");
    TRUE(!u.user && !u.password && !u.port);
    mydb_url_release(&u);
}

TEST(an_address_that_is_none_is_told_without_its_password, .plain = true)
{
    static const char *const bad[] = {
        "mysql://me:secret@host",
        "mysql://me:secret@host/",
        "mysql://me:secret@host:99999/d",
        "mysql://me:secret@host:x/d",
        "mysql://me:secret%zz@host/d",
        "mysql://me:secret%00@host/d",
        "mysql://me:secret@[::1/d",
        "mysql://me:secret@host/d?colour=red",
        "mysql://me:secret@host/d?ssl-mode=perhaps",
        "mysql://me:secret@host/d?socket",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct mydb_url u;
        struct pawl_err err;
        EQ_STATUS(mydb_url_read(bad[i], &u, &err), PAWL_INVALID, &err);
        TRUE(!strstr(err.text, "secret"));
        TRUE(!u.block);
    }
}
