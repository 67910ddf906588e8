/*
 * digest.c - SHA-256 by OpenSSL (ident.h). The algorithm is fetched once, and each thread keeps a
 * context.
 *
 * Any thread. Fetching the algorithm costs more than hashing a call, and so does making a context.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "base/ident.h"

/* Short runs are joined here first: one update costs less than ten. */
#define JOIN_MAX 512
/* One byte for presence, eight for the length. */
#define HEAD_LEN 9

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t context_key;
static EVP_MD *sha256; /* NULL: OpenSSL has no memory or no such algorithm */
static _Thread_local EVP_MD_CTX *context;

static void context_end(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void digest_once(void)
{
    if (pthread_key_create(&context_key, context_end) == 0)
        sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static EVP_MD_CTX *digest_begin(void)
{
    pthread_once(&once, digest_once);
    if (!sha256)
        return NULL;
    if (!context) {
        EVP_MD_CTX *fresh = EVP_MD_CTX_new();
        if (!fresh || pthread_setspecific(context_key, fresh) != 0) {
            EVP_MD_CTX_free(fresh);
            return NULL;
        }
        context = fresh;
    }
    return EVP_DigestInit_ex2(context, sha256, NULL) ? context : NULL;
}

static void head_write(struct bytes part, unsigned char out[HEAD_LEN])
{
    uint64_t len = part.len;
    out[0] = part.data != NULL;
    for (int i = 8; i >= 1; i--, len >>= 8)
        out[i] = (unsigned char)len;
}

static bool add_part(EVP_MD_CTX *ctx, struct bytes part)
{
    unsigned char head[HEAD_LEN];
    head_write(part, head);
    return EVP_DigestUpdate(ctx, head, sizeof head) &&
           (part.len == 0 || EVP_DigestUpdate(ctx, part.data, part.len));
}

bool digest_parts(const struct bytes *parts, size_t n, unsigned char out[32])
{
    EVP_MD_CTX *ctx = digest_begin();
    if (!ctx)
        return false;
    unsigned char join[JOIN_MAX];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].len <= JOIN_MAX - HEAD_LEN && len + HEAD_LEN + parts[i].len <= JOIN_MAX) {
            head_write(parts[i], join + len);
            if (parts[i].len)
                memcpy(join + len + HEAD_LEN, parts[i].data, parts[i].len);
            len += HEAD_LEN + parts[i].len;
            continue;
        }
        if (!EVP_DigestUpdate(ctx, join, len) || !add_part(ctx, parts[i]))
            return false;
        len = 0;
    }
    return EVP_DigestUpdate(ctx, join, len) && EVP_DigestFinal_ex(ctx, out, NULL);
}

bool digest_plain(struct bytes b, unsigned char out[32])
{
    EVP_MD_CTX *ctx = digest_begin();
    return ctx && (b.len == 0 || EVP_DigestUpdate(ctx, b.data, b.len)) &&
           EVP_DigestFinal_ex(ctx, out, NULL);
}
