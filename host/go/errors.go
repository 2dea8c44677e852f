package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/wasm"
)

// The kinds of error (contract, section 7). On any of them the handler did not
// run and the delivery is not to be acknowledged: whether it was processed is
// never guessed. Ask for them with [errors.Is].
var (
	// ErrUnavailable: the store cannot be reached, timed out, is loading,
	// read-only or failing over. Retrying the delivery later is right.
	ErrUnavailable = errors.New("store unavailable")
	// ErrRejected: the store was reached and refused for a reason that time
	// does not mend: wrong credentials, a wrong type under the key, a missing
	// table. An operator must act; the message says on what.
	ErrRejected = errors.New("store rejected")
	// ErrGuard: the guard itself could not decide: a body over the limit, a
	// trap. The next delivery is decided normally.
	ErrGuard = errors.New("guard failed")
)

// Error is one of the kinds with what was tried. Stores return it; an error of
// a store that is none of ours counts as [ErrUnavailable].
type Error struct {
	// Kind is ErrUnavailable, ErrRejected or ErrGuard.
	Kind error
	// Doing says what was tried, such as "redis: GET bq:idemp:7". It must not
	// contain a secret.
	Doing string
	// Cause is the error met, or nil.
	Cause error
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("%v: %s", e.Kind, e.Doing)
	}
	return fmt.Sprintf("%v: %s: %v", e.Kind, e.Doing, e.Cause)
}

// Unwrap leads to the kind and to the cause, for [errors.Is] and [errors.As].
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// ParkedError is what a wrapped handler returns for a delivery that another one
// is working on (contract, section 3): do not acknowledge it, have it delivered
// again after Left, and do not count it as a failed attempt. [Guard.Process]
// reports the same as a [Result].
type ParkedError struct {
	ID   string
	Left time.Duration
}

func (p *ParkedError) Error() string {
	return fmt.Sprintf("another delivery of %q is in progress; its lease has %v left", p.ID, p.Left)
}

// storeError gives an error of a store its kind, if it has none.
func storeError(doing string, err error) error {
	if err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRejected) {
		return err
	}
	return &Error{Kind: ErrUnavailable, Doing: doing, Cause: err}
}

// guardError gives an error of the module its kind.
func guardError(doing string, err error) error {
	var rejected *wasm.Rejected
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rejected):
		return &Error{Kind: ErrRejected, Doing: doing, Cause: err}
	default:
		return &Error{Kind: ErrGuard, Doing: doing, Cause: err}
	}
}
