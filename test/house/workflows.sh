#!/bin/sh
# workflows.sh - workflows from a user's view: every shell block of doc/workflows.md.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=workflows
# shellcheck source=/dev/null
. test/lib/serving.sh
: >pawl.conf
echo 1..1
start c || exit 1

page()
{
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/doc/workflows.md" |
        sed "s/127\.0\.0\.1:7295/127.0.0.1:${url##*:}/g" >page.sh
    timeout 60 bash -e page.sh >page.out 2>&1 || echo "exit code $?: $(cat page.out)"
    out=$(cat page.out)
    same charged "$(grep -c '^charging$' page.out)" 2 # once for each run
    has waits "$out" 'waiting_for          signal shipped'
    has result "$out" '[{"paid":7},{"by":"mail"}]'
    has started "$out" '["completed",[{"paid":7},1],"shipped"]'
}
result the_page_runs_as_printed "$(page)"
