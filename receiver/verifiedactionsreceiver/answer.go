package verifiedactionsreceiver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// answer is what a request is answered, and what is reported of it.
type answer struct {
	status int
	body   any
	// outcome is the request's, for metrics.
	outcome outcome
	// spans is how many went to the pipeline, err why they or the request were refused.
	spans int
	err   error
}

type problem struct {
	Error string `json:"error"`
}

func refuse(status int, what outcome, err error) answer {
	return answer{status: status, body: problem{err.Error()}, outcome: what, err: err}
}

var (
	errBusy     = errors.New("too many requests at a time; come again later")
	errTooLarge = errors.New("the body is larger than max_request_body_size")
	errBody     = errors.New("the body could not be read")
	errPipeline = errors.New("the collector's pipeline did not take it; come again later")
	errRefused  = errors.New("the collector's pipeline refused it for good")
)

// notTaken answers what the pipeline said. Its own words stay inside.
func notTaken(spans int, err error) answer {
	a := refuse(http.StatusServiceUnavailable, busy, errPipeline)
	if consumererror.IsPermanent(err) {
		a = refuse(http.StatusInternalServerError, failed, errRefused)
	}
	a.spans, a.err = spans, err
	return a
}

// readBody is nil with an answer where the body cannot be had.
func readBody(r *http.Request) ([]byte, *answer) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		return body, nil
	}
	a := refuse(http.StatusBadRequest, malformed, errBody)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		a = refuse(http.StatusRequestEntityTooLarge, tooLarge, errTooLarge)
	}
	return nil, &a
}

func (s *server) write(w http.ResponseWriter, a *answer) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	if a.status == http.StatusServiceUnavailable {
		header.Set("Retry-After", strconv.Itoa(int(s.config.RetryAfter.Seconds())))
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // a sender that has gone asks again
}
