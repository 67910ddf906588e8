#!/bin/sh
# format.sh [FILE...] - format C files; all of them unless some are named.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then
    # shellcheck disable=SC2046
    set -- $(find include src test samples -name '*.[ch]' | sort)
fi
# Shorten dividers that are too long; the formatter would break them in two.
sed -E -i ':again
/^\/\* -{4} .*-{4} *\*\/$/{/^.{101}/{s/- *\*\/$/ *\//;s/([^-])  +\*\/$/\1 *\//;b again
}}' "$@"
clang-format-14 -i "$@"
