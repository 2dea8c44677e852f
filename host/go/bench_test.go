package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

func envelope(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"job":"urn:babel:orders:created","trace_id":"7d0c4d7e-35a1-4f4e-9d34-0f0d2a4f7a10","data":{"order_id":1042`)
	for i := 0; b.Len() < size-170; i++ {
		fmt.Fprintf(&b, `,"line_%d":{"sku":"A-%d","qty":%d,"price":%d.25}`, i, i*7, i%9, i)
	}
	b.WriteString(`},"meta":{"id":"5f0c1d2e-3a4b-4c5d-8e6f-708192a3b4c5","queue":"orders","lang":"go","schema_version":1,"created_at":1700000000000},"attempts":0}`)
	return b.Bytes()
}

func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{250, 1000, 10_000, 256_000} {
		body := envelope(size)
		store, _ := guard.NewMemory()
		g, _ := guard.New(store)
		b.Run(fmt.Sprintf("guard/%d", len(body)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Decide(context.Background(), guard.Body(body))
			}
		})
		b.Run(fmt.Sprintf("json/%d", len(body)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var e struct {
					Meta struct {
						ID string `json:"id"`
					} `json:"meta"`
				}
				if json.Unmarshal(body, &e) != nil || e.Meta.ID == "" {
					b.Fatal()
				}
			}
		})
	}
}
