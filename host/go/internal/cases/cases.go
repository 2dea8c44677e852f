// Package cases reads the table of cases that all languages share, tests/cases
// of the project.
package cases

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Folder is where the table is. Without it, as in a module that was fetched
// from a proxy, the test is skipped, and in CI it fails.
func Folder(t testing.TB) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(here), "../../../../tests/cases")
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatal("the shared cases are not there, and in CI they must be")
		}
		t.Skip("the shared cases are not there")
	}
	return folder
}

// Body is a body and what it must give: an id or a reason.
type Body struct {
	File, Why  string
	ID, Reason *string
}

// ID is an id that a host passes itself.
type ID struct {
	ID, Why string
	Usable  bool
}

// IllFormed is text that is no Unicode, as UTF-16 code units in hexadecimal.
type IllFormed struct {
	UTF16 []string
	Why   string
}

// Sequence is a list of deliveries through one guard.
type Sequence struct {
	Name       string
	Deliveries []Delivery
	Effects    int `json:"expected_effects"`
}

// Delivery is one of a Sequence.
type Delivery struct {
	MetaID       string `json:"meta_id"`
	Expect       string `json:"expect_effect"`
	Outcome      string
	ForgetBefore bool `json:"forget_before"`
}

// Conformance is the manifest of the cross-SDK suite.
type Conformance struct {
	Idempotency struct {
		DedupKey struct {
			EnvelopeFile string `json:"envelope_file"`
			ExpectedKey  string `json:"expected_key"`
		} `json:"dedup_key"`
		Sequences struct{ Cases []Sequence }
	}
}

// Read reads a file of the table.
func Read[T any](t testing.TB, file string) T {
	t.Helper()
	bytes, err := os.ReadFile(filepath.Join(Folder(t), file))
	if err != nil {
		t.Fatal(err)
	}
	var content T
	if err := json.Unmarshal(bytes, &content); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return content
}
