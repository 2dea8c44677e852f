package main

import (
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/babelqueue/babelqueue-guard/host/go/internal/wtf8"
)

// text is a JSON string as it stands: encoding/json would put U+FFFD for what
// is not well-formed Unicode, escaped or not, and so make two ids one.
type text string

var unescaped = map[byte]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// UnmarshalJSON takes a value whose grammar encoding/json has checked.
func (t *text) UnmarshalJSON(quoted []byte) error {
	if quoted[0] != '"' {
		return errors.New("a string is wanted")
	}
	rest := quoted[1 : len(quoted)-1]
	var out []byte
	for len(rest) > 0 {
		var units []uint16
		for len(rest) > 1 && rest[0] == '\\' && rest[1] == 'u' {
			unit, err := hex.DecodeString(string(rest[2:6]))
			if err != nil {
				return err
			}
			units, rest = append(units, binary.BigEndian.Uint16(unit)), rest[6:]
		}
		switch {
		case len(units) > 0:
			out = wtf8.Append(out, units)
		case rest[0] == '\\':
			out, rest = append(out, unescaped[rest[1]]), rest[2:]
		default:
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	*t = text(out)
	return nil
}
