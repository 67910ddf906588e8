#!/bin/sh
# build.sh DIR [OPTION...] - bring the build folder DIR up to date, made with these meson options.
#
# meson is asked again only when the options differ from last time or when a source file came or
# went, which ninja cannot see (see sources.sh).
#
# SPDX-License-Identifier: Apache-2.0
set -eu
dir=$1
shift
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

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

# On a terminal ninja shows its progress; in a log only what went wrong is worth a line.
if [ -t 1 ]; then
    exec ninja -C "$dir"
fi
if ! ninja -C "$dir" --quiet >"$tmp/log" 2>&1; then
    cat "$tmp/log"
    exit 1
fi
