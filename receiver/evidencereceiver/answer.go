package evidencereceiver

import (
	"errors"
	"net/http"
	"strconv"

	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

// answer is what a delivery is answered, and what is counted of it.
type answer struct {
	status  int
	body    string
	outcome outcome
	// err is why it was refused. It stays inside: a sender that proved nothing learns nothing.
	err error
	// verified: the secret of this place signed it.
	verified bool
	secret   int
	// events is how many went to the pipeline.
	events int
}

// unauthorized is the same answer whatever was wrong.
func unauthorized(err error) answer {
	a := answer{status: http.StatusUnauthorized, outcome: badSignature, err: err}
	switch {
	case errors.Is(err, scheme.ErrUnsigned):
		a.outcome = unsigned
	case errors.Is(err, scheme.ErrMalformed):
		a.outcome = malformedSignature
	case errors.Is(err, scheme.ErrExpired):
		a.outcome = expired
	}
	return a
}

// unreadableBody answers a body that cannot be had. Its size is no secret.
func unreadableBody(err error) answer {
	switch {
	case errors.Is(err, errTooLarge):
		return answer{status: http.StatusRequestEntityTooLarge, outcome: tooLarge, err: err}
	case errors.Is(err, errTooMany):
		return answer{status: http.StatusRequestEntityTooLarge, outcome: tooManyEvents, err: err}
	}
	return answer{status: http.StatusBadRequest, outcome: unreadable, err: err}
}

// taken answers what the pipeline said. Its own words stay inside. A sender
// keeps what was refused for good too: evidence is not thrown away because a
// configuration was wrong for an hour.
func taken(events int, err error) answer {
	switch {
	case err == nil:
		return answer{status: http.StatusOK, outcome: accepted, events: events}
	case consumererror.IsPermanent(err):
		return answer{status: http.StatusInternalServerError, outcome: pipelineRefused, err: err, events: events}
	}
	return answer{status: http.StatusServiceUnavailable, outcome: pipelineBusy, err: err, events: events}
}

func (s *server) write(w http.ResponseWriter, a *answer) {
	header := w.Header()
	if a.status == http.StatusServiceUnavailable {
		header.Set("Retry-After", strconv.Itoa(int(s.config.RetryAfter.Seconds())))
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.status)
	_, _ = w.Write([]byte(a.body)) // a sender that has gone comes again
}
