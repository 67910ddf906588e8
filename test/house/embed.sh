#!/bin/sh
# embed.sh - the build stops when an engine and the list of statements disagree, and names the place.
#
# SPDX-License-Identifier: Apache-2.0
set -u
tools=$(pwd)/tools
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
number=0
echo 1..14

# A correct tree with two statements and two migrations.
fresh()
{
    rm -rf sql out
    mkdir -p sql/one/migrations sql/two out
    printf '# the list\ncall_claim\ncall_get  # one\n' >sql/statements.txt
    for engine in one two; do
        cat >sql/$engine/call.sql <<'EOF'
-- name: call_claim
-- in:   queue text
-- why:  a comment is not sent
SELECT 'a\b', "q", '??(' -- kept

 WHERE x = ?1;

-- name: call_get
SELECT 1;
EOF
    done
    printf -- '-- "why"\nCREATE TABLE t (x);\n-- finish\nDROP TABLE u;\n' \
        >sql/one/migrations/0001_begin.sql
    echo 'CREATE TABLE v (x);' >sql/one/migrations/0002_more.sql
}

result()
{
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - embed/$2"
    else
        echo "not ok $number - embed/$2"
        sed 's/^/# /' log
    fi
}

# refused NAME TEXT: embedding fails, prints TEXT and writes nothing.
refused()
{
    if "$tools/embed_sql.sh" sql out >log 2>&1 || ! grep -q "$2" log || [ -n "$(ls out)" ]; then
        result 1 "$1"
    else
        result 0 "$1"
    fi
}

fresh
"$tools/embed_sql.sh" sql out >log 2>&1
result $? complete_tree_is_taken

cat >main.c <<'EOF'
#include <stdio.h>
#include "sql_names.h"
int main(void)
{
    const struct sql_migration *m = sql_one_migrations;
    printf("%d|%s|%s|%s|", SQL_COUNT, sql_name_text[SQL_CALL_GET], sql_two[SQL_CALL_CLAIM],
           sql_two[SQL_CALL_GET]);
    for (; m->number; m++)
        printf("%d|%s|%s|%s|", m->number, m->word, m->expand, m->finish);
    printf("%d\n", sql_two_migrations[0].number);
    return 0;
}
EOF
cat >want <<'EOF'
2|call_get|SELECT 'a\b', "q", '??(' -- kept

 WHERE x = ?1|SELECT 1|1|begin|-- "why"
CREATE TABLE t (x);
|DROP TABLE u;
|2|more|CREATE TABLE v (x);
||0
EOF
gcc -std=gnu17 -Wall -Wextra -Werror -Iout -o main main.c out/*.c >log 2>&1 && ./main >got 2>>log &&
    diff want got >>log
result $? text_survives_as_it_was

fresh
sed -i '/call_get/,$d' sql/two/call.sql
refused missing_statement 'sql/two: engine two lacks statement "call_get"'

fresh
printf -- '-- name: call_lost\nSELECT 2;\n' >>sql/one/call.sql
refused unknown_statement 'one/call.sql:[0-9]*: statement "call_lost" is not in sql/statements.txt'

fresh
printf -- '-- name: call_get\nSELECT 2;\n' >sql/one/more.sql
refused statement_twice 'one/more.sql:1: engine one has statement "call_get" twice'

fresh
sed -i '/^SELECT 1/d' sql/two/call.sql
refused empty_statement 'statement "call_get" has no text'

fresh
echo call_get >>sql/statements.txt
refused name_listed_twice 'statements.txt:4: "call_get" is listed twice'

fresh
mv sql/one/migrations/0002_more.sql sql/one/migrations/0003_more.sql
refused gap_in_migrations 'migration 3 follows 1'

fresh
mkdir sql/two/migrations
echo 'SELECT 1;' >sql/two/migrations/0001_other.sql
refused migrations_share_words 'migration 1 is "begin" in another engine'

fresh
sed -i '1i SELECT 0;' sql/one/call.sql
refused text_before_a_name 'one/call.sql:1: SQL before the first'

# The same statements for three engines, written once.
shared()
{
    rm -rf sql out
    mkdir -p sql/all sql/pg sql/sqlite sql/mysql out
    printf 'row_add\nrow_set\nrow_take\n' >sql/statements.txt
    cat >sql/all/row.sql <<'EOF'
-- name: row_add
INSERT ONCE INTO pawl.row (name, at) rows($1:text[], $2:int[]);

-- name: row_set
each UPDATE pawl.row SET at = $2:int[], seen = $3:int
WHERE name = $1:text[];

-- name: row_take
SELECT name FROM pawl.row WHERE at <= $1:int FOR UPDATE SKIP LOCKED;
EOF
    printf -- '-- name: row_take\nSELECT 7;\n' >sql/mysql/row.sql
}

shared
"$tools/embed_sql.sh" sql out >log 2>&1
cat >main.c <<'EOF'
#include <stdio.h>
#include "sql_names.h"
int main(void)
{
    const char *const *const all[] = { sql_pg, sql_sqlite, sql_mysql };
    for (int i = 0; i < 3; i++)
        printf("%s|%s|%s\n", all[i][SQL_ROW_ADD], all[i][SQL_ROW_SET], all[i][SQL_ROW_TAKE]);
    return 0;
}
EOF
cat >want <<'EOF'
INSERT INTO pawl.row (name, at) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT DO NOTHING|UPDATE pawl.row SET at = v.c2, seen = $3::bigint
FROM unnest($1::text[], $2::bigint[]) v (c1, c2)
WHERE name = v.c1|SELECT name FROM pawl.row WHERE at <= $1::bigint FOR UPDATE SKIP LOCKED
INSERT INTO pawl_row (name, at) VALUES (?1, ?2)
ON CONFLICT DO NOTHING|UPDATE pawl_row SET at = ?2, seen = ?3
WHERE name = ?1|SELECT name FROM pawl_row WHERE at <= ?1
INSERT IGNORE INTO pawl_row (name, at) VALUES rows($1, $2)|each{UPDATE pawl_row SET at = $2, seen = $3
WHERE name = $1}|SELECT 7
EOF
gcc -std=gnu17 -Wall -Wextra -Werror -Iout -o main main.c out/*.c >log 2>&1 && ./main >got 2>>log &&
    diff want got >>log
result $? shared_statement_in_every_engine

shared
sed -i 's/^WHERE name/AND name/' sql/all/row.sql
refused shared_statement_without_where 'all/row.sql:4: statement "row_set" cannot be written for pg'

shared
printf -- '-- name: row_lost\nSELECT 1;\n' >>sql/all/row.sql
refused shared_statement_unknown 'statement "row_lost" is not in sql/statements.txt'

# A statement of the tests is in no release.
fresh
echo 'call_peek one test' >>sql/statements.txt
printf -- '-- name: call_peek\nSELECT 2;\n' >>sql/one/call.sql
"$tools/embed_sql.sh" sql out >log 2>&1 &&
    printf '#include "sql_names.c"\n#include "sql_one.c"\n#include "sql_two.c"\nint n = SQL_COUNT;\n' >all.c &&
    gcc -E -Iout all.c >plain.i && gcc -E -Iout -DPAWL_TEST=1 all.c >test.i &&
    [ "$(grep -ci 'call_peek\|SELECT 2' plain.i)" = 0 ] && [ "$(grep -ci 'call_peek' test.i)" = 3 ] >>log 2>&1
result $? a_statement_of_the_tests_is_in_no_release
