#!/bin/sh
# fuzz.sh TARGET [SECONDS] - build test/fuzz/TARGET.c with clang and libFuzzer in build-fuzz, run it.
#
# New inputs are collected in build-fuzz/TARGET; the corpus in test/fuzz/corpus/TARGET is only read. An input that fails
# is left in build-fuzz/TARGET-crash-*: put it into the corpus, named after what was wrong, together with its fix; the
# unit tests run the corpus.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
target=${1:?usage: tools/fuzz.sh TARGET [SECONDS]}
seconds=${2:-600}
if [ ! -e "test/fuzz/$target.c" ]; then
    echo "fuzz.sh: no target test/fuzz/$target.c" >&2
    exit 2
fi
CC=clang-14 tools/build.sh build-fuzz -Dfuzz=true -Dhooks=true -Db_sanitize=address,undefined \
    -Db_lundef=false
mkdir -p "build-fuzz/$target"
UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1} exec \
    "build-fuzz/test/fuzz_$target" -max_total_time="$seconds" -max_len="${MAX_LEN:-2048}" -timeout=10 \
    -print_final_stats=1 -artifact_prefix="build-fuzz/$target-" "build-fuzz/$target" \
    "test/fuzz/corpus/$target"
