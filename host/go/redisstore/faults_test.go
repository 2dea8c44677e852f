package redisstore_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/redistest"
	"github.com/babelqueue/babelqueue-guard/host/go/redisstore"
	"github.com/redis/go-redis/v9"
)

// every calls each method of a store and gives its error.
func every(store *redisstore.Store) map[string]error {
	return map[string]error{
		"seen":     second(store.Seen(background, "x")),
		"remember": store.Remember(background, "x"),
		"forget":   store.Forget(background, "x"),
		"claim":    second(store.Claim(background, "x")),
		"renew":    second(store.Renew(background, "x", "t")),
		"complete": second(store.Complete(background, "x", "t")),
		"release":  second(store.Release(background, "x", "t")),
		"step":     second(store.SetOnce(background, "x", "s")),
	}
}

func allAre(t *testing.T, kind error, errs map[string]error) {
	t.Helper()
	for method, err := range errs {
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want: %v", method, err, kind)
		}
	}
}

// impatient has short timeouts, so that a test does not wait for the usual.
func impatient(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: 200 * time.Millisecond, DialerRetries: 1,
		ReadTimeout: 200 * time.Millisecond, WriteTimeout: 200 * time.Millisecond, MaxRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestAServerThatIsKilledIsUnavailableUntilItIsBack(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, impatient(t, server.Addr()))
	g := newGuard(t, store, guard.WithClaims())
	if result, err := g.Process(background, guard.ID("a"), succeed); err != nil || !result.Marked {
		t.Fatalf("got %+v, %v", result, err)
	}
	server.Kill()
	allAre(t, guard.ErrUnavailable, every(store))
	ran := false
	result, err := g.Process(background, guard.ID("b"), func(context.Context, *guard.Run) error { ran = true; return nil })
	if !errors.Is(err, guard.ErrUnavailable) || ran || result.Decision != guard.Undecided {
		t.Errorf("got %+v, %v", result, err)
	}
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	// go-redis, after many failures, looks for the server once a second.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err := store.Seen(background, "a"); err == nil {
			break
		}
	}
	for id, want := range map[string]guard.Decision{"a": guard.Skipped, "b": guard.Ran} {
		if result, err := g.Process(background, guard.ID(id), succeed); err != nil || result.Decision != want {
			t.Errorf("%s, once it is back: %+v, %v", id, result, err)
		}
	}
}

func TestAServerThatDiesWhileTheHandlerRunsLosesTheMarkAndSaysSo(t *testing.T) {
	server := redistest.Start(t)
	g := newGuard(t, newStore(t, impatient(t, server.Addr())), guard.WithClaims())
	result, err := g.Process(background, guard.ID("a"), func(context.Context, *guard.Run) error {
		server.Kill()
		return nil
	})
	if err != nil || result.Marked || !errors.Is(result.SettleErr, guard.ErrUnavailable) {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestAServerThatStopsAnsweringIsUnavailableInBoundedTime(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, impatient(t, server.Addr()))
	if err := store.Remember(background, "a"); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	allAre(t, guard.ErrUnavailable, every(store)) // else the test does not end
	server.Continue()
	if seen, err := store.Seen(background, "a"); err != nil || !seen {
		t.Errorf("once it answers: %t, %v", seen, err)
	}
}

func TestAReplicaIsUnavailableForWritingAndItsConnectionIsDropped(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, PoolSize: 1})
	defer func() { _ = client.Close() }()
	store := newStore(t, client)
	_ = store.Remember(background, "marked")
	won := claim(t, store, "mine")
	server.Do(t, "REPLICAOF", "127.0.0.1", "1")
	for method, write := range map[string]func() error{
		"remember": func() error { return store.Remember(background, "a") },
		"claim":    func() error { return second(store.Claim(background, "a")) },
		"renew":    func() error { return second(store.Renew(background, "mine", won.Token)) },
		"complete": func() error { return second(store.Complete(background, "mine", won.Token)) },
		"release":  func() error { return second(store.Release(background, "mine", won.Token)) },
		"step":     func() error { return second(store.SetOnce(background, "a", "s")) },
	} {
		before := client.ClientID(background).Val()
		if err := write(); !errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("%s: %v", method, err)
		}
		if after := client.ClientID(background).Val(); after == before {
			t.Errorf("%s: the connection stays", method)
		}
	}
	if seen, err := store.Seen(background, "marked"); err != nil || !seen {
		t.Errorf("reading: %t, %v", seen, err)
	}
	server.Do(t, "REPLICAOF", "NO", "ONE")
	if err := store.Remember(background, "a"); err != nil {
		t.Error(err)
	}
}

func TestAWrongPasswordIsRejectedByEveryMethod(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "right")
	for _, password := range []string{"", "wrong"} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: password})
		defer func() { _ = client.Close() }()
		allAre(t, guard.ErrRejected, every(newStore(t, client)))
	}
}

func TestAUserWithoutPermissionIsRejected(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "reader", "on", ">pw", "~bq:*", "+get", "+hello", "+client")
	server.Do(t, "ACL", "SETUSER", "scriptless", "on", ">pw", "~bq:*", "+@all", "-eval")
	of := func(user string) *redisstore.Store {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: user, Password: "pw"})
		t.Cleanup(func() { _ = client.Close() })
		return newStore(t, client)
	}
	errs := every(of("reader"))
	if errs["seen"] != nil {
		t.Errorf("reading: %v", errs["seen"])
	}
	delete(errs, "seen")
	allAre(t, guard.ErrRejected, errs)

	// The mark that was set counts, though the lease could not be dropped.
	scriptless := of("scriptless")
	won := claim(t, scriptless, "a")
	if held, err := scriptless.Complete(background, "a", won.Token); err != nil || !held {
		t.Errorf("complete without scripts: %t, %v", held, err)
	}
	if server.Do(t, "GET", "bq:idemp:a") != "1" {
		t.Error("there is no mark")
	}
}

func TestAServerWithoutRoomIsUnavailable(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	store := newStore(t, server.Client(t))
	for method, err := range map[string]error{
		"remember": store.Remember(background, "a"),
		"claim":    second(store.Claim(background, "a")),
		"step":     second(store.SetOnce(background, "a", "s")),
	} {
		if !errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestALostReplyOfAClaimIsWonWithTheSameToken(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	store := newStore(t, impatient(t, proxy.Addr()))
	_, _ = store.Seen(background, "connects")
	proxy.LoseReplies(1)
	won := claim(t, store, "a")
	if won.State != guard.Won || server.Do(t, "GET", "bq:lease:a") != won.Token {
		t.Errorf("got %+v", won)
	}
	if calls := callsOf(t, server, "set"); calls != 2 {
		t.Errorf("SET was sent %d times", calls)
	}
}

func TestAClaimWhoseOutcomeStaysUnknownIsGivenBack(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	store := newStore(t, impatient(t, proxy.Addr()))
	_, _ = store.Seen(background, "connects")
	proxy.LoseReplies(2)
	if _, err := store.Claim(background, "a"); !errors.Is(err, guard.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if token := server.Do(t, "GET", "bq:lease:a"); token != nil {
		t.Errorf("the lease is kept by %v", token)
	}
}

func TestALostReplyOfACompletionIsSentAgain(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	store := newStore(t, impatient(t, proxy.Addr()))
	won := claim(t, store, "a")
	proxy.LoseReplies(1)
	if _, err := store.Complete(background, "a", won.Token); err != nil {
		t.Error(err)
	}
	if server.Do(t, "GET", "bq:idemp:a") != "1" || server.Do(t, "EXISTS", "bq:lease:a") != int64(0) {
		t.Error("mark or lease is not as it should be")
	}
}

func TestAStepIsSentOnceAndALostReplyIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: 5})
	defer func() { _ = client.Close() }()
	store := newStore(t, client)
	_, _ = store.Seen(background, "connects")
	proxy.LoseReplies(1)
	if _, err := store.SetOnce(background, "a", "s"); !errors.Is(err, guard.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if calls := callsOf(t, server, "set"); calls != 1 {
		t.Errorf("SET was sent %d times", calls)
	}
	if set, err := store.SetOnce(background, "a", "s"); err != nil || set {
		t.Errorf("the next delivery: %t, %v", set, err)
	}
}

// callsOf asks the server how often it was sent a command.
func callsOf(t *testing.T, server *redistest.Server, command string) int {
	t.Helper()
	stats := server.Do(t, "INFO", "commandstats").(string)
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	calls := 0
	for _, digit := range found[1] {
		calls = calls*10 + int(digit-'0')
	}
	return calls
}
