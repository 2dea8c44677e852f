package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

// spy is a memory store that notes what it is asked, and fails or panics where
// a test says so.
type spy struct {
	*guard.Memory
	mutex sync.Mutex
	calls []string
	// fails gives the errors of the methods, by name; a value of another type
	// is panicked with.
	fails map[string]any
	// before is called first in each method.
	before func(ctx context.Context, method string)
	// token is of the last claim; for tests that claim once.
	token string
}

func newSpy(t testing.TB, options ...guard.MemoryOption) *spy {
	t.Helper()
	memory, err := guard.NewMemory(options...)
	if err != nil {
		t.Fatal(err)
	}
	return &spy{Memory: memory, fails: map[string]any{}}
}

func (s *spy) note(ctx context.Context, method, id string) error {
	s.mutex.Lock()
	s.calls = append(s.calls, method+" "+id)
	fails := s.fails[method]
	s.mutex.Unlock()
	if s.before != nil {
		s.before(ctx, method)
	}
	switch fails := fails.(type) {
	case nil:
		return ctx.Err() // as a client over the network does
	case error:
		return fails
	default:
		panic(fails)
	}
}

func (s *spy) asked() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return strings.Join(s.calls, ", ")
}

func (s *spy) hasMark(id string) bool {
	marked, _ := s.Memory.Seen(context.Background(), id)
	return marked
}

func (s *spy) Seen(ctx context.Context, id string) (bool, error) {
	if err := s.note(ctx, "seen", id); err != nil {
		return false, err
	}
	return s.Memory.Seen(ctx, id)
}

func (s *spy) Remember(ctx context.Context, id string) error {
	if err := s.note(ctx, "remember", id); err != nil {
		return err
	}
	return s.Memory.Remember(ctx, id)
}

func (s *spy) Forget(ctx context.Context, id string) error {
	if err := s.note(ctx, "forget", id); err != nil {
		return err
	}
	return s.Memory.Forget(ctx, id)
}

func (s *spy) Claim(ctx context.Context, id string) (guard.Claim, error) {
	if err := s.note(ctx, "claim", id); err != nil {
		return guard.Claim{}, err
	}
	claim, err := s.Memory.Claim(ctx, id)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.token = claim.Token
	return claim, err
}

func (s *spy) Renew(ctx context.Context, id, token string) (bool, error) {
	if err := s.note(ctx, "renew", id); err != nil {
		return false, err
	}
	return s.Memory.Renew(ctx, id, token)
}

func (s *spy) Complete(ctx context.Context, id, token string) (bool, error) {
	if err := s.note(ctx, "complete", id); err != nil {
		return false, err
	}
	return s.Memory.Complete(ctx, id, token)
}

func (s *spy) Release(ctx context.Context, id, token string) (bool, error) {
	if err := s.note(ctx, "release", id); err != nil {
		return false, err
	}
	return s.Memory.Release(ctx, id, token)
}

func (s *spy) SetOnce(ctx context.Context, id, step string) (bool, error) {
	if err := s.note(ctx, "set-once", id+" "+step); err != nil {
		return false, err
	}
	return s.Memory.SetOnce(ctx, id, step)
}

func newGuard(t testing.TB, store guard.Store, options ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// handler counts its invocations and ends as told.
type handler struct {
	calls int
	ends  error
}

func (h *handler) handle(context.Context, *guard.Run) error {
	h.calls++
	return h.ends
}

var errHandler = errors.New("the handler failed")

func mustPanic(t *testing.T, want any, do func()) {
	t.Helper()
	defer func() {
		if got := recover(); got != want {
			t.Errorf("panicked with %v, want %v", got, want)
		}
	}()
	do()
}

func body(id string) guard.Delivery {
	return guard.Body(fmt.Sprintf(`{"job":"urn:babel:parcels:weighed","meta":{"id":%q}}`, id))
}

// both runs a test with a guard over a seen-set and with one that claims.
func both(t *testing.T, test func(t *testing.T, options ...guard.Option)) {
	t.Run("seen-set", func(t *testing.T) { test(t) })
	t.Run("claiming", func(t *testing.T) { test(t, guard.WithClaims()) })
}

func claiming(options []guard.Option) bool { return len(options) > 0 }
