#!/bin/sh
# bench-peers.sh BUILD_DIR RESULTS - measure Pawl and its peers in alternating rounds; every figure is a line of
# RESULTS.
#
# RESULTS has tab-separated lines: round, row, system, value, unit. Round 0 holds what is true of the whole run: "about"
# (a word, what it is), "config" (a system, its versions and settings), and "skip" (a system, a row, why there is no
# figure). tools/bench-report.sh makes pages of it.
#
# npm installs packages into BUILD_DIR/bench-peers, as test/bench/peers/package.json names them, and a Node into
# BUILD_DIR/bench-node when the machine's is too old (bench-node.sh). Data is in a scratch folder below BENCH_DIR
# (default: the build folder, so that the disk is the project's) and is removed afterwards. PostgreSQL and Redis are
# private servers on free ports, run by an unprivileged account when we are root. fsync is on everywhere.
#
# Each run of a program measures one group of rows in its own database. Odd rounds go through the systems forwards, even
# ones backwards. A program that fails is reported and missing from that round; the bench goes on.
#
# ROUNDS=3 is the number of rounds, QUICK=1 selects the quick form, PEERS="pawl restate" and BENCH_GROUPS="drain http"
# select what runs; BENCH_N, BENCH_SECONDS, BENCH_HELD and BENCH_BACKLOG set the amounts.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: bench-peers.sh BUILD_DIR RESULTS}" && pwd)
results=${2:?usage: bench-peers.sh BUILD_DIR RESULTS}
rounds=${ROUNDS:-3}
peers=${PEERS:-pawl pawl-sqlite graphile-worker pg-boss bullmq dbos restate}
rows=${BENCH_GROUPS:-enqueue drain latency http hot keys backlog held light cost workflows}
packages=$build/bench-peers
begun=$(date +%s)
server='' redis='' program='' scratch=''
. tools/bench-node.sh

case ${QUICK:-} in
'' | 0) n=100000 seconds=10 held=60 backlog=1000000 limit=1800 ;;
*) n=10000 seconds=2 held=5 backlog=20000 limit=300 ;;
esac
BENCH_N=${BENCH_N:-$n}
BENCH_SECONDS=${BENCH_SECONDS:-$seconds}
BENCH_HELD=${BENCH_HELD:-$held}
BENCH_BACKLOG=${BENCH_BACKLOG:-$backlog}
BENCH_LIMIT=${BENCH_LIMIT:-$limit}
# The SDKs log less and check less in their production mode.
NODE_ENV=production
NODE_NO_WARNINGS=1
export BENCH_N BENCH_SECONDS BENCH_HELD BENCH_BACKLOG BENCH_LIMIT NODE_ENV NODE_NO_WARNINGS

say()
{
    printf 'bench-peers: %5ds  %s\n' $(($(date +%s) - begun)) "$*" >&2
}

# stop PID SIGNAL: end one process and wait for it; SIGKILL after ten seconds.
stop()
{
    [ -n "$1" ] || return 0
    kill "-$2" "$1" 2>/dev/null || return 0
    i=0
    while kill -0 "$1" 2>/dev/null && [ $i -lt 100 ]; do
        sleep 0.1
        i=$((i + 1))
    done
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Each program is a process group leader, so the processes that it started are ended with it.
stop_program()
{
    [ -n "$program" ] || return 0
    kill -TERM "-$program" 2>/dev/null || true
    i=0
    while kill -0 "-$program" 2>/dev/null && [ $i -lt 100 ]; do
        sleep 0.1
        i=$((i + 1))
    done
    kill -KILL "-$program" 2>/dev/null || true
    program=
}

end()
{
    stop_program
    stop "$redis" TERM
    stop "$server" INT
    [ -z "$scratch" ] || rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT TERM HUP

# ---- What there is ------------------------------------------------------------------------------

have()
{
    command -v "$1" >/dev/null 2>&1
}

postgres_programs()
{
    for v in 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16 15 14; do
        if [ -x "/usr/lib/postgresql/$v/bin/initdb" ]; then
            echo "/usr/lib/postgresql/$v/bin"
            return
        fi
    done
    if [ -x /usr/bin/initdb ]; then
        echo /usr/bin
    fi
}

# The account that runs servers when we are root: servers refuse to run as root.
servant=
if [ "$(id -u)" = 0 ]; then
    for name in postgres nobody; do
        if [ -z "$servant" ] && id "$name" >/dev/null 2>&1; then
            servant=$name
        fi
    done
fi
as_servant()
{
    if [ -n "$servant" ]; then
        exec setpriv --reuid="$servant" --regid="$(id -g "$servant")" --clear-groups -- "$@"
    else
        exec "$@"
    fi
}
own()
{
    mkdir "$1"
    if [ -n "$servant" ]; then
        chown "$servant" "$1"
    fi
}

# A free port, from the kernel's list; another process may take it meanwhile, so a start may have to be repeated.
free_port()
{
    awk 'BEGIN { srand(); first = 20000 + int(rand() * 10000) }
        NR > 1 && $4 == "0A" { split($2, at, ":"); used[at[2]] = 1 }
        END { for (p = first; used[sprintf("%04X", p)]; p++); print p }' /proc/net/tcp
}

pg=$(postgres_programs)
if [ -z "$pg" ]; then
    echo "bench-peers.sh: PostgreSQL is not installed (tools/setup.sh bench)" >&2
    exit 1
fi

# ---- Servers ------------------------------------------------------------------------------------

# Without the notice that a database to be dropped does not exist.
sql()
{
    PGOPTIONS=-cclient_min_messages=warning "$pg/psql" --no-psqlrc -qAt -v ON_ERROR_STOP=1 \
        -h 127.0.0.1 -p "$port" -U pawl -d postgres -c "$1"
}

# Default settings, except for the address and the number of connections.
start_postgres()
{
    own "$scratch/pg"
    (as_servant "$pg/initdb" --pgdata="$scratch/pg/data" --username=pawl --auth=trust --encoding=UTF8 \
        --locale=C --no-sync --no-instructions) >"$scratch/initdb.log" 2>&1 || {
        tail -n 3 "$scratch/initdb.log" >&2
        return 1
    }
    for _ in 1 2 3; do
        port=$(free_port)
        (as_servant "$pg/postgres" -D "$scratch/pg/data" --port="$port" --listen_addresses=127.0.0.1 \
            --unix_socket_directories= --max_connections=300) >"$scratch/pg.log" 2>&1 &
        server=$!
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            if sql 'select 1' >/dev/null 2>&1; then
                return 0
            fi
            sleep 0.5
        done
        stop "$server" INT
        server=
    done
    tail -n 3 "$scratch/pg.log" >&2
    return 1
}

start_redis()
{
    rm -rf "$scratch/redis"
    own "$scratch/redis"
    for _ in 1 2 3; do
        BENCH_REDIS_PORT=$(free_port)
        (as_servant redis-server --port "$BENCH_REDIS_PORT" --bind 127.0.0.1 --dir "$scratch/redis" --save '' \
            --appendonly yes --appendfsync always) >"$scratch/redis.log" 2>&1 &
        redis=$!
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            if [ "$(redis-cli -p "$BENCH_REDIS_PORT" ping 2>/dev/null)" = PONG ]; then
                export BENCH_REDIS_PORT
                return 0
            fi
            sleep 0.3
        done
        stop "$redis" TERM
        redis=
    done
    say "Redis does not start: $(tail -n 1 "$scratch/redis.log")"
    return 1
}

# ---- Packages -----------------------------------------------------------------------------------

install_packages()
{
    mkdir -p "$packages"
    if ! cmp -s test/bench/peers/package.json "$packages/package.json" || [ ! -e "$packages/complete" ]; then
        rm -rf "$packages"
        mkdir -p "$packages"
        cp test/bench/peers/package.json "$packages"
        say 'installing the peers from npm'
        (cd "$packages" && npm install --no-package-lock --no-audit --no-fund --loglevel=error) >&2 || return 1
        : >"$packages/complete"
    fi
    cp test/bench/peers/*.mjs "$packages"
}

# ---- A run --------------------------------------------------------------------------------------

about()
{
    printf '0\tabout\t%s\t%s\n' "$1" "$2" >>"$results"
}

# The mean time of a synced write of one page, on the disk with the data.
fsync_time()
{
    "$pg/pg_test_fsync" -s 1 -f "$scratch/fsync" 2>/dev/null | grep -m 1 '^ *fdatasync ' | awk '{ print $(NF - 1) }'
}

describe()
{
    about when "$(date -u +%Y-%m-%d)"
    about rounds "$rounds"
    about form "$([ "$n" = 100000 ] && echo full || echo quick)"
    about cores "$(nproc)"
    about memory "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
    about cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
    about kernel "$(uname -sr)"
    about fsync "$(fsync_time) us"
    about load "$(cut -d ' ' -f 1 /proc/loadavg)"
    about postgresql "$(sql 'show server_version')"
    about settings "n $BENCH_N, timed parts $BENCH_SECONDS s, held $BENCH_HELD s, backlog $BENCH_BACKLOG"
    if have redis-server; then
        about redis "$(redis-server --version | sed 's/.*v=\([0-9.]*\).*/\1/')"
    fi
}

# Sets `command` for a system, or reports why it cannot run.
find_program()
{
    command=
    case $1 in
    pawl | pawl-sqlite)
        if [ -x "$build/test/bench_versus" ]; then
            command=$build/test/bench_versus
        else
            say "$1: build/test/bench_versus is missing, so there are no figures of it"
        fi
        ;;
    *)
        if [ ! -e "test/bench/peers/$1.mjs" ]; then
            echo "bench-peers.sh: there is no peer named $1" >&2
            exit 2
        elif [ "$npm" != yes ]; then
            say "$1: $npm"
        elif [ "$1" = bullmq ] && ! have redis-server; then
            say "$1: redis-server is not installed (tools/setup.sh bench)"
        else
            command="node $1.mjs"
        fi
        ;;
    esac
}

# A program's lines become lines of the results; config and skip are the same in every round.
collect()
{
    awk -F '\t' -v OFS='\t' -v round="$1" '
        $1 == "config" || $1 == "skip" { if (round == 1) { print 0, $0 } next }
        NF == 4 && $3 ~ /^[0-9.eE+-]+$/ { print round, $0 }' "$scratch/out" >>"$results"
}

# run ROUND SYSTEM GROUP
run()
{
    find_program "$2"
    [ -n "$command" ] || return 0
    say "round $1 of $rounds: $3, $2"
    sql 'drop database if exists bench with (force)'
    sql 'create database bench'
    # So that the next run does not wait for writes that the previous one left.
    sql checkpoint
    if [ "$2" = bullmq ] && ! start_redis; then
        return 0
    fi
    mkdir "$scratch/it"
    place=$packages url=postgres://pawl@127.0.0.1:$port/bench
    case $2 in
    pawl) place=$scratch/it ;;
    pawl-sqlite) place=$scratch/it url=sqlite:$scratch/it/bench.db ;;
    esac
    # shellcheck disable=SC2086
    (cd "$place" && BENCH_PG_PID=$server BENCH_URL=$url BENCH_DIR=$scratch/it BENCH_ROWS=$3 \
        exec setsid timeout -k 10 $((BENCH_LIMIT + 30)) $command) >"$scratch/out" 2>"$scratch/err" &
    program=$!
    status=0
    wait "$program" || status=$?
    # Remove what it left behind.
    kill -KILL "-$program" 2>/dev/null || true
    program=
    if [ $status != 0 ]; then
        say "$2, $3: ended with status $status: $(tail -n 1 "$scratch/err")"
    fi
    collect "$1"
    stop "$redis" TERM
    redis=
    rm -rf "$scratch/it"
}

backwards()
{
    reverse=
    for name in $1; do
        reverse="$name $reverse"
    done
    echo "$reverse"
}

scratch=$(mktemp -d -p "${BENCH_DIR:-$build}" bench.XXXXXX)
chmod 711 "$scratch"
: >"$results"
npm=yes
if ! have node || ! have npm; then
    npm='node and npm are not installed (tools/setup.sh bench)'
elif ! use_node "$build/bench-node"; then
    npm="Node $node_needed or newer is needed and could not be installed from npm"
elif ! install_packages; then
    npm='its packages could not be installed'
fi
start_postgres
describe
round=1
while [ "$round" -le "$rounds" ]; do
    order=$peers
    [ $((round % 2)) = 1 ] || order=$(backwards "$peers")
    for group in $rows; do
        for system in $order; do
            run "$round" "$system" "$group"
        done
    done
    round=$((round + 1))
done
say "done: $(grep -c . "$results") lines"
