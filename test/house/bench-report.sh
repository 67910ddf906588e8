#!/bin/sh
# bench-report.sh - figures become tables, ratios, verdicts and pictures; the rest of the page is unchanged.
#
# SPDX-License-Identifier: Apache-2.0
set -u
top=$(pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
page=$scratch/doc/benchmarks.md
number=0
echo 1..11

# check NAME STATUS: one line of TAP, and the page when the check failed.
check()
{
    number=$((number + 1))
    if [ "$2" = 0 ]; then
        echo "ok $number - bench-report/$1"
    else
        echo "not ok $number - bench-report/$1"
        sed 's/^/# /' "$scratch/log" "$page" 2>/dev/null
    fi
}

# has NAME TEXT: the page has that line.
has()
{
    grep -qxF -e "$2" "$page"
    check "$1" $?
}

fields()
{
    while read -r round row system value unit; do
        printf '%s\t%s\t%s\t%s\t%s\n' "$round" "$row" "$system" "$value" "$unit"
    done
}

# Three rounds. Pawl drains 6, 5 and 9 times as fast as graphile-worker: the median is 6, while the ratio of the medians
# would be 5. It reaches 0.5 of plain SQL, which is too little.
fields >"$scratch/results.tsv" <<EOF
1 drain pawl 60000 1/s
1 drain graphile-worker 10000 1/s
1 drain floor 120000 1/s
2 drain pawl 100000 1/s
2 drain graphile-worker 20000 1/s
2 drain floor 200000 1/s
3 drain pawl 270000 1/s
3 drain graphile-worker 30000 1/s
3 drain floor 540000 1/s
1 enqueue_64 pawl 9000 1/s
1 enqueue_64 bullmq 2000 1/s
1 enqueue_64 restate 3000 1/s
1 latency_p50 pawl 870 us
1 latency_p50 pg-boss 2610 us
1 http_1_p50 pawl 700 us
1 http_1_p50 restate 2100 us
EOF
{
    printf '0\tabout\tcores\t2\n0\tabout\tkernel\tLinux 6\n'
    printf '0\tconfig\trestate\tRestate 1.7\n0\tconfig\trestate\tRestate 1.7\n'
    printf '0\tskip\trestate\tenqueue_batch\tone call a request\n'
} >>"$scratch/results.tsv"

mkdir "$scratch/doc"
printf '# Benchmarks\nbefore\n<!-- versus:begin -->\nold\n<!-- versus:end -->\nafter\n' >"$page"
"$top/tools/bench-report.sh" "$scratch/results.tsv" "$scratch/doc" >"$scratch/log" 2>&1
check runs $?

has medians_are_figures '| drain a backlog of no-ops | 100,000/s | 200,000/s | 20,000/s |  |  |  |'
has ratios_are_taken_within_rounds '| drain a backlog of no-ops | 0.50 | 6.00 |  |  |  |'
has goal_that_is_met '| drain beside graphile-worker | 6.00 | >= 5 | met |'
has goal_that_is_not_met '| drain beside the floor | 0.50 | >= 0.8 | **not met** |'
has best_peer_is_the_fastest '| submit one by one, 64 clients, beside the best peer | 3.00 | >= 3 | met |'
has goal_without_figures "| one key beside Restate's virtual object |  | >= 20 | not measured |"

[ "$(grep -c '^- \*\*Restate\*\*: Restate 1.7$' "$page")" = 1 ] &&
    grep -qxF -e '- Restate, enqueue_batch: one call a request' "$page"
check settings_and_gaps_are_named_once $?

! grep -qx old "$page" && [ "$(sed -n 2p "$page")" = before ] && [ "$(tail -n 1 "$page")" = after ]
check only_the_part_between_the_markers_changes $?

# Each picture on the page exists, is SVG, and contains nothing about the machine.
pictures()
{
    [ "$(grep -c '^!\[' "$page")" = 4 ] || return 1
    for picture in $(sed -n 's/^!\[.*](\(.*\))$/\1/p' "$page"); do
        grep -q '<svg' "$scratch/doc/$picture" || return 1
        ! grep -qw -e /tmp -e "$top" -e "$(uname -n)" "$scratch/doc/$picture" || return 1
    done
}
pictures
check pictures_are_made $?

# The same figures make the same pages.
cp -r "$scratch/doc" "$scratch/once"
"$top/tools/bench-report.sh" "$scratch/results.tsv" "$scratch/doc" >"$scratch/log" 2>&1
diff -r "$scratch/once" "$scratch/doc" >"$scratch/log"
check twice_is_the_same $?
