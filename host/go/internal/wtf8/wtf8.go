// Package wtf8 encodes UTF-16 that need not be well-formed.
package wtf8

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Append encodes code units as UTF-8, and an unpaired surrogate as the three
// bytes that UTF-8 would have for it: never as U+FFFD, which would make two
// texts one.
func Append(text []byte, units []uint16) []byte {
	for len(units) > 0 {
		unit := rune(units[0])
		units = units[1:]
		if len(units) > 0 {
			if pair := utf16.DecodeRune(unit, rune(units[0])); pair != utf8.RuneError {
				text, units = utf8.AppendRune(text, pair), units[1:]
				continue
			}
		}
		if utf16.IsSurrogate(unit) {
			text = append(text, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
		} else {
			text = utf8.AppendRune(text, unit)
		}
	}
	return text
}
