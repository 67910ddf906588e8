#!/bin/sh
# ops.sh - the operating commands while a server is working: requeue-stuck, archive, backup.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=ops
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..5

counts()
{
    pawl get "$1" --json | jq -r '.status, .attempts, .lost' | tr '\n' ' '
}

# A handler of the server takes too long: another attempt takes over, and the result of the first is refused.
stuck_inside()
{
    start i
    pawl submit lab.sleep '{"ms": 5000}' --id i1 >/dev/null
    within 5 status_is i1 processing || echo "i1 does not run"
    same young "$(pawl requeue-stuck --db sqlite:i.db --json | jq -c '[.leases, .calls]')" '[0,0]'
    same old "$(pawl requeue-stuck --db sqlite:i.db --older-than 0s --json | jq -c '[.leases, .calls, .ended]')" '[1,1,0]'
    within 15 status_is i1 completed || echo "i1 did not complete"
    same counts "$(counts i1)" "completed 0 1 "
    same alive "$(pawl call echo 5)" 5
    stop
    same code "$code" 0
}
result a_stuck_handler_is_replaced "$(stuck_inside)"

# A worker outside the server, with a lease that it could keep extending.
stuck_outside()
{
    start o
    pawl submit job 1 --id o1 --json >/dev/null
    lease=$(curl -s "$url/v1/work/claim" -d '{"types":["job"],"lease_for":600,"worker":"w"}' | jq -r .lease)
    status_is o1 processing || echo "o1 is not claimed"
    pawl requeue-stuck --db sqlite:o.db --older-than 0s >/dev/null
    status_is o1 pending || echo "o1 is not pending"
    same finish "$(curl -s "$url/v1/work/finish" -d "{\"lease\":\"$lease\",\"results\":[{\"id\":\"o1\",\"result\":1}]}" | jq -r .error.code)" LOST_LEASE
    same work "$(pawl work --exec cat --type job --idle 300ms 2>err)" "1 call"
    same counts "$(counts o1)" "completed 0 1 "
    stop
}
result a_stuck_worker_is_refused "$(stuck_outside)"

# The same calls through one server: an archived call answers GONE at once, pending ones go on.
archived()
{
    start a
    seq 1 300 | sed 's/.*/{"type":"echo","id":"e&","input":&}/' | pawl batch - >batch.out 2>&1
    for i in 1 150 300; do
        within 10 status_is "e$i" completed || echo "e$i did not complete: $(head -c 300 batch.out)"
    done
    pawl submit nobody 1 --id waits >/dev/null
    within 10 sh -c "[ \$(sqlite3 a.db 'SELECT count(*) FROM pawl_outcome') = 300 ]" || echo "not all ended"
    same archived "$(pawl archive --db sqlite:a.db --older-than 0s --json | jq -r .archived)" 300
    pawl get e150 >out 2>&1
    same gone $? 15
    pawl submit echo 150 --id e150 >out 2>&1
    same repeat $? 15
    same rows "$(sqlite3 a.db "SELECT count(*), min(status), max(typeof(input)) FROM pawl_archive WHERE result = input")" '300|completed|text'
    status_is waits pending || echo "waits does not"
    stop
}
result archived_calls_are_gone_for_the_server_too "$(archived)"

# A backup while calls come and go: it opens, its own checks pass, and a server continues from it.
copied()
{
    start c
    (
        n=0
        while [ ! -e enough ]; do
            n=$((n + 1))
            curl -s "$url/v1/calls" -d "{\"type\":\"echo\",\"id\":\"c$n\"}" >/dev/null
        done
    ) &
    load=$!
    within 10 status_is c50 completed || echo "no load"
    pawl backup copy.db --db sqlite:c.db >out 2>&1 || echo "backup: $(cat out)"
    : >enough
    wait $load
    stop
    pawl doctor --db sqlite:copy.db >out 2>&1 || echo "doctor: $(cat out)"
    start copy
    within 10 status_is c50 completed || echo "c50 is not in the copy"
    same again "$(pawl call echo 1)" 1
    stop
}
result a_copy_under_load_can_be_served "$(copied)"

# Two schemas in one file, each with a server.
schemas()
{
    start s
    one=$url
    pawl serve --listen 127.0.0.1:0 --db sqlite:s.db --schema shop --module "$build/samples/echo.so" >t.out 2>t.err &
    first=$pid
    note
    until_ready t
    same shop "$(pawl call echo '"shop"' --id same)" '"shop"'
    same pawl "$(pawl call echo '"pawl"' --id same --url "$one")" '"pawl"'
    same nodes "$(pawl nodes --json --url "$one" | jq -r '.nodes | length')" 1
    stop
    same code "$code" 0
    pid=$first
    stop
}
result two_schemas_serve_side_by_side "$(schemas)"
