package guard

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/wasm"
)

//go:embed artifacts/plain.core.wasm
var plainModule []byte

//go:embed artifacts/claiming.core.wasm
var claimingModule []byte

// Guard makes the effect of a message happen once, however often it is
// delivered. It is safe for use by many goroutines.
type Guard struct {
	options
	store  Store
	claims ClaimStore // nil unless claiming
	module *wasm.Module
}

// New makes a guard over a store. The decision's module is compiled once in a
// process, which takes some twenty milliseconds.
func New(store Store, settings ...Option) (*Guard, error) {
	g := &Guard{store: store}
	g.options = options{maxBody: defaultMaxBody, settleTimeout: defaultSettleTimeout}
	for _, set := range settings {
		set(&g.options)
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	if store == nil {
		return nil, errors.New("guard: the store is nil")
	}
	load := g.loadPlain
	if g.options.claims {
		claims, able := store.(ClaimStore)
		if !able {
			return nil, fmt.Errorf("guard: WithClaims needs a ClaimStore; %T has not all of its methods", store)
		}
		g.claims, load = claims, g.loadClaiming
	}
	var err error
	if g.module, err = load(); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Guard) loadPlain() (*wasm.Module, error) {
	module, err := wasm.Load(wasm.Settings{World: wasm.Plain, MaxBody: g.maxBody, CacheDir: g.cacheDir}, plainModule)
	return module, guardError("load", err)
}

func (g *Guard) loadClaiming() (*wasm.Module, error) {
	module, err := wasm.Load(wasm.Settings{World: wasm.Claiming, MaxBody: g.maxBody, CacheDir: g.cacheDir}, claimingModule)
	return module, guardError("load", err)
}

// Process decides on a delivery, calls the handler if it is to run, and records
// how that ended.
//
// An error of the handler is returned unchanged, with [Ran] as the decision;
// nothing is marked, so that a redelivery runs again. A handler that panics
// counts as failed, and the panic goes on. Every other error is one of
// [ErrUnavailable], [ErrRejected] and [ErrGuard], or the context's own where
// that was over before anything was asked: the handler did not run, and the
// delivery is not to be acknowledged.
//
// Once the handler has succeeded, the mark is set even if ctx is over by then.
func (g *Guard) Process(ctx context.Context, delivery Delivery, handler func(context.Context, *Run) error) (Result, error) {
	result, err := g.process(ctx, delivery, handler)
	if g.observe != nil {
		g.observe(ctx, result, err)
	}
	return result, err
}

func (g *Guard) process(ctx context.Context, delivery Delivery, handler func(context.Context, *Run) error) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	decision, err := g.decide(ctx, delivery)
	if err != nil {
		return Result{}, err
	}
	ticket := decision.Ticket
	switch decision.Kind {
	case wasm.Skip:
		return Result{Decision: Skipped, ID: ticket.ID}, nil
	case wasm.Park:
		return Result{Decision: Parked, ID: ticket.ID, Left: milliseconds(decision.LeftMs)}, nil
	default:
		return g.run(ctx, ticket, delivery.replay, handler)
	}
}

// decide has the guard decide. Its question is put to the store after the call,
// and where the answer is not what the call supposed, the guard decides again,
// now knowing it.
func (g *Guard) decide(ctx context.Context, delivery Delivery) (wasm.Decision, error) {
	supposed := wasm.Answer{Claim: wasm.ClaimAnswer{State: wasm.Busy}}
	var decision wasm.Decision
	var asked wasm.Question
	var err error
	if delivery.known {
		decision, asked, err = g.module.DecideID(delivery.id, supposed)
	} else {
		decision, asked, err = g.module.Decide(delivery.body, supposed)
	}
	if err != nil {
		return wasm.Decision{}, guardError("decide", err)
	}
	id := decision.Ticket.ID
	switch asked {
	case wasm.Seen:
		seen, err := g.store.Seen(ctx, id)
		if err != nil {
			return wasm.Decision{}, storeError("seen", err)
		}
		if !seen {
			return decision, nil
		}
		decision, _, err = g.module.DecideID(id, wasm.Answer{Yes: true})
		return decision, guardError("decide", err)
	case wasm.Claim:
		return g.decideClaim(ctx, id)
	default:
		return decision, nil
	}
}

func (g *Guard) decideClaim(ctx context.Context, id string) (wasm.Decision, error) {
	claim, err := g.claims.Claim(ctx, id)
	if err != nil {
		return wasm.Decision{}, storeError("claim", err)
	}
	answer, err := claimAnswer(claim)
	if err != nil {
		return wasm.Decision{}, err
	}
	decision, _, err := g.module.DecideID(id, wasm.Answer{Claim: answer})
	if err != nil && claim.State == Won {
		// Nobody will settle this claim.
		ctx, cancel := g.detached(ctx)
		defer cancel()
		_, lost := g.claims.Release(ctx, id, claim.Token)
		err = errors.Join(err, lost)
	}
	return decision, guardError("decide", err)
}

func claimAnswer(claim Claim) (wasm.ClaimAnswer, error) {
	switch claim.State {
	case Won:
		return wasm.ClaimAnswer{State: wasm.Won, Token: claim.Token, LengthMs: wholeMs(claim.Length)}, nil
	case Busy:
		return wasm.ClaimAnswer{State: wasm.Busy, LeftMs: wholeMs(claim.Left)}, nil
	case Done:
		return wasm.ClaimAnswer{State: wasm.Done}, nil
	default:
		return wasm.ClaimAnswer{}, &Error{Kind: ErrRejected, Doing: fmt.Sprintf("claim: the store's answer has the state %d, which is none", claim.State)}
	}
}

// settle has the guard say what is to be recorded, and records it. The store is
// given its own time, since what the handler did has happened.
func (g *Guard) settle(ctx context.Context, ticket wasm.Ticket, outcome wasm.Outcome) (wasm.Settled, error) {
	settled, asked, err := g.module.Settle(ticket, outcome, wasm.Answer{Yes: true})
	if err != nil || asked == wasm.Nothing {
		return settled, guardError("settle", err)
	}
	ctx, cancel := g.detached(ctx)
	defer cancel()
	held := true
	switch asked {
	case wasm.Remember:
		err = storeError("remember", g.store.Remember(ctx, ticket.ID))
	case wasm.Complete:
		held, err = g.claims.Complete(ctx, ticket.ID, ticket.Token)
		err = storeError("complete", err)
	case wasm.Release:
		held, err = g.claims.Release(ctx, ticket.ID, ticket.Token)
		err = storeError("release", err)
	}
	if err != nil {
		return wasm.SettledNothing, err
	}
	if !held {
		settled, _, err = g.module.Settle(ticket, outcome, wasm.Answer{})
	}
	return settled, guardError("settle", err)
}

// Forget removes the mark of an id, so that its next delivery runs: the way to
// a deliberate replay (contract, section 6).
func (g *Guard) Forget(ctx context.Context, id string) error {
	asked, err := g.module.Forget(id)
	if err != nil || asked == wasm.Nothing {
		return guardError("forget", err)
	}
	return storeError("forget", g.store.Forget(ctx, id))
}

// detached gives a context that the caller's end does not end.
func (g *Guard) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), g.settleTimeout)
}

func milliseconds(count uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(count, most)) * time.Millisecond
}

// wholeMs rounds up: a lease with anything left is not over.
func wholeMs(d time.Duration) uint64 {
	return uint64(max(0, (d+time.Millisecond-1)/time.Millisecond))
}
