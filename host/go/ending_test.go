package guard_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

func TestACancelledCallerDoesNotLoseTheMark(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store := newSpy(t)
		ctx, cancel := context.WithCancel(background)
		result, err := newGuard(t, store, options...).Process(ctx, body("a"), func(context.Context, *guard.Run) error {
			cancel()
			return nil
		})
		if err != nil || !result.Marked || !store.hasMark("a") {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

func TestACancelledHandlerGivesItsClaimBack(t *testing.T) {
	store, h := newSpy(t), &handler{}
	g := newGuard(t, store, guard.WithClaims())
	ctx, cancel := context.WithCancel(background)
	_, err := g.Process(ctx, body("a"), func(ctx context.Context, _ *guard.Run) error {
		cancel()
		return ctx.Err()
	})
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
		t.Errorf("the next delivery: %+v, %v", result, err)
	}
}

func TestACallerThatIsOverAlreadyAsksNothing(t *testing.T) {
	store, h := newSpy(t), &handler{}
	ctx, cancel := context.WithCancel(background)
	cancel()
	result, err := newGuard(t, store).Process(ctx, body("a"), h.handle)
	if err != context.Canceled || result != (guard.Result{}) || h.calls != 0 || store.asked() != "" {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestSettlingHasItsOwnTimeAndTheCallersValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		store := newSpy(t)
		store.before = func(ctx context.Context, method string) {
			if ctx.Value(key{}) != "trace" {
				t.Errorf("%s does not have the caller's values", method)
			}
			if method == "remember" {
				<-ctx.Done()
			}
		}
		started := time.Now()
		g := newGuard(t, store, guard.WithSettleTimeout(3*time.Second))
		result, err := g.Process(context.WithValue(background, key{}, "trace"), body("a"), (&handler{}).handle)
		if err != nil || !errors.Is(result.SettleErr, context.DeadlineExceeded) || !errors.Is(result.SettleErr, guard.ErrUnavailable) {
			t.Errorf("got %+v, %v", result, err)
		}
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAPanicOfTheHandlerIsAFailureAndGoesOn(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store, h := newSpy(t), &handler{}
		g := newGuard(t, store, options...)
		mustPanic(t, "boom", func() {
			_, _ = g.Process(background, body("a"), func(context.Context, *guard.Run) error { panic("boom") })
		})
		if store.hasMark("a") {
			t.Error("it was marked")
		}
		if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
			t.Errorf("the next delivery: %+v, %v", result, err)
		}
	})
}

func TestAHandlerThatEndsItsGoroutineIsAFailure(t *testing.T) {
	store, h := newSpy(t), &handler{}
	g := newGuard(t, store, guard.WithClaims())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = g.Process(background, body("a"), func(context.Context, *guard.Run) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
		t.Errorf("the next delivery: %+v, %v", result, err)
	}
}

func TestAPanicOfTheStoreGoesOnAndTheGuardStaysUsable(t *testing.T) {
	for method, claims := range map[string]bool{
		"seen": false, "remember": false, "forget": false,
		"claim": true, "complete": true, "release": true, "set-once": true,
	} {
		t.Run(method, func(t *testing.T) {
			var options []guard.Option
			if claims {
				options = append(options, guard.WithClaims())
			}
			store := newSpy(t)
			g := newGuard(t, store, options...)
			store.fails[method] = "store: " + method
			mustPanic(t, "store: "+method, func() {
				_, _ = g.Process(background, guard.ID("a"), func(ctx context.Context, run *guard.Run) error {
					if method == "release" {
						return errHandler
					}
					_, err := run.Once(ctx, "step")
					return err
				})
				_ = g.Forget(background, "a")
			})
			delete(store.fails, method)
			h := &handler{}
			if result, err := g.Process(background, body("b"), h.handle); err != nil || !result.Marked {
				t.Errorf("the next delivery: %+v, %v", result, err)
			}
		})
	}
}

func TestAPanicWhileRenewingGoesOnOnceTheHandlerHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t, guard.Lease(9*time.Second))
		g := newGuard(t, store, guard.WithClaims())
		store.fails["renew"] = "store: renew"
		mustPanic(t, "store: renew", func() {
			_, _ = g.Process(background, body("a"), func(_ context.Context, run *guard.Run) error {
				<-run.LeaseLost
				return nil
			})
		})
		if !store.hasMark("a") {
			t.Error("the handler's success was not marked")
		}
	})
}

func TestTheGuardMayBeUsedFromAHandlerAndFromAStore(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store := newSpy(t)
		g := newGuard(t, store, options...)
		inner := newGuard(t, newSpy(t), options...)
		store.before = func(ctx context.Context, method string) {
			if result, err := inner.Process(background, body("inner "+method), (&handler{}).handle); err != nil || result.ID != "inner "+method {
				t.Errorf("within the store: %+v, %v", result, err)
			}
		}
		result, err := g.Process(background, body("outer"), func(ctx context.Context, _ *guard.Run) error {
			result, err := g.Process(ctx, body("nested"), (&handler{}).handle)
			if result.ID != "nested" || !result.Marked {
				t.Errorf("within the handler: %+v", result)
			}
			return err
		})
		if err != nil || result.ID != "outer" || !result.Marked {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}
