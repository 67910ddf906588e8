#!/bin/sh
# archive.sh CORE.a OUT.a - make the static library for users: one object, only pawl_ names visible.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ld -r --whole-archive "$1" -o "$tmp/pawl.o"
objcopy --localize-hidden "$tmp/pawl.o"
rm -f "$2"
ar rcsD "$2" "$tmp/pawl.o"
