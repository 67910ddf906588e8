#!/bin/sh
# workflows.sh - workflows from a user's view: every shell block of doc/workflows.md and of the chapter in doc/guide.md,
# with the modules that they print.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=workflows
# shellcheck source=/dev/null
. test/lib/serving.sh
: >pawl.conf
ln -s "$build" build
echo 1..2
start c || exit 1

# blocks LANGUAGE FILE: the text of its code blocks.
blocks()
{
    awk -v begin="\`\`\`$1" '$0 == begin { on = 1; next } /^```$/ { on = 0 } on' "$2"
}

# run_page NAME FILE: run its shell blocks in order, in one shell; the servers that it starts end with it.
run_page()
{
    blocks sh "$2" | sed "s/127\.0\.0\.1:7295/127.0.0.1:${url##*:}/g" >"$1.sh"
    timeout 140 bash -e -c "trap 'kill \$(jobs -p) 2>/dev/null || :' EXIT; . ./$1.sh" >"$1.out" 2>&1 ||
        echo "exit code $?: $(cat "$1.out")"
}

page()
{
    blocks c "$top/doc/workflows.md" >remind.c
    run_page page "$top/doc/workflows.md"
    out=$(cat page.out)
    same charged "$(grep -c '^charging$' page.out)" 2 # once for each run
    has waits "$out" 'waiting_for          signal shipped'
    has result "$out" '[{"paid":7},{"by":"mail"}]'
    has started "$out" '["completed",[{"paid":7},1],"shipped"]'
    same reminded "$(grep 'please pay' page.out)" 'bill-1: please pay, 1 reminders left'
    same paid "$(grep -c '^{"by":"card"}$' page.out)" 1
    has unpaid "$out" 'not paid'
}
result the_page_runs_as_printed "$(page)"

guide()
{
    awk '/^## / { on = $0 == "## Workflows" } on' "$top/doc/guide.md" >chapter.md
    blocks c chapter.md >trip.c
    run_page guide chapter.md
    out=$(cat guide.out trip.log)
    has done "$out" '"have a good trip"'
    same booked "$(grep -c '^trip-1: book ' trip.log)" 2
    undone=$(grep '^trip-2: ' trip.log | tr '\n' ';')
    same undone "$undone" 'trip-2: book flight;trip-2: book hotel;trip-2: give back hotel;trip-2: give back flight;'
    has cancelled "$out" 'cancelled'
}
result the_guide_builds_and_runs_as_printed "$(guide)"
