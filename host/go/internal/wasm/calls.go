package wasm

import "fmt"

// TooLarge is a body, or an id, over the limit.
type TooLarge struct{ Bytes, Limit int }

func (t *TooLarge) Error() string {
	return fmt.Sprintf("a body or id of %d bytes is over the limit of %d", t.Bytes, t.Limit)
}

// checkID keeps out what the guest's memory cannot hold. Whatever is shorter is
// the guard's to judge, however low the limit for bodies is.
func (m *Module) checkID(id string) error {
	if limit := max(m.maxBody, pageSize); len(id) > limit {
		return &TooLarge{len(id), limit}
	}
	return nil
}

// Decide runs the guard's `decide`.
func (m *Module) Decide(body []byte, answer Answer) (Decision, Question, error) {
	if len(body) > m.maxBody {
		return Decision{}, Nothing, &TooLarge{len(body), m.maxBody}
	}
	i, err := m.acquire()
	if err != nil {
		return Decision{}, Nothing, err
	}
	defer m.release(i)
	at, err := i.placeBytes(body)
	if err != nil {
		return Decision{}, Nothing, err
	}
	return i.callDecide(i.decide, at, len(body), answer)
}

// DecideID runs the guard's `decide-id`.
func (m *Module) DecideID(id string, answer Answer) (Decision, Question, error) {
	if err := m.checkID(id); err != nil {
		return Decision{}, Nothing, err
	}
	i, err := m.acquire()
	if err != nil {
		return Decision{}, Nothing, err
	}
	defer m.release(i)
	if answer.Claim.Token != "" {
		// Placed before the call: an import that asked the guest for memory
		// would be a call within a call.
		if i.token, err = i.placeString(answer.Claim.Token); err != nil {
			return Decision{}, Nothing, err
		}
	}
	at, err := i.placeString(id)
	if err != nil {
		return Decision{}, Nothing, err
	}
	return i.callDecide(i.decideID, at, len(id), answer)
}

func (i *instance) callDecide(function export, at uint32, length int, answer Answer) (Decision, Question, error) {
	i.stack[0], i.stack[1] = uint64(at), uint64(length)
	read, err := i.begin(function, answer)
	if err != nil {
		return Decision{}, Nothing, err
	}
	decision, failure := read.decision()
	asked, err := i.end(function, &read)
	if err == nil {
		err = failure
	}
	return decision, asked, err
}

// Settle runs the guard's `settle`.
func (m *Module) Settle(ticket Ticket, outcome Outcome, answer Answer) (Settled, Question, error) {
	i, err := m.acquire()
	if err != nil {
		return 0, Nothing, err
	}
	defer m.release(i)
	if err := i.placeTicket(ticket); err != nil {
		return 0, Nothing, err
	}
	i.stack[6] = uint64(outcome)
	settled, asked, err := i.callEnum(i.settle, 5, answer)
	return Settled(settled), asked, err
}

// Renew runs the guard's `renew` and says whether the lease is held.
func (m *Module) Renew(ticket Ticket, answer Answer) (bool, Question, error) {
	i, err := m.acquire()
	if err != nil {
		return false, Nothing, err
	}
	defer m.release(i)
	if err := i.placeTicket(ticket); err != nil {
		return false, Nothing, err
	}
	lost, asked, err := i.callEnum(i.renew, 2, answer)
	return lost == 0, asked, err
}

// Once runs the guard's `once`, which the world Claiming has.
func (m *Module) Once(ticket Ticket, step string, answer Answer) (bool, Question, error) {
	i, err := m.acquire()
	if err != nil {
		return false, Nothing, err
	}
	defer m.release(i)
	name, err := i.placeString(step)
	if err != nil {
		return false, Nothing, err
	}
	if err := i.placeTicket(ticket); err != nil {
		return false, Nothing, err
	}
	i.stack[6], i.stack[7] = uint64(name), uint64(len(step))
	runs, asked, err := i.callEnum(i.once, 2, answer)
	return runs == 1, asked, err
}

// Forget runs the guard's `forget`.
func (m *Module) Forget(id string) (Question, error) {
	if err := m.checkID(id); err != nil {
		return Nothing, err
	}
	i, err := m.acquire()
	if err != nil {
		return Nothing, err
	}
	defer m.release(i)
	at, err := i.placeString(id)
	if err != nil {
		return Nothing, err
	}
	i.stack[0], i.stack[1] = uint64(at), uint64(len(id))
	read, err := i.begin(i.forget, Answer{})
	if err != nil {
		return Nothing, err
	}
	failure := read.failure(4)
	asked, err := i.end(i.forget, &read)
	if err == nil {
		err = failure
	}
	return asked, err
}

// placeTicket lays a ticket out as the first six parameters.
func (i *instance) placeTicket(ticket Ticket) error {
	var id, token uint32
	var err error
	if ticket.Kind != Open {
		if id, err = i.placeString(ticket.ID); err != nil {
			return err
		}
	}
	if ticket.Kind == Leased {
		if token, err = i.placeString(ticket.Token); err != nil {
			return err
		}
	}
	i.stack[0] = uint64(ticket.Kind)
	i.stack[1], i.stack[2] = uint64(id), uint64(len(ticket.ID))
	i.stack[3], i.stack[4] = uint64(token), uint64(len(ticket.Token))
	i.stack[5] = ticket.LengthMs
	if ticket.Kind == Open {
		i.stack[1] = uint64(ticket.Reason)
	}
	return nil
}

// callEnum runs an export whose result is an enumeration or a bool.
func (i *instance) callEnum(function export, cases byte, answer Answer) (byte, Question, error) {
	read, err := i.begin(function, answer)
	if err != nil {
		return 0, Nothing, err
	}
	failure := read.failure(4)
	var value byte
	if failure == nil {
		value = read.below(cases, 4)
	}
	asked, err := i.end(function, &read)
	if err == nil {
		err = failure
	}
	return value, asked, err
}
