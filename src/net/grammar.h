/*
 * grammar.h - llhttp, with another prefix for its method names, which are also names of this room.
 *
 * Compiled from Debian's node-llhttp in strict mode; included by this room only.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NET_GRAMMAR_H
#define NET_GRAMMAR_H

#define HTTP_DELETE LLHTTP_DELETE
#define HTTP_GET LLHTTP_GET
#define HTTP_HEAD LLHTTP_HEAD
#define HTTP_OPTIONS LLHTTP_OPTIONS
#define HTTP_PATCH LLHTTP_PATCH
#define HTTP_POST LLHTTP_POST
#define HTTP_PUT LLHTTP_PUT
#include <llhttp/llhttp.h>
#undef HTTP_DELETE
#undef HTTP_GET
#undef HTTP_HEAD
#undef HTTP_OPTIONS
#undef HTTP_PATCH
#undef HTTP_POST
#undef HTTP_PUT

#endif
