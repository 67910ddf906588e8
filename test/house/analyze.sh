#!/bin/sh
# analyze.sh - `make analyze` counts findings, and a file that an analyzer could not read is a finding too.
#
# SPDX-License-Identifier: Apache-2.0
set -u
root=$(pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0
echo 1..7

# A tree with one file, and a build folder that needs no build.
mkdir -p "$tmp/tree/tools" "$tmp/tree/src" "$tmp/tree/include" "$tmp/tree/build" "$tmp/bin"
cp "$root/tools/analyze.sh" "$tmp/tree/tools"
: >"$tmp/tree/tools/analyze.txt"
: >"$tmp/tree/tools/analyze.h"
printf '#!/bin/sh\n' >"$tmp/tree/tools/build.sh"
chmod +x "$tmp/tree/tools/build.sh"
command='cc -I../include -fdiagnostics-color=always -Wall -O2 -MD -MQ a.o -MF a.o.d -o a.o -c ../src/a.c'

files()
{
    printf '%s\n' "$1" >"$tmp/tree/build/compile_commands.json"
}

# analyzes NAME LAST_LINE PART: checks the last line of the output, and that the output contains PART.
analyzes()
{
    number=$((number + 1))
    PATH=$tmp/bin:$PATH sh "$tmp/tree/tools/analyze.sh" >"$tmp/log" 2>&1
    case "$(cat "$tmp/log")" in
    *"$3"*"$2")
        echo "ok $number - analyze/$1"
        ;;
    *)
        echo "not ok $number - analyze/$1"
        sed 's/^/# /' "$tmp/log"
        ;;
    esac
}

# stub TOOL: puts a failing program before the real one in PATH.
stub()
{
    printf '#!/bin/sh\necho "%s: out of order"\nexit 1\n' "$1" >"$tmp/bin/$1"
    chmod +x "$tmp/bin/$1"
}

files "[{\"command\":\"$command\",\"file\":\"../src/a.c\"}]"
echo 'int a(void) { return 1; }' >"$tmp/tree/src/a.c"
analyzes what_is_clean_passes '3 passed, 0 failed' ''

stub cppcheck
analyzes a_cppcheck_that_does_not_run_fails '2 passed, 2 failed' 'cppcheck: src/: not read: status 1'
rm "$tmp/bin/cppcheck"
stub clang-14
analyzes a_clang_that_does_not_run_fails '2 passed, 1 failed' 'clang: ../src/a.c: not read: clang-14: out of order'
rm "$tmp/bin/clang-14"

cat >"$tmp/tree/src/a.c" <<'C'
#include <stdlib.h>
int a(int x) { int *p = malloc(4); if (x || !p) return 1; free(p); return *p; }
C
analyzes each_compiler_finds_it '3 passed, 4 failed' 'clang: ../src/a.c:2'
files "[{\"command\":\"ccache $command\",\"file\":\"../src/a.c\"}]"
analyzes a_compiler_behind_ccache_is_read '3 passed, 4 failed' 'clang: ../src/a.c:2'

echo 'int a(void) { return }' >"$tmp/tree/src/a.c"
analyzes what_does_not_compile_fails 'failed' 'gcc: ../src/a.c: not read: ../src/a.c:1'

files '[]'
echo 'int a(void) { return 1; }' >"$tmp/tree/src/a.c"
analyzes no_files_is_a_failure '0 passed, 1 failed' 'names no file of src/'
