package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/measure"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/redistest"
)

// BenchmarkCycle compares a message and its redelivery, handler included, with
// the bare commands that a seen-set costs: a look, a mark and a look.
func BenchmarkCycle(b *testing.B) {
	client := redistest.Start(b, "--appendonly", "no").Client(b)
	number := 0
	next := func() string {
		number++
		return fmt.Sprint(number)
	}
	raw := func() {
		key := "raw:" + next()
		for range 2 {
			if client.Get(background, key).Val() == "" {
				client.Set(background, key, "1", time.Hour)
			}
		}
	}
	for mode, options := range map[string][]guard.Option{"seen-set": nil, "claiming": {guard.WithClaims()}} {
		b.Run(mode, func(b *testing.B) {
			g := newGuard(b, newStore(b, client), options...)
			cycle := func() {
				envelope := guard.Body(`{"job":"urn:babel:orders:created","meta":{"id":"` + next() + `"}}`)
				for range 2 {
					if _, err := g.Process(background, envelope, succeed); err != nil {
						b.Fatal(err)
					}
				}
			}
			measure.Compare(b, measure.Candidate{Name: "guard", Call: cycle}, measure.Candidate{Name: "raw", Call: raw})
		})
	}
}
