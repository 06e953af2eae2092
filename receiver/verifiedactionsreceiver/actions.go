package verifiedactionsreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
)

// actionsReply says what became of the actions of a request.
type actionsReply struct {
	Accepted int        `json:"accepted"`
	Rejected []badReply `json:"rejected"`
}

// badReply names what does not read, by its place in its payload.
type badReply struct {
	Error string `json:"error"`
}

// actions serves VerifiedActions.
func (s *server) actions(ctx context.Context, r *http.Request) answer {
	if len(s.tokens) > 0 {
		found, ok := findToken(s.tokens, r.Header)
		if !ok {
			return refuse(http.StatusUnauthorized, unauthorized, errToken)
		}
		ctx = principal{tenant: found.tenant}.in(ctx)
	}
	body, refusal := readBody(r)
	if refusal != nil {
		return *refusal
	}
	payloads, bad, err := s.readActions(body)
	if errors.Is(err, errActionsTooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, tooLarge, err)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, malformed, err)
	}
	return s.deliverActions(ctx, payloads, bad)
}

func (s *server) deliverActions(ctx context.Context, payloads []verifiedactions.Payload, bad []error) answer {
	reply := actionsReply{Rejected: []badReply{}}
	for _, p := range payloads {
		reply.Accepted += len(p.Actions)
		for _, i := range p.Invalid {
			bad = append(bad, i)
		}
	}
	for _, err := range bad {
		reply.Rejected = append(reply.Rejected, badReply{err.Error()})
	}
	s.counters.actions(ctx, len(bad), invalid)
	if reply.Accepted == 0 {
		a := answer{status: http.StatusOK, body: reply, outcome: accepted}
		if len(bad) > 0 {
			a.status, a.outcome, a.err = http.StatusBadRequest, malformed, errors.Join(bad...)
		}
		return a
	}
	if err := s.next.ConsumeTraces(ctx, s.actionTraces(payloads, s.now())); err != nil {
		s.counters.actions(ctx, reply.Accepted, failed)
		return notTaken(reply.Accepted, err)
	}
	s.counters.actions(ctx, reply.Accepted, accepted)
	return answer{status: http.StatusOK, body: reply, outcome: accepted, spans: reply.Accepted}
}

// envelopeBytes is more than what readActions puts around a body.
const envelopeBytes = 256

var (
	errActionsTooLarge = fmt.Errorf("the body has more than %d bytes, which is most for VerifiedActions", verifiedactions.MaxPayloadBytes-envelopeBytes)
	errNoActions       = errors.New("the body has neither actions nor the content of a chat message: send VerifiedActions as JSON, or a message or metadata that holds them")
)

// readActions reads VerifiedActions by themselves, as metadata, as a metadata
// content, or as a chat message with such contents. Payloads that do not read
// are in bad, beside those that do.
func (s *server) readActions(body []byte) (payloads []verifiedactions.Payload, bad []error, err error) {
	if len(body) > verifiedactions.MaxPayloadBytes-envelopeBytes {
		return nil, nil, errActionsTooLarge
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return nil, nil, fmt.Errorf("the body does not read: %w", err)
	}
	sentAt, err := readTimestamp(top["timestamp"])
	if err != nil {
		return nil, nil, err
	}
	message := string(body)
	_, isMessage := top["content"]
	_, isContent := top["metadata"]
	_, isMetadata := top[s.metadata.Version]
	_, isBare := top["actions"]
	switch {
	case isMessage:
	case isContent:
		message = `{"content":[` + message + `]}`
	case isMetadata:
		message = `{"content":[{"type":"metadata","metadata":` + message + `}]}`
	case isBare:
		payload, err := verifiedactions.Parse(message)
		if err != nil {
			return nil, nil, err
		}
		payload.SentAt = sentAt
		return []verifiedactions.Payload{payload}, nil, nil
	default:
		return nil, nil, errNoActions
	}
	payloads, bad = s.metadata.FromMessage(message)
	return payloads, bad, nil
}

// readTimestamp is zero for none. One that does not read is an error: the time
// of an action decides which effects are its own.
func readTimestamp(raw json.RawMessage) (time.Time, error) {
	if raw == nil || string(raw) == "null" {
		return time.Time{}, nil
	}
	var text string
	var at time.Time
	err := json.Unmarshal(raw, &text)
	if err == nil {
		at, err = time.Parse(time.RFC3339Nano, text)
	}
	const lastYear = 2261 // of 64-bit nanoseconds
	if err != nil || at.Unix() < 0 || at.UTC().Year() > lastYear {
		return time.Time{}, fmt.Errorf("/timestamp is no time with an offset, from 1970 to %d, like 2026-06-15T10:30:00Z", lastYear)
	}
	return at.UTC(), nil
}
