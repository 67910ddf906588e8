#!/bin/sh
# header.sh - what pawl.h accepts and rejects at compile time, in plain C11 and in C++.
#
# SPDX-License-Identifier: Apache-2.0
set -u
include=$(pwd)/include
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
number=0
echo 1..4

# result NAME PROBLEM: ok when PROBLEM is empty.
result()
{
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - header/$1"
    else
        echo "not ok $number - header/$1"
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

in_c()
{
    cc -x c -std=c11 -pedantic -Wall -Wextra -Werror -I "$include" -c -o /dev/null "$1" 2>&1
}
in_cxx()
{
    c++ -x c++ -std=c++11 -Wall -Wextra -Werror -I "$include" -c -o /dev/null "$1" 2>&1
}

# A literal, a literal in pieces, an array and a constant array; pawl_text() takes any string.
cat >array.c <<'EOF'
#include <pawl.h>
static const char fixed[] = "[1]";
void use(struct pawl_data *out, const char *line);
void use(struct pawl_data *out, const char *line)
{
    char filled[] = "{\"n\": 1}";
    filled[6] = '2';
    out[0] = PAWL_TEXT("{\"n\": 1}");
    out[1] = PAWL_TEXT("[1, " "2]");
    out[2] = PAWL_TEXT(fixed);
    out[3] = PAWL_TEXT(filled);
    out[4] = pawl_text(line);
    out[5] = pawl_text("1");
}
EOF
result array_compiles_in_c "$(in_c array.c)"
result array_compiles_in_cxx "$(in_cxx array.c)"

# sizeof a pointer is 8 whatever it points at: PAWL_TEXT(pointer) would store seven bytes of the text. The compiler's
# message must name the right function.
pointers()
{
    for type in 'char *' 'const char *' 'char *const' 'void *'; do
        cat >pointer.c <<EOF
#include <pawl.h>
struct pawl_data use($type pointer);
struct pawl_data use($type pointer)
{
    return PAWL_TEXT(pointer);
}
EOF
        if said=$("$1" pointer.c); then
            echo "PAWL_TEXT($type) compiles"
        elif ! printf '%s\n' "$said" | grep -q "error: .*$2"; then
            printf '%s\n' "PAWL_TEXT($type): the message does not name $2: $said"
        fi
    done
    printf '#include <pawl.h>\nstruct pawl_data use(void);\nstruct pawl_data use(void)\n{\n%s\n}\n' \
        '    return PAWL_TEXT(pawl_status_name(PAWL_OK));' >returned.c
    if "$1" returned.c >/dev/null; then
        echo "PAWL_TEXT of a pointer that a function returned compiles"
    fi
}
result pointer_is_refused_in_c "$(pointers in_c 'use pawl_text()')"
result pointer_is_refused_in_cxx "$(pointers in_cxx pawl_text_of_array)"
