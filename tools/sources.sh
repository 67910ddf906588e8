#!/bin/sh
# sources.sh - the file lists of the build, so that a new file needs no entry in a list.
#
# meson has no glob on purpose: ninja cannot notice a new file. So meson runs this script, and build.sh runs `sources.sh
# all` before every build and runs meson again when the answer has changed.
#
#   sources.sh c DIR...      the .c files directly inside each DIR
#   sources.sh engines       the engines that have a folder in sql/
#   sources.sh sql           every file the SQL embedding reads
#   sources.sh samples       NAME for each samples/NAME/NAME.c
#   sources.sh scripts DIR   the .sh files directly inside DIR
#   sources.sh all           everything above, for comparing
#
# SPDX-License-Identifier: Apache-2.0
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."

# A pattern without a match stays unexpanded; `-e` drops it.
present()
{
    for f in "$@"; do
        if [ -e "$f" ]; then
            printf '%s\n' "$f"
        fi
    done
}

what=${1:?usage: sources.sh c|engines|sql|samples|scripts|all [DIR...]}
shift
case $what in
c)
    for dir in "$@"; do
        present "$dir"/*.c
    done
    ;;
engines)
    for dir in sql/*/; do
        if [ -d "$dir" ] && [ "$dir" != sql/all/ ]; then
            basename "$dir"
        fi
    done
    ;;
sql)
    present sql/statements.txt sql/*/*.sql sql/*/migrations/*.sql
    ;;
samples)
    for dir in samples/*/; do
        name=$(basename "$dir")
        if [ -e "samples/$name/$name.c" ]; then
            echo "$name"
        fi
    done
    ;;
scripts)
    present "$1"/*.sh
    ;;
all)
    find src samples test sql -name '*.[ch]' -o -name '*.sql' -o -name '*.sh' \
        -o -name statements.txt 2>/dev/null | sort
    ;;
*)
    echo "sources.sh: no list called \"$what\"" >&2
    exit 2
    ;;
esac
