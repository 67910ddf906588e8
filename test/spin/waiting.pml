/*
 * waiting.pml - the waiting protocol of workflows, for the model checker spin.
 *
 * One run takes WAITS waits, one after another. Each waits for any of: a signal, the end of a
 * child, a time; and a cancel ends all of them. What it waits for is chosen freely, so all
 * combinations are checked. Signals, the end of the child, the time and the cancel come at any
 * moment. A pass of the run may be cut off before it asks, or after its question was stored but
 * before the answer arrived. What stands between LOCK and UNLOCK is one transaction that holds the
 * lock of the run's row.
 *
 * Checked: no wait is settled twice, no signal is consumed twice, no end of a child is told twice;
 * and no wake-up is lost: when nothing moves any more, the run has ended, or it waits and nothing
 * of what it waits for has come.
 *
 * Wrong protocols, which spin has to refuse:
 *   LOOK_FIRST  the run looks for what has come, and takes the lock to suspend without another look
 *   WAKE_FIRST  a signal wakes the run in one transaction and is stored in the next
 *   TAKE_FREELY a pass whose question was stored before asks again and does not look for the row
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define WAITS 2
#define SIGNALS 2
#define CUTS 2

/* For what a wait waits. */
#define FOR_SIGNAL 1
#define FOR_CHILD 2
#define FOR_TIME 4

#define NOTHING 0 /* as a new row is */
mtype = { SIGNAL, CHILD, TIME, CANCEL }; /* what settles a wait */
mtype = { DUE, LATER, HELD, ENDED };     /* where the call is */

/* ---- What is stored -------------------------------------------------------------------------- */

mtype place = DUE;
bool locked = false;  /* the run's row */
mtype settled[WAITS]; /* the rows of steps; NOTHING: there is none */
bool waiting = false; /* the run is suspended in a wait... */
byte waits_for = 0;   /* ...for these */
bool timed = false;   /* the call is due again when the time has come */
byte arrived = 0, consumed = 0; /* signals, in their order */
bool child_ended = false, child_told = false;
bool undoing = false; /* it was cancelled */

/* ---- Not stored ------------------------------------------------------------------------------ */

bool time_has_come = false;
byte asked[WAITS]; /* what the code of the run waits for: the same on each pass */
byte cuts = 0;

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false

/* By what a wait for `set` can be settled now. */
inline look(set, found)
{
    if
    :: undoing -> found = CANCEL
    :: else ->
        if
        :: (set & FOR_SIGNAL) && arrived > consumed -> found = SIGNAL
        :: else ->
            if
            :: (set & FOR_CHILD) && child_ended && !child_told -> found = CHILD
            :: else ->
                if
                :: (set & FOR_TIME) && time_has_come -> found = TIME
                :: else -> found = NOTHING
                fi
            fi
        fi
    fi
}

inline settle(w, found)
{
    assert(locked && settled[w] == NOTHING);
    if
    :: found == SIGNAL ->
        assert(consumed < arrived);
        consumed++
    :: found == CHILD ->
        assert(!child_told);
        child_told = true
    :: else
    fi;
    settled[w] = found;
    waiting = false
}

/* Under the lock. A call that is held, or due already, stays as it is. */
inline wake()
{
    if
    :: place == LATER -> place = DUE
    :: else
    fi
}

/* ---- The run --------------------------------------------------------------------------------- */

inline suspend(set)
{
    waiting = true;
    waits_for = set;
    timed = (set & FOR_TIME) != 0;
    place = LATER
}

/* The one operation of a wait. It answers what is stored, or settles the wait, or suspends the
 * run. */
inline wait_step(w, found)
{
#ifdef LOOK_FIRST
    look(asked[w], found);
#endif
    LOCK;
    if
#ifndef TAKE_FREELY
    :: settled[w] != NOTHING -> found = settled[w]
#endif
    :: else ->
#ifndef LOOK_FIRST
        look(asked[w], found);
#endif
        if
        :: found == NOTHING -> suspend(asked[w])
        :: else -> settle(w, found)
        fi
    fi;
    UNLOCK
}

/* The process dies, or its answer is lost: the lease is reclaimed, unless the call has left it. */
inline cut()
{
    cuts++;
    LOCK;
    if
    :: place == HELD -> place = DUE
    :: else
    fi;
    UNLOCK
}

active proctype pass()
{
    byte w;
    mtype found;
    do
    :: w < WAITS ->
        if
        :: asked[w] = FOR_SIGNAL
        :: asked[w] = FOR_CHILD
        :: asked[w] = FOR_TIME
        :: asked[w] = FOR_SIGNAL | FOR_CHILD
        :: asked[w] = FOR_SIGNAL | FOR_TIME
        :: asked[w] = FOR_SIGNAL | FOR_CHILD | FOR_TIME
        fi;
        w++
    :: else -> break
    od;
claim:
end_waits:
    atomic { place == DUE || (place == LATER && timed && time_has_come) -> place = HELD }
    w = 0;
    do
    :: w == WAITS -> break
    :: w < WAITS && settled[w] != NOTHING -> w++ /* from the journal */
    :: w < WAITS && settled[w] == NOTHING && cuts < CUTS ->
        cut();
        goto claim
    :: w < WAITS && settled[w] == NOTHING ->
        wait_step(w, found);
        if
        :: found == NOTHING -> goto claim
        :: found != NOTHING && cuts < CUTS ->
            wait_step(w, found); /* the group whose answer was lost runs again */
            cut();
            goto claim
        :: found != NOTHING -> w++
        fi
    od;
    LOCK;
    place = ENDED;
    UNLOCK
}

/* ---- Everybody else -------------------------------------------------------------------------- */

active[SIGNALS] proctype signaller()
{
    LOCK;
#ifdef WAKE_FIRST
    if
    :: waiting && (waits_for & FOR_SIGNAL) -> wake()
    :: else
    fi;
    UNLOCK;
    LOCK;
#endif
    if
    :: place == ENDED /* refused: STATE */
    :: else ->
        arrived++;
#ifndef WAKE_FIRST
        if
        :: waiting && (waits_for & FOR_SIGNAL) -> wake()
        :: else
        fi
#endif
    fi;
    UNLOCK
}

active proctype child_node()
{
    LOCK;
    child_ended = true;
    if
    :: waiting && (waits_for & FOR_CHILD) -> wake()
    :: else
    fi;
    UNLOCK
}

active proctype clock()
{
    time_has_come = true
}

active proctype cancel()
{
    if
    :: skip /* nobody cancels it */
    :: LOCK;
       if
       :: place == ENDED
       :: else ->
           undoing = true;
           wake()
       fi;
       UNLOCK
    fi
}

/* When nothing moves any more. */
active proctype rest()
{
    mtype found;
end_rest:
    timeout;
    if
    :: place == ENDED
    :: else ->
        assert(waiting && place == LATER);
        look(waits_for, found);
        assert(found == NOTHING)
    fi
}
