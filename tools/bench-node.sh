# bench-node.sh - choose the Node that runs the peers of the benchmarks: the machine's when it is new enough, else one
# from npm. To be sourced.
#
# Debian 12 has Node 18; DBOS needs 20. The version from npm is the one of the published figures.
#
# SPDX-License-Identifier: Apache-2.0
node_needed=20
node_version=20.20.2

# node_fits PROGRAM: does it run, and is it Node $node_needed or newer?
node_fits()
{
    major=$("$1" --version 2>/dev/null | sed -n 's/^v\([0-9][0-9]*\)\..*/\1/p')
    [ -n "$major" ] && [ "$major" -ge "$node_needed" ]
}

# use_node DIR: makes the first `node` in PATH new enough; installs one into DIR with npm when it is not.
use_node()
{
    if node_fits node; then
        return 0
    fi
    bin=$1/node_modules/node/bin
    if ! node_fits "$bin/node"; then
        rm -rf "$1"
        mkdir -p "$1"
        echo "bench-peers: node is $(node --version 2>/dev/null || echo missing); installing Node $node_version from npm" >&2
        (cd "$1" && npm install --prefix . --no-package-lock --no-audit --no-fund --loglevel=error \
            "node@$node_version") >&2 || return 1
    fi
    PATH=$bin:$PATH
    export PATH
    node_fits node
}
