#!/bin/sh
# install.sh - what `make install` leaves is enough to build against: header, libraries, pawl.pc.
#
# SPDX-License-Identifier: Apache-2.0
set -u
# The plain build is what gets installed; an instrumented one is not for users.
build=$(cd build 2>/dev/null && pwd) || build=${PAWL_BUILD:?}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
number=0
echo 1..4

result()
{
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - install/$2"
    else
        echo "not ok $number - install/$2"
        sed 's/^/# /' log
    fi
}

meson install -C "$build" --no-rebuild --quiet --destdir "$tmp/root" >log 2>&1
result $? installs_below_destdir

pc=$(find root -name pawl.pc)
lib=$tmp/$(dirname "$(dirname "$pc")")
prefix=$(sed -n 's/^prefix=//p' "$pc")
missing=
for f in bin/pawl include/pawl.h share/doc/pawl/LICENSE; do
    if [ ! -e "root$prefix/$f" ]; then
        missing="$missing $prefix/$f"
    fi
done
for f in libpawl.so libpawl.so.0 libpawl.a; do
    if [ ! -e "$lib/$f" ]; then
        missing="$missing $f"
    fi
done
echo "missing:$missing" >log
[ -z "$missing" ]
result $? everything_is_there

cat >user.c <<'EOF'
#include <pawl.h>
#include <string.h>
/* A name of ours that the library has inside as well: the two must not meet. */
int arena_alloc(void);
int arena_alloc(void)
{
    return 1;
}
int main(void)
{
    return strcmp(pawl_status_name(PAWL_CONFLICT), "CONFLICT") != 0 || arena_alloc() != 1;
}
EOF
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp/root"
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror user.c -o shared $(pkg-config --cflags --libs pawl) >log 2>&1 &&
    LD_LIBRARY_PATH=$lib ./shared >>log 2>&1
result $? links_with_the_shared_library

# The system's own libraries are not below DESTDIR, so their flags come without its prefix.
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror user.c -o static -I"root$prefix/include" "$lib/libpawl.a" \
    $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --libs sqlite3 libcrypto libpq libmariadb) -pthread -ldl -lm >log 2>&1 &&
    ./static >>log 2>&1
result $? links_with_the_archive
