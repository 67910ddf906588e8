#!/bin/sh
# soak.sh [SECONDS] [BUILD_DIR] - load `pawl serve` over loopback with connections that come and go; fail on an error, a
# broken socket, or memory that grows.
#
# First a single load runs until memory is stable: SQLite fills its page caches (64 MiB for the writer), which is not
# growth. Then three run at the same time: wrk keeps its connections, wrk with Connection: close opens one for every
# request, h2load opens new ones every second. All submit a call and wait for its outcome. Resident memory is sampled
# every second; the median of the second half may be at most 4 MiB above that of the first. The database is a scratch
# file below BUILD_DIR. Nothing listens beyond loopback, and everything that is started here is ended here.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-300}
build=$(cd "${2:-build}" && pwd)
for tool in wrk h2load curl; do
    if ! command -v "$tool" >/dev/null; then
        echo "soak.sh: needs $tool (Debian: wrk, nghttp2-client, curl)" >&2
        exit 2
    fi
done
dir=$(mktemp -d -p "$build" soak.XXXXXX)
server='' loads=''
# shellcheck disable=SC2317
finish()
{
    for p in $loads $server; do
        kill "$p" 2>/dev/null || true
    done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Calls are kept for one second, so that the file reaches a stable size.
"$build/pawl" serve --listen 127.0.0.1:0 --db "sqlite:$dir/soak.db" --module "$build/samples/echo.so" \
    --config /dev/null --node soak --retention 1s --remember 1s --gc-interval 1s --log-level warn \
    >"$dir/out" 2>"$dir/err" &
server=$!
tries=0
until grep -q listening "$dir/out"; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 $server 2>/dev/null; then
        cat "$dir/err" >&2
        exit 1
    fi
    sleep 0.05
done
url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$dir/out")

# wrk counts answers from 400 on and broken sockets by itself; calls that did not complete are counted here.
cat >"$dir/post.lua" <<'LUA'
wrk.method = "POST"
wrk.body = '{"type":"echo","input":{"order":1234567}}'
wrk.headers["Content-Type"] = "application/json"
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(args)
    bad = 0
    if args[1] == "close" then wrk.headers["Connection"] = "close" end
end
function response(status, headers, body)
    if status ~= 200 or not body:find('"status":"completed"', 1, true) then bad = bad + 1 end
end
function done(summary, latency, requests)
    local n, e = 0, summary.errors
    for _, t in ipairs(threads) do n = n + t:get("bad") end
    io.write(string.format("requests=%d bad=%d connect=%d read=%d write=%d status=%d timeout=%d\n",
        summary.requests, n, e.connect, e.read, e.write, e.status, e.timeout))
end
LUA
printf '%s' '{"type":"echo","input":{"order":1}}' >"$dir/body"

rss()
{
    awk '/^VmRSS/ { print $2 }' "/proc/$server/status"
}

# Warm when ten seconds add less than 1 MiB.
was=0 now=$(rss) rounds=0
while [ $((now - was)) -gt 1024 ] && [ $rounds -lt 18 ]; do
    was=$now rounds=$((rounds + 1))
    wrk -t1 -c32 -d10s --timeout 15s -s "$dir/post.lua" "$url/v1/calls?wait=10" -- keep >"$dir/warm" 2>&1
    now=$(rss)
done
echo "soak: warm after $((rounds * 10)) s at $now KiB"

wrk -t1 -c32 -d"${seconds}s" --timeout 15s -s "$dir/post.lua" "$url/v1/calls?wait=10" -- keep \
    >"$dir/keep" 2>&1 &
loads="$loads $!"
wrk -t1 -c8 -d"${seconds}s" --timeout 15s -s "$dir/post.lua" "$url/v1/calls?wait=10" -- close \
    >"$dir/close" 2>&1 &
loads="$loads $!"
(
    until=$(($(date +%s) + seconds))
    while [ "$(date +%s)" -lt "$until" ]; do
        h2load --h1 -n 400 -c 40 -d "$dir/body" -H 'Content-Type: application/json' \
            "$url/v1/calls?wait=10" >>"$dir/h2" 2>&1 || echo "h2load failed with $?" >>"$dir/h2"
        sleep 1
    done
) &
loads="$loads $!"

echo "soak: $seconds s on $url, load average $(cut -d' ' -f1-3 /proc/loadavg)"
i=0
while [ $i -lt "$seconds" ]; do
    sleep 1
    i=$((i + 1))
    if ! rss >>"$dir/rss" 2>/dev/null; then
        echo "soak: the server has gone" >&2
        cat "$dir/err" >&2
        exit 1
    fi
done
for p in $loads; do
    wait "$p" || true
done
loads=''
curl -s "$url/metrics" >"$dir/metrics"
kill -TERM $server
status=0
wait $server || status=$?
server=''

failed=0
wrong()
{
    echo "soak: $*"
    failed=1
}
[ "$status" = 0 ] || wrong "the server ended with status $status"
[ ! -s "$dir/err" ] || wrong "the server said: $(head -5 "$dir/err")"
for load in keep close; do
    line=$(grep '^requests=' "$dir/$load" || true)
    echo "wrk $load: $line"
    case $line in
    requests=0*|'') wrong "$load: nothing was answered; $(tail -3 "$dir/$load")" ;;
    *" bad=0 connect=0 read=0 write=0 status=0 timeout=0") ;;
    *) wrong "$load: errors" ;;
    esac
done
awk '/^requests:/ { all += $2; ok += $8; bad += $10 + $12 + $14 } /^status codes:/ { two += $3 }
     /h2load failed/ { bad++ }
     END { printf "h2load fresh connections: %d requests, %d answered 2xx, %d bad\n", all, two, bad
           exit !(all > 0 && all == two && bad == 0) }' "$dir/h2" || wrong "h2load: errors"
grep -E '^pawl_http_(connections_accepted_total|connections|requests_total|timeouts_total|refused_total)[ {]' \
    "$dir/metrics" || true

# The medians of both halves.
median()
{
    sed -n "$1,$2p" "$dir/rss" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
n=$(wc -l <"$dir/rss")
early=$(median 1 $((n / 2)))
late=$(median $((n / 2 + 1)) "$n")
echo "memory in KiB: first half $early, second half $late, most $(sort -n "$dir/rss" | tail -1)"
[ "$late" -le $((early + 4096)) ] || wrong "memory grows"
[ $failed = 0 ] && echo "soak: no error, memory flat; load average $(cut -d' ' -f1-3 /proc/loadavg)"
exit $failed
