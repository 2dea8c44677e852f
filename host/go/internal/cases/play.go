package cases

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
)

// PlayAll plays every sequence of the table, each through a guard of its own
// over an empty store.
func PlayAll(t *testing.T, empty func(t *testing.T) *guard.Guard) {
	sequences := Read[Conformance](t, "conformance/manifest.json").Idempotency.Sequences.Cases
	if len(sequences) == 0 {
		t.Fatal("there are no sequences")
	}
	for _, sequence := range sequences {
		t.Run(sequence.Name, func(t *testing.T) { sequence.play(t, empty(t)) })
	}
}

func (s Sequence) play(t *testing.T, g *guard.Guard) {
	thrown := errors.New("thrown by the handler")
	effects := 0
	for at, delivery := range s.Deliveries {
		if delivery.ForgetBefore {
			if err := g.Forget(context.Background(), delivery.MetaID); err != nil {
				t.Fatal(err)
			}
		}
		envelope, err := json.Marshal(map[string]any{"meta": map[string]string{"id": delivery.MetaID}})
		if err != nil {
			t.Fatal(err)
		}
		ran := false
		result, err := g.Process(context.Background(), guard.Body(envelope), func(context.Context, *guard.Run) error {
			ran = true
			effects++
			if delivery.Outcome == "throw" {
				return thrown
			}
			return nil
		})
		if ran != (delivery.Expect == "run") || ran != (result.Decision == guard.Ran) {
			t.Errorf("delivery %d: ran %t, %+v; want %s", at, ran, result, delivery.Expect)
		}
		if err != nil && (err != thrown || delivery.Outcome != "throw") {
			t.Errorf("delivery %d: %v", at, err)
		}
	}
	if effects != s.Effects {
		t.Errorf("%d effects, want %d", effects, s.Effects)
	}
}
