package wasm

import (
	"context"
	"strings"
	"testing"
)

// hostile encodes a module with the exports that Decide uses, whose `decide`
// consists of the given instructions. Function 0 is the imported `seen`,
// function 1 is `decide` itself.
func hostile(instructions ...byte) []byte {
	const i32 = 0x7f
	name := func(text string) []byte { return append([]byte{byte(len(text))}, text...) }
	section := func(id byte, items ...[]byte) []byte {
		content := []byte{byte(len(items))}
		for _, item := range items {
			content = append(content, item...)
		}
		return append([]byte{id, byte(len(content))}, content...)
	}
	body := func(code ...byte) []byte {
		code = append([]byte{0}, append(code, 0x0b)...)
		return append([]byte{byte(len(code))}, code...)
	}
	decide := guardInterface + "#decide"
	exports := section(7,
		append(name("memory"), 2, 0),
		append(name("cabi_realloc"), 0, 3),
		append(name(decide), 0, 1),
		append(name("cabi_post_"+decide), 0, 2),
	)
	var module []byte
	for _, part := range [][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1,
			[]byte{0x60, 2, i32, i32, 1, i32},
			[]byte{0x60, 1, i32, 0},
			[]byte{0x60, 4, i32, i32, i32, i32, 1, i32},
			[]byte{0x60, 3, i32, i32, i32, 0},
		),
		section(2, append(append(name("babelqueue:guard/store@0.1.0"), name("seen")...), 0, 3)),
		section(3, []byte{0}, []byte{1}, []byte{2}),
		section(5, []byte{0, 1}),
		exports,
		section(10, body(instructions...), body(), body(0x41, 0x10)), // allocates at 16
	} {
		module = append(module, part...)
	}
	return module
}

// ask calls `seen` with its result at the address, a signed LEB128.
func ask(address ...byte) []byte {
	return append(append([]byte{0x41, 0, 0x41, 0, 0x41}, address...), 0x10, 0)
}

func TestAModuleThatMisbehavesGivesAnErrorAndIsDiscarded(t *testing.T) {
	const answerAt128 = "\x41\x80\x01" // zeros there: run, open, malformed
	for what, misbehaviour := range map[string]struct {
		code  []byte
		error string
	}{
		"nothing wrong":          {[]byte(answerAt128), ""},
		"one question":           {append(ask(0xc0, 0), answerAt128...), ""},
		"two questions":          {append(append(ask(0xc0, 0), ask(0xc0, 0)...), answerAt128...), "questions: 2"},
		"an answer into nowhere": {append(ask(0x78), answerAt128...), "questions: 2"},
		"unreachable":            {[]byte{0x00}, "trapped"},
		"endless recursion":      {[]byte{0x20, 0, 0x20, 1, 0x10, 1}, "stack overflow"},
		"a result outside":       {[]byte{0x41, 0x78}, "result valid: false"},
		"no such case":           {[]byte("\x41\x80\x01\x41\x09\x3a\x00\x08" + answerAt128), "result valid: false"},
	} {
		t.Run(what, func(t *testing.T) {
			module, err := compile(Settings{MaxBody: 100}, hostile(misbehaviour.code...), 4)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = module.runtime.Close(context.Background()) }()
			_, _, err = module.Decide([]byte("{}"), Answer{})
			if misbehaviour.error == "" {
				if err != nil || len(module.pool.idle) != 1 {
					t.Fatalf("got %v, %d idle", err, len(module.pool.idle))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), misbehaviour.error) {
				t.Errorf("got %v, want it to say %q", err, misbehaviour.error)
			}
			if len(module.pool.idle) != 0 {
				t.Error("the instance is kept")
			}
		})
	}
}
