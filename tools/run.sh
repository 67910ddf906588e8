#!/bin/sh
# run.sh BUILD_DIR - serve the samples on an SQLite database in ./run, and print what to try. The server's process id is
# in run/pawl.pid.
#
# PAWL_LISTEN, PAWL_DB and the other settings are taken from the environment where they are set. Ctrl-C or SIGTERM stops
# the server, which lets running calls end first.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
build=$(cd "$1" && pwd)
mkdir -p run
modules=
for f in "$build"/samples/*.so; do
    modules="$modules --module $f"
done
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# shellcheck disable=SC2086
"$build/pawl" serve --db "${PAWL_DB:-sqlite:run/pawl.db}" $modules >"$out" &
pid=$!
echo $pid >run/pawl.pid
# The terminal sends Ctrl-C to the server as well; a second signal would end its graceful stop.
trap : INT
trap 'kill $pid 2>/dev/null' TERM HUP

while [ ! -s "$out" ] && kill -0 $pid 2>/dev/null; do
    sleep 0.05
done
cat "$out"
url=$(sed -n 's/.* listening on \(http[^ ]*\) .*/\1/p' "$out")
if [ -n "$url" ]; then
    cat <<EOF

dashboard: $url/
try it:    curl -s '$url/v1/calls?wait=10' -d '{"type":"echo","input":{"hello":"world"}}'
stop it:   Ctrl-C

EOF
fi
status=0
while kill -0 $pid 2>/dev/null; do
    status=0
    wait $pid || status=$?
done
exit $status
