#!/bin/sh
# cluster.sh - several servers on one SQLite file, from an operator's view: nodes, leaders, draining, replacing, roles,
# capabilities, and messages to a service manager.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=cluster
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..10

# join NAME ARGUMENTS...: start one more server on c.db; sets $pid and $url.
join()
{
    who=$1
    shift
    rm -f "$who.out"
    pawl serve --listen 127.0.0.1:0 --db sqlite:c.db --module "$build/samples/echo.so" --module "$build/samples/lab.so" \
        --node "$who" --heartbeat-interval 200ms --heartbeat-grace 2s "$@" >"$who.out" 2>>"$who.err" &
    note
    until_ready "$who"
}

node_status()
{
    [ "$(pawl nodes --json --url "$1" | jq -r ".nodes[] | select(.node == \"$2\") | .status")" = "$3" ]
}

join one
one_url=$url
join two --roles gateway,worker --queues default,mail
two_url=$url

registry()
{
    same names "$(pawl nodes --json --url "$one_url" | jq -r '[.nodes[].node] | join(" ")')" "one two"
    same roles "$(pawl nodes --json --url "$one_url" | jq -c '.nodes[1].roles')" '["gateway","worker"]'
    same queues "$(pawl nodes --json --url "$one_url" | jq -c '[.nodes[].queues]')" '[null,["default","mail"]]'
    same address "$(pawl nodes --json --url "$one_url" | jq -r '.nodes[1].address')" "$two_url"
    within 5 node_status "$one_url" two active || echo "two is not active"
    has table "$(pawl nodes --url "$two_url")" "active"
}
result every_node_knows_every_other "$(registry)"

leads_is()
{
    [ "$(pawl leaders --json --url "$two_url" | jq -r '.leaders[0].node')" = "$1" ]
}

leaders()
{
    within 5 leads_is one || echo "one does not lead"
    has table "$(pawl leaders --url "$two_url")" "maintenance"
}
result only_schedulers_lead "$(leaders)"

drains()
{
    same says "$(pawl drain two --url "$one_url")" "two draining"
    within 5 grep -q '"node \\"two\\": draining"' two.err || echo "two has not heard of it"
    same ready "$(curl -s "$two_url/readyz" | jq -r .reason)" "the node is drained"
    same runs "$(pawl call echo 1 --url "$two_url")" 1
    same where "$(pawl list --json --url "$one_url" | jq -r '.calls[0].node')" one
    same says "$(pawl undrain two --url "$two_url")" "two active"
    pawl drain three --url "$one_url" 2>err
    same code $? 3
    has err "$(cat err)" 'no node "three"'
}
result a_node_is_drained_from_anywhere "$(drains)"

# As if a process on another machine had joined with this name.
replaced()
{
    join three
    sqlite3 -cmd '.timeout 10000' c.db "UPDATE pawl_node SET boot = 'elsewhere' WHERE node = 'three'"
    wait "$pid" 2>/dev/null
    same code $? 4
    has says "$(cat three.err)" 'pawl serve: node "three": another process has taken this name'
    sqlite3 -cmd '.timeout 10000' c.db "DELETE FROM pawl_node WHERE node = 'three'"
}
result who_is_replaced_says_so_and_exits "$(replaced)"

# On one machine the second process is refused, and the first does not notice it.
twice()
{
    join three
    pawl serve --listen 127.0.0.1:0 --db "sqlite:$scratch/c.db" --node three >out 2>err
    same code $? 13
    same says "$(grep -c . err)" 1
    has says "$(cat err)" 'node "three": another process on this machine has this name; give this one another (--node)'
    same alive "$(pawl call echo 1 --url "$url")" 1
    same ready "$(curl -s -o /dev/null -w '%{http_code}' "$url/readyz")" 200
    # A dead process is replaced at once, however long the grace is.
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    join three --heartbeat-grace 1h
    same again "$(pawl call echo 1 --url "$url")" 1
    stop
    same code "$code" 0
}
result a_living_node_keeps_its_name "$(twice)"

# unnamed NAME ARGUMENTS...: the same without --node, on a separate file.
unnamed()
{
    who=$1
    shift
    rm -f "$who.out"
    pawl serve --listen 127.0.0.1:0 --db sqlite:d.db --module "$build/samples/echo.so" "$@" >"$who.out" 2>>"$who.err" &
    note
    until_ready "$who"
}

defaults()
{
    echo 'worker_slots = 3' >pawl.conf
    unnamed first
    one=$pid one_url=$url
    name=$(curl -s "$url/v1/info" | jq -r .node)
    has name "$name" "$(hostname)-"
    has file "$(cat first.err)" '"message":"settings are from ./pawl.conf, in '
    unnamed second
    same second "$(curl -s "$url/v1/info" | jq -r .node)" "$name-2"
    same log "$(jq -r 'select(.message | test("^ready")) | .node' <second.err)" "$name-2"
    same lives "$(pawl call echo 1 --url "$one_url")" 1
    same both "$(curl -s "$url/v1/nodes" | jq -r '[.nodes[].status] | join(" ")')" "active active"
    two=$pid
    kill "$one"
    wait "$one"
    same code $? 0
    unnamed third
    same stable "$(curl -s "$url/v1/info" | jq -r .node)" "$name"
    kill "$two" "$pid"
    wait "$two" "$pid"
    rm pawl.conf
}
result default_names_are_stable_and_apart "$(defaults)"

no_gateway()
{
    join back --roles worker,scheduler
    same ready "$(curl -s "$url/readyz" | jq -r .reason)" "the node is not a gateway"
    pawl submit echo 1 --url "$url" 2>err && echo "it took a call"
    has err "$(cat err)" 'node "back" is not a gateway'
    same nodes "$(curl -s "$url/v1/nodes" | jq '.nodes | length')" 3
    stop
    same code "$code" 0
    pawl serve --roles king --db sqlite:k.db >out 2>err
    same wrong $? 2
    has err "$(cat err)" 'setting "roles": "king" is unknown; expected gateway, worker, scheduler, all'
}
result roles_say_what_a_node_does "$(no_gateway)"

# on NAME ARGUMENTS...: one more server on a file of its own for capabilities; sets $pid and $url.
on()
{
    who=$1
    shift
    rm -f "$who.out"
    pawl serve --listen 127.0.0.1:0 --db sqlite:n.db --module "$build/samples/echo.so" --node "$who" \
        --heartbeat-interval 100ms --heartbeat-grace 1s "$@" >"$who.out" 2>>"$who.err" &
    note
    until_ready "$who"
}

shown()
{
    curl -s "$plain_url/v1/calls/$1" | jq -c '[.status, .waiting_for, .needs, .node]'
}

waits='["pending","worker",["gpu"],null]'

# Calls that need nothing come and go beside it, so it is not that nobody looked.
still_waits()
{
    for i in 1 2 3 4 5; do
        same "other_$i" "$(pawl call echo 1 --url "$plain_url")" 1
    done
    same "$1" "$(shown "$1")" "$waits"
}

needy()
{
    on plain
    plain_url=$url
    curl -s "$url/v1/calls" -d '{"id":"g1","type":"echo","input":1,"needs":["gpu"]}' >out
    same answer "$(jq -c '[.status, .needs]' out)" '["pending",["gpu"]]'
    still_waits g1
    on other --has 'fpga,gpu:2' # none of these is gpu
    still_waits g1
    same listed "$(curl -s "$url/v1/calls?type=echo&status=pending" | jq -c '[.calls[] | .id, .needs]')" '["g1",["gpu"]]'
    on able --has gpu,fpga
    able=$pid
    within 5 status_is g1 completed || echo "able does not run g1"
    same ran "$(shown g1)" '["completed",null,["gpu"],"able"]'
    same nodes "$(curl -s "$plain_url/v1/nodes" | jq -c '[.nodes[] | .node, .has]')" \
        '["able",["fpga","gpu"],"other",["fpga","gpu:2"],"plain",[]]'
    # The only one that has it dies: the next call waits, for a new node.
    kill -9 "$able"
    wait "$able" 2>/dev/null
    PAWL_URL=$plain_url
    pawl submit echo 2 --id g2 --needs gpu >/dev/null
    still_waits g2
    on again --has gpu
    within 5 status_is g2 completed || echo "again does not run g2"
    same ran "$(shown g2)" '["completed",null,["gpu"],"again"]'
}
result a_call_waits_for_a_node_that_has_what_it_needs "$(needy)"

# Workers outside: over HTTP and as a program; the ticks of a schedule have needs like any call.
needy_outside()
{
    start h
    plain_url=$url
    claim()
    {
        curl -s "$url/v1/work/claim" -d "{\"worker\":\"w\",\"types\":[\"render\"],\"max\":10$1}" | jq -c '[.calls[].id]'
    }
    pawl submit render 1 --id r1 --needs gpu >/dev/null
    same plain "$(claim '')" '[]'
    same less "$(claim ',"has":["fpga"]')" '[]'
    same shown "$(shown r1)" "$waits"
    same able "$(claim ',"has":["fpga","gpu"]')" '["r1"]'
    pawl submit render 1 --id r2 --needs gpu >/dev/null
    # One that waits is told when a call comes that it can run, and not before.
    curl -s "$url/v1/work/claim" -d '{"worker":"w2","types":["draw"],"has":["gpu"],"wait":30}' >waited &
    waiting=$!
    echo $waiting >>"$scratch/pids"
    pawl submit draw 1 --id d1 --needs gpu,fpga >/dev/null
    pawl submit draw 1 --id d2 --needs gpu >/dev/null
    wait "$waiting"
    same woken "$(jq -c '[.calls[] | .id, .needs, .node]' waited)" '["d2",["gpu"],"w2"]'
    same stays "$(curl -s "$url/v1/calls/d1" | jq -c '[.status, .needs]')" '["pending",["fpga","gpu"]]'
    pawl work --exec cat --type render --idle 300ms >/dev/null 2>&1
    same plain "$(shown r2)" "$waits"
    pawl work --exec cat --type render --has gpu --idle 300ms >/dev/null 2>&1
    same able "$(curl -s "$url/v1/calls/r2" | jq -r .status)" completed
    pawl cron put frames '{"cron": "@yearly", "call": {"type": "render", "needs": ["gpu"]}}' >/dev/null
    id=$(pawl cron run frames)
    pawl work --exec cat --type render --idle 300ms >/dev/null 2>&1
    same tick "$(pawl get "$id" --json | jq -c '[.status, .waiting_for, .needs]')" '["pending","worker",["gpu"]]'
    pawl work --exec cat --type render --has gpu --idle 300ms >/dev/null 2>&1
    same ticked "$(pawl get "$id" --json | jq -r .status)" completed
    stop
    same code "$code" 0
}
result workers_outside_get_what_they_can_run "$(needy_outside)"

# The messages to a service manager, one datagram a line.
manager()
{
    python3 - "$1" <<'PY' >heard 2>&1 &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(200).decode(), flush=True)
PY
    note
    within 5 test -S "$1"
}

watched()
{
    command -v python3 >/dev/null || { echo "# left out: there is no python3 to listen" >&2; return; }
    manager notify.sock
    NOTIFY_SOCKET=notify.sock WATCHDOG_USEC=200000 start w
    within 5 grep -q READY=1 heard || echo "not READY"
    within 5 sh -c '[ "$(grep -c WATCHDOG=1 heard)" -ge 3 ]' || echo "no WATCHDOG"
    pawl submit lab.sleep '{"ms": 5000}' --id w1 >/dev/null
    within 5 status_is w1 processing || echo "w1 does not run"
    before=$(grep -c WATCHDOG=1 heard)
    stop
    same code "$code" 0
    within 5 grep -q STOPPING=1 heard || echo "not STOPPING"
    [ "$(grep -c WATCHDOG=1 heard)" -gt "$before" ] || echo "no WATCHDOG while it stops"
}
result a_service_manager_is_told "$(watched)"
