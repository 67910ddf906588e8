#!/bin/sh
# spin.sh - models of protocols under spin: of waiting in workflows (test/spin/waiting.pml), and of the slots of limits
# (test/spin/slots.pml). The protocol holds in every order of events, and each wrong one is refused, so a model can fail.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=spin
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..10

# check MODEL [DEFINE...]: explore all states; its report is in the file `report`, spin's exit code is lost.
check()
{
    model=$1
    shift
    rm -f pan*
    spin -a "$@" "$top/test/spin/$model.pml" >spin.out 2>&1 || echo "spin: $(cat spin.out)"
    cc -O1 -DSAFETY -DCOLLAPSE -o pan pan.c 2>cc.out || echo "cc: $(cat cc.out)"
    timeout 240 ./pan -m1000000 >report 2>&1 || echo "pan: exit code $?"
}

# holds MODEL
holds()
{
    check "$1"
    has no_error "$(cat report)" 'errors: 0'
    has all_states "$(cat report)" 'Full statespace search'
    if grep -q 'search depth too small' report; then
        echo "the depth of the search is too small"
    fi
}
result the_protocol_holds "$(holds waiting)"

# refused MODEL DEFINE ASSERTION
refused()
{
    check "$1" "-D$2"
    has an_error "$(cat report)" 'errors: 1'
    has why "$(cat report)" "assertion violated ($3)"
}
result a_look_before_the_lock_loses_a_wake_up "$(refused waiting LOOK_FIRST 'found==0')"
result a_wake_before_the_signal_is_stored_is_lost "$(refused waiting WAKE_FIRST 'found==0')"
result a_question_asked_twice_settles_twice "$(refused waiting TAKE_FREELY 'locked&&(settled[w]==0)')"

max=' !(limited)||(running<=max)'
result no_more_run_than_a_limit_allows "$(holds slots)"
result a_count_is_no_slot "$(refused slots COUNTS "$max")"
result a_row_too_many_is_not_freed "$(refused slots FREES "$max")"
result a_row_that_is_about_to_go_may_stay "$(refused slots SKIPS "$max")"
result a_new_limit_counts_what_runs "$(refused slots UNCOUNTED "$max")"
result a_claim_shares_the_lock_of_changes "$(refused slots UNSHARED "$max")"
