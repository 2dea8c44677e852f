package guard

import (
	"context"
	"log/slog"
)

// Wrap puts a guard over the store in front of a handler of envelopes. Give
// the result to the consumer in the handler's place.
//
// It returns nil for a delivery that is to be acknowledged: the handler
// succeeded, or the message was processed before. It returns the handler's own
// error, one of [ErrUnavailable], [ErrRejected] and [ErrGuard], or a
// [ParkedError] for one that is not. A mark that could not be set after a
// success is logged, unless there is an observer to tell.
//
// Settings that cannot be make it panic, as a fault of the program; [New]
// returns them as errors.
func Wrap(store Store, handler func(ctx context.Context, envelope []byte) error, settings ...Option) func(ctx context.Context, envelope []byte) error {
	g, err := New(store, settings...)
	if err != nil {
		panic(err)
	}
	return Middleware(g, Body[[]byte], handler)
}

// Middleware puts a guard in front of a handler of any type of message, such
// as a transport's or an SDK's own. The function delivery says where its
// envelope, id and headers are. What is returned is as with [Wrap].
func Middleware[M any](g *Guard, delivery func(M) Delivery, handler func(context.Context, M) error) func(context.Context, M) error {
	return func(ctx context.Context, message M) error {
		result, err := g.Process(ctx, delivery(message), func(ctx context.Context, run *Run) error {
			return handler(context.WithValue(ctx, runKey{}, run), message)
		})
		if err != nil {
			return err
		}
		if result.Decision == Parked {
			return &ParkedError{ID: result.ID, Left: result.Left}
		}
		if result.SettleErr != nil && g.observe == nil {
			slog.ErrorContext(ctx, "babelqueue-guard: processed, but the mark may be missing",
				"id", result.ID, "error", result.SettleErr)
		}
		return nil
	}
}

type runKey struct{}

// FromContext gives the handler that [Wrap] or [Middleware] called what is known
// of its delivery. It is nil in any other context.
func FromContext(ctx context.Context) *Run {
	run, _ := ctx.Value(runKey{}).(*Run)
	return run
}
