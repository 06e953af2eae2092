package verifiedactions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of a payload.
const (
	MaxPayloadBytes = 1 << 20
	MaxActions      = 1024
	// MaxTextBytes bounds the text fields that are no address.
	MaxTextBytes = 512
	// MaxAddressBytes bounds url, api_url and server_url.
	MaxAddressBytes = 8 << 10
)

// Type is the discriminator of an action.
type Type string

// The four categories of side effect.
const (
	Web         Type = "web"
	LLM         Type = "llm"
	MCP         Type = "mcp"
	Integration Type = "integration"
)

// ErrInvalid is wrapped by every error about metadata that does not read.
var ErrInvalid = errors.New("invalid verified action")

// ParseType reads web, llm, mcp or integration.
func ParseType(text string) (Type, error) {
	if _, ok := fieldsOf[Type(text)]; !ok {
		return "", fmt.Errorf("%w: type %q: write web, llm, mcp or integration", ErrInvalid, clip(text))
	}
	return Type(text), nil
}

// Action is one tool call. Empty texts were not sent.
type Action struct {
	Type        Type
	ReferenceID string
	Status      string
	// DurationMS is nil when it was not sent.
	DurationMS *int64
	// Fields are the ones of the type alone, with numbers as json.Number:
	// url, method, status_code; api_url, model, input_tokens, output_tokens;
	// server_url, tool_name; integration, tool_name.
	Fields map[string]any
}

// ToolName is the called tool of an mcp or integration action, else empty.
func (a *Action) ToolName() string {
	name, _ := a.Fields["tool_name"].(string)
	return name
}

// field is one field of a type.
type field struct {
	name     string
	number   bool
	required bool
	most     int
}

var fieldsOf = map[Type][]field{
	Web: {
		{name: "url", required: true, most: MaxAddressBytes},
		{name: "method", required: true, most: MaxTextBytes},
		{name: "status_code", number: true},
	},
	LLM: {
		{name: "api_url", most: MaxAddressBytes},
		{name: "model", required: true, most: MaxTextBytes},
		{name: "input_tokens", number: true},
		{name: "output_tokens", number: true},
	},
	MCP: {
		{name: "server_url", required: true, most: MaxAddressBytes},
		{name: "tool_name", required: true, most: MaxTextBytes},
	},
	Integration: {
		{name: "integration", required: true, most: MaxTextBytes},
		{name: "tool_name", required: true, most: MaxTextBytes},
	},
}

// ParseAction reads one raw action. The error names every field that is wrong.
func ParseAction(raw []byte) (Action, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return Action{}, fmt.Errorf("%w: it is no JSON object", ErrInvalid)
	}
	p := fieldReader{object: object}
	text := p.text(field{name: "type", required: true, most: MaxTextBytes})
	if len(p.errs) > 0 {
		return Action{}, p.errs[0]
	}
	kind, err := ParseType(text)
	if err != nil {
		return Action{}, err
	}
	a := Action{
		Type:        kind,
		ReferenceID: p.text(field{name: "reference_id", required: true, most: MaxTextBytes}),
		Status:      p.text(field{name: "status", most: MaxTextBytes}),
		DurationMS:  p.duration(),
		Fields:      map[string]any{},
	}
	for _, f := range fieldsOf[kind] {
		p.specific(f, a.Fields)
	}
	if err := errors.Join(p.errs...); err != nil {
		return Action{}, err
	}
	return a, nil
}

// fieldReader reads the fields of one object and keeps what is wrong.
type fieldReader struct {
	object map[string]json.RawMessage
	errs   []error
}

func (p *fieldReader) fail(name, text string) {
	p.errs = append(p.errs, fmt.Errorf("%w: %s %s", ErrInvalid, name, text))
}

// raw is the field's JSON; a null was not sent.
func (p *fieldReader) raw(f field) (json.RawMessage, bool) {
	raw, ok := p.object[f.name]
	if ok && string(bytes.TrimSpace(raw)) != "null" {
		return raw, true
	}
	if f.required {
		p.fail(f.name, "is missing")
	}
	return nil, false
}

func (p *fieldReader) text(f field) string {
	raw, ok := p.raw(f)
	if !ok {
		return ""
	}
	var text string
	switch {
	case json.Unmarshal(raw, &text) != nil:
		p.fail(f.name, "is no string")
	case text == "" && f.required:
		p.fail(f.name, "is empty")
	case len(text) > f.most:
		p.fail(f.name, fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), f.most))
	case strings.ContainsFunc(text, control) || !utf8.ValidString(text):
		p.fail(f.name, "has a control character or is not valid UTF-8")
	default:
		return text
	}
	return ""
}

func control(r rune) bool { return r < 0x20 || (r >= 0x7f && r <= 0x9f) }

func (p *fieldReader) specific(f field, into map[string]any) {
	if !f.number {
		if text := p.text(f); text != "" {
			into[f.name] = text
		}
		return
	}
	if _, number, ok := p.integer(f); ok {
		into[f.name] = number
	}
}

func (p *fieldReader) duration() *int64 {
	value, _, ok := p.integer(field{name: "duration_ms"})
	if !ok {
		return nil
	}
	return &value
}

// integer is a whole number that is not negative.
func (p *fieldReader) integer(f field) (int64, json.Number, bool) {
	raw, ok := p.raw(f)
	if !ok {
		return 0, "", false
	}
	var value int64
	if json.Unmarshal(raw, &value) != nil || value < 0 {
		p.fail(f.name, "is no whole number from 0 up")
		return 0, "", false
	}
	return value, json.Number(bytes.TrimSpace(raw)), true
}

// clip bounds hostile text that is repeated in an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
