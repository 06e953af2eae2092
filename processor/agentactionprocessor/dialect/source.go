package dialect

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// view is what one dialect sees of a span or log record.
type view struct {
	resource pcommon.Resource
	scope    pcommon.InstrumentationScope
	attrs    pcommon.Map
	span     ptrace.Span // only when isSpan
	isSpan   bool

	arguments, result understood // as this dialect reads them
	message           message    // in the result
}

func (v *view) attr(key string) reported { return reportedValue(v.attrs.Get(key)) }

// text reads an attribute as text; integers are written in decimal.
func (v *view) text(key string) string { return textAt(v.attrs, key) }

func textAt(attrs pcommon.Map, key string) string {
	value, ok := attrs.Get(key)
	if !ok {
		return ""
	}
	return plainText(value)
}

func (v *view) has(key string) bool { return v.attr(key).form != absent }

func plainText(value pcommon.Value) string {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return value.Str()
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(value.Int(), 10)
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(value.Bool())
	default:
		return ""
	}
}

func (v *view) serviceName() string { return serviceName(v.resource) }

func serviceName(resource pcommon.Resource) string {
	return textAt(resource.Attributes(), "service.name")
}

// event finds an attribute of the last event of a name that has it.
func (v *view) event(name, key string) reported {
	if !v.isSpan {
		return reported{}
	}
	events := v.span.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if events.At(i).Name() != name {
			continue
		}
		if r := reportedValue(events.At(i).Attributes().Get(key)); r.form != absent {
			return r
		}
	}
	return reported{}
}

// textSource is one place where a name or an id may stand; label is its path
// as it appears in ToolCall.Sources.
type textSource struct {
	label string
	read  func(*view) string
}

type valueSource struct {
	label string
	read  func(*view) reported
}

type texts []textSource
type values []valueSource

func attrText(key string) textSource {
	return textSource{"attr:" + key, func(v *view) string { return v.text(key) }}
}

func resourceText(key string) textSource {
	return textSource{"resource:" + key, func(v *view) string { return textAt(v.resource.Attributes(), key) }}
}

func spanName() textSource {
	return textSource{"name", func(v *view) string { return v.span.Name() }}
}

func nameAfter(prefix string) textSource {
	return textSource{"name after " + strings.TrimSpace(prefix), func(v *view) string {
		rest, ok := strings.CutPrefix(v.span.Name(), prefix)
		if !ok {
			return ""
		}
		return rest
	}}
}

// metadataText reads a member of a JSON object that stands in one attribute.
func metadataText(key, member string) textSource {
	return textSource{"attr:" + key + "." + member, func(v *view) string {
		c := capture(v.attr(key), argumentsSentinel)
		if c.State == NotCaptured || c.Truncated {
			return ""
		}
		object, _, _ := argumentsObject(c.Value, c.Raw, nil)
		text, _ := object[member].(string)
		return text
	}}
}

func toolMessageCallID() textSource {
	return textSource{"result.tool_call_id", func(v *view) string { return v.message.callID }}
}

func mcpServer() textSource {
	return textSource{"attr:server.address", func(v *view) string {
		address := v.text("server.address")
		if address == "" || !v.has("mcp.method.name") {
			return ""
		}
		if port := v.text("server.port"); port != "" {
			return address + ":" + port
		}
		return address
	}}
}

func attrValue(key string) valueSource {
	return valueSource{"attr:" + key, func(v *view) reported { return v.attr(key) }}
}

func eventValue(event, key string) valueSource {
	return valueSource{"event:" + event + "." + key, func(v *view) reported { return v.event(event, key) }}
}

// messagePart finds, in GenAI messages on an event, the part of a type, and in
// it a member. Of several parts the one with the span's call id is meant.
func messagePart(event, key, partType, member string) valueSource {
	label := "event:" + event + "." + key + "[" + partType + "]." + member
	return valueSource{label, func(v *view) reported {
		c := capture(v.event(event, key), argumentsSentinel)
		messages := c.Value
		if text, ok := messages.(string); ok {
			var damage *Damage
			if messages, damage, _ = parseText(text); damage != nil {
				damage.inside()
			}
			found := partOf(messages, partType, member, v.text("gen_ai.tool.call.id"))
			found.damage = damage
			return found
		}
		return partOf(messages, partType, member, v.text("gen_ai.tool.call.id"))
	}}
}

func partOf(messages any, partType, member, callID string) reported {
	found := reported{}
	list, _ := messages.([]any)
	for _, item := range list {
		object, _ := item.(map[string]any)
		parts, _ := object["parts"].([]any)
		for _, item := range parts {
			part, _ := item.(map[string]any)
			value, ok := part[member]
			if !ok || part["type"] != partType {
				continue
			}
			if callID != "" && part["id"] == callID {
				return reportedBuilt(value)
			}
			found = reportedBuilt(value)
		}
	}
	return found
}
