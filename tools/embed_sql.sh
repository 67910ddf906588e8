#!/bin/sh
# embed_sql.sh SQL_DIR OUT_DIR - compile the statements of every engine into C (see embed_sql.awk).
#
# Leaves sql_names.h, sql_names.c and one sql_ENGINE.c per folder of SQL_DIR in OUT_DIR, or leaves
# nothing and fails: a half-written table of statements must never reach the compiler.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
sql=$(cd "$1" && pwd)
out=$(cd "$2" && pwd)

engines=
files=
cd "$sql"
for dir in */; do
    engine=${dir%/}
    if [ ! -d "$engine" ]; then
        continue
    fi
    # all/ has statements that are the same on every engine.
    if [ "$engine" != all ]; then
        engines="$engines $engine"
    fi
    for f in "$engine"/*.sql "$engine"/migrations/*.sql; do
        # schema.sql is the sum of the migrations; a test compares the two, and nothing runs it.
        if [ -e "$f" ] && [ "$f" != "$engine/schema.sql" ]; then
            files="$files $f"
        fi
    done
done
if [ -z "$engines" ]; then
    echo "embed_sql: no engine has a folder in $sql" >&2
    exit 1
fi

# $files is split on purpose: the names are ours and contain no spaces.
# shellcheck disable=SC2086
awk -v engines="$engines" -v out="$out" -f "$here/embed_sql.awk" -f "$here/sql_all.awk" statements.txt $files
