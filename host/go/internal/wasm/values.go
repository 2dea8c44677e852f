// Package wasm runs the guard's core module: it speaks the canonical ABI,
// keeps a pool of instances, and answers the module's imports with what the
// caller already knows.
//
// No store is reached from here. A call notes what the guard asks, answers
// with the given [Answer], and is over after microseconds; whoever called asks
// the real store afterwards, and calls again where the answer was another one.
// So no context, no panic and no store ever meets a wasm frame.
package wasm

// World is one of the worlds of the WIT package.
type World uint8

// The worlds.
const (
	Plain World = iota
	Claiming
)

// Question is what a call asked of the store. One call asks at most one.
type Question uint8

// The questions, one for each function that a world imports.
const (
	Nothing Question = iota
	Seen
	Remember
	Forget
	Claim
	Renew
	Complete
	Release
	SetOnce
)

// Answer is what the imports say during one call.
type Answer struct {
	// Yes answers Seen and SetOnce, and whether a lease was held.
	Yes   bool
	Claim ClaimAnswer
}

// ClaimState is the case of a claim's outcome, numbered as in the WIT.
type ClaimState uint8

// The cases of a claim's outcome.
const (
	Won ClaimState = iota
	Busy
	Done
)

// ClaimAnswer answers Claim.
type ClaimAnswer struct {
	State    ClaimState
	Token    string
	LengthMs uint64
	LeftMs   uint64
}

// TicketKind is the case of a ticket, numbered as in the WIT.
type TicketKind uint8

// The cases of a ticket.
const (
	Open TicketKind = iota
	SeenTicket
	Leased
)

// FailOpen is why a delivery has no usable id, numbered as in the WIT.
type FailOpen uint8

// The reasons to fail open.
const (
	Malformed FailOpen = iota
	Absent
	Unusable
)

// Ticket is what settling has to know of a decision.
type Ticket struct {
	Kind     TicketKind
	Reason   FailOpen
	ID       string
	Token    string
	LengthMs uint64
}

// DecisionKind is the case of a decision, numbered as in the WIT.
type DecisionKind uint8

// The cases of a decision.
const (
	Run DecisionKind = iota
	Skip
	Park
)

// Decision is what to do with a delivery. Its ticket has the id, also for a
// delivery that is skipped or parked.
type Decision struct {
	Kind   DecisionKind
	Ticket Ticket
	LeftMs uint64
}

// Outcome is how a handler ended, numbered as in the WIT.
type Outcome uint8

// The outcomes.
const (
	Succeeded Outcome = iota
	Failed
)

// Settled is what settling did, numbered as in the WIT.
type Settled uint8

// What settling can have done.
const (
	SettledNothing Settled = iota
	Marked
	MarkedLate
	Released
	LeaseLost
)

// Rejected is an error that the guard itself gives in a store's name: an id
// that is not usable, or a step's name that breaks the rule.
type Rejected struct{ Message string }

func (r *Rejected) Error() string { return r.Message }
