#!/bin/sh
# install.sh - what `make install` installs is enough to build against, to read and to run: header, libraries, pawl.pc,
# pages whose links have targets, a unit that starts the installed program. So is the build folder.
#
# SPDX-License-Identifier: Apache-2.0
set -u
# The plain build is installed; an instrumented one is not for users.
top=$(pwd)
build=$(cd build 2>/dev/null && pwd) || build=${PAWL_BUILD:?}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
number=0
echo 1..8

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
for f in bin/pawl include/pawl.h share/man/man1/pawl.1 lib/systemd/system/pawl.service share/doc/pawl/LICENSE \
    share/doc/pawl/README.md share/doc/pawl/doc/concepts.md share/doc/pawl/doc/internals/walk.md share/doc/pawl/pawl.conf; do
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

# The system's own libraries are not below DESTDIR, so their flags must not get its prefix.
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror user.c -o static -I"root$prefix/include" "$lib/libpawl.a" \
    $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --libs sqlite3 libcrypto libpq libmariadb) -pthread -ldl -lm >log 2>&1 &&
    ./static >>log 2>&1
result $? links_with_the_archive

# Every relative link of every page, resolved from where the page is installed.
(
    cd "root$prefix/share/doc/pawl" || exit 1
    find . -name '*.md' | while read -r page; do
        grep -o '](\([^)#:]*\)[)#]' "$page" | sed 's/^](//; s/[)#]$//' | while read -r link; do
            [ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: $link does not exist"
        done
    done
) >log 2>&1
[ ! -s log ]
result $? links_of_installed_pages_lead_somewhere

# The installed pawl.conf changes nothing as it is, and is read without an error.
conf=root$prefix/share/doc/pawl/pawl.conf
{
    grep -v '^#' "$conf" | grep . && echo "pawl.conf: the lines above count as they are"
    grep -q '^#worker_slots = 16$' "$conf" || echo "pawl.conf: worker_slots is not there"
    "$build/pawl" --config "$conf" --db mem:x doctor >doctor.out 2>&1 || cat doctor.out
} >log
[ ! -s log ]
result $? settings_come_along_commented_out

# Another prefix, and back again: files that contain the prefix change, and nothing is compiled.
touch stamp
other=/opt/pawl-elsewhere
there=$tmp/there$other
{
    cd "$top" && tools/install.sh "$build" "$other" "$tmp/there" && tools/install.sh "$build" "$prefix" "$tmp/back"
    cd "$tmp" || exit 1
    find "$build" -name '*.o' -newer stamp | sed 's/$/: was compiled again/'
    unit=$(grep '^ExecStart=' "$there/lib/systemd/system/pawl.service")
    [ "$unit" = "ExecStart=$other/bin/pawl serve --config /etc/pawl.conf" ] || echo "unit: $unit"
    [ "$(sed -n 's/^prefix=//p' "$(find there -name pawl.pc)")" = "$other" ] || echo "pawl.pc names another prefix"
    cmp -s "back$prefix/lib/systemd/system/pawl.service" "root$prefix/lib/systemd/system/pawl.service" ||
        echo "the unit did not follow the prefix back"
} >log 2>&1
[ ! -s log ]
result $? another_prefix_compiles_nothing

# The README's program built against the build folder, as the README says.
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$top/README.md" >tour.c
{
    # shellcheck disable=SC2046
    PKG_CONFIG_SYSROOT_DIR='' PKG_CONFIG_PATH="$build/meson-uninstalled" \
        sh -c 'cc -Wall -Wextra -Werror tour.c $(pkg-config --cflags --libs pawl) -o tour' &&
        LD_LIBRARY_PATH=$build ./tour >tour.out
    [ "$(cat tour.out)" = "tour-1 is completed: 5" ] || cat tour.out
} >log 2>&1
[ ! -s log ]
result $? the_build_folder_works_for_pkg_config
