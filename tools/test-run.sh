#!/bin/sh
# test-run.sh BUILD_DIR [SUITE...] - run the test programs of BUILD_DIR, all suites unless some are named.
#
# A suite is one program of BUILD_DIR/test; the suite `house` is the scripts in test/house, which also print TAP. The
# scripts, chaos and torture mostly wait: they run one after another while the other programs run. Each program's output
# is kept in BUILD_DIR/test/log, with the time of every case. Failures are shown in full, skips with their reason; then
# come the counts per engine of every suite that has engines, and the last line is "N passed, N failed" (", N skipped"
# when some were). All programs share one server of each kind, which is started by the first case that needs it
# (test/lib/db_share.c) and ends with the run. The programs run side by side, and together JOBS=N cases at a time: by
# default twice the number of processors, since most cases mostly wait; so only the end of the whole run has a processor
# without work. CASES="name glob..." selects cases in every program, and whole scripts of `house`: 'workflows/*' is
# test/house/workflows.sh. TIMES=30 shows the 30 longest cases at the end; PAWL_ENGINES names the engines to run on, and
# SERVERS the suites that then run on PostgreSQL and MariaDB as well.
#
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/.." || exit 2
build=$(cd "${1:?usage: test-run.sh BUILD_DIR [SUITE...]}" && pwd) || exit 2
shift
suites=${*:-unit conform api race crash house chaos torture}
jobs=${JOBS:-$(($(nproc) * 2))}
log=$build/test/log
rm -rf "$log"
mkdir -p "$log"

# A sanitizer's report must end the process with a status: the harness sees only the status.
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=0:second_deadlock_stack=1:suppressions=$PWD/test/tsan.txt}"
# A module loads libpawl.so while its host contains the same library: two copies of each global are intended there, so
# only that check of AddressSanitizer is off.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_odr_violation=0:detect_stack_use_after_return=1}"
export PAWL_BUILD="$build"

# The folders of cases are in memory where it is large enough and programs can be started from there: a disk spends most
# of its time on files that are removed again at once. In the long form they are on the disk.
in_memory()
{
    [ "${PAWL_CHECK_LONG:-0}" = 0 ] && [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] || return 1
    [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -ge 2097152 ] 2>/dev/null || return 1
    probe=$(mktemp /dev/shm/pawl-probe-XXXXXX) || return 1
    printf '#!/bin/sh\n' >"$probe"
    chmod 700 "$probe"
    "$probe" 2>/dev/null
    status=$?
    rm -f "$probe"
    return "$status"
}
if in_memory; then
    export TMPDIR=/dev/shm
fi

PAWL_TEST_RUN=$(mktemp -d /tmp/pawl-run-XXXXXX) || exit 2
export PAWL_TEST_RUN
echo $$ >"$PAWL_TEST_RUN/owner"
: >"$PAWL_TEST_RUN/slots"

# End the servers of this run: each has a supervisor process, which removes its file when it is done.
end_servers()
{
    for place in "$PAWL_TEST_RUN"/postgres "$PAWL_TEST_RUN"/mariadb; do
        if read -r _ _ supervisor 2>/dev/null <"$place"; then
            kill "$supervisor" 2>/dev/null
            for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                [ -e "$place" ] && sleep 0.1
            done
        fi
    done 2>/dev/null
    rm -rf "$PAWL_TEST_RUN"
}
running=
trap end_servers EXIT
# shellcheck disable=SC2086
trap 'kill $running 2>/dev/null; exit 130' INT TERM HUP

# Counts one TAP log into "passed failed skipped"; an incomplete plan counts as one more failure.
count()
{
    awk -v status="$2" '
        /^1\.\.[0-9]+/ { plan = substr($1, 4) + 0; planned = 1 }
        /^ok .*# SKIP/ { skipped++; next }
        /^ok /         { passed++ }
        /^not ok /     { failed++ }
        END {
            seen = passed + failed + skipped
            if (!planned || seen != plan || (status != 0 && failed == 0)) failed++
            print passed + 0, failed + 0, skipped + 0
        }' "$1"
}

# run SUITE NAME COMMAND...: prints the result in one piece; the counts go into a file, since some run in parallel.
run()
{
    suite=$1 name=$2 out=$log/$2.tap
    shift 2
    begun=$(date +%s%N)
    "$@" >"$out" 2>&1 &
    child=$!
    trap 'kill "$child" 2>/dev/null; exit 143' TERM
    wait "$child"
    status=$?
    took=$((($(date +%s%N) - begun) / 1000000))
    # shellcheck disable=SC2046
    set -- $(count "$out" "$status")
    # A program without a selected case prints nothing.
    if [ -n "${CASES:-}" ] && grep -q '^1\.\.0' "$out"; then
        return
    fi
    echo "$1 $2 $3" >>"$log/counts"
    {
        printf '%-8s %-14s %4d passed %3d failed %3d skipped %7d ms\n' "$suite" "$name" "$1" "$2" "$3" "$took"
        grep '^ok .*# SKIP' "$out" | sed 's/^ok [0-9]* - /         skipped: /'
        if [ "$2" -gt 0 ]; then
            grep -v '^ok \|^1\.\.\|^# .*: [0-9]* ms, cpu [0-9]* ms$' "$out" | sed 's/^/    /'
            if ! grep -q '^not ok' "$out"; then
                echo "    $name: ended with status $status before its plan was kept; see $out"
            fi
        fi
    } >"$log/$name.report"
    cat "$log/$name.report"
}

# A house script runs as a whole: when the part of a glob before its first "/" matches the script's name, or without
# CASES.
selected()
{
    [ -n "${CASES:-}" ] || return 0
    set -f
    wanted=1
    for glob in $CASES; do
        # shellcheck disable=SC2254
        case $1 in
        ${glob%%/*}) wanted=0 ;;
        esac
    done
    set +f
    return "$wanted"
}

: >"$log/counts"
# program SUITE [SLOTS]: SLOTS is the file with which programs share the number of cases that run at a time; chaos and
# torture, which mostly wait, have their own.
program()
{
    export PAWL_TEST_SLOTS="${2:-}"
    case " ${SERVERS:-} " in
    *" $1 "*) export PAWL_ENGINES="${PAWL_ENGINES:+$PAWL_ENGINES postgres mariadb}" ;;
    esac
    # $CASES is a list of globs for the program, not for this shell.
    set -f
    # shellcheck disable=SC2086
    run "$1" "$1" "$build/test/$1" -t -j "$jobs" ${CASES:-}
    set +f
}
(
    for suite in $suites; do
        case $suite in
        house)
            for script in $(tools/sources.sh scripts test/house); do
                name=$(basename "$script" .sh)
                ! selected "$name" || run house "$name" timeout 300 sh "$script"
            done
            ;;
        chaos | torture) program "$suite" ;;
        esac
    done
) &
running=$!
for suite in $suites; do
    case $suite in
    house | chaos | torture) ;;
    *)
        program "$suite" "$PAWL_TEST_RUN/slots" &
        running="$running $!"
        ;;
    esac
done
wait
# shellcheck disable=SC2046
set -- $(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0, NR }' "$log/counts")
passed=$1 failed=$2 skipped=$3 ran=$4

# The name of a case that ran on an engine ends with a colon and the engine.
engines()
{
    for suite in $suites; do
        awk -v suite="$suite" '
            !/^(not )?ok .* - .*:[a-z+]+( # SKIP.*)?$/ { next }
            {
                skip = sub(/ # SKIP.*/, "")
                engine = $0
                sub(/.*:/, "", engine)
                if (!(engine in ran)) order[++n] = engine
                ran[engine] += !skip
                skipped[engine] += skip
            }
            END {
                for (i = 1; i <= n; i++) {
                    e = order[i]
                    line = line (i > 1 ? ", " : "") e " " ran[e] + 0
                    if (skipped[e]) line = line " (" skipped[e] " skipped)"
                }
                if (n) print suite ": " line
            }' "$log/$suite.tap" 2>/dev/null
    done
}
engines

# TIMES=N shows the N cases that took longest, with the time that they did not wait: cpu.
if [ "${TIMES:-0}" -gt 0 ]; then
    echo "the $TIMES longest cases:"
    sed -nE 's/^# (.*): ([0-9]+) ms, cpu ([0-9]+) ms$/\2 \3 \1/p' "$log"/*.tap | sort -rn | head -n "$TIMES" |
        awk '{ printf "%8d ms, cpu %7d ms  %s\n", $1, $2, $3 }'
fi

if [ "$ran" = 0 ]; then
    echo "test-run.sh: no test ran"
    failed=1
fi
line="$passed passed, $failed failed"
if [ "$skipped" -gt 0 ]; then
    line="$line, $skipped skipped"
fi
echo "$line"
[ "$failed" = 0 ]
