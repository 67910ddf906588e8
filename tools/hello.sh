#!/bin/sh
# hello.sh BUILD_DIR - run samples/hello.c's program on a database of its own and remove that again.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
program=$(cd "$1" && pwd)/samples/hello
if [ ! -x "$program" ]; then
    echo "hello.sh: $program is not there; samples/hello.c builds it" >&2
    exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
echo "running build/samples/hello on $scratch/hello.db (removed afterwards)"
"$program" "$scratch/hello.db"
