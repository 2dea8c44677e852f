// Package measure compares functions within one run.
package measure

import (
	"slices"
	"testing"
	"time"
)

// Candidate is one of the functions compared.
type Candidate struct {
	Name string
	Call func()
}

// slice is how long a candidate runs before it is the next one's turn.
const slice = 2 * time.Millisecond

// Compare lets the candidates take turns, and reports the nanoseconds that a
// call took in the best turn of each, and what the first one takes of the
// second one's. What else the machine does meets all of them alike.
func Compare(b *testing.B, candidates ...Candidate) {
	calls := make([]int, len(candidates))
	best := make([]float64, len(candidates))
	for at, candidate := range candidates {
		started := time.Now()
		for time.Since(started) < slice {
			candidate.Call()
			calls[at]++
		}
	}
	for b.Loop() {
		for at, candidate := range candidates {
			started := time.Now()
			for range calls[at] {
				candidate.Call()
			}
			took := float64(time.Since(started).Nanoseconds()) / float64(calls[at])
			if best[at] == 0 || took < best[at] {
				best[at] = took
			}
		}
	}
	b.ReportMetric(0, "ns/op") // a turn's time says nothing
	for at, candidate := range candidates {
		b.ReportMetric(best[at], candidate.Name+"-ns")
	}
	if !slices.Contains(best[:2], 0) {
		b.ReportMetric(best[0]/best[1], candidates[0].Name+"/"+candidates[1].Name)
	}
}
