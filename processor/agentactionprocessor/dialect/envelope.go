package dialect

import "strings"

// envelope takes the arguments out of a wrapper that an instrumentation put
// around them. A real tool may have a single parameter of the wrapper's name,
// therefore each dialect lists the envelopes it needs and no others.
type envelope func(object map[string]any) (inner any, ok bool)

type envelopes []envelope

func (e envelopes) open(object map[string]any) (any, bool) {
	for _, open := range e {
		if inner, ok := open(object); ok {
			return inner, true
		}
	}
	return nil, false
}

// langchainEnvelope is {input_str, inputs, tags, metadata, kwargs}: the inputs
// where they are an object, else the text.
func langchainEnvelope(object map[string]any) (any, bool) {
	text, ok := object["input_str"].(string)
	if !ok {
		return nil, false
	}
	inputs, hasInputs := object["inputs"]
	_, hasMetadata := object["metadata"]
	if !hasInputs && !hasMetadata {
		return nil, false
	}
	if inputs, ok := inputs.(map[string]any); ok {
		return inputs, true
	}
	return text, true
}

// pythonCallEnvelope is {args: [], kwargs: {...}}. With positional arguments
// the names are lost, and the envelope is kept as the best that is known.
func pythonCallEnvelope(object map[string]any) (any, bool) {
	args, ok := object["args"].([]any)
	kwargs, hasKwargs := object["kwargs"].(map[string]any)
	if !ok || !hasKwargs || len(object) != 2 || len(args) > 0 {
		return nil, false
	}
	return kwargs, true
}

// javascriptCallEnvelope is {args: ["<json>"]}: the one object that a
// JavaScript tool takes.
func javascriptCallEnvelope(object map[string]any) (any, bool) {
	args, ok := object["args"].([]any)
	if !ok || len(object) != 1 || len(args) != 1 {
		return nil, false
	}
	switch arg := args[0].(type) {
	case map[string]any:
		return arg, true
	case string:
		if parsed, err := parseJSON(arg); err == nil {
			inner, isObject := parsed.(map[string]any)
			return inner, isObject
		}
		damaged, _, err := parseDamagedIn(arg, jsonGrammar)
		_, isObject := damaged.(map[string]any)
		return arg, err == nil && isObject // as text, so that what is lost of it is known
	}
	return nil, false
}

// mcpCallEnvelope is {tool_name, arguments}.
func mcpCallEnvelope(object map[string]any) (any, bool) {
	_, ok := object["tool_name"].(string)
	arguments, hasArguments := object["arguments"].(map[string]any)
	return arguments, ok && hasArguments && len(object) == 2
}

// kwargsEnvelope is {kwargs: {...}}.
func kwargsEnvelope(object map[string]any) (any, bool) {
	kwargs, ok := object["kwargs"].(map[string]any)
	return kwargs, ok && len(object) == 1
}

// inputEnvelope is {input: ...}.
func inputEnvelope(object map[string]any) (any, bool) {
	if len(object) != 1 {
		return nil, false
	}
	switch input := object["input"].(type) {
	case string, map[string]any:
		return input, true
	}
	return nil, false
}

// envelopeCallID finds the tool call id that LangChain passes in kwargs beside
// the arguments.
func envelopeCallID(outer any) string {
	object, _ := outer.(map[string]any)
	if _, ok := langchainEnvelope(object); !ok {
		return ""
	}
	kwargs, _ := object["kwargs"].(map[string]any)
	id, _ := kwargs["tool_call_id"].(string)
	return id
}

// message is LangChain's ToolMessage: the answer to one tool call.
type message struct {
	callID, name, status string
	content              any
}

// toolMessage finds a ToolMessage in a result, in the forms that exporters
// give it: plain, {type, data}, {lc, id, kwargs}, each also under "output".
func toolMessage(result any) (message, bool) {
	object, _ := result.(map[string]any)
	if output, ok := object["output"].(map[string]any); ok {
		object = output
	}
	switch {
	case object["type"] == "constructor" && isToolMessageClass(object["id"]):
		object, _ = object["kwargs"].(map[string]any)
	case object["type"] == "tool":
		if data, ok := object["data"].(map[string]any); ok {
			object = data
		}
	default:
		return message{}, false
	}
	id, ok := object["tool_call_id"].(string)
	if !ok {
		return message{}, false
	}
	name, _ := object["name"].(string)
	status, _ := object["status"].(string)
	return message{callID: id, name: name, status: status, content: object["content"]}, true
}

// isToolMessageClass reads the class path of a serialised LangChain object.
func isToolMessageClass(id any) bool {
	path, _ := id.([]any)
	if len(path) == 0 {
		return false
	}
	class, _ := path[len(path)-1].(string)
	return class == "ToolMessage"
}

// answer is the content of the message: what the tool gave back.
func (m message) answer() any {
	text, ok := m.content.(string)
	if !ok {
		return m.content
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		if v, err := parseJSON(text); err == nil {
			return v
		}
	}
	return text
}

// saysError reads the error flag of an MCP result.
func saysError(result any) bool {
	object, _ := result.(map[string]any)
	return object["isError"] == true || object["is_error"] == true
}
