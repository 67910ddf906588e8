#!/bin/sh
# cron.sh - schedules from a user's view: every shell block of doc/cron.md, and the settings block that it shows.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=cron
# shellcheck source=/dev/null
. test/lib/serving.sh
: >pawl.conf
echo 1..2
start c || exit 1

page()
{
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/doc/cron.md" |
        sed "s/127\.0\.0\.1:7295/127.0.0.1:${url##*:}/g" >page.sh
    timeout 60 bash -e page.sh >page.out 2>&1 || echo "exit code $?: $(cat page.out)"
    out=$(cat page.out)
    has stored "$out" '"name":"nightly","cron":"0 3 * * 1-5"'
    has run "$out" '"id":"cron:nightly@'
    has deleted "$out" '{"name":"nightly","deleted":true}'
    has column "$out" '\"24\" at column 3'
    has note "$out" 'note: '
    has gap "$out" '2027-03-28T01:00:00Z  2027-03-28T03:00:00+02:00  gap'
    has fold "$out" '2027-10-31T00:30:00Z  2027-10-31T02:30:00+02:00  fold'
    has elapsed "$out" '2027-10-31T01:00:00Z  2027-10-31T02:00:00+01:00  fold'
    has same_run "$out" 'cron:report!november'
    has dry "$out" 'dry run: 2 created, 0 updated, 0 unchanged, 0 deleted'
    has twice "$out" '0 created, 0 updated, 2 unchanged, 0 deleted'
    has stored_file "$out" 'dry run: 0 created, 0 updated, 1 unchanged, 0 deleted'
}
result the_page_runs_as_printed "$(page)"

# The block of the page, as a settings file of its own.
block()
{
    awk '/^    schedule "nightly" {$/ { on = 1 } on; /^    }$/ { on = 0 }' "$top/doc/cron.md" >block.conf
    pawl serve --config block.conf --db sqlite:block.db --listen 127.0.0.1:0 >block.out 2>block.err &
    note
    within 10 grep -q listening block.out || echo "not ready: $(cat block.err)"
    address=$(sed 's/.*\(http:[^ ]*\).*/\1/' block.out)
    same call "$(pawl cron get nightly --url "$address" --config /dev/null --json | jq -c .call)" \
        '{"type":"report","timeout":600,"input":{"kind":"daily"},"backoff":{"base":5},"tags":{"team":"shop"}}'
    stop
}
result the_block_of_the_page_is_read "$(block)"
