#!/bin/sh
# docs.sh - print the pages that are generated from sources: doc/limits.md from limits.h, doc/status.md from pawl.h, the
# last table of doc/internals/glossary.md from words.txt.
# `docs.sh` writes them, `docs.sh --check` only reports whether they are up to date.
set -eu
cd "$(dirname "$0")/.."

limits() {
    echo "# Limits"
    echo
    echo "Printed from \`src/base/limits.h\` by \`tools/docs.sh\`. Each bound has its reason and what happens there."
    echo
    awk '
        /^\/\* / { why = $0; while (why !~ /\*\/ *$/ && (getline line) > 0) why = why " " line
                   gsub(/^\/\* |\*\/ *$/, "", why); gsub(/[ \t]+\* /, " ", why); gsub(/  +/, " ", why); next }
        /^#define [A-Z_]+ / && !/BASE_LIMITS_H/ {
            name = $2; $1 = $2 = ""; sub(/^ +/, ""); gsub(/INT64_C/, "")
            if (why != "") { sub(/ +$/, "", why); printf "%s%s\n\n", gap, why; why = ""; gap = "\n" }
            printf "- `%s` = `%s`\n", name, $0
        }
        /^$/ { why = "" }
    ' src/base/limits.h | awk -f tools/wrap.awk
}

status() {
    cat <<'EOF'
# Error codes

Every function of `pawl.h` that can fail, every request and every command ends with one of these. The column "retry"
says whether to send the same again: NEVER; SOON, after a moment; LATER, when there is room again; READBACK, send the
same again with the same id: it finds out what happened and stores nothing twice. Printed from `PAWL_STATUS_MAP` in
`include/pawl.h` by `tools/docs.sh`.

EOF
    echo "| status | HTTP | exit | retry | what it means |"
    echo "|---|---|---|---|---|"
    sed -n '/define PAWL_STATUS_MAP/,/^$/p' include/pawl.h |
        sed -n 's/^ *X(\([A-Z_]*\), \([0-9]*\), \([0-9]*\), \([A-Z]*\), "\(.*\)").*/| `\1` | \2 | \3 | \4 | \5 |/p'
}

# The page as it is, with the table of words between its markers.
glossary() {
    awk '
        /^<!-- words:end -->$/ { inside = 0 }
        !inside { print }
        /^<!-- words:begin -->$/ {
            inside = 1
            print "| not | but |"
            print "|---|---|"
            while ((getline line < "tools/words.txt") > 0)
                if (line !~ /^(#|$)/) {
                    colon = index(line, ":")
                    print "| `" substr(line, 1, colon - 1) "` |" substr(line, colon + 1) " |"
                }
        }' doc/internals/glossary.md
}

if [ "${1:-}" = --check ]; then
    for page in limits status internals/glossary; do
        "${page#internals/}" | cmp -s - "doc/$page.md" || { echo "doc/$page.md: out of date: run tools/docs.sh"; exit 1; }
    done
    exit 0
fi
limits > doc/limits.md
status > doc/status.md
words=$(glossary)
printf '%s\n' "$words" > doc/internals/glossary.md
