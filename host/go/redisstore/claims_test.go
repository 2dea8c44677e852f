package redisstore_test

import (
	"context"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/redistest"
	"github.com/babelqueue/babelqueue-guard/host/go/redisstore"
	"github.com/redis/go-redis/v9"
)

// topologies runs a test on one server, and on a cluster, where mark and lease
// may lie apart.
func topologies(t *testing.T, test func(t *testing.T, server *redistest.Server, client redis.UniversalClient)) {
	t.Run("server", func(t *testing.T) {
		server := redistest.Start(t)
		test(t, server, server.Client(t))
	})
	t.Run("cluster", func(t *testing.T) {
		server := redistest.Start(t, "--cluster-enabled", "yes")
		server.Do(t, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
		for server.Do(t, "CLUSTER", "INFO").(string)[:16] != "cluster_state:ok" {
			time.Sleep(10 * time.Millisecond)
		}
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
		t.Cleanup(func() { _ = client.Close() })
		test(t, server, client)
	})
}

func claim(t *testing.T, store *redisstore.Store, id string) guard.Claim {
	t.Helper()
	claim, err := store.Claim(background, id)
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

func TestALeaseIsATokenWithItsLength(t *testing.T) {
	topologies(t, func(t *testing.T, server *redistest.Server, client redis.UniversalClient) {
		store := newStore(t, client, redisstore.Lease(90*time.Second), redisstore.Consumer("c"))
		won := claim(t, store, "a")
		if won.State != guard.Won || won.Length != 90*time.Second || !regexp.MustCompile(`\A[0-9a-f]{32}\z`).MatchString(won.Token) {
			t.Errorf("got %+v", won)
		}
		if token := server.Do(t, "GET", "bq:lease@c:a"); token != won.Token {
			t.Errorf("the lease is %v", token)
		}
		if left := server.Do(t, "PTTL", "bq:lease@c:a").(int64); left > 90_000 || left < 85_000 {
			t.Errorf("%d ms left", left)
		}
		if busy := claim(t, store, "a"); busy.State != guard.Busy || busy.Left > 90*time.Second || busy.Left < 85*time.Second {
			t.Errorf("got %+v", busy)
		}
	})
}

func TestALeaseIsRenewedCompletedAndReleasedByItsTokenAlone(t *testing.T) {
	topologies(t, func(t *testing.T, server *redistest.Server, client redis.UniversalClient) {
		store := newStore(t, client)
		won := claim(t, store, "a")
		server.Do(t, "PEXPIRE", "bq:lease:a", 5000)
		for token, want := range map[string]bool{"another": false, "": false, won.Token: true} {
			if held, err := store.Renew(background, "a", token); err != nil || held != want {
				t.Errorf("renew with %q: %t, %v", token, held, err)
			}
		}
		if left := server.Do(t, "PTTL", "bq:lease:a").(int64); left < 50_000 {
			t.Errorf("renewed to %d ms", left)
		}
		if held, err := store.Release(background, "a", "another"); err != nil || held {
			t.Errorf("release with another token: %t, %v", held, err)
		}
		if held, err := store.Complete(background, "a", "another"); err != nil || held {
			t.Errorf("complete with another token: %t, %v", held, err)
		}
		if server.Do(t, "GET", "bq:lease:a") != won.Token || server.Do(t, "GET", "bq:idemp:a") != "1" {
			t.Error("a late completion must mark and leave the lease alone")
		}
		if done := claim(t, store, "a"); done.State != guard.Done {
			t.Errorf("a mark does not count before a lease: %+v", done)
		}
		if held, err := store.Complete(background, "a", won.Token); err != nil || !held {
			t.Errorf("complete: %t, %v", held, err)
		}
		if server.Do(t, "EXISTS", "bq:lease:a") != int64(0) {
			t.Error("the lease is still there")
		}
		if done := claim(t, store, "a"); done.State != guard.Done {
			t.Errorf("got %+v", done)
		}
		if server.Do(t, "EXISTS", "bq:lease:a") != int64(0) {
			t.Error("a claim that found a mark kept the lease")
		}
		other := claim(t, store, "b")
		if held, err := store.Release(background, "b", other.Token); err != nil || !held {
			t.Errorf("release: %t, %v", held, err)
		}
		if held, err := store.Renew(background, "b", other.Token); err != nil || held {
			t.Errorf("renew of a dropped lease: %t, %v", held, err)
		}
	})
}

func TestALeaseLapsesByItselfAndIsNotRevived(t *testing.T) {
	topologies(t, func(t *testing.T, _ *redistest.Server, client redis.UniversalClient) {
		store := newStore(t, client, redisstore.Lease(300*time.Millisecond))
		first := claim(t, store, "a")
		time.Sleep(400 * time.Millisecond)
		if held, err := store.Renew(background, "a", first.Token); err != nil || held {
			t.Errorf("renewed after it had lapsed: %t, %v", held, err)
		}
		if next := claim(t, store, "a"); next.State != guard.Won || next.Token == first.Token {
			t.Errorf("got %+v", next)
		}
	})
}

func TestALeaseWithoutAnEndIsBusy(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "SET", "bq:lease:a", "foreign")
	if busy := claim(t, newStore(t, server.Client(t)), "a"); busy.State != guard.Busy || busy.Left != time.Millisecond {
		t.Errorf("got %+v", busy)
	}
}

func TestOfManyCopiesInManyProcessesOneRuns(t *testing.T) {
	topologies(t, func(t *testing.T, _ *redistest.Server, client redis.UniversalClient) {
		for _, id := range []string{"1", "2", "3"} {
			var effects, others atomic.Int32
			var group sync.WaitGroup
			for range 8 {
				g := newGuard(t, newStore(t, client), guard.WithClaims())
				group.Go(func() {
					result, err := g.Process(background, guard.ID(id), func(context.Context, *guard.Run) error {
						effects.Add(1)
						time.Sleep(20 * time.Millisecond)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
					if result.Decision != guard.Ran {
						others.Add(1)
					}
				})
			}
			group.Wait()
			if effects.Load() != 1 || others.Load() != 7 {
				t.Errorf("%d effects, %d parked or skipped", effects.Load(), others.Load())
			}
		}
	})
}

func TestALeaseIsRenewedOnARealServerWhileTheHandlerRuns(t *testing.T) {
	client := redistest.Start(t).Client(t)
	g := newGuard(t, newStore(t, client, redisstore.Lease(300*time.Millisecond)), guard.WithClaims())
	result, err := g.Process(background, guard.ID("a"), func(_ context.Context, run *guard.Run) error {
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			if copied, err := g.Process(background, guard.ID("a"), succeed); err != nil || copied.Decision != guard.Parked {
				t.Errorf("a copy: %+v, %v", copied, err)
			}
		}
		return nil
	})
	if err != nil || !result.Marked || result.Late {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestScriptsSurviveAFlush(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(t))
	won := claim(t, store, "a")
	server.Do(t, "SCRIPT", "FLUSH")
	if held, err := store.Renew(background, "a", won.Token); err != nil || !held {
		t.Errorf("renew: %t, %v", held, err)
	}
	server.Do(t, "SCRIPT", "FLUSH")
	if held, err := store.Complete(background, "a", won.Token); err != nil || !held {
		t.Errorf("complete: %t, %v", held, err)
	}
}
