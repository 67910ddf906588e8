#!/bin/sh
# serve.sh - the daemon from an operator's view: starting, refusing, stopping, reloading, recovering.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=serve
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..16

# ---- Starting

ready_line()
{
    has line "$(cat a.out)" "pawl 0.1.0 listening on http://127.0.0.1:"
    has line "$(cat a.out)" "(sqlite:a.db)"
    same lines "$(wc -l <a.out)" 1
    same call "$(curl -s "$url/v1/calls?wait=10" -d '{"type":"echo","input":7}' | jq -r .status)" completed
    same page "$(curl -s -o page.html -w '%{http_code}' "$url/")" 200
}
start a || exit 1
result ready_line_then_answers "$(ready_line)"

taken()
{
    pawl serve --listen "${url#http://}" --db sqlite:taken.db >out 2>err
    same code $? 6
    has err "$(cat err)" "${url##*:}"
}
result a_taken_port_is_named "$(taken)"
stop
result stops_with_nothing_to_do "$(same code "$code" 0; has log "$(cat a.err)" '"message":"stopped"')"

wide()
{
    for address in 0.0.0.0:0 '[::]:0' 192.0.2.1:0; do
        pawl serve --listen "$address" --db sqlite:wide.db >out 2>err
        same "code of $address" $? 12
        has "$address" "$(cat err)" "pawl token new NAME admin"
    done
    [ ! -e wide.db ] || echo "a database was made"
}
result refuses_to_listen_wide_without_tokens "$(wide)"

wrong()
{
    printf '# one\n# two\n\nretenton = 7d\n' >c.conf
    pawl serve --config c.conf >out 2>err
    same name $? 2
    has name "$(cat err)" 'c.conf:4: unknown setting "retenton"; did you mean retention?'
    printf '# one\nlisten = "127.0.0.1:0"\ngrace = soon\n' >c.conf
    pawl serve --config c.conf >out 2>err
    same value $? 2
    has value "$(cat err)" 'c.conf:3: grace: "soon" is not a duration'
    pawl serve --config none.conf >out 2>err
    same file $? 3
    pawl serve --module none.so --db sqlite:w.db >out 2>err
    same module $? 3
    has module "$(cat err)" none.so
}
result a_wrong_setting_stops_the_start "$(wrong)"

no_modules()
{
    pawl serve --listen 127.0.0.1:0 --db sqlite:n.db >n.out 2>n.err &
    note
    until_ready n
    pawl submit mail '{"to":"ann"}' --id m1 >out
    same work "$(pawl work --exec cat --type mail --idle 300ms 2>err)" "1 call"
    same result "$(pawl get m1 --result)" '{"to":"ann"}'
    stop
    same code "$code" 0
}
result serves_http_workers_without_modules "$(no_modules)"

sockets()
{
    start u --listen unix:u.sock
    same unix "$(pawl call echo 1 --url unix:u.sock)" 1
    same curl "$(curl -s --unix-socket u.sock 'http://localhost/v1/calls?wait=5' -d '{"type":"echo"}' | jq -r .status)" completed
    stop
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
    start t --tls-cert cert.pem --tls-key key.pem
    has url "$url" https://
    pawl call echo 1 >out 2>err
    same unverified $? 6
    same tls "$(SSL_CERT_FILE=cert.pem pawl call echo 1)" 1
    same work "$(SSL_CERT_FILE=cert.pem pawl work --exec cat --type none --idle 200ms)" "0 calls"
    stop
}
result unix_sockets_and_tls "$(sockets 2>&1)"

# ---- Stopping

finishes()
{
    start f
    pawl call lab.sleep '{"ms": 5000}' --id f1 >f1.out 2>&1 &
    caller=$!
    within 5 status_is f1 processing || echo "f1 does not run"
    stop
    same server "$code" 0
    wait $caller
    same caller $? 0
    start f
    same status "$(pawl get f1 --json | jq -r '.status, .attempts, .lost' | tr '\n' ' ')" "completed 0 0 "
    stop
}
result what_runs_is_finished_and_answered "$(finishes)"

hands_back()
{
    start h --grace 300ms
    pawl call lab.sleep '{"ms": 20000}' --id h1 >h1.out 2>&1 &
    caller=$!
    within 5 status_is h1 processing || echo "h1 does not run"
    stop
    same server "$code" 0
    wait $caller
    [ $? -ge 6 ] || echo "the caller was told it completed"
    start h --paused
    same handed_back "$(pawl get h1 --json | jq -r '.status, .attempts, .lost' | tr '\n' ' ')" "pending 0 0 "
    stop
}
result the_rest_is_handed_back_unburnt "$(hands_back)"

twice()
{
    start d
    pawl submit lab.sleep '{"ms": 20000}' --id d1 >/dev/null
    within 5 status_is d1 processing || echo "d1 does not run"
    kill -TERM $pid
    within 5 grep -q stopping d.err
    same ready "$(curl -s -o /dev/null -w '%{http_code}' "$url/readyz")" 503
    same alive "$(curl -s -o /dev/null -w '%{http_code}' "$url/healthz")" 200
    sleep 0.2 # right behind the first one it would be the same
    stop
    same code "$code" 143
}
result a_second_signal_leaves_at_once "$(twice)"

# timeout(1) sends its signal to the program and to its group.
doubled()
{
    start e --grace 300ms
    pawl submit lab.sleep '{"ms": 20000}' --id e1 >/dev/null
    within 5 status_is e1 processing || echo "e1 does not run"
    kill -TERM $pid
    kill -INT $pid
    wait $pid
    same code $? 0
}
result a_signal_that_comes_doubled_is_one "$(doubled)"

# ---- Coming back

comes_back()
{
    start k
    seq 1 300 | sed 's/.*/{"id":"k&","type":"lab","method":"count","input":{"name":"k"}}/' >k.ndjson
    pawl batch k.ndjson >/dev/null 2>k.batch & # the server may be gone before it connects
    batch=$!
    sleep 0.1 # the moment of the kill is the test
    kill -9 $pid
    wait $pid 2>/dev/null
    wait $batch
    start k
    # Whatever the first batch stored: the same ids again add nothing.
    pawl batch k.ndjson >/dev/null || echo "the second batch was refused"
    within 20 sh -c "[ \"\$(pawl list --status completed --limit 1000 --json | jq '.calls | length')\" = 300 ]" ||
        echo "not all completed: $(pawl queues)"
    same effects "$(sqlite3 k.db "SELECT n FROM lab_count WHERE name = 'k'")" 300
    stop
}
result killed_and_restarted_nothing_is_lost_or_doubled "$(comes_back 2>&1)"

# ---- Reloading

reloads()
{
    first=$(pawl token new ann admin --json)
    second=$(pawl token new bob monitor --json)
    printf 'tokens = {"%s"}\nlog_level = "info"\n' "$(echo "$first" | jq -r .line)" >r.conf
    start r --config r.conf
    export PAWL_TOKEN
    PAWL_TOKEN=$(echo "$second" | jq -r .token)
    pawl queues >out 2>err
    same unknown $? 11
    printf 'tokens += {"%s"}\npool_size = 9\n' "$(echo "$second" | jq -r .line)" >>r.conf
    kill -HUP $pid
    within 5 grep -q 'settings read again' r.err || echo "not read again: $(cat r.err)"
    pawl queues >out 2>err
    same known $? 0
    has restart "$(cat r.err)" 'setting \"pool_size\": \"8\" needs a restart to become \"9\"'
    echo 'grace = never' >>r.conf
    kill -HUP $pid
    within 5 grep -q 'the old ones stay' r.err || echo "a wrong file was taken"
    has line "$(cat r.err)" 'r.conf:5: grace'
    # Tokens cannot be removed while the server runs: the old ones stay, whatever the file says.
    for none in '' 'tokens = {}'; do
        refusals=$(grep -c 'would open this server' r.err)
        echo "$none" >r.conf
        kill -HUP $pid
        within 5 sh -c "[ \$(grep -c 'would open this server' r.err) -gt $refusals ]" ||
            echo "nothing is said of \"$none\": $(tail -1 r.err)"
        PAWL_TOKEN= pawl queues >out 2>err
        same closed $? 11
        pawl queues >out 2>err
        same still_known $? 0
    done
    has level "$(grep 'would open this server' r.err | tail -1)" '"level":"error"'
    PAWL_TOKEN=
    stop
    # Only a restart removes them.
    start r --config r.conf
    pawl queues >out 2>err
    same open $? 0
    stop
    hasnt secret "$(cat r.err)" "$(echo "$first" | jq -r .token)"
    hasnt secret "$(cat r.err)" "$(echo "$second" | jq -r .token)"
    hasnt hash "$(cat r.err)" "$(echo "$second" | jq -r .line | cut -d: -f3)"
}
result sighup_reads_tokens_and_settings_again "$(reloads)"

logs()
{
    jq -e . <r.err >/dev/null || echo "a line is not JSON"
    same fields "$(jq -r 'select(.message | test("[a-z]+=")) | .message' <r.err)" ""
    same levels "$(jq -r 'select(.level == null or .time == null or .message == null)' <r.err)" ""
    start l --log-format text --log-level warn
    pawl pause mail >/dev/null
    stop
    has audit "$(cat l.err)" ' audit: '
    has audit "$(cat l.err)" 'method="POST" path="/v1/queues/mail/pause" status=200'
    hasnt info "$(cat l.err)" ready
}
result logs_are_json_lines_or_text_and_audited "$(logs)"

# told FILTER: that line of the log, as soon as it appears.
told()
{
    within 20 sh -c "[ -n \"\$(jq -c '$1' <w.err)\" ]" || echo "no line for $1: $(cat w.err)"
    jq -r "$1 | [.level, .message, .type, .try, .status, .error] | join(\"|\")" <w.err
}

failures()
{
    start w
    pawl call lab.fail '{"message":"no luck","permanent":true}' --id w1 >out 2>&1
    same failed "$(told 'select(.id == "w1")')" 'warn|call failed for good|lab|1|failed|no luck'
    curl -s "$url/v1/calls" -d '{"id":"w2","type":"far","max_lost":1}' >/dev/null
    curl -s "$url/v1/work/claim" -d '{"worker":"w","types":["far"],"lease_for":1}' >/dev/null
    same lost "$(told 'select(.id == "w2")')" \
        'warn|call lost too often: dead letter|far|1|dead_letter|worker "w" was lost'
    curl -s "$url/v1/calls" -d '{"id":"w3","type":"near","max_attempts":2}' >/dev/null
    lease=$(curl -s "$url/v1/work/claim" -d '{"types":["near"]}' | jq -r .lease)
    curl -s "$url/v1/work/finish" \
        -d "{\"lease\":\"$lease\",\"results\":[{\"id\":\"w3\",\"error\":\"later\"}]}" >/dev/null
    same worker "$(told 'select(.id == "w3")')" 'warn|call failed, to be tried again|near|1|pending|later'
    stop
}
result failed_and_lost_calls_are_logged "$(failures)"

doctor()
{
    printf '# settings\nretention = 3d\ntokens = {"ann:admin:%064d"}\n' 0 >o.conf
    out=$(PAWL_POOL_SIZE=5 pawl doctor --config o.conf --db sqlite:a.db --grace 1s --json)
    from()
    {
        echo "$out" | jq -r --arg s "$1" '.settings[] | select(.setting == $s) | .value + " " + .from'
    }
    same file "$(from retention)" "3d o.conf:2"
    same env "$(from pool_size)" "5 environment"
    same line "$(from grace)" "1s command line"
    same default "$(from remember)" "30d default"
    same secret "$(from tokens)" "1 set o.conf:3"
}
result doctor_shows_where_each_came_from "$(doctor)"
