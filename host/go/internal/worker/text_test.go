package main

import (
	"encoding/json"
	"testing"
)

func TestTextKeepsWhatIsNotWellFormedUnicode(t *testing.T) {
	for in, want := range map[string]string{
		`"a\ud800b"`:           "a\xed\xa0\x80b",
		`"\udfff"`:             "\xed\xbf\xbf",
		`"\ud83d\ude00"`:       "😀",
		`"\ud83d\ud83d\ude00"`: "\xed\xa0\xbd😀",
		`"\n\u00e9\"\\\/"`:     "\né\"\\/",
		"\"\xff\"":             "\xff",
		`""`:                   "",
	} {
		var got text
		if err := json.Unmarshal([]byte(in), &got); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", in, got, err, want)
		}
	}
}
