#!/bin/sh
# bench-report.sh RESULTS OUT_DIR - make tables and pictures from the figures of tools/bench-peers.sh.
#
# Writes the part of OUT_DIR/benchmarks.md between its two markers (appended when it has none) and
# OUT_DIR/plots/*.svg. Everything comes from RESULTS, so the same results make the same pages.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
usage='usage: bench-report.sh RESULTS OUT_DIR'
tools=$(cd "$(dirname "$0")" && pwd)
results=${1:?$usage}
out=${2:?$usage}
page=$out/benchmarks.md
LC_ALL=C
export LC_ALL
if ! command -v gnuplot >/dev/null 2>&1; then
    echo 'bench-report.sh: gnuplot is not installed (tools/setup.sh bench)' >&2
    exit 1
fi
if ! awk -F '\t' '$1 > 0 && NF >= 5 { found = 1 } END { exit !found }' "$results"; then
    echo "bench-report.sh: $results has no figure" >&2
    exit 1
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$tmp/plots"
awk -v dir="$tmp" -v plots=plots -f "$tools/bench-report.awk" "$results" >"$tmp/text"
awk -f "$tools/wrap.awk" "$tmp/text" >"$tmp/section"
for script in "$tmp"/*.gp; do
    (cd "$tmp" && gnuplot "$script")
done

mkdir -p "$out/plots"
rm -f "$out"/plots/*.svg
cp "$tmp"/plots/*.svg "$out/plots"
[ -e "$page" ] || echo '# Benchmarks' >"$page"
if ! grep -q '^<!-- versus:begin -->$' "$page" || ! grep -q '^<!-- versus:end -->$' "$page"; then
    printf '\n<!-- versus:begin -->\n<!-- versus:end -->\n' >>"$page"
fi
awk -v section="$tmp/section" '
    /^<!-- versus:end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- versus:begin -->$/ {
        inside = 1
        while ((getline line < section) > 0)
            print line
    }' "$page" >"$tmp/page"
cat "$tmp/page" >"$page"
