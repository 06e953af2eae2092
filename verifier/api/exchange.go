package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/countersign-otel/countersign/engine"
)

// Limits of one request body, in bytes. They hold before anything is parsed.
const (
	maxActionBody = 1 << 20
	maxFactsBody  = 16 << 20
	// maxBodies bounds the bodies that are held at once.
	maxBodies = 128 << 20
	// freeBody is how much of each body is held without a share of that, so
	// that small requests never wait behind large ones that arrive slowly.
	freeBody = 16 << 10
	// maxParsed bounds what is made of the bodies that are worked on at once, as
	// parsedSize guesses it.
	maxParsed = 256 << 20
	// parsedTimes is how many times its length a body takes while it is worked on:
	// what is read of it, what the store makes of that, and as much again that the
	// garbage collector has not come to.
	parsedTimes = 8
	// defaultBodyTimeout is how long a client may take to send a body.
	defaultBodyTimeout = 30 * time.Second
)

// Exchange gives a handler the request itself, because bodies are read by hand.
type Exchange struct {
	request  *http.Request
	response http.ResponseWriter
}

// Resolve is called by huma for every request.
func (e *Exchange) Resolve(ctx huma.Context) []error {
	e.request, e.response = humago.Unwrap(ctx)
	return nil
}

// body reads the whole body up to limit bytes, after the caller was let in and
// before anything is parsed. Bodies that are held at once are bounded; release
// gives the share back.
func (h *handler) body(ctx context.Context, e Exchange, limit int64) (body []byte, release func(), err error) {
	if err := checkMedia(e.request.Header); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.BodyTimeout)
	defer cancel()
	// Not every response writer has deadlines (tests); the server's own hold then.
	_ = http.NewResponseController(e.response).SetReadDeadline(time.Now().Add(h.BodyTimeout))
	body, held, err := h.read(ctx, http.MaxBytesReader(e.response, e.request.Body, limit))
	if err != nil {
		h.bodies.Release(held)
		return nil, nil, h.bodyProblem(body, limit, err)
	}
	parsed := parsedSize(body)
	if err := h.parsed.Acquire(ctx, parsed); err != nil {
		h.bodies.Release(held)
		return nil, nil, tooManyLarge()
	}
	return body, func() {
		h.parsed.Release(parsed)
		h.bodies.Release(held)
	}, nil
}

// parsedSize guesses what a body takes once it is parsed. How short its values
// are does not matter: dense objects are held as text. Small bodies are not counted.
func parsedSize(body []byte) int64 {
	if len(body) <= freeBody {
		return 0
	}
	return min(parsedTimes*int64(len(body)), maxParsed)
}

func tooManyLarge() *Problem {
	return problem(http.StatusServiceUnavailable, CodeBusy, "too many large requests at once; try again")
}

// read takes shares as the bytes arrive, not as they are announced: who
// announces much and sends little holds little.
func (h *handler) read(ctx context.Context, from io.Reader) (body []byte, held int64, err error) {
	body = make([]byte, 0, freeBody)
	for {
		if len(body) == cap(body) {
			more := int64(cap(body))
			if err := h.bodies.Acquire(ctx, more); err != nil {
				return nil, held, tooManyLarge()
			}
			held += more
			body = append(make([]byte, 0, 2*more), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, held, nil
		}
		if err != nil {
			return body, held, err
		}
	}
}

func (h *handler) bodyProblem(start []byte, limit int64, err error) error {
	var tooLarge *http.MaxBytesError
	var known *Problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return tooLargeProblem(start, limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, CodeTimeout, "the body did not arrive within %s", h.BodyTimeout)
	}
	return problem(http.StatusBadRequest, CodeMalformed, "the body cannot be read: %v", err)
}

// checkMedia lets JSON in, and what does not say what it is.
func checkMedia(header http.Header) error {
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return problem(http.StatusUnsupportedMediaType, CodeMediaType, "the body is encoded as %q; send it as it is", clip(encoding))
	}
	declared := header.Get("Content-Type")
	if declared == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(declared)
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return problem(http.StatusUnsupportedMediaType, CodeMediaType, "the body is %q; send application/json", clip(declared))
}

// tooLargeProblem names the member that a body was cut off in.
func tooLargeProblem(start []byte, limit int64) *Problem {
	p := problem(http.StatusRequestEntityTooLarge, CodeTooLarge, "the body has more than %d bytes", limit)
	switch member := cutOffMember(start); member {
	case "":
	case "params":
		p.Errors = []Fault{at("/params", "is too large; at most %d bytes are allowed", engine.MaxObjectBytes)}
	case "facts":
		p.Errors = []Fault{at("/facts", "is too large; send several requests of at most %d facts and %d bytes", maxItems, limit)}
	default:
		p.Errors = []Fault{at("/"+escape(member), "is too large; the whole body may have at most %d bytes", limit)}
	}
	return p
}

// cutOffMember is the member of the outermost object whose value did not end; empty when that is not clear.
func cutOffMember(start []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(start))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return ""
	}
	for {
		token, err := decoder.Token()
		if err != nil {
			return ""
		}
		key, ok := token.(string)
		if !ok {
			return ""
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return key
		}
	}
}
