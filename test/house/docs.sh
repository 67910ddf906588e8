#!/bin/sh
# docs.sh - the pages are true: generated ones are up to date, links and paths have targets, the README's program runs.
#
# SPDX-License-Identifier: Apache-2.0
set -u
top=$(pwd)
build=$top/build
[ -e "$build/libpawl.so" ] || build=${PAWL_BUILD:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 1..7

check()
{
    if [ -z "$2" ]; then
        echo "ok $1 - docs/$3"
    else
        echo "not ok $1 - docs/$3"
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

check 1 "$(tools/docs.sh --check 2>&1)" printed_pages_are_fresh

# Every relative link of every page, resolved from the page's folder.
broken()
{
    git ls-files -co --exclude-standard '*.md' | while read -r page; do
        grep -o '](\([^)#:]*\)[)#]' "$page" | sed 's/^](//; s/[)#]$//' | while read -r link; do
            [ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: $link does not exist"
        done
    done
}
check 2 "$(broken)" links_lead_somewhere

# The program of the README's tour, as printed, twice: the second run finds the result of the first.
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md > "$scratch/tour.c"
want=$(sed -n 's/^    \(tour-1 is .*\)$/\1/p' README.md)
tour()
{
    cd "$scratch" || return
    cc -Wall -Wextra -Werror -I "$top/include" tour.c -L "$build" -lpawl -o tour 2>&1 || return
    for round in 1 2; do
        got=$(LD_LIBRARY_PATH=$build ./tour 2>&1)
        [ "$got" = "$want" ] || echo "run $round printed \"$got\", the README says \"$want\""
    done
}
check 3 "$(tour)" readme_tour_runs_as_printed

# The guide's targets, and every make target in the README, exist.
targets()
{
    grep -ho '`make [a-z-][a-z-]*\|^    make [a-z-][a-z-]*' README.md CONTRIBUTING.md | sed 's/.*make //' | sort -u | while read -r name; do
        grep -q "^$name:" Makefile || echo "make $name is not in the Makefile"
    done
}
check 4 "$(targets)" named_make_targets_exist

# Every link to a heading finds it: lower case, without punctuation, spaces as hyphens.
headings()
{
    sed -n 's/^#* //p' "$1" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g'
}
lost_headings()
{
    git ls-files -co --exclude-standard '*.md' | while read -r page; do
        grep -o '](\([^):]*\)#[^)]*)' "$page" | sed 's/^](//; s/)$//' | while IFS='#' read -r link heading; do
            target=$page
            [ -z "$link" ] || target=$(dirname "$page")/$link
            headings "$target" | grep -qxF -e "$heading" || echo "$page: $link has no heading #$heading"
        done
    done
}
check 5 "$(lost_headings)" links_to_headings_find_them

# Every path that a page names between backquotes is there; what has a capital, a brace or a star in it stands for several.
lost_paths()
{
    for page in README.md CONTRIBUTING.md $(git ls-files -co --exclude-standard 'doc/*.md' 'samples/*.md' 'test/README.md' 'src/*README.md'); do
        grep -o '`\(src\|sql\|test\|tools\|include\|samples\|packaging\|doc\)/[a-z0-9_./-]*`' "$page" | tr -d '`' |
            while read -r path; do
                [ -e "$path" ] || echo "$page: $path does not exist"
            done
    done
}
check 6 "$(lost_paths)" named_paths_exist

# The index has every page.
unlisted()
{
    for page in $(git ls-files -co --exclude-standard 'doc/*.md'); do
        name=${page#doc/}
        [ "$name" = README.md ] || grep -qF "]($name)" doc/README.md || echo "doc/README.md does not list $name"
    done
}
check 7 "$(unlisted)" the_index_lists_every_page
