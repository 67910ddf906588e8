#!/bin/sh
# bench-run.sh BUILD_DIR - run every program of test/bench; their rows make one table on stdout.
#
# Each runs by itself, in a scratch folder below BENCH_DIR (default: the build folder, so that the disk is the
# project's). No number makes this fail: machines differ. `pawl bench` prints the same rows as bench_main and is not run
# again; bench_versus is for tools/bench-peers.sh, bench_pair for tools/bench-pair.sh.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
commands=
for name in main history ids; do
    commands="$commands $build/test/bench_$name"
done
for f in test/bench/*.c; do
    case " main history ids versus pair " in
    *" $(basename "$f" .c) "*) ;;
    *) commands="$commands $build/test/bench_$(basename "$f" .c)" ;;
    esac
done
scratch=$(mktemp -d -p "${BENCH_DIR:-$build}" bench.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
for program in $commands; do
    mkdir "$scratch/it"
    (cd "$scratch/it" && "$program")
    rm -rf "$scratch/it"
done
