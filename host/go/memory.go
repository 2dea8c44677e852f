package guard

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/settings"
)

// Memory is a store for one process, with claims and steps. What it holds is
// bounded by its retention and by a number of entries, of which the ones marked
// longest ago are dropped first. Its clock is monotonic.
type Memory struct {
	mutex sync.Mutex
	times settings.Times
	// Steps are kept apart from marks, so that many of the one do not drop the
	// other.
	marks, steps, leases *table
}

var (
	_ ClaimStore = (*Memory)(nil)
	_ StepStore  = (*Memory)(nil)
)

// MemoryOption is a setting of [NewMemory].
type MemoryOption func(*memorySettings)

type memorySettings struct {
	settings.Times
	maxEntries int
}

const defaultMaxEntries = 1_000_000

// Retention sets how long marks and steps are kept; 14 days unless set.
func Retention(d time.Duration) MemoryOption {
	return func(s *memorySettings) { s.Retention, s.Forever = d, false }
}

// RetainForever keeps marks until there are too many entries. Steps, which need
// a retention, are then [ErrRejected].
func RetainForever() MemoryOption {
	return func(s *memorySettings) { s.Forever = true }
}

// Lease sets how long a claim lasts unless it is renewed; 60 s unless set.
func Lease(d time.Duration) MemoryOption {
	return func(s *memorySettings) { s.Lease = d }
}

// MaxEntries sets how many marks, and how many steps, are kept; a million each
// unless set.
func MaxEntries(count int) MemoryOption {
	return func(s *memorySettings) { s.maxEntries = count }
}

// NewMemory makes an empty store.
func NewMemory(options ...MemoryOption) (*Memory, error) {
	set := memorySettings{Times: settings.Default(), maxEntries: defaultMaxEntries}
	for _, option := range options {
		option(&set)
	}
	if err := set.Check(); err != nil {
		return nil, fmt.Errorf("guard: memory store: %w", err)
	}
	if set.maxEntries < 1 {
		return nil, fmt.Errorf("guard: memory store: MaxEntries(%d): it must be at least 1", set.maxEntries)
	}
	retention := set.Retention
	if set.Forever {
		retention = forever
	}
	return &Memory{
		times:  set.Times,
		marks:  newTable(retention, set.maxEntries),
		steps:  newTable(retention, set.maxEntries),
		leases: newTable(set.Lease, unbounded),
	}, nil
}

// Seen implements [Store].
func (m *Memory) Seen(_ context.Context, id string) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.marks.live(id) != nil, nil
}

// Remember implements [Store].
func (m *Memory) Remember(_ context.Context, id string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.marks.put(id, "")
	return nil
}

// Forget implements [Store].
func (m *Memory) Forget(_ context.Context, id string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.marks.drop(id)
	return nil
}

// Claim implements [ClaimStore].
func (m *Memory) Claim(_ context.Context, id string) (Claim, error) {
	token := rand.Text()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.marks.live(id) != nil {
		return Claim{State: Done}, nil
	}
	if lease := m.leases.live(id); lease != nil {
		return Claim{State: Busy, Left: time.Until(lease.end)}, nil
	}
	m.leases.put(id, token)
	return Claim{State: Won, Token: token, Length: m.times.Lease}, nil
}

// Renew implements [ClaimStore].
func (m *Memory) Renew(_ context.Context, id, token string) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	held := m.holds(id, token)
	if held {
		m.leases.put(id, token)
	}
	return held, nil
}

// Complete implements [ClaimStore].
func (m *Memory) Complete(_ context.Context, id, token string) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.marks.put(id, "")
	return m.dropLease(id, token), nil
}

// Release implements [ClaimStore].
func (m *Memory) Release(_ context.Context, id, token string) (bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.dropLease(id, token), nil
}

// SetOnce implements [StepStore].
func (m *Memory) SetOnce(_ context.Context, id, step string) (bool, error) {
	if m.times.Forever {
		return false, &Error{Kind: ErrRejected, Doing: "memory: set a step's mark", Cause: settings.ErrNoSteps}
	}
	// No step's name has a colon, so that no two pairs make one key.
	key := step + ":" + id
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.steps.live(key) != nil {
		return false, nil
	}
	m.steps.put(key, "")
	return true, nil
}

func (m *Memory) holds(id, token string) bool {
	lease := m.leases.live(id)
	return lease != nil && lease.token == token
}

func (m *Memory) dropLease(id, token string) bool {
	held := m.holds(id, token)
	if held {
		m.leases.drop(id)
	}
	return held
}
