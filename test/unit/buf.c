/*
 * buf.c - buffers: growing up to the limit, remembering failure, never reading beyond the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/buf.h"
#include "base/mem.h"
#include "check.h"

#define EQ_BUF(b, want) EQ_BYTES(buf_bytes(b).data, buf_bytes(b).len, want, strlen(want))

TEST(adds_of_every_kind)
{
    struct buf b;
    buf_init(&b, 1000);
    EQ_BUF(&b, "");
    buf_add(&b, "ab", 2);
    buf_add(&b, NULL, 0);
    buf_add_bytes(&b, BYTES("cd"));
    buf_add_bytes(&b, BYTES_NONE);
    buf_add_text(&b, "ef");
    buf_add_char(&b, 'g');
    buf_addf(&b, "%d%s", 12, "x");
    EQ_BUF(&b, "abcdefg12x");
    TRUE(buf_ok(&b));
    buf_release(&b);
    buf_release(&b);
}

TEST(integers)
{
    struct buf b;
    buf_init(&b, 1000);
    buf_add_int(&b, 0);
    buf_add_char(&b, ' ');
    buf_add_int(&b, -1);
    buf_add_char(&b, ' ');
    buf_add_int(&b, INT64_MAX);
    buf_add_char(&b, ' ');
    buf_add_int(&b, INT64_MIN);
    EQ_BUF(&b, "0 -1 9223372036854775807 -9223372036854775808");
    buf_release(&b);
}

TEST(the_edge_and_one_past)
{
    struct buf b;
    buf_init(&b, 5);
    buf_add_text(&b, "12345");
    TRUE(buf_ok(&b));
    buf_add(&b, "", 0);
    TRUE(buf_ok(&b));
    buf_add_char(&b, '6');
    FALSE(buf_ok(&b));
    EQ_BUF(&b, "12345");

    buf_reset(&b);
    buf_addf(&b, "%s", "12345");
    TRUE(buf_ok(&b));
    buf_reset(&b);
    buf_addf(&b, "%s", "123456");
    FALSE(buf_ok(&b));
    EQ_UINT(b.len, 0);
    /* Later adds do nothing, even ones that would fit. */
    buf_add_char(&b, '1');
    buf_addf(&b, "x");
    EQ_UINT(b.len, 0);
    buf_release(&b);
}

TEST(never_holds_more_than_it_may)
{
    struct buf b;
    buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        buf_add_char(&b, 'x');
    TRUE(buf_ok(&b));
    LE_INT((int64_t)b.cap, 1001);
    buf_release(&b);

    buf_init(&b, SIZE_MAX);
    for (int i = 0; i < 100; i++)
        buf_addf(&b, "%0100d", i);
    TRUE(buf_ok(&b));
    EQ_UINT(b.len, 10000);
    buf_add(&b, "x", SIZE_MAX - 5000);
    FALSE(buf_ok(&b));
    buf_release(&b);
}

TEST(all_zero_takes_nothing)
{
    struct buf b = { 0 };
    buf_add(&b, "", 0);
    buf_add_char(&b, 'x');
    FALSE(buf_ok(&b));
    buf_release(&b);
}

TEST(survives_without_memory)
{
    int64_t before = mem_live();
    for (int n = 1; n <= 4; n++) {
        struct buf b;
        buf_init(&b, 1 << 20);
        mem_torture(n, 1);
        for (int i = 0; i < 200; i++)
            buf_addf(&b, "%0100d", i);
        mem_torture(0, 0);
        FALSE(buf_ok(&b));
        EQ_UINT(b.len % 100, 0);
        buf_release(&b);
        EQ_INT(mem_live(), before);
    }
}
