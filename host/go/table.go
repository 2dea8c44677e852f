package guard

import (
	"container/list"
	"math"
	"time"
)

const (
	forever   = time.Duration(math.MaxInt64)
	unbounded = math.MaxInt
)

// table holds entries that all live equally long, and at most so many. In the
// order in which they were put they also end, so that nothing is ever searched
// for what has ended.
type table struct {
	lifetime time.Duration
	most     int
	byKey    map[string]*list.Element
	byAge    *list.List // the one put longest ago in front
}

type entry struct {
	key, token string
	end        time.Time // zero: never
}

func newTable(lifetime time.Duration, most int) *table {
	return &table{lifetime: lifetime, most: most, byKey: map[string]*list.Element{}, byAge: list.New()}
}

// live gives the entry of a key, nil if there is none or it has ended.
func (t *table) live(key string) *entry {
	element, found := t.byKey[key]
	if !found || element.Value.(*entry).ended(time.Now) {
		return nil
	}
	return element.Value.(*entry)
}

// put sets the entry of a key, whose life begins anew, and drops what has ended
// or is too much.
func (t *table) put(key, token string) {
	now := time.Now()
	var end time.Time
	if t.lifetime != forever {
		end = now.Add(t.lifetime)
	}
	if element, found := t.byKey[key]; found {
		*element.Value.(*entry) = entry{key, token, end}
		t.byAge.MoveToBack(element)
	} else {
		t.byKey[key] = t.byAge.PushBack(&entry{key, token, end})
	}
	at := func() time.Time { return now }
	for {
		oldest := t.byAge.Front().Value.(*entry)
		if len(t.byKey) <= t.most && !oldest.ended(at) {
			return
		}
		t.drop(oldest.key)
	}
}

func (t *table) drop(key string) {
	if element, found := t.byKey[key]; found {
		t.byAge.Remove(element)
		delete(t.byKey, key)
	}
}

// ended reads the clock only for an entry that can end.
func (e *entry) ended(now func() time.Time) bool {
	return !e.end.IsZero() && !now().Before(e.end)
}
