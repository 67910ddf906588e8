#!/bin/sh
# build.sh DIR [OPTION...] - bring the build folder DIR with these meson options up to date.
#
# meson is run again only when the options changed or when a source file was added or removed, which ninja cannot notice
# (see sources.sh). A compiler warning is printed and the build goes on; with PAWL_WERROR=yes, as in .ci/run, it is an
# error. TARGETS="a b" builds only these.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
dir=$1
shift
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

werror=false
if [ "${PAWL_WERROR:-no}" = yes ]; then
    werror=true
fi
set -- -Dwerror=$werror "$@"

now=$(
    echo "$@"
    tools/sources.sh all
)
if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir/sources.list" 2>/dev/null)" != "$now" ]; then
    again=
    if [ -e "$dir/build.ninja" ]; then
        again=--reconfigure
    fi
    # shellcheck disable=SC2086
    if ! meson setup $again "$@" "$dir" >"$tmp/log" 2>&1; then
        cat "$tmp/log" >&2
        exit 1
    fi
    printf '%s\n' "$now" >"$dir/sources.list"
fi

# On a terminal ninja shows its progress; a log gets only what went wrong.
# shellcheck disable=SC2086
if [ -t 1 ]; then
    ninja -C "$dir" ${TARGETS:-}
    exit
fi
# shellcheck disable=SC2086
if ! ninja -C "$dir" --quiet ${TARGETS:-} >"$tmp/log" 2>&1; then
    cat "$tmp/log"
    exit 1
fi
# Warnings about files that were compiled nevertheless.
if grep -q 'warning:' "$tmp/log"; then
    cat "$tmp/log"
fi
