#!/bin/bash
# nightly.sh [STEP...] - everything that takes too long for `make test`; all steps unless some are named.
#
#   analyze   clang --analyze, gcc -fanalyzer, cppcheck
#   openapi   spectral's rules on /openapi.json
#   long      every suite with its long forms (PAWL_CHECK_LONG=1), all cases behind the pooler too
#   asan      the same with address and undefined-behaviour sanitizers
#   seeds     mem compared with each engine, SEEDS (1000) random sequences a pair, under the address sanitizer
#   tsan      the threaded suites with the thread sanitizer
#   chaos     three nodes under many faults, CHAOS (210) seconds on each server
#   soak      load with connections that come and go, SOAK (300) seconds
#   fuzz      every fuzz target for FUZZ_SECONDS (600), as many at the same time as there are processors
#
# Each step's output is in build-nightly/STEP.log. At the end there is one line a step, and "N passed, N failed" over
# all: a step that prints such a line counts with its cases, any other as one case.
#
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 2
steps=${*:-analyze openapi long asan seeds tsan chaos soak fuzz}
seeds=${SEEDS:-1000} fuzz_seconds=${FUZZ_SECONDS:-600}
logs=build-nightly
mkdir -p "$logs"
passed=0 failed=0 skipped=0 table=

# fuzz_one TARGET: runs it with its own log, and prints one line for the table.
fuzz_one()
{
    local log=$logs/fuzz-$1.log status=0
    tools/fuzz.sh "$1" "$fuzz_seconds" >"$log" 2>&1 || status=$?
    echo "fuzz $1: status $status, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
    return $status
}

fuzz_all()
{
    local target status=0 names=()
    for target in test/fuzz/*.c; do
        names+=("$(basename "$target" .c)")
    done
    tools/fuzz.sh "${names[0]}" 1 >"$logs/fuzz-build.log" 2>&1 || return 1 # built once before several run
    export -f fuzz_one
    export logs fuzz_seconds
    printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}' || status=1
    return $status
}

run()
{
    case $1 in
    analyze) tools/analyze.sh ;;
    openapi) make all && tools/openapi-lint.sh build ;;
    long) PAWL_CHECK_LONG=1 make test ;;
    asan) PAWL_CHECK_LONG=1 make check-asan ;;
    seeds) PAWL_SEEDS=$seeds make check-asan SUITES=unit CASES='differential/*' ;;
    tsan) make check-tsan ;;
    chaos) make chaos CHAOS="${CHAOS:-210}" ;;
    soak) make soak SOAK="${SOAK:-300}" ;;
    fuzz) fuzz_all ;;
    *)
        echo "nightly.sh: no step called \"$1\""
        return 2
        ;;
    esac
}

for step in $steps; do
    echo "== $step (its output: $logs/$step.log)"
    begun=$(date +%s)
    run "$step" >"$logs/$step.log" 2>&1
    status=$?
    took=$(($(date +%s) - begun))
    counts=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' "$logs/$step.log" | tail -n 1)
    read -r p f s <<<"${counts:-$((status == 0)) $((status != 0))}"
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + ${s:-0}))
    row=$(printf '%-8s %5d passed %3d failed %4d skipped %6d s' "$step" "$p" "$f" "${s:-0}" "$took")
    echo "$row"
    table+="$row"$'\n'
    if [ "$status" != 0 ]; then
        grep -A 12 -E '^ *not ok|: error:|ERROR: |: warning:|status [1-9]' "$logs/$step.log" | head -n 80 | sed 's/^/    /'
    fi
done

echo "== summary"
printf '%s' "$table"
line="$passed passed, $failed failed"
if [ "$skipped" -gt 0 ]; then
    line="$line, $skipped skipped"
fi
echo "$line"
[ "$failed" = 0 ]
