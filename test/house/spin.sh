#!/bin/sh
# spin.sh - the model of the waiting protocol of workflows (test/spin/waiting.pml) under spin: the protocol holds in
# every order of events, and each wrong protocol is refused, so the model can fail.
#
# SPDX-License-Identifier: Apache-2.0
set -u
suite=spin
# shellcheck source=/dev/null
. test/lib/serving.sh
echo 1..4

# check [DEFINE...]: explore all states; its report is in the file `report`, spin's exit code is lost.
check()
{
    rm -f pan*
    spin -a "$@" "$top/test/spin/waiting.pml" >spin.out 2>&1 || echo "spin: $(cat spin.out)"
    cc -O1 -DSAFETY -DCOLLAPSE -o pan pan.c 2>cc.out || echo "cc: $(cat cc.out)"
    timeout 120 ./pan -m100000 >report 2>&1 || echo "pan: exit code $?"
}

holds()
{
    check
    has no_error "$(cat report)" 'errors: 0'
    has all_states "$(cat report)" 'Full statespace search'
    if grep -q 'search depth too small' report; then
        echo "the depth of the search is too small"
    fi
}
result the_protocol_holds "$(holds)"

# refused DEFINE ASSERTION
refused()
{
    check "-D$1"
    has an_error "$(cat report)" 'errors: 1'
    has why "$(cat report)" "assertion violated ($2)"
}
result a_look_before_the_lock_loses_a_wake_up "$(refused LOOK_FIRST 'found==0')"
result a_wake_before_the_signal_is_stored_is_lost "$(refused WAKE_FIRST 'found==0')"
result a_question_asked_twice_settles_twice "$(refused TAKE_FREELY 'locked&&(settled[w]==0)')"
