package main

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a JSON string as it stands. encoding/json would put U+FFFD for what
// is not well-formed Unicode, and so make two ids one; here an unpaired
// surrogate becomes the three bytes that UTF-8 would have for it, and other
// bytes stay as they are.
type text string

// UnmarshalJSON takes a string whose grammar encoding/json has checked.
func (t *text) UnmarshalJSON(quoted []byte) error {
	if string(quoted) == "null" {
		return nil
	}
	if len(quoted) < 2 || quoted[0] != '"' {
		return errors.New("a string is wanted")
	}
	rest := quoted[1 : len(quoted)-1]
	out := make([]byte, 0, len(rest))
	for len(rest) > 0 {
		if rest[0] != '\\' {
			out, rest = append(out, rest[0]), rest[1:]
			continue
		}
		if rest[1] != 'u' {
			out, rest = append(out, unescaped[rest[1]]), rest[2:]
			continue
		}
		unit := codeUnit(rest)
		rest = rest[6:]
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			if pair := utf16.DecodeRune(unit, codeUnit(rest)); pair != utf8.RuneError {
				out, rest = utf8.AppendRune(out, pair), rest[6:]
				continue
			}
		}
		if utf16.IsSurrogate(unit) {
			out = append(out, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
		} else {
			out = utf8.AppendRune(out, unit)
		}
	}
	*t = text(out)
	return nil
}

var unescaped = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// codeUnit reads \uXXXX.
func codeUnit(escape []byte) rune {
	unit, _ := strconv.ParseUint(string(escape[2:6]), 16, 16)
	return rune(unit)
}
