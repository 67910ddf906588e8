#!/bin/sh
# openapi-lint.sh [BUILD] - lint the /openapi.json that BUILD/pawl serves with spectral and its `oas` rules.
#
# Exit 0: no finding of any severity. Exit 2: spectral cannot be installed (no npm, no registry). spectral is installed
# into a scratch folder, or into SPECTRAL_DIR if that is set (and kept then), at the version below. For `make nightly`:
# it is too heavy for `make test`, where test/api/openapi.c checks the rules that concern us.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${1:-build}" && pwd)
version=6.16.3
scratch=$(mktemp -d)
pid=
cleanup()
{
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || :
    rm -rf "$scratch"
}
trap cleanup EXIT

if ! command -v npm >/dev/null; then
    echo "openapi-lint: npm is not installed; it comes with nodejs" >&2
    exit 2
fi
tool=${SPECTRAL_DIR:-$scratch/spectral}
if [ ! -x "$tool/node_modules/.bin/spectral" ]; then
    mkdir -p "$tool"
    if ! npm install --prefix "$tool" --no-audit --no-fund --ignore-scripts "@stoplight/spectral-cli@$version" \
        >"$scratch/npm.log" 2>&1; then
        cat "$scratch/npm.log" >&2
        echo "openapi-lint: spectral $version could not be installed" >&2
        exit 2
    fi
fi

"$build/pawl" serve --listen 127.0.0.1:0 --db mem:lint >"$scratch/out" 2>"$scratch/err" &
pid=$!
tries=0
until grep -q listening "$scratch/out"; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 "$pid" 2>/dev/null; then
        echo "openapi-lint: the server did not start: $(cat "$scratch/err")" >&2
        exit 1
    fi
    sleep 0.05
done
url=$(sed -n 's/.* listening on \([^ ]*\) .*/\1/p' "$scratch/out")
curl -fsS "$url/openapi.json" >"$scratch/openapi.json"
echo 'extends: ["spectral:oas"]' >"$scratch/rules.yaml"
"$tool/node_modules/.bin/spectral" lint --ruleset "$scratch/rules.yaml" --fail-severity hint "$scratch/openapi.json"
