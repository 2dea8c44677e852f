package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/cases"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/redistest"
	"github.com/babelqueue/babelqueue-guard/host/go/redisstore"
	"github.com/redis/go-redis/v9"
)

var background = context.Background()

func newStore(t testing.TB, client redis.UniversalClient, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(client, options...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newGuard(t testing.TB, store guard.Store, options ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func succeed(context.Context, *guard.Run) error { return nil }

func TestTheConformanceSequencesOnARealServer(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	for mode, options := range map[string][]guard.Option{"seen-set": nil, "claiming": {guard.WithClaims()}} {
		t.Run(mode, func(t *testing.T) {
			cases.PlayAll(t, func(t *testing.T) *guard.Guard {
				server.Do(t, "FLUSHALL")
				return newGuard(t, newStore(t, client), options...)
			})
		})
	}
}

func TestMarksAreWhatEverybodyElseWritesAndReads(t *testing.T) {
	server := redistest.Start(t)
	for _, c := range []struct {
		options []redisstore.Option
		key     string
		pttl    int64
	}{
		{nil, "bq:idemp:", 14 * 24 * 3600 * 1000},
		{[]redisstore.Option{redisstore.Retention(90 * time.Second)}, "bq:idemp:", 90_000},
		{[]redisstore.Option{redisstore.RetainForever()}, "bq:idemp:", -1},
		{[]redisstore.Option{redisstore.Consumer("mail_2")}, "bq:idemp@mail_2:", 14 * 24 * 3600 * 1000},
		{[]redisstore.Option{redisstore.Prefix("php:"), redisstore.Consumer("a")}, "php:idemp@a:", 14 * 24 * 3600 * 1000},
	} {
		store := newStore(t, server.Client(t), c.options...)
		for _, id := range []string{"a", " ", "{b}", "é\n\"*", strings.Repeat("x", 2048)} {
			key := c.key + id
			if err := store.Remember(background, id); err != nil {
				t.Fatal(err)
			}
			if value := server.Do(t, "GET", key); value != "1" {
				t.Errorf("%q is %v", key, value)
			}
			if left := server.Do(t, "PTTL", key).(int64); left > c.pttl || left < c.pttl-5000 {
				t.Errorf("%q has %d ms left, want %d", key, left, c.pttl)
			}
			if err := store.Forget(background, id); err != nil || server.Do(t, "EXISTS", key) != int64(0) {
				t.Errorf("%q was not forgotten: %v", key, err)
			}
			for _, value := range []string{"1", "", "anything"} {
				server.Do(t, "SET", key, value, "PX", "60000")
				if seen, err := store.Seen(background, id); err != nil || !seen {
					t.Errorf("%q with %q: seen %t, %v", key, value, seen, err)
				}
			}
			server.Do(t, "DEL", key)
		}
	}
}

func TestRememberingAgainRestartsTheRetention(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(t))
	server.Do(t, "SET", "bq:idemp:a", "1", "PX", "5000")
	if err := store.Remember(background, "a"); err != nil {
		t.Fatal(err)
	}
	if left := server.Do(t, "PTTL", "bq:idemp:a").(int64); left < 6000 {
		t.Errorf("%d ms left", left)
	}
}

func TestSomethingOfAnotherTypeIsRejectedAndStays(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(t))
	for _, key := range []string{"bq:idemp:a", "bq:lease:l", "bq:once:s:a"} {
		server.Do(t, "HSET", key, "field", "value")
	}
	claim := func(id string) error { _, err := store.Claim(background, id); return err }
	for what, c := range map[string]struct {
		err error
		key string
	}{
		"seen":           {second(store.Seen(background, "a")), "bq:idemp:a"},
		"remember":       {store.Remember(background, "a"), "bq:idemp:a"},
		"forget":         {store.Forget(background, "a"), "bq:idemp:a"},
		"claim, mark":    {claim("a"), "bq:idemp:a"},
		"claim, lease":   {claim("l"), "bq:lease:l"},
		"complete, mark": {second(store.Complete(background, "a", "t")), "bq:idemp:a"},
		"renew":          {second(store.Renew(background, "l", "t")), "bq:lease:l"},
		"release":        {second(store.Release(background, "l", "t")), "bq:lease:l"},
		"step":           {second(store.SetOnce(background, "a", "s")), "bq:once:s:a"},
	} {
		if !errors.Is(c.err, guard.ErrRejected) || !strings.Contains(c.err.Error(), c.key) {
			t.Errorf("%s: %v, want it rejected and to name %s", what, c.err, c.key)
		}
	}
	for _, key := range []string{"bq:idemp:a", "bq:lease:l", "bq:once:s:a"} {
		if kind := server.Do(t, "TYPE", key); kind != "hash" {
			t.Errorf("%s is a %v now", key, kind)
		}
	}
	if server.Do(t, "EXISTS", "bq:lease:a") != int64(0) {
		t.Error("the claim that met an error was not given back")
	}
}

func second[T any](_ T, err error) error { return err }

func TestAStepIsMarkedWithItsRetention(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(t), redisstore.Consumer("c"), redisstore.Retention(90*time.Second))
	for _, want := range []bool{true, false} {
		if set, err := store.SetOnce(background, "a", "count"); err != nil || set != want {
			t.Errorf("got %t, %v", set, err)
		}
	}
	if left := server.Do(t, "PTTL", "bq:once@c:count:a").(int64); left < 85_000 || left > 90_000 {
		t.Errorf("%d ms left", left)
	}
}

func TestAStepWithoutARetentionIsRejectedAndNotSent(t *testing.T) {
	// Nothing listens there: what is sent is unavailable.
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = client.Close() }()
	set, err := newStore(t, client, redisstore.RetainForever()).SetOnce(background, "a", "count")
	if set || !errors.Is(err, guard.ErrRejected) || !strings.Contains(err.Error(), "steps need a retention") {
		t.Errorf("got %t, %v", set, err)
	}
}

func TestTwoConsumersWithNamesDoNotMeet(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for _, store := range []*redisstore.Store{
		newStore(t, client), newStore(t, client, redisstore.Consumer("a")), newStore(t, client, redisstore.Consumer("b")),
	} {
		result, err := newGuard(t, store).Process(background, guard.ID("1"), succeed)
		if err != nil || result.Decision != guard.Ran {
			t.Errorf("got %+v, %v", result, err)
		}
	}
}

// sdkStore has the shape, and sends the commands, of the BabelQueue Go SDK's
// store on Redis.
type sdkStore struct{ client *redis.Client }

func (s sdkStore) Seen(ctx context.Context, id string) (bool, error) {
	count, err := s.client.Exists(ctx, "bq:idemp:"+id).Result()
	return count > 0, err
}

func (s sdkStore) Remember(ctx context.Context, id string) error {
	return s.client.Set(ctx, "bq:idemp:"+id, 1, time.Hour).Err()
}

func (s sdkStore) Forget(ctx context.Context, id string) error {
	return s.client.Del(ctx, "bq:idemp:"+id).Err()
}

func TestAStoreOfTheSDKServesUnchangedAndSharesItsMarks(t *testing.T) {
	client := redistest.Start(t).Client(t)
	theirs, ours := newGuard(t, sdkStore{client}), newGuard(t, newStore(t, client), guard.WithClaims())
	for id, order := range map[string][]*guard.Guard{"1": {theirs, ours, theirs}, "2": {ours, theirs, ours}} {
		for at, g := range order {
			want := guard.Skipped
			if at == 0 {
				want = guard.Ran
			}
			if result, err := g.Process(background, guard.ID(id), succeed); err != nil || result.Decision != want {
				t.Errorf("%s, delivery %d: %+v, %v", id, at, result, err)
			}
		}
		if err := ours.Forget(background, id); err != nil {
			t.Error(err)
		}
		if result, err := theirs.Process(background, guard.ID(id), succeed); err != nil || result.Decision != guard.Ran {
			t.Errorf("%s, forgotten: %+v, %v", id, result, err)
		}
	}
}

func TestALeaseIsNoMarkForAThreeMethodStore(t *testing.T) {
	client := redistest.Start(t).Client(t)
	if claim, err := newStore(t, client).Claim(background, "a"); err != nil || claim.State != guard.Won {
		t.Fatal(claim, err)
	}
	if seen, err := (sdkStore{client}).Seen(background, "a"); err != nil || seen {
		t.Errorf("seen %t, %v", seen, err)
	}
}

func TestACancelledCallerDoesNotLoseTheMarkOnARealServer(t *testing.T) {
	server := redistest.Start(t)
	for mode, options := range map[string][]guard.Option{"seen-set": nil, "claiming": {guard.WithClaims()}} {
		ctx, cancel := context.WithCancel(background)
		g := newGuard(t, newStore(t, server.Client(t)), options...)
		result, err := g.Process(ctx, guard.ID(mode), func(context.Context, *guard.Run) error {
			cancel()
			return nil
		})
		if err != nil || !result.Marked || server.Do(t, "EXISTS", "bq:idemp:"+mode) != int64(1) {
			t.Errorf("%s: %+v, %v", mode, result, err)
		}
	}
}

func TestSettingsThatCannotBeAreRefusedByName(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = client.Close() }()
	for name, option := range map[string]redisstore.Option{
		`Retention(0s)`:     redisstore.Retention(0),
		`Retention(-1ms)`:   redisstore.Retention(-time.Millisecond),
		`Retention(1.5ms)`:  redisstore.Retention(1500 * time.Microsecond),
		`Lease(0s)`:         redisstore.Lease(0),
		`Lease(500µs)`:      redisstore.Lease(500 * time.Microsecond),
		`Consumer("")`:      redisstore.Consumer(""),
		`Consumer("Mail")`:  redisstore.Consumer("Mail"),
		`Consumer("a:b")`:   redisstore.Consumer("a:b"),
		`Consumer("a\n")`:   redisstore.Consumer("a\n"),
		`Consumer("aaaaaaa`: redisstore.Consumer(strings.Repeat("a", 25)),
	} {
		if _, err := redisstore.New(client, option); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want it to name %s", err, name)
		}
	}
	if _, err := redisstore.New(nil); err == nil {
		t.Error("a client that is nil was accepted")
	}
	caching := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ClientSideCacheConfig: &redis.ClientSideCacheConfig{}})
	defer func() { _ = caching.Close() }()
	if _, err := redisstore.New(caching); err == nil || !strings.Contains(err.Error(), "ClientSideCache") {
		t.Errorf("a cache of the client's own: %v", err)
	}
	replicas := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ReadOnly: true})
	defer func() { _ = replicas.Close() }()
	if _, err := redisstore.New(replicas); err == nil || !strings.Contains(err.Error(), "ReadOnly") {
		t.Errorf("reading from replicas: %v", err)
	}
}

func TestOpenTakesAURLAndKeepsItsPasswordToItself(t *testing.T) {
	server := redistest.Start(t)
	for _, url := range []string{server.URL(), strings.Replace(server.URL(), "redis", "valkey", 1)} {
		store, err := redisstore.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Remember(background, "a"); err != nil {
			t.Error(err)
		}
		if policy, err := store.EvictionPolicy(background); err != nil || policy != "noeviction" {
			t.Errorf("policy %q, %v", policy, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if _, err := store.Seen(background, "a"); !errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("after Close: %v", err)
		}
	}
	for _, url := range []string{"http://:secret@x/0", "redis://:secret@x/\x00", "redis://:secret@x:port/0", ""} {
		if _, err := redisstore.Open(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
	client := server.Client(t)
	if err := newStore(t, client).Close(); err != nil || client.Ping(background).Err() != nil {
		t.Error("a client that is not ours was closed")
	}
}
