#!/bin/sh
# bench-node.sh - make bench-peers uses the machine's Node when it is new enough, and installs one when it is not.
#
# Node and npm are scripts of this test, so nothing is downloaded.
#
# SPDX-License-Identifier: Apache-2.0
set -u
top=$(pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
number=0
echo 1..6

result()
{
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - bench-node/$1"
    else
        echo "not ok $number - bench-node/$1"
        printf '%s\n' "$2" | sed 's/^/# /'
    fi
}

# machine VERSION INSTALLED: `node` reports VERSION; npm installs a Node that reports INSTALLED, or fails when that is
# "".
machine()
{
    rm -rf bin brought npm.log
    mkdir bin
    printf '#!/bin/sh\necho %s\n' "$1" >bin/node
    chmod +x bin/node
    cat >bin/npm <<EOF
#!/bin/sh
echo "\$@" >>"$scratch/npm.log"
[ -n "$2" ] || exit 1
mkdir -p node_modules/node/bin
printf '#!/bin/sh\necho %s\n' "$2" >node_modules/node/bin/node
chmod +x node_modules/node/bin/node
EOF
    chmod +x bin/npm
}

# uses: the version of the Node that runs the peers, or "none"; npm's arguments are in npm.log.
uses()
{
    # shellcheck source=/dev/null
    (
        PATH=$scratch/bin:/usr/bin:/bin
        . "$top/tools/bench-node.sh"
        if use_node "$scratch/brought" 2>err; then
            node --version
        else
            echo none
        fi
    )
}

same()
{
    [ "$1" = "$2" ] || echo "got \"$1\", want \"$2\""
}

machine v20.1.0 ''
result new_enough_is_used_as_it_is "$(same "$(uses)" v20.1.0; [ ! -e npm.log ] || cat npm.log)"
machine v22.11.0 ''
result newer_is_used_as_it_is "$(same "$(uses)" v22.11.0)"
machine v18.20.4 v20.20.2
result old_one_is_replaced "$(same "$(uses)" v20.20.2
    grep -q ' node@20\.' npm.log || echo "npm: $(cat npm.log)"
    grep -q 'node is v18.20.4; installing Node 20' err || cat err)"
result second_time_installs_nothing "$(rm -f npm.log; same "$(uses)" v20.20.2; [ ! -e npm.log ] || cat npm.log)"
machine v18.20.4 ''
result failed_install_is_said "$(same "$(uses)" none)"
machine v9.0.0 v18.0.0
result old_one_from_npm_is_not_used "$(same "$(uses)" none)"
