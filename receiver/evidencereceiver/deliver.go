package evidencereceiver

import (
	"net/http"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

// handler serves one endpoint.
func (s *server) handler(e *endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived := s.now()
		ctx := s.obsreport.StartLogsOp(r.Context())
		a := s.deliver(e, r.WithContext(ctx))
		s.obsreport.EndLogsOp(ctx, metadata.Type.String(), a.events, a.err)
		s.counters.answered(ctx, e.name, &a, s.now().Sub(arrived))
		s.warnings.answered(arrived, e.name, &a)
		s.write(w, &a)
	})
}

// deliver proves the sender, then passes on. Nothing is read of a body whose
// headers already show that nobody signed it.
func (s *server) deliver(e *endpoint, r *http.Request) answer {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return answer{status: http.StatusServiceUnavailable, outcome: busy, err: errBusy}
	}
	now := s.now()
	check, err := e.verifier.Begin(r.Header, now)
	if err != nil {
		return unauthorized(err)
	}
	body, err := readBody(r, s.config.ServerConfig.MaxRequestBodySize)
	if err != nil {
		return unreadableBody(err)
	}
	secret, ok := body.verified(check)
	if !ok {
		return unauthorized(scheme.ErrSignature)
	}
	a := s.pass(e, r, body.plain)
	a.verified, a.secret = true, secret
	return a
}

// pass sends what was proved to the pipeline, and waits for it.
func (s *server) pass(e *endpoint, r *http.Request, body []byte) answer {
	if asker, ok := e.verifier.(scheme.Challenger); ok {
		if text, asked := asker.Challenge(body); asked {
			return answer{status: http.StatusOK, body: text, outcome: challenge}
		}
	}
	events, err := split(body, e.events)
	if err != nil {
		return unreadableBody(err)
	}
	if len(events) == 0 {
		return taken(0, nil)
	}
	ld := e.records(s.sealer, r.Header, events, s.now())
	return taken(len(events), s.next.ConsumeLogs(r.Context(), ld))
}
