package verifiedactions

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Names of the metadata keys that the chat protocol's own host writes.
const (
	DefaultVersionKey = "verified_actions_version"
	DefaultPayloadKey = "verified_actions_payload"
)

// Payload is the metadata of one request.
type Payload struct {
	// SessionID is the anchor of the receipts' chain.
	SessionID string
	// Actions stand in the order of the payload, without those that do not read.
	Actions []Action
	// Invalid are those that do not read.
	Invalid []Invalid
	// SentAt is the chat message's timestamp; zero outside a message or without one.
	SentAt time.Time
}

// Invalid is one raw action that does not read, by its place in the payload.
type Invalid struct {
	Index int
	Err   error
}

func (i Invalid) Error() string { return "actions[" + strconv.Itoa(i.Index) + "]: " + i.Err.Error() }

// Parse reads the JSON of VerifiedActions. It fails when the whole does not
// read; single actions that do not are in Payload.Invalid.
func Parse(payload string) (Payload, error) {
	if len(payload) > MaxPayloadBytes {
		return Payload{}, fmt.Errorf("%w: the payload has %d bytes; at most %d are allowed", ErrInvalid, len(payload), MaxPayloadBytes)
	}
	var body struct {
		SessionID *string           `json:"session_id"`
		Actions   []json.RawMessage `json:"actions"`
	}
	if err := json.Unmarshal([]byte(payload), &body); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			err = fmt.Errorf("at byte %d stands a JSON %s; an object with session_id (text) and actions (list) is needed", wrongType.Offset, wrongType.Value)
		}
		return Payload{}, fmt.Errorf("%w: the payload does not read: %w", ErrInvalid, err)
	}
	p := Payload{}
	if body.SessionID != nil {
		p.SessionID = *body.SessionID
	}
	switch {
	case len(p.SessionID) > MaxTextBytes || strings.ContainsFunc(p.SessionID, control):
		return Payload{}, fmt.Errorf("%w: session_id has more than %d bytes or a control character", ErrInvalid, MaxTextBytes)
	case len(body.Actions) > MaxActions:
		return Payload{}, fmt.Errorf("%w: the payload has %d actions; at most %d are allowed", ErrInvalid, len(body.Actions), MaxActions)
	}
	for i, raw := range body.Actions {
		a, err := ParseAction(raw)
		if err != nil {
			p.Invalid = append(p.Invalid, Invalid{Index: i, Err: err})
			continue
		}
		p.Actions = append(p.Actions, a)
	}
	return p, nil
}

// Keys name the metadata entries; VA does not fix them.
type Keys struct{ Version, Payload string }

// FromMessage reads the metadata contents of a chat message's JSON, in order,
// or metadata that is the whole JSON object. A text that is neither, or
// carries none of ours, gives none.
func (k Keys) FromMessage(message string) ([]Payload, []error) {
	if len(message) > MaxPayloadBytes || !strings.Contains(message, k.Version) {
		return nil, nil
	}
	var body map[string]json.RawMessage
	if json.Unmarshal([]byte(message), &body) != nil {
		return nil, nil
	}
	var texts []string
	if text, ok := k.extractRaw(body); ok {
		texts = append(texts, text)
	}
	var contents []json.RawMessage
	if raw, ok := body["content"]; ok && json.Unmarshal(raw, &contents) == nil {
		texts = append(texts, k.fromContents(contents)...)
	}
	return parseAll(texts, timestamp(body["timestamp"]))
}

// timestamp is zero for what is no RFC 3339 time.
func timestamp(raw json.RawMessage) time.Time {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

func parseAll(texts []string, sentAt time.Time) (payloads []Payload, errs []error) {
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.SentAt = sentAt
		payloads = append(payloads, p)
	}
	return payloads, errs
}

// fromContents reads the contents of a message; only metadata has a chance.
func (k Keys) fromContents(contents []json.RawMessage) (texts []string) {
	for _, raw := range contents {
		var content struct {
			Type     string                     `json:"type"`
			Metadata map[string]json.RawMessage `json:"metadata"`
		}
		if json.Unmarshal(raw, &content) != nil || content.Type != "metadata" {
			continue
		}
		if text, ok := k.extractRaw(content.Metadata); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// extractRaw reads metadata; ok is false when it carries no version: it is
// somebody else's then. The version may be any.
func (k Keys) extractRaw(metadata map[string]json.RawMessage) (payload string, ok bool) {
	if _, ok := metadata[k.Version]; !ok {
		return "", false
	}
	raw, ok := metadata[k.Payload]
	if !ok {
		return "", false
	}
	if json.Unmarshal(raw, &payload) != nil {
		return string(raw), true // a host that sends the object itself, not its text
	}
	return payload, true
}
