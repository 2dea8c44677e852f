/*
 * Claims on one id: claim, renew, release, complete, remember, forget, and the
 * passing of time (docs/contract.md, section 3).
 *
 * Mark and lease are two records, as in Redis or in two tables; each d_step is
 * what one command or statement does atomically. Between two of them any other
 * worker may act, the lease may lapse, the mark may expire, and a worker may
 * die. A claim's reply may be lost, upon which it is sent again with the same
 * token.
 *
 * Compiled with one of these, the model shows that the rule is needed; spin
 * must then find an error:
 *   LOOK_FIRST     a claim looks for the mark first and takes the lease second
 *   DROP_FIRST     a completion drops the lease first and writes the mark second
 *   ANY_RELEASE    a release does not ask whose lease it is
 *   MARK_IF_HELD   a completion marks only if the lease is still held
 *   REVIVE         a renewal revives a lease that has lapsed
 *   LEASE_IS_SEEN  seen() looks at the lease as well
 *   FRESH_RESEND   what is sent again carries a new token
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#define ATTEMPTS 2 /* claims of each worker */
#define NOBODY 0

/* The store. */
byte lease = NOBODY;  /* the token of a live lease */
bool mark = false;

/* What has happened, for the properties. */
byte tokens = NOBODY; /* the newest token */
byte removals = 0;    /* how often the mark was forgotten or has expired */
byte effects = 0;     /* handlers that succeeded */
bool owed = false;    /* a mark was set and not taken away since */

#define bounded_removal (removals < 1)

inline set_mark() {
	mark = true;
	owed = true
}

/* Takes the lease if there is none; finding our own token means that an
   earlier sending of the same claim has won. */
inline take_lease() {
	d_step {
		if
		:: lease == NOBODY ->
			lease = token;
			won = true;
			marked_before = mark;
			removals_before = removals
		:: else -> won = (lease == token)
		fi
	}
}

inline drop_lease() {
	d_step {
#ifdef ANY_RELEASE
		assert(lease == NOBODY || lease == token);
		lease = NOBODY
#else
		if
		:: lease == token -> lease = NOBODY
		:: else
		fi
#endif
	}
}

inline claim() {
	d_step {
		tokens++;
		token = tokens;
		first = token;
		won = false;
		found = false
	}
#ifdef LOOK_FIRST
	found = mark;
	if
	:: found
	:: else -> take_lease()
	fi;
#else
	take_lease();
	if
	:: skip /* the reply arrives */
	:: skip; /* it is lost, and the claim is sent again */
#ifdef FRESH_RESEND
		d_step { tokens++; token = tokens };
#endif
		take_lease()
	fi;
	found = mark;
#endif
	if
	:: found && won -> drop_lease(); won = false
	:: else
	fi;
	/* No claim wins over a mark that was there when it took the lease. */
	assert(!(won && marked_before && removals == removals_before));
	/* Nobody is kept waiting by a lease of his own. */
	assert(won || found || lease != first)
}

/* A success gives its lease up only once its mark is there, or a copy could
   run in between. */
inline drop_after_success() {
	assert(mark || removals > 0);
	drop_lease()
}

inline complete() {
#ifdef DROP_FIRST
	drop_after_success();
	d_step { set_mark() };
#else
#ifdef MARK_IF_HELD
	d_step {
		if
		:: lease == token -> set_mark()
		:: else
		fi
	};
#else
	d_step { set_mark() };
#endif
	drop_after_success();
#endif
	/* No success is without its mark, unless that was taken away. */
	assert(mark || removals > 0)
}

proctype Worker() {
	byte token = NOBODY;
	byte first = NOBODY; /* the token that a claim was first sent with */
	byte attempts = 0;
	byte removals_before;
	bool won, found, marked_before;
	bool seen;

	do
	:: attempts == ATTEMPTS -> break
	:: attempts < ATTEMPTS ->
		attempts++;
		claim();
		if
		:: !won
		:: won -> /* the handler runs */
			do
			:: d_step { /* a renewal */
				if
				:: lease == token
				:: else ->
#ifdef REVIVE
					assert(lease == NOBODY);
					lease = token
#else
					skip
#endif
				fi
			   }; break
			:: break
			od;
			if
			:: effects++; complete()
			:: drop_lease() /* it failed */
			:: break /* the worker dies */
			fi
		fi
	od
}

/* A consumer that knows no claims, and an operator who forgets. */
proctype Plain() {
	bool seen;
	d_step {
#ifdef LEASE_IS_SEEN
		seen = mark || lease != NOBODY;
#else
		seen = mark;
#endif
		/* A lease never counts as a mark. */
		assert(!seen || mark)
	};
	if
	:: seen
	:: !seen -> d_step { set_mark() }
	:: !seen
	fi
}

/* A lease lapses, a mark expires or is forgotten, whenever they like. */
proctype Time() {
	byte lapses = 0;
	do
	:: lapses < 2 && lease != NOBODY -> d_step { lease = NOBODY; lapses++ }
	:: mark && bounded_removal -> d_step { mark = false; owed = false; removals++ }
	:: timeout -> break
	od
}

init {
	byte i = 0;
	atomic {
		do
		:: i < WORKERS -> run Worker(); i++
		:: else -> break
		od;
		run Plain();
		run Time()
	};
	timeout;
	/* No mark is lost: what was set, and not taken away, is there. */
	assert(mark == owed)
}
