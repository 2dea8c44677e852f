package wasm

import (
	"context"
	"runtime"
	"sync"
)

// A guest's memory never shrinks. An instance that a large body has blown up
// is not kept; making a new one costs less than having scanned that body.
const largestIdle = 1 << 20

// A call holds its instance for microseconds and never waits, so that more than
// a few for each processor are never of use at once.
var mostIdle = 2 * runtime.GOMAXPROCS(0)

// pool holds the instances that no call is using. It is not a sync.Pool: what
// that drops stays in wazero's list of modules for ever.
type pool struct {
	mutex sync.Mutex
	idle  []*instance
}

// acquire takes an instance for one call. It counts as broken until the call
// has come to its proper end.
func (m *Module) acquire() (*instance, error) {
	m.pool.mutex.Lock()
	if last := len(m.pool.idle) - 1; last >= 0 {
		taken := m.pool.idle[last]
		m.pool.idle = m.pool.idle[:last]
		m.pool.mutex.Unlock()
		taken.broken = true
		return taken, nil
	}
	m.pool.mutex.Unlock()
	return m.instantiate()
}

func (m *Module) release(used *instance) {
	if !used.broken && used.memory.Size() <= largestIdle {
		m.pool.mutex.Lock()
		keep := len(m.pool.idle) < mostIdle
		if keep {
			m.pool.idle = append(m.pool.idle, used)
		}
		m.pool.mutex.Unlock()
		if keep {
			return
		}
	}
	_ = used.module.Close(context.Background()) // nothing that can fail is open
}
