package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

func TestOfManyCopiesAtOnceOneRuns(t *testing.T) {
	g := newGuard(t, newSpy(t), guard.WithClaims())
	var effects, parked, skipped atomic.Int32
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			result, err := g.Process(background, body("a"), func(context.Context, *guard.Run) error {
				effects.Add(1)
				time.Sleep(20 * time.Millisecond)
				return nil
			})
			switch {
			case err != nil:
				t.Error(err)
			case result.Decision == guard.Parked:
				parked.Add(1)
			case result.Decision == guard.Skipped:
				skipped.Add(1)
			}
		})
	}
	group.Wait()
	if effects.Load() != 1 || parked.Load()+skipped.Load() != 31 {
		t.Errorf("%d effects, %d parked, %d skipped", effects.Load(), parked.Load(), skipped.Load())
	}
}

func TestAParkedDeliverySaysHowLongTheLeaseHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := newSpy(t, guard.Lease(9*time.Second)), &handler{}
		g := newGuard(t, store, guard.WithClaims())
		if _, err := store.Memory.Claim(background, "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		result, err := g.Process(background, body("a"), h.handle)
		if err != nil || h.calls != 0 || result != (guard.Result{Decision: guard.Parked, ID: "a", Left: 7 * time.Second}) {
			t.Errorf("got %+v, %v", result, err)
		}
		time.Sleep(7 * time.Second)
		if result, err := g.Process(background, body("a"), h.handle); err != nil || !result.Marked {
			t.Errorf("after the lease: %+v, %v", result, err)
		}
	})
}

func TestALeaseIsRenewedWhileTheHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t, guard.Lease(9*time.Second))
		g := newGuard(t, store, guard.WithClaims())
		result, err := g.Process(background, body("a"), func(_ context.Context, run *guard.Run) error {
			time.Sleep(time.Minute)
			select {
			case <-run.LeaseLost:
				t.Error("the lease is lost")
			default:
			}
			return nil
		})
		if err != nil || !result.Marked || result.Late {
			t.Errorf("got %+v, %v", result, err)
		}
		synctest.Wait()
		if renewals := strings.Count(store.asked(), "renew a"); renewals < 19 || renewals > 20 {
			t.Errorf("%d renewals in a minute", renewals)
		}
	})
}

func TestAFailureOfRenewalIsNoLossWhileTheLeaseLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t, guard.Lease(9*time.Second))
		g := newGuard(t, store, guard.WithClaims())
		store.fails["renew"] = io.EOF
		started := time.Now()
		result, err := g.Process(background, body("a"), func(_ context.Context, run *guard.Run) error {
			<-run.LeaseLost
			return nil
		})
		if lasted := time.Since(started); lasted != 9*time.Second {
			t.Errorf("lost after %v", lasted)
		}
		// Nobody else has claimed, but the lease has lapsed all the same.
		if err != nil || !result.Marked || !result.Late {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

func TestALateFinishMarksAndLeavesTheOthersLeaseAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ends := range []error{nil, errHandler} {
			store := newSpy(t, guard.Lease(9*time.Second))
			g := newGuard(t, store, guard.WithClaims())
			store.fails["renew"] = io.EOF
			var other guard.Claim
			result, err := g.Process(background, body("a"), func(_ context.Context, run *guard.Run) error {
				<-run.LeaseLost
				other, _ = store.Memory.Claim(background, "a")
				return ends
			})
			if err != ends || result.SettleErr != nil || result.Marked != (ends == nil) || result.Late != (ends == nil) {
				t.Errorf("got %+v, %v", result, err)
			}
			if other.State != guard.Won {
				t.Errorf("the other's claim: %+v", other)
			}
			if held, _ := store.Memory.Release(background, "a", other.Token); !held {
				t.Error("the other's lease was dropped")
			}
		}
	})
}

func TestALeaseThatAnotherHoldsIsReportedAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t, guard.Lease(9*time.Second))
		g := newGuard(t, store, guard.WithClaims())
		lost := time.Duration(0)
		_, err := g.Process(background, body("a"), func(_ context.Context, run *guard.Run) error {
			claim, _ := store.Memory.Claim(background, "a")
			if claim.State != guard.Busy {
				t.Errorf("a second claim: %+v", claim)
			}
			_, _ = store.Memory.Release(background, "a", store.token)
			started := time.Now()
			<-run.LeaseLost
			lost = time.Since(started)
			return nil
		})
		if err != nil || lost != 3*time.Second {
			t.Errorf("told after %v, %v", lost, err)
		}
	})
}

func TestAFailureGivesTheLeaseBack(t *testing.T) {
	store, h := newSpy(t), &handler{ends: errHandler}
	g := newGuard(t, store, guard.WithClaims())
	store.fails["release"] = io.EOF
	result, err := g.Process(background, body("a"), h.handle)
	if err != errHandler || !errors.Is(result.SettleErr, guard.ErrUnavailable) || result.Marked {
		t.Errorf("got %+v, %v", result, err)
	}
	store.fails = nil
	if result, _ := g.Process(background, body("a"), h.handle); result.Decision != guard.Parked {
		t.Errorf("the lease is gone: %+v", result)
	}
}

func TestAClaimThatMakesNoSenseIsRejected(t *testing.T) {
	h := &handler{}
	result, err := newGuard(t, senseless{newSpy(t)}, guard.WithClaims()).Process(background, body("a"), h.handle)
	if !errors.Is(err, guard.ErrRejected) || h.calls != 0 || result != (guard.Result{}) {
		t.Errorf("got %+v, %v", result, err)
	}
}

type senseless struct{ guard.ClaimStore }

func (senseless) Claim(context.Context, string) (guard.Claim, error) { return guard.Claim{}, nil }

func TestAClaimThatTheGuardCannotTakeInIsGivenBack(t *testing.T) {
	store, h := hugeTokens{newSpy(t)}, &handler{}
	g := newGuard(t, store, guard.WithClaims(), guard.WithMaxBody(100))
	result, err := g.Process(background, body("a"), h.handle)
	if !errors.Is(err, guard.ErrGuard) || h.calls != 0 || result != (guard.Result{}) {
		t.Errorf("got %+v, %v", result, err)
	}
	if asked := store.asked(); asked != "claim a, release a" {
		t.Errorf("asked %s", asked)
	}
}

// hugeTokens makes tokens that the guest's memory cannot hold.
type hugeTokens struct{ *spy }

func (s hugeTokens) Claim(ctx context.Context, id string) (guard.Claim, error) {
	claim, err := s.spy.Claim(ctx, id)
	claim.Token = strings.Repeat("x", 4<<20)
	return claim, err
}

func TestManyHandlersAreInFlightAtOnce(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		g := newGuard(t, newSpy(t), options...)
		const count = 2000
		var entered, group sync.WaitGroup
		entered.Add(count)
		for number := range count {
			group.Go(func() {
				id := fmt.Sprint(number)
				result, err := g.Process(background, body(id), func(context.Context, *guard.Run) error {
					entered.Done()
					entered.Wait() // until all are in their handlers
					return nil
				})
				if err != nil || result.ID != id || !result.Marked {
					t.Errorf("%s: %+v, %v", id, result, err)
				}
			})
		}
		group.Wait()
	})
}

func TestAStepRunsOnceForAnIDAndAlwaysWithoutOne(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		store := newSpy(t)
		g := newGuard(t, store, options...)
		once := func(delivery guard.Delivery, step string) string {
			var runs bool
			result, err := g.Process(background, delivery, func(ctx context.Context, run *guard.Run) error {
				var err error
				runs, err = run.Once(ctx, step)
				return errors.Join(err, errHandler) // so that it is delivered again
			})
			switch {
			case errors.Is(err, guard.ErrRejected):
				return "rejected"
			case errors.Is(err, guard.ErrUnavailable):
				return "unavailable"
			case result.Decision != guard.Ran:
				t.Errorf("got %+v", result)
			}
			return fmt.Sprint(runs)
		}
		for _, c := range []struct {
			delivery   guard.Delivery
			step, want string
		}{
			{body("a"), "count", "true"},
			{body("a"), "count", "false"},
			{body("a"), "other_2", "true"},
			{body("b"), "count", "true"},
			{guard.Body("{}"), "count", "true"},
			{guard.Body("{}"), "count", "true"},
			{body("a"), "Count", "rejected"},
			{body("a"), "", "rejected"},
			{guard.Body("{}"), strings.Repeat("x", 41), "rejected"},
		} {
			if got := once(c.delivery, c.step); got != c.want {
				t.Errorf("%+v: %s", c, got)
			}
		}
		store.fails["set-once"] = io.EOF
		if got := once(body("c"), "count"); got != "unavailable" {
			t.Errorf("a store that fails: %s", got)
		}
		if asked := store.asked(); strings.Contains(asked, "Count") {
			t.Errorf("asked %s", asked)
		}
	})
}
