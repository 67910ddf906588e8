#!/bin/sh
# install.sh BUILD_DIR PREFIX [DESTDIR] - install what is built in BUILD_DIR into PREFIX, below DESTDIR when given.
#
# Another prefix than last time changes the files that contain it (pawl.pc, pawl.service), so meson is run again; no
# source file is compiled again.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: install.sh BUILD_DIR PREFIX [DESTDIR]}
prefix=${2:?usage: install.sh BUILD_DIR PREFIX [DESTDIR]}
DESTDIR=${3:-}
export DESTDIR
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

quietly()
{
    if ! "$@" >"$tmp/log" 2>&1; then
        cat "$tmp/log" >&2
        exit 1
    fi
}

if [ "$(sed -n 's/^prefix=//p' "$build/meson-private/pawl.pc")" != "$prefix" ]; then
    quietly meson configure "$build" -Dprefix="$prefix"
    quietly ninja -C "$build"
fi
quietly meson install -C "$build" --no-rebuild --quiet
# The loader finds the library only after its cache is updated.
if [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null 2>&1; then
    ldconfig
fi
