#!/bin/sh
# symbols.sh - the symbols that programs see when they link the libraries: pawl_ names and nothing else.
#
# SPDX-License-Identifier: Apache-2.0
set -u
# The libraries come from the plain build, as users get them, not from the one under test.
if [ -e build/libpawl.so ]; then
    build=build
else
    build=${PAWL_BUILD:?}
fi
echo 1..4

check()
{
    if [ -z "$2" ]; then
        echo "ok $1 - symbols/$3"
    else
        echo "not ok $1 - symbols/$3"
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

# Compilers add a few symbols of their own to instrumented builds; those are not ours to hide.
strangers()
{
    grep -v ' pawl_\| __asan_\| __tsan_\| __ubsan_\| __odr_asan\| __gcov\| mangle_path$'
}

check 1 "$(nm -D --defined-only "$build/libpawl.so" | strangers)" so_shows_only_pawl_names
check 2 "$(nm -g --defined-only "$build/libpawl.a" | grep ' [A-Z] ' | strangers)" \
    archive_shows_only_pawl_names
so=$(nm -D --defined-only "$build/libpawl.so" | awk '{ print $3 }' | sort)
a=$(nm -g --defined-only "$build/libpawl.a" | awk 'NF == 3 { print $3 }' | sort)
if [ "$so" = "$a" ]; then
    check 3 "" so_and_archive_show_the_same
else
    check 3 "$(printf '%s\n%s\n' "$so" "$a" | sort | uniq -u)" so_and_archive_show_the_same
fi
check 4 "$(readelf -d "$build/libpawl.so" | grep -q 'SONAME.*\[libpawl\.so\.0\]' || echo "no soname libpawl.so.0")" \
    soname_is_libpawl_so_0
