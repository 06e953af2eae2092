package scheme

import (
	"encoding/json"
	"unicode/utf8"
)

// MaxName bounds names of events, in bytes.
const MaxName = 256

// envelope is what most senders put at the top of their JSON.
type envelope struct {
	Type      text            `json:"type"`
	ID        text            `json:"id"`
	EventID   text            `json:"event_id"`
	Challenge text            `json:"challenge"`
	Event     json.RawMessage `json:"event"`
}

// text is a JSON string; anything else reads as empty instead of being an error.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
	}
	return nil
}

// open reads the envelope of a verified body. A body that is no JSON object has an empty one.
func open(body []byte) envelope {
	var e envelope
	if json.Unmarshal(body, &e) != nil {
		return envelope{}
	}
	return e
}

// describe is what senders say at the top of their JSON.
func describe(body []byte) Description {
	e := open(body)
	return Description{Event: name(string(e.Type)), ID: string(e.ID)}
}

// name is empty for what is no name of an event.
func name(text string) string {
	if len(text) > MaxName || !utf8.ValidString(text) {
		return ""
	}
	for i := range len(text) {
		if text[i] < 0x20 || text[i] == 0x7f {
			return ""
		}
	}
	return text
}
