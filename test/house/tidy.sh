#!/bin/sh
# tidy.sh - `make tidy` finds each thing that it forbids, and finds nothing in this tree.
#
# SPDX-License-Identifier: Apache-2.0
set -u
root=$(pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0
echo 1..31

result()
{
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - tidy/$2"
    else
        echo "not ok $number - tidy/$2"
        sed 's/^/# /' "$tmp/log"
    fi
}

"$root/tools/tidy.sh" >"$tmp/log" 2>&1
result $? this_tree_is_tidy

# A small tree in which everything is correct.
fresh()
{
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree/tools" "$tmp/tree/src/base" "$tmp/tree/src/exec" "$tmp/tree/samples/echo"
    cd "$tmp/tree" || exit 2
    cp "$root/.clang-format" .
    cp "$root/tools/rooms.txt" tools
    printf 'whoever: a name\nin vain, ear: nothing\n' >tools/words.txt
    echo 'Bytes, and nothing else.' >src/base/README.md
    echo 'The machine.' >src/exec/README.md
    printf '/* a.h - one. */\n#include <stddef.h>\n\n/* How many. */\nsize_t a(void);\n' >src/base/a.h
    printf '/* b.c - two. */\n#include "base/a.h"\n' >src/exec/b.c
    printf '/* echo.c - three. */\n#include <stdio.h>\n' >samples/echo/echo.c
}

# finds NAME TEXT: tidy fails and prints TEXT.
finds()
{
    if "$root/tools/tidy.sh" . >"$tmp/log" 2>&1 || ! grep -q "$2" "$tmp/log"; then
        result 1 "$1"
    else
        result 0 "$1"
    fi
}

# long_function LINES: a function with this many lines, including its head.
long_function()
{
    printf '\nvoid f(int *x);\n\nvoid f(int *x)\n{\n'
    i=3
    while [ $i -lt "$1" ]; do
        echo '    *x += 1;'
        i=$((i + 1))
    done
    echo '}'
}

fresh
"$root/tools/tidy.sh" . >"$tmp/log" 2>&1
result $? small_tree_is_tidy

fresh
printf '#include "exec/b.h"\n' >>src/base/a.h
finds forbidden_room 'src/base/a.h:6: base may not include headers of exec'

fresh
printf '#include <sqlite3.h>\n' >>src/exec/b.c
finds database_header_outside_its_engine 'src/exec/b.c:3: sqlite3.h stays inside'

fresh
mkdir src/lib
echo 'The public face.' >src/lib/README.md
printf '/* pool.h - the room'"'"'s own. */\n' >src/exec/pool.h
printf '/* job.h - what others see. */\n' >src/exec/write_job.h
printf '/* c.c - four. */\n#include "exec/write_job.h"\n#include "exec/pool.h"\n' >src/lib/c.c
finds header_that_a_room_does_not_show 'src/lib/c.c:3: exec/pool.h stays inside exec'
! grep -q 'c.c:2' "$tmp/log"
result $? header_that_a_room_shows

fresh
printf '#include "base/a.h"\n' >>samples/echo/echo.c
finds sample_looking_inside 'samples/echo/echo.c:3: a sample includes'

fresh
printf '\nstruct bytes b(size_t n, struct nobody x);\n' >>src/base/a.h
finds header_not_alone 'src/base/a.h:.*compiled alone'

fresh
long_function 80 >>src/exec/b.c
"$root/tools/tidy.sh" . >"$tmp/log" 2>&1 && grep -q 'warning: src/exec/b.c:6: a function of 80' "$tmp/log"
result $? eighty_lines_are_allowed

fresh
long_function 81 >>src/exec/b.c
finds eighty_one_are_not 'src/exec/b.c:6: a function of 81 lines'

fresh
i=0
while [ $i -lt 900 ]; do
    echo "int x$i;"
    i=$((i + 1))
done >>src/exec/b.c
finds long_file '902 lines, limit 900'

fresh
printf '\nint f(const char *s);\n\nint f(const char *s)\n{\n    return atoi(s);\n}\n' >>src/exec/b.c
finds banned_function 'src/exec/b.c:8: atoi() is banned'

fresh
printf '\n/* strcpy() is a word here, "sprintf(" a string. */\nconst char *b = "sprintf(x)";\n' >>src/exec/b.c
"$root/tools/tidy.sh" . >"$tmp/log" 2>&1
result $? banned_words_in_comments_are_free

fresh
rm src/exec/README.md
finds room_without_readme 'src/exec/README.md:1: the room has no README'

fresh
echo '# exec' >src/exec/README.md
finds readme_without_sentence 'src/exec/README.md:1: the first line is one sentence'

fresh
sed -i 1d src/exec/b.c
finds file_without_opening_comment 'src/exec/b.c:1: a file opens with a comment'

fresh
printf '\nint  x;\n' >>src/exec/b.c
finds unformatted_line 'src/exec/b.c:4: not formatted'

fresh
printf '\n/* tab:\there */\nint x; \n' >>src/exec/b.c
finds tab_and_trailing_space 'src/exec/b.c:4: a tab'

# ---- Words

fresh
printf '/* Whoever comes first. */\n' >>src/exec/b.c
finds banned_word_in_a_comment 'src/exec/b.c:3: "whoever" is not used here: a name'

fresh
printf '\n/* Looked for in\n * vain. */\n' >>src/exec/b.c
finds banned_words_over_two_lines 'src/exec/b.c:5: "in vain" is not used'

fresh
printf 'Whoever comes first.\n' >>src/exec/README.md
finds banned_word_in_the_readme_of_a_room 'src/exec/README.md:2: "whoever" is not used'

fresh
mkdir doc
printf '| Whose | ear |\n' >doc/a.md
finds banned_word_in_a_page 'doc/a.md:1: "ear" is not used'

fresh
mkdir src/attic test
printf '/* a.h - five.\n * Whoever comes first. */\n' | tee src/attic/a.h >test/a.h
finds banned_word_in_any_room 'src/attic/a.h:2: "whoever" is not used'
grep -q 'test/a.h:2: "whoever" is not used' "$tmp/log"
result $? banned_word_in_a_test

# Part of a word, and code.
fresh
mkdir doc
printf 'Early `ear`, in_vain.\n\n    whoever\n\n```\nwhoever\n```\n' >doc/a.md
printf '\nextern const char *ear; /* early */\n' >>src/exec/b.c
"$root/tools/tidy.sh" . >"$tmp/log" 2>&1
result $? other_words_and_code_are_free

# wide N: a line of N columns.
wide()
{
    printf 'a%*s\n' $(($1 - 1)) b
}

fresh
mkdir doc
{ wide 120 && printf '| %s |\n\n    %s\n' "$(wide 121)" "$(wide 121)"; } >doc/a.md
"$root/tools/tidy.sh" . >"$tmp/log" 2>&1
result $? prose_of_120_columns_and_wide_tables_and_code

fresh
wide 121 >CONTRIBUTING.md
finds prose_of_121_columns 'CONTRIBUTING.md:1: 121 columns of prose, limit 120'

# ---- Contracts

fresh
printf '\nsize_t b(size_t n,\n         size_t m);\n' >>src/base/a.h
finds prototype_without_contract 'src/base/a.h:7: a prototype without its contract'

fresh
mkdir src/attic
printf '/* a.h - five. */\n\nint a(void);\n' >src/attic/a.h
finds prototype_without_contract_in_any_room 'src/attic/a.h:3: a prototype without its contract'

fresh
printf '\n/* ---- Counting ---- */\nsize_t b(void);\n' >>src/base/a.h
finds section_heading_is_no_contract 'src/base/a.h:8: a prototype without its contract'

fresh
printf 'size_t b(size_t n);\nextern size_t c;\nsize_t d(void);\n' >>src/base/a.h
"$root/tools/tidy.sh" . >"$tmp/log" 2>&1
result $? one_contract_covers_a_group
