/*
 * jansson_apart.h - jansson beside our own JSON: names that both have are prefixed with jansson_
 * here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUZZ_JANSSON_APART_H
#define FUZZ_JANSSON_APART_H

#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#define json_string jansson_string
#define json_real jansson_real
#include <jansson.h>
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL
#undef json_string
#undef json_real

#endif
