#!/bin/sh
# analyze.sh - read every file of src/ with clang --analyze, gcc -fanalyzer and cppcheck.
#
# The compilers are run with the flags of build/compile_commands.json. A finding that is wrong is answered by a line of
# tools/analyze.txt: the file, a part of the message, why; apart by tabs. An answer to nothing is a finding, too. The
# last line is "N passed, N failed": files read by each tool, and findings without an answer.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
tools/build.sh build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(nproc)
tab=$(printf '\t')

# "FLAGS<tab>FILE": what the build passes, without what it writes.
jq -r '.[] | select(.file | startswith("../src/")) | .command + "\t" + .file' build/compile_commands.json |
    sed -E 's/^[^ ]+ //; s/ -MD -MQ [^ ]+ -MF [^ ]+ -o [^ ]+ -c [^\t]+//' |
    sort -u -t "$tab" -k 2,2 >"$work/files"
files=$(wc -l <"$work/files")

cat >"$work/one" <<'ONE'
tab=$(printf '\t')
flags=${1%%"$tab"*} file=${1##*"$tab"}
cd build
clang-14 --analyze --analyzer-output text -Xclang -analyzer-disable-checker \
    -Xclang security.insecureAPI.DeprecatedOrUnsafeBufferHandling -Wno-unused-command-line-argument \
    $flags "$file" 2>&1 | grep ': warning:' | sed 's/^/clang: /'
# In the locale C its quotes are plain, so that an answer can hold a name.
LC_ALL=C gcc $flags -fanalyzer -fdiagnostics-plain-output -c -o /dev/null "$file" 2>&1 |
    grep ': warning:.*Wanalyzer' | sed 's/^/gcc: /'
exit 0
ONE
tr '\n' '\0' <"$work/files" | xargs -0 -n 1 -P "$jobs" sh "$work/one" >"$work/found"
cppcheck -j "$jobs" --std=c11 --quiet --inline-suppr --enable=warning,portability --suppress=missingInclude \
    --suppress=preprocessorErrorDirective -I src -I include \
    --template='cppcheck: ../{file}:{line}: warning: {message} [{id}]' src >>"$work/found" 2>&1 || true

sort -u "$work/found" | awk -F '\t' '
    FNR == NR {
        if ($0 !~ /^#/ && NF >= 3) { file[++n] = $1; part[n] = $2 }
        next
    }
    {
        for (i = 1; i <= n; i++)
            if (index($0, file[i]) && index($0, part[i])) { used[i] = 1; next }
        print
    }
    END {
        for (i = 1; i <= n; i++)
            if (!used[i]) print "analyze.txt: an answer to nothing: " file[i] ": " part[i]
    }' tools/analyze.txt - >"$work/bad"
cat "$work/bad"
bad=$(wc -l <"$work/bad")
echo "$((files * 3)) passed, $bad failed"
[ "$bad" = 0 ]
