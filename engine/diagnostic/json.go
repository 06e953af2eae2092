package diagnostic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// jsonRemedies explain what a JSON decoder most often complains about, by a part of its words.
var jsonRemedies = []struct{ words, remedy string }{
	{"looking for beginning of object key string", "write a key in double quotes, and no comma before }"},
	{"looking for beginning of value", "write a text in double quotes, a number, true, false, null, {...} or [...]"},
	{"after object key:value pair", "write a comma between members, and } after the last one"},
	{"after object key", "write a colon after the key"},
	{"after array element", "write a comma between items, and ] after the last one"},
	{"in string literal", `write \n for a line break and \t for a tab`},
	{"in string escape code", `write \\ for a backslash`},
	{"in literal", "write true, false or null, or a text in double quotes"},
	{"unexpected EOF", "it ends too early: close every quote, list and object"},
}

// JSONDocuments calls each with the JSON documents that stand after each other in
// text. What is no JSON, and what each refuses, is a Diagnostic without the name
// of a file.
func JSONDocuments(text []byte, each func(document json.RawMessage) error) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return noJSON(text, int(decoder.InputOffset()), err)
		}
		if err := each(document); err != nil {
			start := int(decoder.InputOffset()) - len(document)
			at, d := refused(document, err.Error())
			return placed(text, start+at, d)
		}
	}
}

func noJSON(text []byte, at int, err error) Diagnostic {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		at = len(text)
	case errors.As(err, &syntax):
		at = int(syntax.Offset) - 1 // it counts the byte that is wrong
	}
	d := Diagnostic{Message: "is not JSON: " + err.Error()}
	for _, r := range jsonRemedies {
		if strings.Contains(err.Error(), r.words) {
			d.Allowed = r.remedy
			break
		}
	}
	return placed(text, at, d)
}

func placed(text []byte, at int, d Diagnostic) Diagnostic {
	node := place(text, min(max(at, 0), len(text)))
	d.Line, d.Column = node.Line, node.Column
	return d
}

// decoderContext is how the decoder of OTLP/JSON says where it stopped: the
// number of a byte in a few bytes of the document, and some more around them.
var decoderContext = regexp.MustCompile(`(?s)^(.*), error found in #(\d+) byte of \.\.\.\|(.*)\|\.\.\., bigger context \.\.\.\|(.*)\|\.\.\.$`)

// refused says what a reader of the document says, and where it stopped: 0 where it does not say that.
func refused(document []byte, message string) (at int, d Diagnostic) {
	said := decoderContext.FindStringSubmatch(message)
	if said == nil {
		return 0, Diagnostic{Message: message}
	}
	d = Diagnostic{Message: said[1], Allowed: "OTLP/JSON has ids in hex digits and lists in [ ]"}
	number, err := strconv.Atoi(said[2])
	around := bytes.Index(document, []byte(said[4]))
	within := strings.Index(said[4], said[3])
	if err != nil || around < 0 || within < 0 {
		return 0, d
	}
	return around + within + number - 1, d
}
