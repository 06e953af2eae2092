package contracttest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// instant reads an RFC 3339 time, or +7s, -30m, +2d as seen from start.
func (p *parser) instant(m *diagnostic.Mapping, key string) (engine.Instant, bool) {
	text, ok := m.Scalar(key)
	if !ok {
		return 0, false
	}
	at, err := p.moment(text)
	if err != nil {
		m.Errorf(key, "%s: %s", m.Path(key), err)
	}
	return at, err == nil
}

func (p *parser) moment(text string) (engine.Instant, error) {
	if text == "" || (text[0] != '+' && text[0] != '-') {
		at, err := engine.ParseInstant(text)
		if err != nil && p.start != nil {
			err = fmt.Errorf("%w, nor an offset from start like +7s or -2d", err)
		}
		return at, err
	}
	if p.start == nil {
		return 0, fmt.Errorf("%q counts from start, which is missing; write start: 2026-09-28T10:42:00Z", text)
	}
	offset, err := seconds(text[1:])
	if err != nil {
		return 0, err
	}
	if text[0] == '-' {
		return p.start.Sub(offset), nil
	}
	return p.start.Add(offset), nil
}

// seconds reads a duration of the contract language, or <n>s.
func seconds(text string) (engine.Duration, error) {
	digits, ok := strings.CutSuffix(text, "s")
	if !ok {
		return engine.ParseDuration(text)
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%w: %q; write a number of seconds like 7s, or a duration like 15m", engine.ErrDuration, text)
	}
	return engine.Duration(n), nil
}

// object reads a mapping as the JSON object that would be sent. Numbers keep
// their text, because it decides what they equal (decision D2).
func (p *parser) object(m *diagnostic.Mapping, key string) engine.Object {
	if !m.Has(key) {
		return engine.Object{}
	}
	var b strings.Builder
	if err := writeJSON(&b, m.Value(key)); err != nil {
		m.Errorf(key, "%s: %s", m.Path(key), err)
		return engine.Object{}
	}
	o, err := engine.ParseObject([]byte(b.String()))
	if err != nil {
		m.Errorf(key, "%s: %s", m.Path(key), err)
	}
	return o
}

func writeJSON(b *strings.Builder, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		return writeMembers(b, node.Content)
	case yaml.SequenceNode:
		return writeItems(b, node.Content)
	}
	return writeScalar(b, node)
}

func writeMembers(b *strings.Builder, content []*yaml.Node) error {
	b.WriteByte('{')
	for i := 0; i+1 < len(content); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		writeText(b, content[i].Value)
		b.WriteByte(':')
		if err := writeJSON(b, content[i+1]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeItems(b *strings.Builder, content []*yaml.Node) error {
	b.WriteByte('[')
	for i, item := range content {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeJSON(b, item); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func writeScalar(b *strings.Builder, node *yaml.Node) error {
	switch node.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strings.ToLower(node.Value))
	case "!!int", "!!float":
		if !jsonNumber.MatchString(node.Value) {
			return fmt.Errorf("%s is a number to YAML but not to JSON; write it in JSON's way, or quote it to send a text", node.Value)
		}
		b.WriteString(node.Value)
	default:
		writeText(b, node.Value)
	}
	return nil
}

func writeText(b *strings.Builder, text string) {
	quoted, _ := json.Marshal(text) // a string always encodes
	b.Write(quoted)
}
