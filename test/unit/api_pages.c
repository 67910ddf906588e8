/*
 * api_pages.c - doc/http.md is what the table of routes prints. PAWL_WRITE_DOCS=1 writes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/buf.h"
#include "check.h"

static const char path[] = PAWL_SOURCE_DIR "/doc/http.md";

TEST(http_md_is_fresh)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    api_print_markdown(&b);
    TRUE(buf_ok(&b));
    if (getenv("PAWL_WRITE_DOCS")) {
        FILE *out = fopen(path, "w");
        TRUE(out && fwrite(b.data, 1, b.len, out) == b.len);
        fclose(out);
    }
    char *is = malloc(b.len + 2);
    FILE *f = fopen(path, "r");
    if (!f)
        FAIL("doc/http.md is not there: run this with PAWL_WRITE_DOCS=1");
    size_t n = fread(is, 1, b.len + 1, f);
    fclose(f);
    if (n != b.len || memcmp(is, b.data, n))
        FAIL("doc/http.md is out of date: run this with PAWL_WRITE_DOCS=1");
    free(is);
    buf_release(&b);
}
