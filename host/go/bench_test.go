package guard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/measure"
)

// envelope is an order with as many lines as its size allows.
func envelope(size int) []byte {
	const head = `{"job":"urn:babel:orders:created","trace_id":"7d0c4d7e-35a1-4f4e-9d34-0f0d2a4f7a10","data":{"order_id":1042`
	const tail = `},"meta":{"id":"5f0c1d2e-3a4b-4c5d-8e6f-708192a3b4c5","queue":"orders","lang":"go","schema_version":1},"attempts":0}`
	var b bytes.Buffer
	b.WriteString(head)
	for line := 0; ; line++ {
		next := fmt.Sprintf(`,"line_%d":{"sku":"A-%d","qty":%d,"price":%d.25}`, line, line*7, line%9, line)
		if b.Len()+len(next)+len(tail) > size {
			return append(b.Bytes(), tail...)
		}
		b.WriteString(next)
	}
}

// extract reads the id with encoding/json, and does nothing else.
func extract(body []byte) string {
	var e struct {
		Meta struct {
			ID string `json:"id"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return ""
	}
	return e.Meta.ID
}

// BenchmarkDecide compares a whole decision, a memory store asked, with
// encoding/json doing the extraction alone.
func BenchmarkDecide(b *testing.B) {
	text := `{"data":"` + strings.Repeat("payload ", 32_000) + `","meta":{"id":"5f0c1d2e"}}`
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"250B", envelope(250)},
		{"1KB", envelope(1000)},
		{"10KB", envelope(10_000)},
		{"256KB", envelope(256_000)},
		{"256KB_of_text", []byte(text)},
	} {
		b.Run(c.name, func(b *testing.B) {
			fresh, seen := newGuard(b, memory(b)), memory(b)
			if err := seen.Remember(background, extract(c.body)); err != nil {
				b.Fatal(err)
			}
			again := newGuard(b, seen)
			decide := func(g *guard.Guard) func() {
				return func() {
					if err := g.Decide(background, guard.Body(c.body)); err != nil {
						b.Fatal(err)
					}
				}
			}
			measure.Compare(b,
				measure.Candidate{Name: "guard", Call: decide(fresh)},
				measure.Candidate{Name: "json", Call: func() {
					if extract(c.body) == "" {
						b.Fatal("no id")
					}
				}},
				measure.Candidate{Name: "seen", Call: decide(again)},
			)
		})
	}
}

// BenchmarkProcess has the whole of a delivery, handler and mark included.
func BenchmarkProcess(b *testing.B) {
	for mode, options := range map[string][]guard.Option{"seen-set": nil, "claiming": {guard.WithClaims()}} {
		b.Run(mode, func(b *testing.B) {
			g := newGuard(b, memory(b, guard.MaxEntries(1000)), options...)
			h := &handler{}
			b.ReportAllocs()
			for number := 0; b.Loop(); number++ {
				if _, err := g.Process(background, guard.ID(fmt.Sprint(number)), h.handle); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func memory(t testing.TB, options ...guard.MemoryOption) *guard.Memory {
	t.Helper()
	store, err := guard.NewMemory(options...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}
