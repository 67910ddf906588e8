#!/bin/sh
# keys.sh - keys, objects and sessions from a user's view: the program, and every shell block of doc/keys.md.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=keys
# shellcheck source=/dev/null
. test/lib/serving.sh
: >pawl.conf
echo 1..5
start k || exit 1

# ---- The program

blocked()
{
    pawl call lab.fail '{"permanent":true}' --id b1 --key desk --on-dead block >/dev/null 2>&1
    same failed $? 20
    pawl submit echo '"next"' --id b2 --key desk >/dev/null
    out=$(pawl keys --blocked)
    has heading "$out" head_status
    has row "$out" b1
    has note "$out" blocked
    same json "$(pawl keys --blocked --json | jq -c '.keys[] | [.key, .head, .pending, .blocked]')" '["desk","b1",1,true]'
    same retry "$(pawl unblock desk retry)" 'desk: retrying b1'
    within 10 status_is b1 failed || echo "b1 is not failed again"
    same skip "$(pawl unblock desk skip)" 'desk: skipped b1'
    same next "$(pawl get b2 --wait 10s --result)" '"next"'
    pawl unblock desk skip >out 2>err
    same not_blocked $? 13
    has not_blocked "$(cat err)" 'desk'
    pawl unblock nobody retry >out 2>err
    same unknown $? 3
    for wrong in '' desk 'desk jump' 'desk skip more'; do
        # shellcheck disable=SC2086
        pawl unblock $wrong >out 2>err
        same "unblock $wrong" $? 2
    done
    same none "$(pawl keys --blocked --json)" '{"keys":[]}'
    pawl submit echo --key desk --on-dead jump >out 2>err
    same on_dead $? 2
    has on_dead "$(cat err)" on_dead
}
result blocked_keys_are_found_and_decided_about "$(blocked)"

pages()
{
    i=0
    while [ $i -lt 5 ]; do
        pawl submit nobody --key "page-$i" >/dev/null
        i=$((i + 1))
    done
    same all "$(pawl keys --json | jq -c '[.keys[].key]')" '["page-0","page-1","page-2","page-3","page-4"]'
    same some "$(pawl keys --limit 2 --json | jq -c '[.keys[].key]')" '["page-0","page-1"]'
    has table "$(pawl keys)" 'waiting for worker'
    pawl cancel --type nobody >/dev/null
}
result lists_of_keys "$(pages)"

object()
{
    same wallet "$(pawl call Wallet.add 5 --key ann)" 5
    same state "$(pawl object Wallet ann --json | jq -c '[.type, .key, .state]')" '["Wallet","ann",5]'
    has fields "$(pawl object Wallet ann)" version
    pawl object T 'a b/c' >out 2>err
    same missing $? 3
    version=$(pawl object T 'a b/c' --set '{"n": 1.0}' --json | jq .version)
    same bytes "$(pawl object T 'a b/c' --json | grep -o '"state":{[^}]*}')" '"state":{"n": 1.0}'
    echo '[7]' | pawl object T 'a b/c' --set - --if-version "$version" >/dev/null
    same stdin "$(pawl object T 'a b/c' --json | jq -c .state)" '[7]'
    pawl object T 'a b/c' --set 8 --if-version "$version" >out 2>err
    same stale $? 16
    pawl submit T --key 'a b/c' --id waits >/dev/null
    pawl object T 'a b/c' --delete >out 2>err
    same pending $? 13
    same delete "$(pawl object T 'a b/c' --delete --cancel)" 'T a b/c deleted, 1 call cancelled'
    same cancelled "$(pawl get waits --json | jq -r .status)" cancelled
    for wrong in 'T' 'T k --set {' 'T k --set 1 --delete' 'T k --cancel' 'T k --if-version 1' 'T k --set 1 --if-version 0'; do
        # shellcheck disable=SC2086
        pawl object $wrong >out 2>err
        same "object $wrong" $? 2
    done
}
result states_from_outside "$(object)"

told()
{
    pawl submit job --id key-1 --key 'my key' >/dev/null
    # shellcheck disable=SC2016
    pawl work --exec 'printf %s "$PAWL_CALL_KEY"' --type job --idle 300ms >/dev/null 2>&1
    same key "$(pawl get key-1 --json | jq -r .result)" 'my key'
}
result programs_are_told_the_key "$(told)"

# ---- The page

page()
{
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/doc/keys.md" |
        sed "s/127\.0\.0\.1:7295/127.0.0.1:${url##*:}/g" >page.sh
    timeout 60 bash -e page.sh >page.out 2>&1 || echo "exit code $?: $(cat page.out)"
    out=$(cat page.out)
    has key_no "$out" '"key":"room-1","key_no":1,'
    has transfer "$out" '"result":7,'
    has bob "$out" '"method":"balance","key":"bob","key_no":2,"position":null'
    has alice "$out" '"type":"Wallet","key":"alice","state":7,'
    has etag "$out" 'ETag: "'
    has stale "$out" '"code":"STALE"'
    has deleted "$out" '"type":"Wallet","key":"carol","cancelled":0'
    has session "$out" '"key":"session:s-1"'
    has late "$out" 'HTTP/1.1 202'
    has later "$out" 'Retry-After'
    has position "$out" '"position":1,'
    has cancelled "$out" 'HTTP/1.1 503'
    has failed "$out" 'exit code 20'
    has blocked "$out" '"head":"keys-6","head_status":"failed"'
    has unblocked "$out" 'order-7: skipped keys-6'
    has shipped "$out" '"ship it"'
    has claimed "$out" '"state":null,"state_base64":null,"state_version":null'
    has tally "$out" '"type":"tally","key":"t-1","state":{"sum":2},'
}
result the_page_runs_as_printed "$(page)"
