#!/bin/sh
# tidy.sh - the house rules that a program can check; behind `make tidy`.
#
# Format (pinned clang-format), rooms, headers that compile alone, lengths, contracts above prototypes, banned functions,
# banned words in pages and comments, white space, a README in every room, an opening comment in every file. Each
# finding is one line `file:line: what`; the exit status is 1 when there is one. Checks the tree above tools/, or the
# one given.
#
# SPDX-License-Identifier: Apache-2.0
set -u
LC_ALL=C
export LC_ALL
tools=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$tools/..}" || exit 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
flags="-std=gnu17 -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wformat=2
    -Werror -D_GNU_SOURCE -fsyntax-only -isystem /usr/share/include $(pkg-config --cflags libpq)"
bad=0

dirs=
for dir in include src test samples; do
    if [ -d "$dir" ]; then
        dirs="$dirs $dir"
    fi
done
# shellcheck disable=SC2086
find $dirs -name '*.[ch]' | sort >"$tmp/files"

# Format. The formatter's own report has three lines a finding; the first one is printed.
if ! command -v clang-format-14 >/dev/null; then
    echo "tools/tidy.sh:1: clang-format-14 is not installed (tools/setup.sh test)"
    bad=1
elif ! xargs -r -P "$(nproc)" -n 8 \
    sh -c 'exec clang-format-14 --dry-run -Werror "$@" >"$0/format.$$" 2>&1' "$tmp" <"$tmp/files"; then
    cat "$tmp"/format.* | grep 'error:' |
        sed -E 's/^([^:]*:[0-9]+):[0-9]+: error: code should be clang-formatted.*/\1: not formatted (make format)/' |
        sort -t: -k1,1 -k2,2n -u
    bad=1
fi

# Rooms, lengths, banned functions, white space.
# shellcheck disable=SC2046
awk -f "$tools/tidy.awk" tools/rooms.txt $(cat "$tmp/files") >"$tmp/out" || bad=1
sort -t: -k1,1 -k2,2n "$tmp/out"

# Pages, and the comments of C files: banned words, and prose that is too wide.
if [ -e tools/words.txt ]; then
    {
        ls README.md CONTRIBUTING.md test/README.md
        find doc samples -name '*.md'
        find src -name README.md
        cat "$tmp/files"
    } 2>/dev/null >"$tmp/prose"
    # shellcheck disable=SC2046
    awk -f "$tools/words.awk" tools/words.txt $(sort "$tmp/prose") >"$tmp/out" || bad=1
    sort -t: -k1,1 -k2,2n "$tmp/out"
fi

# Each header compiles alone, with the generated one in reach.
mkdir "$tmp/sql"
if [ -e sql/statements.txt ] && ! "$tools/embed_sql.sh" sql "$tmp/sql" 2>"$tmp/out"; then
    grep '^sql/' "$tmp/out"
    bad=1
fi
alone()
{
    grep '\.h$' "$tmp/files" | grep -v '^include/' |
        xargs -r -P "$(nproc)" -I {} sh -c \
            'gcc $0 -Iinclude -Isrc -Itest/lib -I"$1/sql" -include {} -x c /dev/null >"$1/alone.$$" 2>&1' \
            "$flags" "$tmp"
}
if ! alone; then
    cat "$tmp"/alone.* | grep 'error:' | sed -E 's/:[0-9]+: (fatal )?error:/: compiled alone:/' | sort -u
    bad=1
fi
if [ -e include/pawl.h ]; then
    public()
    {
        "$@" -Wall -Wextra -Werror -fsyntax-only -include include/pawl.h /dev/null 2>&1
    }
    if ! public gcc -x c -std=c11 -pedantic >"$tmp/out"; then
        grep 'error:' "$tmp/out" | sed -E 's/:[0-9]+: (fatal )?error:/: as plain C11:/'
        bad=1
    fi
    if command -v g++ >/dev/null && ! public g++ -x c++ -std=c++11 >"$tmp/out"; then
        grep 'error:' "$tmp/out" | sed -E 's/:[0-9]+: (fatal )?error:/: as C++:/'
        bad=1
    fi
    version=$(sed -n "s/.*version: '\([0-9.]*\)',*\$/\1/p" meson.build 2>/dev/null | head -n 1)
    if [ -n "$version" ] && ! grep -q "PAWL_VERSION \"$version\"" include/pawl.h; then
        echo "include/pawl.h:1: PAWL_VERSION is not the \"$version\" of meson.build"
        bad=1
    fi
fi

# Each room has a README whose first line is one sentence: it begins with a capital or a name and ends with a period.
if [ -d src ]; then
    for dir in $(sed -n 's/^src\/\(.*\)\/[^/]*$/\1/p' "$tmp/files" | sort -u); do
        readme=src/$dir/README.md
        if [ ! -e "$readme" ]; then
            echo "$readme:1: the room has no README.md"
            bad=1
        elif ! head -n 1 "$readme" | grep -q '^[^#].*[.]$'; then
            echo "$readme:1: the first line is one sentence saying what the room is"
            bad=1
        fi
        if ! grep -q "^$dir:" tools/rooms.txt; then
            echo "tools/rooms.txt:1: the room $dir is not listed"
            bad=1
        fi
    done
fi
exit $bad
