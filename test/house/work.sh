#!/bin/sh
# work.sh - `pawl work --exec`: what programs get, what their exit codes mean, and how it stops.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=work
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..10
start w || exit 1

field()
{
    pawl get "$1" --json | jq -rc "$2"
}

# one ID COMMAND [OPTIONS OF SUBMIT...]: run COMMAND for one call.
one()
{
    id=$1 command=$2
    shift 2
    pawl submit "job-$id" '{"n":1}' --id "$id" "$@" >/dev/null
    pawl work --exec "$command" --type "job-$id" --idle 300ms >/dev/null 2>"$id.err"
}

ends()
{
    one ok 'cat'
    same ok "$(field ok '[.status, .result]')" '["completed",{"n":1}]'
    one text 'echo plain'
    same text "$(field text .result)" plain
    one nothing 'true'
    same nothing "$(field nothing '[.status, .result]')" '["completed",""]'
    one bytes "printf '\\377\\n'"
    same bytes "$(field bytes '[.result, .result_base64]')" '[null,"/wo="]'
    one bad 'echo no such account >&2; exit 65'
    same bad "$(field bad '[.status, .error, .attempts]')" '["failed","no such account",1]'
    one later 'exit 75' --max-attempts 1
    same later "$(field later '[.status, .attempts]')" '["pending",0]'
    one error 'echo oops >&2; exit 3' --max-attempts 2
    within 5 status_is error pending
    same error "$(field error '[.error, .attempts]')" '["oops",1]'
    one silent 'exit 3' --max-attempts 1
    same silent "$(field silent '[.status, .error]')" '["failed","the program ended with exit code 3"]'
    one killed 'kill -9 $$' --max-attempts 1
    has killed "$(field killed .error)" 'signal 9'
}
result what_its_end_means "$(ends)"

environment()
{
    export SECRET_DB=postgres://ann:hush@db/x DATABASE_URL=sqlite:x.db HARMLESS=yes
    PAWL_DB=sqlite:y.db one env 'env' --timeout 20s
    out=$(field env .result)
    has id "$out" 'PAWL_CALL_ID=env'
    has type "$out" 'PAWL_CALL_TYPE=job-env'
    has method "$out" 'PAWL_CALL_METHOD=run'
    has attempt "$out" 'PAWL_CALL_ATTEMPT=1'
    has deadline "$out" 'PAWL_CALL_DEADLINE=20'
    has harmless "$out" 'HARMLESS=yes'
    hasnt url "$out" hush
    hasnt database "$out" DATABASE_URL
    hasnt pawl "$out" PAWL_URL
    hasnt pawl "$out" PAWL_DB
}
result what_it_is_told "$(environment)"

large()
{
    head -c 700000 /dev/zero | tr '\0' x >large.txt
    pawl submit large @large.txt --text --id large >/dev/null
    pawl work --exec cat --type large --idle 300ms 2>/dev/null >&2
    same large "$(field large '.result | length')" 700000
    one deaf 'echo done'
    same deaf "$(field deaf .result)" done
    one long 'head -c 3000000 /dev/zero | tr "\0" x' --max-attempts 5
    same long "$(field long .status)" failed
    one tail 'seq 1 100000 >&2; exit 65'
    same tail "$(field tail '.error | .[-6:]')" 100000
}
result large_inputs_outputs_and_errors "$(large)"

timeout_kills_the_group()
{
    one slow 'sleep 61 & echo $! >slow.pid; wait' --timeout 3s --max-attempts 1
    same slow "$(field slow .status)" failed
    same slow "$(field slow .error)" 'the program did not end within its timeout of 3 s'
    has slow "$(cat slow.err)" 'call "slow" attempt 1: failed in '
    hasnt slow "$(cat slow.err)" 'could not be finished'
    # It ignores SIGTERM, so it ends after the database's own timeout.
    one stubborn 'trap "" TERM; sleep 1; sleep 1; sleep 1; sleep 1' --timeout 500ms --max-attempts 1
    has stubborn "$(cat stubborn.err)" 'call "stubborn" attempt 1: timed out after 0.5 s'
    within 3 sh -c '! kill -0 $(cat slow.pid)' || echo "its child still runs"
}
result a_timeout_ends_the_whole_group "$(timeout_kills_the_group)"

extends()
{
    one longer 'sleep 3; echo fine' --timeout 20s
    same plain "$(field longer '[.status, .lost]')" '["completed",0]'
    pawl submit job-lease --id lease >/dev/null
    pawl work --exec 'sleep 7; echo fine' --type job-lease --lease-for 3s --idle 300ms >/dev/null 2>&1
    same lease "$(field lease '[.result, .lost, .attempts]')" '["fine",0,0]'
}
result leases_are_extended_while_it_runs "$(extends)"

cancels()
{
    pawl submit job-c --id c1 >/dev/null
    pawl work --exec 'sleep 30' --type job-c --lease-for 1s --idle 300ms >/dev/null 2>c.err &
    worker=$!
    within 5 status_is c1 processing || echo "c1 does not run"
    pawl cancel c1 >/dev/null
    within 5 status_is c1 cancelled || echo "c1 is $(field c1 .status)"
    wait $worker
}
result a_cancelled_call_ends_its_program "$(cancels)"

drains()
{
    pawl submit job-d --id d1 >/dev/null
    pawl work --exec 'sleep 4; echo done' --type job-d --slots 4 >/dev/null 2>d.err &
    worker=$!
    within 5 status_is d1 processing || echo "d1 does not run"
    kill -TERM $worker
    wait $worker
    same code $? 0
    same finished "$(field d1 .result)" done
    pawl submit job-d --id d2 >/dev/null
    pawl work --exec 'sleep 30' --type job-d --grace 300ms >/dev/null 2>d.err &
    worker=$!
    within 5 status_is d2 processing || echo "d2 does not run"
    kill -TERM $worker
    wait $worker
    same handed_back "$(field d2 '[.status, .attempts, .lost]')" '["pending",0,0]'
}
result sigterm_drains_then_hands_back "$(drains)"

idle_stop()
{
    pawl work --exec cat --type nobody-asks --slots 8 >/dev/null 2>i.err &
    worker=$!
    sleep 0.5
    begun=$(date +%s%N)
    kill -TERM $worker
    wait $worker
    took=$((($(date +%s%N) - begun) / 1000000))
    [ $took -lt 5000 ] || echo "took $took ms to leave with nothing to do"
}
result an_idle_worker_leaves_at_once "$(idle_stop)"

restarts()
{
    pawl work --exec cat --type job-r >/dev/null 2>r.err &
    worker=$!
    sleep 0.3
    port=${url##*:}
    stop
    within 10 grep -q 'trying again' r.err || echo "it did not notice"
    start w --listen "127.0.0.1:$port"
    pawl submit job-r 5 --id r1 >/dev/null
    within 15 status_is r1 completed || echo "r1 is $(field r1 .status): $(cat r.err)"
    kill -TERM $worker
    wait $worker
    stop
}
result a_server_that_restarts_is_waited_for "$(restarts 2>&1)"

# The server was stopped above. "No call came" is only known from a server.
nobody_there()
{
    pawl work --exec cat --type job-n --idle 300ms >/dev/null 2>n.err
    same exit_code "$?" 6
    grep -q 'cannot reach' n.err || cat n.err
}
result idle_without_a_server_is_an_error "$(nobody_there)"
