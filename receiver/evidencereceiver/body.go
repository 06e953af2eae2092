package evidencereceiver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// received is a body as it came, and as it reads.
type received struct {
	// wire is what came; plain is what it decompresses to. They are the same where nothing was compressed.
	wire, plain []byte
}

var (
	errTooLarge   = errors.New("the body is larger than max_request_body_size")
	errUnreadable = errors.New("the body could not be read")
	errTooMany    = errors.New("the body holds more events than one delivery may")
)

// readBody reads at most limit bytes, compressed and decompressed alike.
// Content codings that are not configured were refused before.
func readBody(r *http.Request, limit int64) (received, error) {
	wire, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case errors.As(err, new(*http.MaxBytesError)), int64(len(wire)) > limit:
		return received{}, errTooLarge
	case err != nil:
		return received{}, errUnreadable
	}
	if !strings.EqualFold(r.Header.Get("Content-Encoding"), gzipCoding) {
		return received{wire, wire}, nil
	}
	plain, err := gunzip(wire, limit)
	return received{wire, plain}, err
}

func gunzip(wire []byte, limit int64) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(wire))
	if err != nil {
		return nil, errUnreadable
	}
	plain, err := io.ReadAll(io.LimitReader(reader, limit+1))
	switch {
	case err != nil:
		return nil, errUnreadable
	case int64(len(plain)) > limit:
		return nil, errTooLarge
	}
	return plain, nil
}

// verified says which secret signed the body. Most senders sign what they
// compress, some what they send; either proves the same.
func (b *received) verified(check func([]byte) (int, bool)) (secret int, ok bool) {
	if secret, ok = check(b.plain); ok || len(b.wire) == len(b.plain) {
		return secret, ok
	}
	return check(b.wire)
}

// maxEvents bounds how many events one delivery may hold.
const maxEvents = 10_000

// split cuts a body into its events.
func split(body []byte, events string) ([][]byte, error) {
	switch events {
	case arrayOf:
		return splitArray(body)
	case linesOf:
		return splitLines(body)
	}
	return [][]byte{body}, nil
}

// splitArray: a body that is no array is one event, as is what a sender of
// batches sends when there is only one.
func splitArray(body []byte) ([][]byte, error) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
		return [][]byte{body}, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, errUnreadable
	}
	if len(items) > maxEvents {
		return nil, errTooMany
	}
	all := make([][]byte, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all, nil
}

func splitLines(body []byte) ([][]byte, error) {
	var all [][]byte
	for line := range bytes.SplitSeq(body, []byte{'\n'}) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(all) == maxEvents {
			return nil, errTooMany
		}
		all = append(all, line)
	}
	return all, nil
}
