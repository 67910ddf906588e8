#!/bin/sh
# bench-pair.sh COMMIT_A COMMIT_B [rates|counts]... - compare accept and drain of two commits, on SQLite and PostgreSQL.
#
#   rates    calls a second: 20 (PAIRS) pairs of rounds, a and b in alternating order; the median of the pairs' ratios
#            b/a with its interval. Needs the machine for itself.
#   counts   instructions a call by callgrind (of the client, with SQLite in it) and statements a call. Other load does
#            not disturb it.
#
# Both, if none is named. Each commit is built in a scratch folder below BENCH_DIR (default: /dev/shm, so that the
# processor is what is measured and not the disk), together with this tree's test/bench/pair.c, which does the work.
# BENCH_DIR also takes the files of SQLite; PostgreSQL is a private server with its files in memory.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
usage='usage: bench-pair.sh COMMIT_A COMMIT_B [rates|counts]...'
cd "$(dirname "$0")/.."
a=${1:?$usage}
b=${2:?$usage}
shift 2
if [ $# = 0 ]; then
    set -- counts rates
fi
scratch=$(mktemp -d -p "${BENCH_DIR:-/dev/shm}" bench-pair.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# build NAME COMMIT: its program is then NAME/build/test/bench_pair.
build()
{
    mkdir "$scratch/$1"
    git archive "$2" | tar -x -C "$scratch/$1"
    cp test/bench/pair.c "$scratch/$1/test/bench/pair.c"
    TARGETS=test/bench_pair "$scratch/$1/tools/build.sh" build
}

build a "$a"
build b "$b"
mkdir "$scratch/run"
echo "a: $(git log -1 --format='%h %s' "$a")"
echo "b: $(git log -1 --format='%h %s' "$b")"
echo "cores: $(nproc), load: $(cut -d ' ' -f 1-3 /proc/loadavg)"
for what in "$@"; do
    (cd "$scratch/run" && ../b/build/test/bench_pair "$what" ../a/build/test/bench_pair ../b/build/test/bench_pair \
        "${PAIRS:-20}")
done
