package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine/primitive"
)

// SchemaID is the $id of the language's JSON Schema.
const SchemaID = "https://countersign-otel.github.io/contract.schema.json"

// Schema is the JSON Schema (draft 2020-12) of the contract language, for
// editors. It is made from primitive.Definitions. It accepts everything that
// Parse accepts; it cannot say what JSON Schema has no words for: sizes of the
// document, names that are the same after lowercasing, the depth of condition
// trees, the number of all checks, and control characters in texts.
func Schema() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// Maps, lists, texts, numbers and booleans always encode, with sorted keys.
	_ = encoder.Encode(schemaRoot())
	return b.Bytes()
}

type object = map[string]any

func schemaRoot() object {
	root := mapping("An action contract: what must be true before an agent acts, what must happen, and what must not.", object{
		"id":              object{"type": "string", "pattern": idPattern.String(), "description": "Lowercase snake_case, 3 to 64 characters."},
		"version":         object{"type": "integer", "minimum": 1, "maximum": maxVersion, "description": "Edits are new versions."},
		"kind":            object{"const": "action"},
		"vendor":          described(text(1, maxName), "Who runs the agent; the agent where none is sent."),
		"vendor_display":  described(text(0, maxName), "The vendor as people read it; vendor when absent."),
		"action_type":     described(ref("identifier"), "Default type of recorded actions."),
		"outcome_type":    described(ref("identifier"), "action_type when absent, then action."),
		"claim_source":    described(ref("identifier"), "agent.actions when absent."),
		"subject_kind":    described(ref("identifier"), "Kind of the record that is acted on; record when absent."),
		"description":     described(text(0, maxProse), "The policy in plain language."),
		"source_citation": citationSchema(),
		"unknown_fields":  list(text(0, maxName), 0),
		"exclusions":      described(list(ref("condition"), 0), "Any condition that holds excludes the action: FAIL under both lenses."),
		"action":          actionSchema(),
		"billing":         billingSchema(),
	}, "id", "version", "kind", "vendor", "source_citation", "action")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "Action contract"
	root["$defs"] = definitions()
	return root
}

func citationSchema() object {
	return mapping("Where the policy comes from.", object{
		"url": text(1, maxURL), "retrieved": text(0, maxDate), "title": text(0, maxTitle), "notes": text(0, maxProse),
	}, "url")
}

func billingSchema() object {
	return mapping("What a verified outcome costs.", object{
		"unit_price": ref("tolerance"),
		"currency":   object{"type": "string", "pattern": currencyPattern.String()},
	})
}

var sectionDocs = map[Section]string{
	Preconditions:    "What must be true at the moment of the action. Policy lens.",
	Limits:           "Bounds on the action's own parameters. Policy lens.",
	AggregateLimits:  "Totals across many actions. Policy lens.",
	ForbiddenEffects: "What must not happen. Policy lens.",
	ReversedBy:       "Later records that undo the action. Both lenses.",
	ExpectedEffects:  "What must happen, all of it. Both lenses.",
}

func actionSchema() object {
	properties := object{
		"window": described(ref("duration"), "Settlement window from requested_at; 1h when absent."),
		"settle": object{"const": settleAtClose, "description": "Hold an early PASS until the window has closed."},
		"updates": object{
			"enum":        []any{updatesAlways, updatesUntilSettled},
			"description": "Until when recording the action again may change what a verdict depends on; always when absent.",
		},
		"unverifiable_if": object{
			"description": "When it holds, the verdict is UNKNOWN under both lenses. A list holds when any entry does.",
			"anyOf":       []any{ref("condition"), list(ref("condition"), 0)},
		},
	}
	for _, s := range sections {
		least := 0
		if s == ExpectedEffects {
			least = 1
		}
		properties[string(s)] = described(list(entrySchema(s, nil), least), sectionDocs[s])
	}
	return mapping("", properties, string(ExpectedEffects))
}

// entrySchema is {primitive: argument} with the primitives of a section.
func entrySchema(s primitive.Section, more object) object {
	properties := object{}
	for key, value := range more {
		properties[key] = value
	}
	for _, d := range primitive.Definitions() {
		for _, spelling := range d.Spellings[s] {
			properties[spelling] = argumentSchema(d, s)
		}
	}
	entry := mapping("", properties)
	entry["minProperties"], entry["maxProperties"] = 1, 1
	return entry
}

func argumentSchema(d *primitive.Definition, s primitive.Section) object {
	var forms []any
	if d.Bare != "" {
		forms = append(forms, kindSchema(primitive.Argument{Kind: d.Bare}))
	}
	if len(d.Arguments) > 0 {
		forms = append(forms, argumentsSchema(d.Arguments, d.Choices, s))
	}
	if len(forms) == 1 {
		return described(forms[0].(object), d.Doc)
	}
	return object{"description": d.Doc, "anyOf": forms}
}

func argumentsSchema(arguments []primitive.Argument, choices []primitive.Choice, s primitive.Section) object {
	properties := object{}
	var required []string
	for _, a := range arguments {
		if !a.AllowedIn(s) {
			continue
		}
		properties[a.Name] = described(kindSchema(a), a.Doc)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	schema := mapping("", properties, required...)
	if len(choices) > 0 {
		schema["allOf"] = choiceSchemas(choices)
	}
	return schema
}

// choiceSchemas say that at most one of some keys is given.
func choiceSchemas(choices []primitive.Choice) []any {
	var all []any
	for _, c := range choices {
		if c.Required {
			var one []any
			for _, key := range c.Keys {
				one = append(one, object{"required": []string{key}})
			}
			all = append(all, object{"oneOf": one})
			continue
		}
		all = append(all, object{"not": object{"required": c.Keys}})
	}
	return all
}

func kindSchema(a primitive.Argument) object {
	switch a.Kind {
	case primitive.KindIdentifiers:
		names := list(ref("identifier"), 1)
		delete(names, "maxItems")
		return object{"anyOf": []any{ref("identifier"), names}}
	case primitive.KindText:
		return text(0, primitive.MaxMessage)
	case primitive.KindValues:
		values := list(ref("constant"), 1)
		values["maxItems"] = primitive.MaxValues
		return values
	case primitive.KindWhere:
		return attributes(ref("constant"), a.Required)
	case primitive.KindWhereAction:
		return attributes(object{"type": "string", "pattern": "^(" + strings.Join(a.Words, "|") + "|param:" + identifierPattern + ")$"}, a.Required)
	case primitive.KindTrust, primitive.KindScope:
		return object{"enum": a.Words}
	case primitive.KindState:
		return argumentsSchema(primitive.StateArguments, nil, "")
	}
	return ref(string(a.Kind))
}

// attributes is a mapping from names of attributes.
func attributes(value object, required bool) object {
	schema := object{"type": "object", "propertyNames": ref("identifier"), "additionalProperties": value}
	if required {
		schema["minProperties"] = 1
	}
	return schema
}

const (
	identifierPattern = `[A-Za-z][A-Za-z0-9_.:-]{0,63}`
	decimalPattern    = `[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?`
	constantPattern   = `^[A-Za-z0-9_.:@/ -]{1,120}$`
)

func definitions() object {
	conditions := list(ref("condition"), 1)
	condition := entrySchema(primitive.Condition, object{
		string(Any): conditions, string(All): conditions, string(Not): ref("condition"),
	})
	condition["description"] = "A primitive, or any, all or not over conditions."
	return object{
		string(primitive.KindIdentifier): object{"type": "string", "pattern": "^" + identifierPattern + "$"},
		string(primitive.KindDuration): object{
			"type": "string", "description": "<n>m, <n>h, <n>d or <n>w, n from 1 to 9999.",
			"pattern": "^([1-9][0-9]{0,3}|0[1-9][0-9]{0,2}|00[1-9][0-9]?|000[1-9])[mhdw]$",
		},
		string(primitive.KindDecimal): object{"anyOf": []any{
			object{"type": "number"},
			object{"type": "string", "pattern": "^ *[+-]?" + decimalPattern + " *$"},
		}},
		string(primitive.KindTolerance): object{"anyOf": []any{
			object{"type": "number", "minimum": 0},
			object{"type": "string", "pattern": `^ *(\+?` + decimalPattern + `|-0+(\.0+)?) *$`},
		}},
		string(primitive.KindCount): object{"anyOf": []any{
			object{"type": "integer", "minimum": 0, "maximum": primitive.MaxCount},
			object{"type": "string", "pattern": `^[0-9]{1,6}$|^1000000$`},
		}},
		"constant": object{"anyOf": []any{
			object{"type": []string{"number", "boolean"}},
			object{"type": "string", "pattern": constantPattern},
		}},
		"condition": condition,
	}
}

func mapping(description string, properties object, required ...string) object {
	schema := object{"type": "object", "additionalProperties": false, "properties": properties}
	if description != "" {
		schema["description"] = description
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func list(items object, least int) object {
	schema := object{"type": "array", "items": items, "maxItems": MaxEntries}
	if least > 0 {
		schema["minItems"] = least
	}
	return schema
}

func text(least, most int) object {
	schema := object{"type": "string", "maxLength": most}
	if least > 0 {
		schema["minLength"] = least
	}
	return schema
}

func ref(name string) object { return object{"$ref": fmt.Sprintf("#/$defs/%s", name)} }

// described adds a description to a schema of its own.
func described(schema object, description string) object {
	if description == "" {
		return schema
	}
	with := object{"description": description}
	for key, value := range schema {
		with[key] = value
	}
	return with
}
