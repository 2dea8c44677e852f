package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

func seen(t *testing.T, store guard.Store, id string) bool {
	t.Helper()
	marked, err := store.Seen(background, id)
	if err != nil {
		t.Fatal(err)
	}
	return marked
}

func TestAMarkEndsWithItsRetentionCountedFromTheLastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := guard.NewMemory(guard.Retention(10 * time.Second))
		_ = store.Remember(background, "a")
		time.Sleep(8 * time.Second)
		_ = store.Remember(background, "a")
		time.Sleep(10*time.Second - time.Nanosecond)
		if !seen(t, store, "a") {
			t.Error("it ended too early")
		}
		time.Sleep(time.Nanosecond)
		if seen(t, store, "a") {
			t.Error("it did not end")
		}
	})
}

func TestAMarkForEverDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := guard.NewMemory(guard.RetainForever())
		_ = store.Remember(background, "a")
		time.Sleep(100 * 365 * 24 * time.Hour)
		if !seen(t, store, "a") {
			t.Error("it ended")
		}
	})
}

func TestStepsNeedARetention(t *testing.T) {
	store, _ := guard.NewMemory(guard.RetainForever())
	set, err := store.SetOnce(background, "a", "count")
	if set || !errors.Is(err, guard.ErrRejected) || !strings.Contains(err.Error(), "steps need a retention") {
		t.Errorf("got %t, %v", set, err)
	}
	// The last of the two settings counts.
	store, _ = guard.NewMemory(guard.RetainForever(), guard.Retention(time.Hour))
	if set, err := store.SetOnce(background, "a", "count"); err != nil || !set {
		t.Errorf("with a retention: got %t, %v", set, err)
	}
}

func TestTheOldestMarksAreDroppedFirst(t *testing.T) {
	store, _ := guard.NewMemory(guard.MaxEntries(3))
	for _, id := range []string{"a", "b", "c", "a", "d"} {
		_ = store.Remember(background, id)
	}
	if got := fmt.Sprint(seen(t, store, "a"), seen(t, store, "b"), seen(t, store, "c"), seen(t, store, "d")); got != "true false true true" {
		t.Error(got)
	}
}

func TestALeaseIsNoMarkAndForgettingDoesNotTouchIt(t *testing.T) {
	store, _ := guard.NewMemory()
	claim, _ := store.Claim(background, "a")
	if claim.State != guard.Won || claim.Length != time.Minute || seen(t, store, "a") {
		t.Errorf("got %+v", claim)
	}
	_ = store.Forget(background, "a")
	if again, _ := store.Claim(background, "a"); again.State != guard.Busy {
		t.Errorf("got %+v", again)
	}
	if held, _ := store.Renew(background, "a", "another token"); held {
		t.Error("another's token renewed the lease")
	}
	if held, _ := store.Complete(background, "a", "another token"); held || !seen(t, store, "a") {
		t.Error("completing with another token")
	}
	if again, _ := store.Claim(background, "a"); again.State != guard.Done {
		t.Errorf("a mark does not count before a lease: %+v", again)
	}
	_ = store.Forget(background, "a")
	if again, _ := store.Claim(background, "a"); again.State != guard.Busy {
		t.Errorf("the lease was dropped with another's token: %+v", again)
	}
}

func TestALapsedLeaseIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := guard.NewMemory(guard.Lease(1500 * time.Millisecond))
		claim, _ := store.Claim(background, "a")
		time.Sleep(1100 * time.Millisecond)
		if again, _ := store.Claim(background, "a"); again.State != guard.Busy || again.Left != 400*time.Millisecond {
			t.Errorf("got %+v", again)
		}
		time.Sleep(400 * time.Millisecond)
		if held, _ := store.Renew(background, "a", claim.Token); held {
			t.Error("it was renewed")
		}
		if held, _ := store.Release(background, "a", claim.Token); held {
			t.Error("it was held")
		}
		if again, _ := store.Claim(background, "a"); again.State != guard.Won || again.Token == claim.Token {
			t.Errorf("got %+v", again)
		}
	})
}

func TestOfManyClaimsAtOnceOneWins(t *testing.T) {
	store, _ := guard.NewMemory()
	var group sync.WaitGroup
	states := make(chan guard.ClaimState, 64)
	for range cap(states) {
		group.Go(func() {
			claim, _ := store.Claim(context.Background(), "a")
			states <- claim.State
		})
	}
	group.Wait()
	close(states)
	won := 0
	for state := range states {
		if state == guard.Won {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
}
