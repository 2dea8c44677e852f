package guard

import (
	"context"
	"fmt"
	"time"
)

// Option is a setting of a guard.
type Option func(*options)

type options struct {
	claims        bool
	maxBody       int
	settleTimeout time.Duration
	cacheDir      string
	observe       func(context.Context, Result, error)
}

const (
	defaultMaxBody       = 16 << 20
	largestMaxBody       = 1 << 30
	defaultSettleTimeout = 5 * time.Second
)

// WithClaims makes an id be claimed before its handler runs, so that of copies
// that come at once one runs and the others are parked (contract, section 3).
// The store must be a [ClaimStore].
func WithClaims() Option {
	return func(o *options) { o.claims = true }
}

// WithMaxBody sets the largest body in bytes that is decided on; 16 MiB unless
// set. A larger one is an [ErrGuard].
func WithMaxBody(bytes int) Option {
	return func(o *options) { o.maxBody = bytes }
}

// WithSettleTimeout sets how long the store may take to record how a handler
// ended; 5 s unless set. It is apart from the caller's context, whose end does
// not lose the mark.
func WithSettleTimeout(timeout time.Duration) Option {
	return func(o *options) { o.settleTimeout = timeout }
}

// WithCompilationCache keeps the compiled guard in a folder, so that a process
// starts in a millisecond instead of some twenty. Whoever can write to the
// folder can run code in the process.
func WithCompilationCache(folder string) Option {
	return func(o *options) { o.cacheDir = folder }
}

// WithObserver has every result and error of a delivery reported, for counters
// and logs. It is called before [Guard.Process] returns, and not at all for a
// handler that panics.
func WithObserver(observe func(context.Context, Result, error)) Option {
	return func(o *options) { o.observe = observe }
}

func (o *options) check() error {
	if o.maxBody < 1 || o.maxBody > largestMaxBody {
		return fmt.Errorf("guard: WithMaxBody(%d): it must be from 1 to %d bytes", o.maxBody, largestMaxBody)
	}
	if o.settleTimeout < time.Millisecond {
		return fmt.Errorf("guard: WithSettleTimeout(%v): it must be at least a millisecond", o.settleTimeout)
	}
	return nil
}
