#!/bin/sh
# format.sh [FILE...] - rewrite C files in the project's format, all of them unless some are named.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then
    # shellcheck disable=SC2046
    set -- $(find include src test samples -name '*.[ch]' | sort)
fi
# A divider that is too long loses dashes; the formatter would break it in two.
sed -E -i ':again
/^\/\* -{4} .*-{4} *\*\/$/{/^.{101}/{s/- *\*\/$/ *\//;s/([^-])  +\*\/$/\1 *\//;b again
}}' "$@"
clang-format-14 -i "$@"
