#!/bin/sh
# setup.sh [build|run|test|bench] - install the Debian 12 packages for building; run adds those for running and the first
# try with curl, test those for testing, bench those for the peers of the benchmarks.
#
# Prints which packages are missing before it installs them; when none is, it asks dpkg once and ends. PAWL_INSTALL=no
# skips everything. Runs as root, or through sudo.
#
# SPDX-License-Identifier: Apache-2.0
set -eu

build="gcc libc6-dev binutils make meson ninja-build pkg-config libsqlite3-dev libpq-dev
    libmariadb-dev libssl-dev libuv1-dev node-llhttp libconfuse-dev"
# The time zones of schedules; the files of the IANA database are read when the program runs.
zones="tzdata"
# g++ checks that pawl.h is also C++; the formatter is pinned, because another version formats differently. cppcheck is
# for `make analyze`; clang and jansson are for the fuzzers, wrk and nghttp2-client for the soak; openssl makes the
# certificate of the TLS tests; curl, jq and sqlite3 are in the examples that the tests run as printed; faketime gives a
# node a wrong clock; gnuplot draws the figures of the benchmarks, and a test checks the pictures. spin
# checks models of protocols. postgresql, mariadb-*-core and pgbouncer are for the tests' private servers. The core
# packages of MariaDB are only its programs: no service, no system database, no account. mariadb-client has the dump
# program for backups.
test="g++ clang-format-14 gcovr cppcheck openssl clang-14 libclang-rt-14-dev libjansson-dev curl jq sqlite3 faketime
    wrk nghttp2-client postgresql mariadb-server-core mariadb-client-core mariadb-client pgbouncer gnuplot-nox spin"
# The peers run on Node and Redis. Node may be installed without a package of that name.
bench="postgresql mariadb-server-core mariadb-client-core gnuplot-nox redis-server"
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    bench="$bench nodejs npm"
fi

case ${1:-build} in
build) want=$build ;;
run) want="$build $zones curl" ;;
test) want="$build $zones $test" ;;
bench) want="$build $bench" ;;
*)
    echo "usage: tools/setup.sh [build|run|test|bench]" >&2
    exit 2
    ;;
esac

if [ "${PAWL_INSTALL:-yes}" = no ]; then
    exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    cat >&2 <<EOF
setup.sh: this is not Debian, so nothing was installed. Pawl needs what Debian 12 calls
    $want
Install your distribution's packages of that kind (gcc 12 or newer, meson 1.0 or newer, SQLite 3.40 or
newer, libpq 14, libmariadb 3.3, OpenSSL 3, libuv 1.44, libconfuse 3.3,
the C sources of llhttp 8), then say PAWL_INSTALL=no, as in: make PAWL_INSTALL=no
EOF
    exit 1
fi

missing=
# shellcheck disable=SC2086
present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $want 2>/dev/null || true)
for package in $want; do
    case "
$present
" in
    *"
installed $package
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
if [ -z "$missing" ]; then
    exit 0
fi

sudo=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup.sh: need root or sudo to install:$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
echo "setup.sh: installing$missing (PAWL_INSTALL=no skips this)"
export DEBIAN_FRONTEND=noninteractive
# A package with a server starts it when it is installed, which is not wanted here. A policy that the machine already
# has is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap '$sudo rm -f "$policy"' EXIT
    trap 'exit 1' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
    $sudo chmod 755 "$policy"
fi
# shellcheck disable=SC2086
install="$sudo apt-get -q -y --no-install-recommends install $missing"
# The package lists may be old or missing; fetch them once, only when they are not sufficient.
if ! $install; then
    $sudo apt-get -q update
    $install
fi
