package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/countersign-otel/countersign/engine/diagnostic"
)

// maxBody is the largest body that is read from a file. The API takes less;
// what is larger than this need not be read to be refused.
const maxBody = 32 << 20

// readBody reads a request body from a file, or from standard input for "-".
func readBody(t *terminal, name string) (body []byte, err error) {
	if name == "-" {
		body, err = io.ReadAll(io.LimitReader(t.stdin, maxBody+1))
	} else {
		body, err = readBounded(name, maxBody)
	}
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody {
		return nil, usagef("%s: has more than %d MiB; send several requests", name, maxBody>>20)
	}
	if len(body) == 0 {
		return nil, usagef("%s: is empty; write a JSON object", name)
	}
	return body, nil
}

// badDocument is a file that was read and does not say what it should.
func badDocument(name string, err error) error {
	var d diagnostic.Diagnostic
	if !errors.As(err, &d) {
		return usagef("%s: %w", name, err)
	}
	d.File = name
	return usagef("%s", printable(d.Error()))
}

// warn says something beside the answer.
func (t *terminal) warn(format string, args ...any) {
	fmt.Fprintf(t.stderr, "%s %s\n", t.errStyle.yellow("warning:"), fmt.Sprintf(format, args...))
}
