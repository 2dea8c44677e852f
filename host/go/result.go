package guard

import (
	"time"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/wasm"
)

// Decision is what was done with a delivery.
type Decision uint8

const (
	// Undecided: an error came first; the handler did not run.
	Undecided Decision = iota
	// Ran: the handler was called.
	Ran
	// Skipped: the id is marked; acknowledge the delivery.
	Skipped
	// Parked: another delivery holds the id. Do not acknowledge; have it
	// delivered again later. Not a failed attempt.
	Parked
)

func (d Decision) String() string {
	return [...]string{"undecided", "ran", "skipped", "parked"}[d]
}

// FailOpen is why a delivery ran without being deduplicated; empty if it was
// not (contract, section 1).
type FailOpen string

const (
	// Malformed: the body is not one well-formed JSON object.
	Malformed FailOpen = "malformed"
	// Absent: there is no meta, or no id in it.
	Absent FailOpen = "absent"
	// Unusable: meta is no object, or the id no string that can be a key.
	Unusable FailOpen = "unusable"
)

// Result is what became of a delivery.
type Result struct {
	Decision Decision
	// ID is the envelope's id, empty if it has no usable one.
	ID string
	// FailOpen says why there is no usable id.
	FailOpen FailOpen
	// Left is what remains of the lease for which a delivery was Parked.
	Left time.Duration
	// Marked says that settling has set the mark.
	Marked bool
	// Late says that the mark was set after the lease had been lost: another
	// delivery may have run meanwhile.
	Late bool
	// SettleErr is what kept settling from its end. After a success the mark
	// may be missing, so that a redelivery may run again; acknowledge all the
	// same, for the effect has happened. After a failure the lease was not
	// given back, and ends by itself.
	SettleErr error
}

var reasons = [...]FailOpen{wasm.Malformed: Malformed, wasm.Absent: Absent, wasm.Unusable: Unusable}

func failOpen(ticket wasm.Ticket) FailOpen {
	if ticket.Kind == wasm.Open {
		return reasons[ticket.Reason]
	}
	return ""
}
