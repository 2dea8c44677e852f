package guard

import (
	"context"
	"time"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/wasm"
)

// renewal keeps a lease alive while a handler runs.
type renewal struct {
	lost   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
	// panicked is what the store panicked with; read once done is closed.
	panicked any
}

// renew extends a lease at every third of its length, until it is stopped or
// the lease is lost.
func (g *Guard) renew(ctx context.Context, ticket wasm.Ticket) *renewal {
	// The caller's end is the handler's to heed; as long as that runs, the
	// lease is held.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	kept := &renewal{lost: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	go func() {
		stopped := false
		defer func() {
			kept.panicked = recover()
			close(kept.done)
			if !stopped {
				close(kept.lost)
			}
		}()
		stopped = g.keepLease(ctx, ticket)
	}()
	return kept
}

// keepLease returns true when it was stopped, and false when the lease is lost.
func (g *Guard) keepLease(ctx context.Context, ticket wasm.Ticket) bool {
	length := milliseconds(ticket.LengthMs)
	third := max(length/3, time.Millisecond)
	// Counted from before the store is asked, so that it never ends later
	// here than there.
	end := time.Now().Add(length)
	ticker := time.NewTicker(third)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return true
		case <-ticker.C:
		}
		asked := time.Now()
		held, err := g.renewOnce(ctx, ticket, third)
		switch {
		case ctx.Err() != nil:
			return true
		case err == nil && held:
			end = asked.Add(length)
		case err == nil, !time.Now().Before(end):
			// Lost, or nobody can say for so long that it has lapsed.
			return false
		}
	}
}

func (g *Guard) renewOnce(ctx context.Context, ticket wasm.Ticket, timeout time.Duration) (bool, error) {
	held, asked, err := g.module.Renew(ticket, wasm.Answer{Yes: true})
	if err != nil || asked == wasm.Nothing {
		return held, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	held, err = g.claims.Renew(ctx, ticket.ID, ticket.Token)
	if err != nil || held {
		return held, err
	}
	held, _, err = g.module.Renew(ticket, wasm.Answer{})
	return held, err
}

// stop ends the renewal without waiting for the store: what is still under way
// carries our token, and so does nothing to a lease that is dropped by then.
func (r *renewal) stop() {
	if r != nil {
		r.cancel()
	}
}

// panicAgain lets a panic of the store, met in the background, go on where the
// delivery is processed.
func (r *renewal) panicAgain() {
	if r == nil {
		return
	}
	select {
	case <-r.done:
		if r.panicked != nil {
			panic(r.panicked)
		}
	default:
	}
}
