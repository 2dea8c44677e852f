package guard

import (
	"context"
	"errors"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/wasm"
)

// Run is what a handler can know of the delivery that it is called for.
type Run struct {
	// ID is the envelope's id, empty if it has no usable one.
	ID string
	// FailOpen says why there is no usable id, and so no deduplication.
	FailOpen FailOpen
	// Replay says that this is a deliberate replay: external effects that have
	// happened already can be left out.
	Replay bool
	// LeaseLost is closed when the lease is no longer ours: another delivery
	// may be running. It is nil, and blocks for ever, where nothing is claimed.
	LeaseLost <-chan struct{}

	guard  *Guard
	ticket wasm.Ticket
}

// run calls the handler and settles.
func (g *Guard) run(ctx context.Context, ticket wasm.Ticket, replay bool, handler func(context.Context, *Run) error) (Result, error) {
	result := Result{Decision: Ran, ID: ticket.ID, FailOpen: failOpen(ticket)}
	run := &Run{ID: ticket.ID, FailOpen: result.FailOpen, Replay: replay, guard: g, ticket: ticket}
	var kept *renewal
	if ticket.Kind == wasm.Leased {
		kept = g.renew(ctx, ticket)
		run.LeaseLost = kept.lost
	}
	returned := false
	defer func() {
		// A panic, or a runtime.Goexit, goes on once the failure is settled.
		if !returned {
			kept.stop()
			_, _ = g.settle(ctx, ticket, wasm.Failed)
		}
	}()
	failure := handler(ctx, run)
	returned = true
	kept.stop()

	outcome := wasm.Succeeded
	if failure != nil {
		outcome = wasm.Failed
	}
	settled, err := g.settle(ctx, ticket, outcome)
	result.SettleErr = err
	result.Marked = err == nil && (settled == wasm.Marked || settled == wasm.MarkedLate)
	result.Late = err == nil && settled == wasm.MarkedLate
	kept.panicAgain()
	return result, failure
}

// Once says whether a named step of this delivery is to run now: true once for
// each id and step, and always without a usable id (contract, section 4). Its
// mark is set before the effect, which may be lost rather than happen twice.
// A name is `[a-z0-9_]{1,40}`. The store must be a [StepStore], and not keep its
// marks for ever.
func (r *Run) Once(ctx context.Context, step string) (bool, error) {
	if r.guard == nil {
		return false, errors.New("guard: Once on a Run that no guard has made")
	}
	return r.guard.once(ctx, r.ticket, step)
}

func (g *Guard) once(ctx context.Context, ticket wasm.Ticket, step string) (bool, error) {
	// Only this world has steps; it takes the tickets of both.
	module, err := g.loadClaiming()
	if err != nil {
		return false, err
	}
	runs, asked, err := module.Once(ticket, step, wasm.Answer{Yes: true})
	if err != nil || asked == wasm.Nothing {
		return runs, guardError("once", err)
	}
	steps, able := g.store.(StepStore)
	if !able {
		return false, &Error{Kind: ErrRejected, Doing: "once: the store is no StepStore"}
	}
	set, err := steps.SetOnce(ctx, ticket.ID, step)
	if err != nil {
		return false, storeError("once", err)
	}
	if !set {
		runs, _, err = module.Once(ticket, step, wasm.Answer{})
	}
	return runs, guardError("once", err)
}
