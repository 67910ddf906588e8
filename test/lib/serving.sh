# serving.sh - what the scripts with a running server share; to be sourced from the project's root.
#
# SPDX-License-Identifier: Apache-2.0
top=$(pwd)
# Another build of the program, for a run under sanitizers: SERVE_BUILD=build-asan.
build=$top/${SERVE_BUILD:-build}
[ -x "$build/pawl" ] || build=${PAWL_BUILD:?}
PATH=$build:$PATH
export PATH
unset PAWL_DB PAWL_SCHEMA PAWL_URL PAWL_TOKEN PAWL_TOKENS PAWL_CONFIG PAWL_LISTEN PAWL_NODE PAWL_MODULE PAWL_QUEUES PAWL_ROLES \
    PAWL_LOG_LEVEL PAWL_LOG_FORMAT
# Nothing here reads from the terminal or asks a question on it.
exec </dev/null
scratch=$(mktemp -d)
number=0

cleanup()
{
    for p in $(cat "$scratch/pids" 2>/dev/null); do
        kill -9 "$p" 2>/dev/null
    done
    rm -rf "$scratch"
}
trap cleanup EXIT
cd "$scratch" || exit 2

# result NAME PROBLEM: ok when PROBLEM is empty.
result()
{
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $suite/$1"
    else
        echo "not ok $number - $suite/$1"
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

# same WHAT A B: prints a problem unless A equals B.
same()
{
    [ "$2" = "$3" ] || printf '%s: got "%s", want "%s"\n' "$1" "$2" "$3"
}

# has WHAT TEXT PART
has()
{
    case $2 in
    *"$3"*) ;;
    *) printf '%s: "%s" is not in: %s\n' "$1" "$3" "$2" ;;
    esac
}

hasnt()
{
    case $2 in
    *"$3"*) printf '%s: "%s" is in: %s\n' "$1" "$3" "$2" ;;
    esac
}

# start NAME ARGUMENTS...: start a server with the samples; sets $pid and $url, logs to NAME.err.
start()
{
    name=$1
    shift
    rm -f "$name.out"
    pawl serve --listen 127.0.0.1:0 --db "sqlite:$name.db" --module "$build/samples/echo.so" \
        --module "$build/samples/lab.so" --module "$build/samples/wallet.so" --heartbeat-interval 200ms --heartbeat-grace 10s "$@" \
        >"$name.out" 2>>"$name.err" &
    note
    until_ready "$name"
}

# Remember the background job that was just started, so that it is ended at the latest with this script; in a file,
# because most tests run in subshells.
note()
{
    pid=$!
    echo "$pid" >>"$scratch/pids"
}

until_ready()
{
    tries=0
    while ! grep -q listening "$1.out" 2>/dev/null; do
        tries=$((tries + 1))
        if [ $tries -gt 200 ] || ! kill -0 "$pid" 2>/dev/null; then
            echo "# $1 did not start: $(cat "$1.err")"
            return 1
        fi
        sleep 0.05
    done
    url=$(sed -n 's/.* listening on \([^ ]*\) .*/\1/p' "$1.out")
    PAWL_URL=$url
    export PAWL_URL
}

# stop [SIGNAL]: stops the server; its exit code is $code.
stop()
{
    kill "${1:--TERM}" "$pid"
    wait "$pid" 2>/dev/null
    code=$?
}

# within SECONDS COMMAND...: succeeds as soon as the command does.
within()
{
    left=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.05
    done
}

status_is()
{
    [ "$(pawl get "$1" --json 2>/dev/null | jq -r .status)" = "$2" ]
}
