package dialect

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// reported is a value as a span or record has it, before it is understood:
// text, an OTLP structure, or built from several attributes.
type reported struct {
	form   form
	text   string
	value  pcommon.Value
	object any
	damage *Damage // of the text that it was found in
}

type form uint8

const (
	absent form = iota
	asText
	asStructure
	asBuilt
)

func reportedText(s string) reported { return reported{form: asText, text: s} }

func reportedBuilt(v any) reported {
	if s, ok := v.(string); ok {
		return reportedText(s)
	}
	return reported{form: asBuilt, object: v}
}

// reportedValue reads an attribute. An empty value is absent.
func reportedValue(v pcommon.Value, ok bool) reported {
	if !ok || v.Type() == pcommon.ValueTypeEmpty {
		return reported{}
	}
	if v.Type() == pcommon.ValueTypeStr {
		return reportedText(v.Str())
	}
	return reported{form: asStructure, value: v}
}

// understood is a captured value together with the form it had before its
// envelope was taken off, where call ids and tool messages are found.
type understood struct {
	Captured
	outer any
}

// Sentinels stand where something was not captured (D33). They are compared
// with the whole text, before it is parsed.
func argumentsSentinel(s string) bool {
	switch s {
	case "", "null", "None", "N/A", "<REDACTED>", "__REDACTED__", "<not serializable>":
		return true
	}
	return scrubbed(s)
}

func resultSentinel(s string) bool {
	switch s {
	case "<REDACTED>", "__REDACTED__", "<not specified>", "<not serializable>":
		return true
	}
	return scrubbed(s)
}

func callIDSentinel(s string) bool {
	return s == "unknown" || s == "<not specified>" || s == "N/A"
}

func toolSentinel(s string) bool { return s == mergedTools }

// textSentinel holds for every name and id.
func textSentinel(s string) bool {
	return s == "" || s == "<REDACTED>" || s == "__REDACTED__" || scrubbed(s)
}

// scrubbed recognises what Logfire's scrubber leaves behind.
func scrubbed(s string) bool { return strings.HasPrefix(s, "[Scrubbed due to ") }

// understandArguments makes an object of reported arguments.
func understandArguments(r reported, unwrap envelopes) understood {
	c := capture(r, argumentsSentinel)
	if c.State == NotCaptured || c.Truncated {
		return understood{Captured: c}
	}
	value := c.Value
	if r.form == asStructure && refused(r.value) {
		value = c.Raw // as text it is read part by part
	}
	object, outer, damage := argumentsObject(value, c.Raw, unwrap)
	if r.damage != nil && damage != nil {
		damage = merged(r.damage, damage)
	} else if r.damage != nil {
		damage = r.damage
	}
	c.Value, c.Damage = object, damage
	return understood{Captured: c, outer: outer}
}

// understandResult reads a reported result: JSON, a Python container, or text.
func understandResult(r reported) understood {
	c := capture(r, resultSentinel)
	if text, ok := c.Value.(string); ok {
		c.Value = resultValue(text)
	}
	return understood{Captured: c, outer: c.Value}
}

func resultValue(text string) any {
	if v, err := parseJSON(text); err == nil {
		return v
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "(") {
		if v, err := parsePython(text); err == nil {
			return v
		}
	}
	return cleaned(text)
}

// capture bounds and hashes what was reported. Text stays text, not yet parsed.
func capture(r reported, sentinel func(string) bool) Captured {
	switch r.form {
	case asText:
		if sentinel(r.text) {
			return Captured{}
		}
		return captureText(r.text, r.text)
	case asStructure:
		return captureStructure(r.value)
	case asBuilt:
		return captureText(textOf(r.object), r.object)
	default:
		return Captured{}
	}
}

func captureText(text string, value any) Captured {
	c := Captured{State: Present, Bytes: len(text)}
	if len(text) > MaxValueBytes {
		c.Truncated, c.RawSHA256 = true, hashOf(text)
		return c
	}
	c.Raw, c.Value = text, value
	return c
}

func captureStructure(v pcommon.Value) Captured {
	t := textOfStructure(v)
	c := Captured{State: Present, Bytes: t.size()}
	if t.over() {
		c.Truncated, c.RawSHA256 = true, t.digest()
		return c
	}
	c.Raw = string(t.text)
	value, err := structureOf(v)
	if err != nil {
		value = rawObject(c.Raw)
	}
	c.Value = value
	return c
}

// refused: a structure that breaks a rule of structureOf somewhere.
func refused(v pcommon.Value) bool {
	_, err := structureOf(v)
	return err != nil
}

// maxUnwraps bounds how often arguments are parsed or taken out of an envelope.
const maxUnwraps = 4

// argumentsObject finds the object inside reported arguments; outer is the
// first object met on the way. Text is parsed, at most one envelope is taken
// off: an object inside an envelope is what the tool was called with, even
// when it looks like an envelope itself.
func argumentsObject(v any, text string, unwrap envelopes) (object map[string]any, outer any, damage *Damage) {
	for range maxUnwraps {
		switch found := v.(type) {
		case string:
			text = found
			parsed, lost, err := parseText(found)
			if err != nil {
				return rawObject(text), outer, unreadable(damage, err)
			}
			if lost != nil {
				damage = merged(damage, lost)
			}
			v = parsed
		case map[string]any:
			if outer != nil {
				return found, outer, damage
			}
			outer = found
			inner, ok := unwrap.open(found)
			if !ok {
				return found, outer, damage
			}
			if damage != nil {
				damage.inside()
			}
			v = inner
		default:
			return rawObject(text), outer, unreadable(damage, nil)
		}
	}
	if object, ok := v.(map[string]any); ok {
		return object, outer, damage
	}
	return rawObject(text), outer, unreadable(damage, nil)
}

// parseText reads text as JSON, else as a Python literal, else what can be read of either.
func parseText(text string) (any, *Damage, error) {
	if v, err := parseJSON(text); err == nil {
		return v, nil, nil
	}
	if v, err := parsePython(text); err == nil {
		return v, nil, nil
	}
	return parseDamaged(text)
}

// rawObject is how arguments that are no object are kept.
func rawObject(text string) map[string]any {
	return map[string]any{"_raw": cleaned(text)}
}

// cleaned is text that any store takes: valid UTF-8 without U+0000.
func cleaned(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}

// isPlain knows printable ASCII, which nearly all names are, in one look.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// textProblem says why a name or an id cannot be used, or "" (D6).
func textProblem(s string) string {
	if len(s) > MaxTextBytes {
		return "is longer than 512 bytes: left out"
	}
	if isPlain(s) {
		return ""
	}
	if !storable(s) {
		return "is not valid UTF-8 or holds U+0000: left out"
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return "holds a control character: left out"
		}
	}
	return ""
}
