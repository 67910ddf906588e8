#!/bin/sh
# examples.sh - every example of every --help text, and every shell block of the README and of doc/workers.md, runs as
# printed. The README's server is the one of `make run`, and is killed where the README says so.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=examples
# shellcheck source=/dev/null
. test/lib/serving.sh
ln -s "$build" build
: >pawl.conf
port_of()
{
    echo "${1##*:}"
}

commands=$(pawl help --json | jq -r '.commands[].name')
# shellcheck disable=SC2086
set -- $commands
echo "1..$(($# + 2))"

start main || exit 1
main=$url

# The examples of `serve` and `events` do not end by themselves: wait until ready, send a signal, check the exit code.
serve_example()
{
    : >serve.out # otherwise the output of the previous one may be read
    PAWL_LISTEN=127.0.0.1:0 bash -c "exec $1" >serve.out 2>serve.err &
    note
    within 10 grep -Eq 'listening|working' serve.out || echo "not ready: $1: $(cat serve.err)"
    stop
    same "exit code of: $1" "$code" 0
}

for command in "$@"; do
    problem=$(
        PAWL_URL=$main PAWL_DB=sqlite:orders.db
        export PAWL_URL PAWL_DB
        pawl help --json | jq -r --arg c "$command" '.commands[] | select(.name == $c) | .example' |
            while IFS= read -r line; do
                if [ "$command" = serve ] || [ "$command" = events ]; then
                    serve_example "$line" </dev/null
                else
                    out=$(timeout 60 bash -o pipefail -c "$line" </dev/null 2>&1) ||
                        printf '%s: exit code %s: %s\n' "$line" $? "$out"
                fi
            done
    )
    result "help_$command" "$problem"
done

# The server of the README, started as `make run` starts it, in this folder; when it runs again it takes the same port.
cat >make.sh <<EOF
for attempt in 1 2 3 4 5; do
    PAWL_LISTEN=127.0.0.1:\$(cat run/port 2>/dev/null || echo 0) sh "$top/tools/run.sh" "$build" >run.out 2>>run.err &
    echo \$! >>"$scratch/pids"
    while kill -0 \$! 2>/dev/null && ! grep -q 'stop it' run.out; do sleep 0.05; done
    cat run/pawl.pid >>"$scratch/pids"
    if grep -q 'stop it' run.out; then
        sed -n 's/.* listening on http:.*:\([0-9]*\) .*/\1/p' run.out >run/port
        exit 0
    fi
done
exit 1
EOF

# The README's shell blocks, in order, in one shell; only the port differs. They need curl and standard tools, but no
# jq. Where a block kills the server, the server is started again behind it, as the text says.
readme()
{
    mkdir -p bare
    printf '#!/bin/sh\necho "jq: not found" >&2\nexit 127\n' >bare/jq
    chmod +x bare/jq
    timeout 60 sh make.sh || echo "the server did not start: $(cat run.err)"
    readme_url=http://127.0.0.1:$(cat run/port)
    awk '/^```sh$/ { on = 1; next }
        /^```$/ { if (killed) print "sh make.sh"; on = killed = 0 }
        on { print }
        on && /^kill -9/ { killed = 1 }' "$top/README.md" |
        sed "s/127\.0\.0\.1:7295/127.0.0.1:$(cat run/port)/g" >readme.sh
    PATH=$PWD/bare:$PATH PAWL_URL=$readme_url timeout 150 bash -e readme.sh >readme.out 2>&1 ||
        echo "exit code $?: $(cat readme.out run.err)"
    out=$(cat readme.out)
    has first "$out" '"result":{"hello":"world"}'
    has flaky "$out" 'attempt 2 of 2 that fail'
    has failed "$out" 'exit code 20'
    has shout "$out" '"HELLO"'
    has finish "$out" '"results":[{"id":"tour-4","status":"completed"}]'
    # The schedule: it is stored, its next times are shown in its zone, and what was run by hand is one of its runs.
    grep -Eqx 'nightly created; next 20[0-9-]{8}T0[12]:00:00Z' readme.out || echo "nightly was not stored: $out"
    same next "$(grep -Ec '^20[0-9-]{8}T0[12]:00:00Z +20[0-9-]{8}T03:00:00\+0[12]:00 ' readme.out)" 3
    id=$(grep -Ex 'cron:nightly@20[0-9T:.-]+Z!manual' readme.out)
    same run "$(grep -cF " $id  manual" readme.out)" 1
    has rm "$out" 'nightly deleted'
    call=$(PAWL_URL=$readme_url pawl get "$id" --json | jq -c '[.type, .input, .schedule]')
    same call "$call" '["echo",{"kind":"daily"},"nightly"]'
    # The workflow: killed in the middle, each step has happened once. The cancelled one was undone, the last step first.
    same killed "$(grep -c 'sh make.sh' readme.sh)" 1
    has saga "$out" '{"paid":700}'
    saga=$(PAWL_URL=$readme_url pawl workflow show tour-8 --json | jq -c '[.steps[] | [.step_name, .attempts]]')
    same steps "$saga" '[["reserve",1],["charge",1],["shipped",0],["cool-off",0],["mail",1]]'
    has cancelled "$out" 'tour-9 processing'
    undone=$(sed -n 's/^[0-9]* *\(undo:[a-z]*\) *undo *completed .*/\1/p' readme.out | tr '\n' ' ')
    same undone "$undone" 'undo:charge undo:reserve '
    has books "$out" '{"n":9,"cents":4300}'
    kill "$(cat run/pawl.pid)"
}
result readme "$(readme)"

# The page about workers, in one shell.
workers()
{
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/doc/workers.md" |
        sed "s/127\.0\.0\.1:7295/127.0.0.1:$(port_of "$main")/g" >workers.sh
    PAWL_URL=$main timeout 60 bash -e workers.sh >workers.out 2>&1 || echo "exit code $?: $(cat workers.out)"
    out=$(cat workers.out)
    has claimed "$out" '"attempt":1,'
    has extended "$out" '"cancelled":[],"timed_out":[]'
    has finished "$out" '"results":[{"id":"letter-1","status":"completed"}]'
    has loop "$out" '"WORLD"'
    has program "$out" '"HELLO"'
}
result workers "$(workers)"
