package guard_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/cases"
	"github.com/babelqueue/babelqueue-guard/host/go/internal/wtf8"
)

// verdict is what a fresh store's guard makes of a delivery.
func verdict(t *testing.T, delivery guard.Delivery, options ...guard.Option) guard.Result {
	t.Helper()
	result, err := newGuard(t, newSpy(t), options...).Process(background, delivery, func(_ context.Context, run *guard.Run) error {
		return nil
	})
	if err != nil || result.Decision != guard.Ran {
		t.Errorf("got %+v, %v", result, err)
	}
	return result
}

func TestEveryBodyOfTheTableGivesItsIDOrReason(t *testing.T) {
	bodies := cases.Read[[]cases.Body](t, "bodies/manifest.json")
	if len(bodies) < 100 {
		t.Fatalf("%d bodies", len(bodies))
	}
	both(t, func(t *testing.T, options ...guard.Option) {
		for _, c := range bodies {
			t.Run(c.File, func(t *testing.T) {
				bytes, err := os.ReadFile(filepath.Join(cases.Folder(t), "bodies", c.File))
				if err != nil {
					t.Fatal(err)
				}
				for _, delivery := range []guard.Delivery{guard.Body(bytes), guard.Body(string(bytes))} {
					result := verdict(t, delivery, options...)
					if result.ID != orEmpty(c.ID) || string(result.FailOpen) != orEmpty(c.Reason) {
						t.Errorf("%s: got %q %q", c.Why, result.ID, result.FailOpen)
					}
				}
			})
		}
	})
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func TestEveryIDOfTheTableIsUsableOrNot(t *testing.T) {
	for _, c := range cases.Read[[]cases.ID](t, "ids.json") {
		result := verdict(t, guard.ID(c.ID))
		if c.Usable && result.ID != c.ID || !c.Usable && result.FailOpen != guard.Unusable {
			t.Errorf("%s: %q gives %+v", c.Why, c.ID, result)
		}
	}
}

func TestTextThatIsNoUnicodeIsNoID(t *testing.T) {
	for _, c := range cases.Read[[]cases.IllFormed](t, "ids-ill-formed.json") {
		var units []uint16
		for _, digits := range c.UTF16 {
			unit, err := strconv.ParseUint(digits, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			units = append(units, uint16(unit))
		}
		text := wtf8.Append(nil, units)
		if result := verdict(t, guard.ID(string(text))); result.FailOpen != guard.Unusable {
			t.Errorf("%s: got %+v", c.Why, result)
		}
		within := guard.Body(`{"meta":{"id":"` + string(text) + `"}}`)
		if result := verdict(t, within); result.FailOpen != guard.Unusable {
			t.Errorf("%s, in a body: got %+v", c.Why, result)
		}
		beside := guard.Body(`{"` + string(text) + `":"` + string(text) + `","meta":{"id":"a"}}`)
		if result := verdict(t, beside); result.ID != "a" {
			t.Errorf("%s, beside the id: got %+v", c.Why, result)
		}
	}
}

func TestTheConformanceSequences(t *testing.T) {
	both(t, func(t *testing.T, options ...guard.Option) {
		cases.PlayAll(t, func(t *testing.T) *guard.Guard { return newGuard(t, newSpy(t), options...) })
	})
}

func TestTheKeyIsTheEnvelopesID(t *testing.T) {
	key := cases.Read[cases.Conformance](t, "conformance/manifest.json").Idempotency.DedupKey
	bytes, err := os.ReadFile(filepath.Join(cases.Folder(t), "conformance", key.EnvelopeFile))
	if err != nil {
		t.Fatal(err)
	}
	if result := verdict(t, guard.Body(bytes)); result.ID != key.ExpectedKey {
		t.Errorf("got %+v", result)
	}
}
