package wasm

import (
	"github.com/tetratelabs/wazero/api"
)

// result reads what a call has left in the guest's memory. Offsets are those
// that the canonical ABI gives the types of wit/types.wit. What cannot be
// there makes the whole result invalid.
type result struct {
	memory api.Memory
	at     uint32
	valid  bool
}

func (r *result) byte(offset uint32) byte {
	value, ok := r.memory.ReadByte(r.at + offset)
	r.valid = r.valid && ok
	return value
}

func (r *result) u64(offset uint32) uint64 {
	value, ok := r.memory.ReadUint64Le(r.at + offset)
	r.valid = r.valid && ok
	return value
}

func (r *result) string(offset uint32) string {
	// Pointer and length lie side by side.
	both := r.u64(offset)
	bytes, ok := r.memory.Read(uint32(both), uint32(both>>32))
	r.valid = r.valid && ok
	return string(bytes)
}

// below reads the case of an enumeration that has this many.
func (r *result) below(cases byte, offset uint32) byte {
	value := r.byte(offset)
	r.valid = r.valid && value < cases
	return value
}

// failure reads a result's error, whose payload begins at the offset. No
// import answers with one, so that it is the guard's own, and not a store's.
func (r *result) failure(payload uint32) error {
	if r.below(2, 0) == 0 {
		return nil
	}
	return &Rejected{Message: r.string(payload + 4)}
}

// decision reads result<decision, store-error>.
func (r *result) decision() (Decision, error) {
	if err := r.failure(8); err != nil {
		return Decision{}, err
	}
	switch kind := DecisionKind(r.below(3, 8)); kind {
	case Skip:
		return Decision{Kind: Skip, Ticket: Ticket{ID: r.string(16)}}, nil
	case Park:
		return Decision{Kind: Park, Ticket: Ticket{ID: r.string(16)}, LeftMs: r.u64(24)}, nil
	default:
		return Decision{Kind: Run, Ticket: r.ticket()}, nil
	}
}

func (r *result) ticket() Ticket {
	switch kind := TicketKind(r.below(3, 16)); kind {
	case SeenTicket:
		return Ticket{Kind: kind, ID: r.string(24)}
	case Leased:
		return Ticket{Kind: kind, ID: r.string(24), Token: r.string(32), LengthMs: r.u64(40)}
	default:
		return Ticket{Kind: Open, Reason: FailOpen(r.below(3, 24))}
	}
}
