#!/bin/sh
# reads.sh - `pawl list` and `pawl get` in scripts: continuing a list where it ended, and archived calls.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=reads
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..2

start r || exit 1
seq 1 5 | sed 's/.*/{"id":"r&","type":"nobody","input":&}/' | pawl batch - >/dev/null

pages()
{
    page=$(pawl list --limit 2 --json)
    same first "$(echo "$page" | jq -r '[.calls[].id] | join(" ")')" "r5 r4"
    same payloads "$(echo "$page" | jq -r '.calls[0] | [has("input"), has("input_base64"), has("result"), has("result_base64")] | any')" false
    next=$(echo "$page" | jq -r .next)
    [ "$next" != null ] || echo "next is null, and there is more"
    page=$(pawl list --limit 2 --cursor "$next" --json)
    same second "$(echo "$page" | jq -r '[.calls[].id] | join(" ")')" "r3 r2"
    page=$(pawl list --limit 2 --cursor "$(echo "$page" | jq -r .next)" --json)
    same last "$(echo "$page" | jq -r '[.calls[].id] | join(" ")')" r1
    same end "$(echo "$page" | jq -r .next)" null
    same all "$(pawl list --json | jq -r .next)" null
}
result list_says_where_to_go_on "$(pages)"

archived()
{
    pawl call echo '{"n": 1.0}' --id a1 >/dev/null
    pawl archive --db sqlite:r.db --older-than 0s >/dev/null 2>err || cat err
    pawl get a1 >out 2>err
    same code $? 15
    has message "$(cat err)" 'call "a1" ended completed and was archived at '
    has hint "$(cat err)" 'pawl get --archived'
    same status "$(pawl get --archived a1 --json | jq -r .status)" completed
    same input "$(pawl get --archived a1 --json | jq -c .input.n)" 1
    same result "$(pawl get --archived a1 --result)" '{"n": 1.0}'
    pawl get --archived r1 >out 2>err
    same "never archived" $? 3
    has name "$(cat err)" 'no call "r1" in the archive'
}
result archived_calls_are_read "$(archived)"
stop
