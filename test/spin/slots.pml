/*
 * slots.pml - the slots of a limit, for the model checker spin.
 *
 * CALLS calls wait. Claims begin them, each in a transaction of its own, while a person changes the
 * limit: it is lowered, raised, removed, and made again, in any order. A call that runs leaves at
 * any moment; that its owner died is no different. What a claim reads of the limit stays so until
 * its transaction ends, because it shares the lock that a change has alone. A row that another
 * transaction has locked is passed over by claims.
 *
 * Checked: no call begins while as many run as the limit allows; a row has a call exactly while it
 * runs; and nothing is stuck: in the end every call has left.
 *
 * Wrong protocols, which spin has to refuse:
 *   COUNTS     a claim counts what runs, and begins a call if there is room
 *   FREES      a call that leaves frees its row, also while there are more rows than allowed
 *   SKIPS      it passes over rows that are too many and locked, because they are about to go
 *   UNCOUNTED  a limit that is made does not count what runs already
 *   UNSHARED   a claim does not share the lock of changes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define CALLS 3
#define CLAIMS 2
#define CHANGES 2
#define ROWS 5

#define NOBODY 0 /* calls are numbered from 1 */

mtype = { WAITS, RUNS, LEFT };

/* ---- What is stored -------------------------------------------------------------------------- */

mtype call[CALLS];
bool limited = true;
byte max = 2;
bool exists[ROWS];
bool surplus[ROWS];
byte holder[ROWS];
byte generation[ROWS]; /* rows of a limit that was removed stay with their calls */
byte now_generation = 0;

/* ---- Locks ----------------------------------------------------------------------------------- */

bool locked[ROWS];
bool call_locked[CALLS];
byte sharing = 0; /* claims that share the lock of changes */
bool changing = false;

byte running = 0;

#ifdef UNSHARED
#define SHARE skip
#define UNSHARE skip
#define ALONE atomic { !changing -> changing = true }
#else
#define SHARE atomic { !changing -> sharing++ }
#define UNSHARE sharing--
#define ALONE atomic { !changing && sharing == 0 -> changing = true }
#endif

#define MINE(r) (exists[r] && generation[r] == now_generation)
#define FREE(r) (MINE(r) && holder[r] == NOBODY)

/* ---- Claims ---------------------------------------------------------------------------------- */

/* Lock a call that waits; c is CALLS if there is none. */
inline pick_call(c)
{
    atomic {
        c = 0;
        do
        :: c < CALLS && (call[c] != WAITS || call_locked[c]) -> c++
        :: else -> break
        od;
        if
        :: c < CALLS -> call_locked[c] = true
        :: else
        fi
    }
}

/* Lock a free row that nobody has locked; r is ROWS if there is none. */
inline pick_row(r)
{
    atomic {
        r = 0;
        do
        :: r < ROWS && (!FREE(r) || locked[r]) -> r++
        :: else -> break
        od;
        if
        :: r < ROWS -> locked[r] = true
        :: else
        fi
    }
}

/* The commit of a claim. */
inline begin(c)
{
    call[c] = RUNS;
    running++;
    assert(!limited || running <= max)
}

proctype claimer()
{
    byte c, r;
    bool by_rule;
    byte counted;
    do
    :: SHARE;
       atomic {
           by_rule = limited;
           counted = running;
           pick_call(c)
       };
       if
       :: c == CALLS ->
           UNSHARE;
           /* Another claim has what waits, and may put it back; the next look is when it has. */
           if
           :: atomic { call[0] != WAITS && call[1] != WAITS && call[2] != WAITS -> break }
           :: (call[0] == WAITS && !call_locked[0]) || (call[1] == WAITS && !call_locked[1]) ||
              (call[2] == WAITS && !call_locked[2])
           fi
       :: c < CALLS && !by_rule ->
           d_step { begin(c); call_locked[c] = false };
           UNSHARE
       :: c < CALLS && by_rule ->
#ifdef COUNTS
           if
           :: counted < max -> d_step { begin(c); call_locked[c] = false }
           :: else -> call_locked[c] = false
           fi;
           UNSHARE
#else
           pick_row(r);
           if
           :: r < ROWS ->
               d_step {
                   assert(holder[r] == NOBODY);
                   holder[r] = c + 1;
                   begin(c);
                   call_locked[c] = false;
                   locked[r] = false
               };
               UNSHARE
           :: else ->
               call_locked[c] = false;
               UNSHARE;
               /* The next look is when there may be room. */
               !limited || FREE(0) || FREE(1) || FREE(2) || FREE(3) || FREE(4)
           fi
#endif
       fi;
       atomic { c = 0; r = 0; counted = 0; by_rule = false }
    od
}

/* ---- A call that runs ------------------------------------------------------------------------ */

/* The row of call c; r is ROWS if it has none: it began without a limit. */
inline own_row(c, r)
{
    r = 0;
    do
    :: r < ROWS && !(exists[r] && holder[r] == c + 1) -> r++
    :: else -> break
    od
}

#define SURPLUS(g, s) (exists[s] && generation[s] == g && surplus[s])
#define NO_SURPLUS(g) \
    (!SURPLUS(g, 0) && !SURPLUS(g, 1) && !SURPLUS(g, 2) && !SURPLUS(g, 3) && !SURPLUS(g, 4))

/* Lock a surplus row of the same limit, and wait for one; s is ROWS when there is none. */
inline pick_surplus(g, s)
{
    if
    :: atomic { SURPLUS(g, 0) && !locked[0] -> s = 0; locked[s] = true }
    :: atomic { SURPLUS(g, 1) && !locked[1] -> s = 1; locked[s] = true }
    :: atomic { SURPLUS(g, 2) && !locked[2] -> s = 2; locked[s] = true }
    :: atomic { SURPLUS(g, 3) && !locked[3] -> s = 3; locked[s] = true }
    :: atomic { SURPLUS(g, 4) && !locked[4] -> s = 4; locked[s] = true }
    :: atomic { NO_SURPLUS(g) -> s = ROWS }
    fi
}

#ifdef SKIPS
inline skip_surplus(g, s)
{
    atomic {
        s = 0;
        do
        :: s < ROWS && !(SURPLUS(g, s) && !locked[s]) -> s++
        :: else -> break
        od;
        if
        :: s < ROWS -> locked[s] = true
        :: else
        fi
    }
}
#endif

proctype leave(byte c)
{
    byte r, s;
    call[c] == RUNS;
again:
    atomic { own_row(c, r) };
    if
    :: r == ROWS ->
        /* Its lease is locked from here on: a change that counts it waits, or has counted it. */
        atomic {
            own_row(c, r);
            if
            :: r < ROWS -> goto again
            :: else -> call[c] = LEFT; running--; goto done
            fi
        }
    :: else
    fi;
    atomic { !locked[r] -> locked[r] = true };
    if
    :: surplus[r] ->
        d_step { exists[r] = false; surplus[r] = false; holder[r] = NOBODY; locked[r] = false;
                 call[c] = LEFT; running-- }
    :: else ->
#ifdef FREES
        s = ROWS;
#elif defined(SKIPS)
        skip_surplus(generation[r], s);
#else
        pick_surplus(generation[r], s);
#endif
        if
        :: s < ROWS -> /* its row stands for that one */
            d_step { exists[r] = false; holder[r] = NOBODY; locked[r] = false;
                     surplus[s] = false; locked[s] = false; call[c] = LEFT; running-- }
        :: else ->
            d_step { holder[r] = NOBODY; locked[r] = false; call[c] = LEFT; running-- }
        fi
    fi;
done:
    skip
}

/* ---- Changes --------------------------------------------------------------------------------- */

/* Its statements wait for rows that calls which leave have locked; then they are all its own. */
#define NO_ROW_LOCKED (!locked[0] && !locked[1] && !locked[2] && !locked[3] && !locked[4])

inline kept_rows(n)
{
    n = 0;
    i = 0;
    do
    :: i < ROWS ->
        if
        :: MINE(i) && !surplus[i] -> n++
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* Free rows go first, then rows with calls are surplus; or surplus rows are kept, then new ones. */
inline fit(to)
{
    kept_rows(kept);
    i = 0;
    do
    :: i < ROWS && kept > to ->
        if
        :: FREE(i) -> exists[i] = false; kept--
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < ROWS && kept > to ->
        if
        :: MINE(i) && !surplus[i] -> surplus[i] = true; kept--
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < ROWS && kept < to ->
        if
        :: MINE(i) && surplus[i] -> surplus[i] = false; kept++
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < ROWS && kept < to ->
        if
        :: !exists[i] ->
            exists[i] = true; surplus[i] = false; holder[i] = NOBODY;
            generation[i] = now_generation; kept++
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* Rows for what runs already, those beyond the limit as surplus; then free ones. */
inline make(to)
{
    now_generation++;
    kept = 0;
    i = 0;
#ifndef UNCOUNTED
    k = 0;
    do
    :: k < CALLS && call[k] == RUNS ->
        /* Its row of the limit that was removed would go with it: the model gives it over. */
        own_row(k, i);
        if
        :: i == ROWS ->
            i = 0;
            do
            :: i < ROWS && exists[i] -> i++
            :: else -> break
            od
        :: else
        fi;
        assert(i < ROWS);
        exists[i] = true; holder[i] = k + 1; generation[i] = now_generation;
        surplus[i] = kept >= to;
        kept = kept + !surplus[i];
        k++
    :: k < CALLS && call[k] != RUNS -> k++
    :: else -> break
    od;
#endif
    fit(to)
}

proctype change()
{
    byte n = 0, i, k, kept;
    do
    :: n < CHANGES ->
        ALONE;
        atomic {
            NO_ROW_LOCKED;
            if
            :: limited -> max = 1; fit(1)
            :: limited -> max = 2; fit(2)
            :: limited -> fit(0); limited = false
            :: !limited -> limited = true; max = 1; make(1)
            :: !limited -> limited = true; max = 2; make(2)
            fi;
            i = 0; k = 0; kept = 0;
            changing = false
        };
        n++
    :: else -> break
    od
}

init
{
    byte c;
    atomic {
        c = 0;
        do
        :: c < CALLS -> call[c] = WAITS; c++
        :: else -> break
        od;
        exists[0] = true;
        exists[1] = true;
        run claimer();
        run claimer();
        run change();
        run leave(0);
        run leave(1);
        run leave(2)
    };
    /* Every row is free or a call's that runs; when all have left, no surplus row is left. */
    call[0] == LEFT && call[1] == LEFT && call[2] == LEFT;
    c = 0;
    do
    :: c < ROWS -> assert(!exists[c] || (holder[c] == NOBODY && !surplus[c])); c++
    :: else -> break
    od
}
