package diagnostic

import (
	"encoding/json"
	"errors"
	"testing"
)

// TestJSONDocuments: every error has the line and the column where it stands, also behind a good document.
func TestJSONDocuments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "",
		" {} \n [1] ":              "",
		"{}\n{\"a\": 1,\n }":       ":3:2: is not JSON: invalid character '}' looking for beginning of object key string; write a key in double quotes, and no comma before }",
		"{\"a\": 1\n \"b\": 2}":    ":2:2: is not JSON: invalid character '\"' after object key:value pair; write a comma between members, and } after the last one",
		"{\"a\" 1}":                ":1:6: is not JSON: invalid character '1' after object key; write a colon after the key",
		"[1 2]":                    ":1:4: is not JSON: invalid character '2' after array element; write a comma between items, and ] after the last one",
		"[\"a\n\"]":                ":1:4: is not JSON: invalid character '\\n' in string literal; write \\n for a line break and \\t for a tab",
		`["\d"]`:                   ":1:4: is not JSON: invalid character 'd' in string escape code; write \\\\ for a backslash",
		"{'a': 1}":                 ":1:2: is not JSON: invalid character '\\'' looking for beginning of object key string; write a key in double quotes, and no comma before }",
		"[tru]":                    ":1:5: is not JSON: invalid character ']' in literal true (expecting 'e'); write true, false or null, or a text in double quotes",
		"{}\n[\n":                  ":3:1: is not JSON: unexpected EOF; it ends too early: close every quote, list and object",
		"hello":                    ":1:1: is not JSON: invalid character 'h' looking for beginning of value; write a text in double quotes, a number, true, false, null, {...} or [...]",
		"{}\n  {\"refuse\": true}": ":2:3: it is refused",
		"[1,\n 2, \"far\"]":        ":2:5: expect [ or ]; OTLP/JSON has ids in hex digits and lists in [ ]",
	} {
		err := JSONDocuments([]byte(text), func(document json.RawMessage) error {
			switch string(document) {
			case `{"refuse": true}`:
				return errors.New("it is refused")
			case "[1,\n 2, \"far\"]":
				return errors.New("expect [ or ], error found in #4 byte of ...|2, \"far\"|..., bigger context ...|[1,\n 2, \"far\"]|...")
			}
			return nil
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
