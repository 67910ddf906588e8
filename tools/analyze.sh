#!/bin/sh
# analyze.sh - run clang --analyze, gcc -fanalyzer and cppcheck on every file of src/.
#
# The compilers run with the flags of build/compile_commands.json, and with tools/analyze.h included before each file. A
# false finding is suppressed by a line in tools/analyze.txt: the file, a part of the message, the reason; separated by
# tabs. A suppression that matches nothing is a finding too, and so is a missing tool or a file it could not read. The
# last line is "N passed, N failed": files read by each tool, and findings that are not suppressed.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
tools/build.sh build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(nproc)
tab=$(printf '\t')

# "FLAGS<tab>FILE": the build's flags without outputs, colours (which split the words we search for) and -Werror.
jq -r '.[] | select(.file | startswith("../src/")) | .command + "\t" + .file' build/compile_commands.json |
    sed -E 's/^([^- ][^ ]* )+//; s/ -MD -MQ [^ ]+ -MF [^ ]+ -o [^ ]+ -c [^\t]+//; s/ -fdiagnostics-color[^ \t]*//; s/ -Werror( |\t)/\1/' |
    sort -u -t "$tab" -k 2,2 >"$work/files"
files=$(wc -l <"$work/files")

# one "FLAGS<tab>FILE": prints its findings, and adds a line to $work/read for each tool that read the file.
cat >"$work/one" <<'ONE'
work=$1
tab=$(printf '\t')
flags=${2%%"$tab"*} file=${2##*"$tab"}
log=$(mktemp "$work/log.XXXXXX")
cd build
export LC_ALL=C # plain quotes in messages, so that a suppression can contain a name
if [ "$file" != ../src/base/err.c ]; then
    flags="$flags -include ../tools/analyze.h"
fi
# run TOOL PATTERN COMMAND...: lines that match PATTERN are findings.
run()
{
    tool=$1 pattern=$2
    shift 2
    if "$@" >"$log" 2>&1; then
        echo "$tool" >>"$work/read"
        grep "$pattern" "$log" | sed "s/^/$tool: /"
    else
        echo "$tool: $file: not read: $(grep -m 1 'error' "$log" || tail -n 1 "$log")"
    fi
}
run clang ': warning:' clang-14 --analyze --analyzer-output text -Xclang -analyzer-disable-checker \
    -Xclang security.insecureAPI.DeprecatedOrUnsafeBufferHandling -Wno-unused-command-line-argument $flags "$file"
run gcc ': warning:.*Wanalyzer' gcc $flags -fanalyzer -fdiagnostics-plain-output -c -o /dev/null "$file"
rm "$log"
exit 0
ONE
: >"$work/read"
: >"$work/found"
if [ "$files" = 0 ]; then
    echo "build/compile_commands.json: names no file of src/" >>"$work/found"
fi
tr '\n' '\0' <"$work/files" | xargs -0 -r -n 1 -P "$jobs" sh "$work/one" "$work" >>"$work/found"
status=0
cppcheck -j "$jobs" --std=c11 --quiet --inline-suppr --enable=warning,portability --suppress=missingInclude \
    --suppress=preprocessorErrorDirective -I src -I include \
    --template='cppcheck: ../{file}:{line}: warning: {message} [{id}]' src >>"$work/found" 2>&1 || status=$?
if [ "$status" = 0 ]; then
    cat "$work/files" >>"$work/read"
else
    echo "cppcheck: src/: not read: status $status" >>"$work/found"
fi

sort -u "$work/found" | awk -F '\t' '
    FILENAME != "-" {
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
            if (!used[i]) print "analyze.txt: suppresses nothing: " file[i] ": " part[i]
    }' tools/analyze.txt - >"$work/bad"
cat "$work/bad"
bad=$(wc -l <"$work/bad")
echo "$(wc -l <"$work/read") passed, $bad failed"
[ "$bad" = 0 ]
