package guard

import (
	"context"
	"time"
)

// Store is a seen-set: the record of which ids were processed. Its three
// methods are those of the BabelQueue Go SDK's stores, which serve as they are.
//
// Ids are kept apart byte for byte. Errors that are not an [Error] count as
// [ErrUnavailable]; a store never guesses. All methods are called by many
// goroutines at once.
type Store interface {
	// Seen says whether the id has a mark that has not expired. It is false
	// for an id that is only leased.
	Seen(ctx context.Context, id string) (bool, error)
	// Remember sets the mark and restarts its retention.
	Remember(ctx context.Context, id string) error
	// Forget removes the mark. No mark is no error; a lease is not touched.
	Forget(ctx context.Context, id string) error
}

// ClaimStore is a store with atomic claims (contract, section 3). All times are
// the store's own.
type ClaimStore interface {
	Store
	// Claim takes the lease, if the id is absent or its lease has lapsed. Of
	// any number of calls at once, one wins. An outcome that stays unknown is
	// ErrUnavailable, never Busy.
	Claim(ctx context.Context, id string) (Claim, error)
	// Renew extends the lease to its full length, if the token owns it and it
	// is live. It never revives a lapsed lease or touches a mark.
	Renew(ctx context.Context, id, token string) (held bool, err error)
	// Complete sets the mark, whoever holds the lease, and drops the lease if
	// the token owns it.
	Complete(ctx context.Context, id, token string) (held bool, err error)
	// Release drops the lease if the token owns it.
	Release(ctx context.Context, id, token string) (held bool, err error)
}

// StepStore is a store with marks for single steps (contract, section 4).
type StepStore interface {
	// SetOnce sets the step's own mark, in one atomic step with its retention,
	// and says whether this call set it. It is sent once: a lost reply is
	// ErrUnavailable. Steps need a retention: a store that keeps its marks for
	// ever answers ErrRejected, and sends nothing.
	SetOnce(ctx context.Context, id, step string) (bool, error)
}

// ClaimState is what a claim found.
type ClaimState uint8

const (
	// Won: the id was absent or its lease had lapsed; the lease is ours.
	Won ClaimState = iota + 1
	// Busy: another delivery holds a live lease.
	Busy
	// Done: the id has a mark.
	Done
)

// Claim is the outcome of [ClaimStore.Claim].
type Claim struct {
	State ClaimState
	// Token names this one acquisition of a lease that was Won; nobody else
	// can guess it.
	Token string
	// Length is how long a lease that was Won lasts from now.
	Length time.Duration
	// Left is what remains of the lease that makes the id Busy.
	Left time.Duration
}
