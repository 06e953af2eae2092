package contract_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// schemaFile is the committed schema; editors read it.
var schemaFile = filepath.Join(library, "contract.schema.json")

func TestSchemaIsCommitted(t *testing.T) {
	t.Parallel()
	if *update {
		if err := os.WriteFile(schemaFile, contract.Schema(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), string(contract.Schema())); diff != "" {
		t.Errorf("%s is not what the code says; run go test ./engine/contract -run TestSchemaIsCommitted -update\n%s", schemaFile, diff)
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(contract.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(contract.SchemaID, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(contract.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance is a YAML document as an editor gives it to the schema; ok is false
// when it is no YAML or has no form in JSON.
func instance(text string) (value any, ok bool) {
	var document any
	if yaml.Unmarshal([]byte(text), &document) != nil {
		return nil, false
	}
	data, err := json.Marshal(document)
	if err != nil {
		return nil, false
	}
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	return value, err == nil
}

func TestSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	_, cases := readCases(t, refusalsFile)
	for _, c := range cases {
		value, ok := instance(c.document())
		if !ok {
			continue // the editor's YAML parser refuses it
		}
		err := schema.Validate(value)
		switch {
		case err == nil && !c.beyondSchema():
			t.Errorf("%s: the schema accepts what the parser refuses", c.name)
		case err != nil && c.beyondSchema():
			t.Errorf("%s: the schema refuses it after all; drop the mark", c.name)
		}
	}
}

func TestSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	documents := map[string]string{"small": small}
	files, err := filepath.Glob(filepath.Join(library, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.yaml") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents[file] = string(text)
	}
	for name, actions := range accepted {
		documents[name] = small + actions
	}
	for name, text := range documents {
		if _, diagnostics := contract.Parse(name, []byte(text)); len(diagnostics) > 0 {
			t.Errorf("%s: the parser refuses:\n%s", name, texts(diagnostics))
		}
		value, ok := instance(text)
		if !ok {
			t.Errorf("%s: no JSON", name)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: the schema refuses: %v", name, err)
		}
	}
}

// accepted are action blocks with every form that the language allows.
var accepted = map[string]string{
	"aliases of primitives": `
  limits:
    - param_exceeds: {param: Amount, max: "2.5e2"}
    - param_not_in: {param: reason, values: [a, 1, 2.50, true, "x y"]}
  preconditions:
    - precondition_unmet: {type: a, where: {b: c}}
  aggregate_limits:
    - aggregate_max: {type: a, max: 0, over: 1w, by: contract}
    - aggregate_exceeds: {type: a, attr: b, max: -1.50, over: 9999m, by: subject, within: 0001d, where: {a: b}, where_action: {c: "param:D"}}
`,
	"shorthand and every reference": `
  window: 60m
  settle: at_close
  updates: until_settled
  reversed_by:
    - effect_observed: undone
    - reversal_observed: {type: undone, source: s, within: 4w, message: "Undone"}
  forbidden_effects:
    - effect_observed: Denied
    - effect_count_exceeds: {type: a}
    - effect_count_exceeds: {type: a, max: 0}
    - effect_count_exceeds: {type: a, max: "1000000"}
    - effect_attr_exceeds: {type: a, attr: b, max: 0.5e-3}
    - effect_attr_differs: {type: a, attr: b, equals_param: c, plus_param: d, tolerance: "0.005"}
    - effect_attr_differs: {type: a, attr: b, equals_state: {type: c, attr: d}, minus_param: e, tolerance: 0}
`,
	"trees": `
  unverifiable_if:
    any:
      - missing_fact_source: [stripe, shopify]
      - missing_fact_source: crm
      - not: {state_before_action: {type: a, where: {b: c}}}
      - all:
          - effect_observed: outage
          - param_max: {param: a, max: 1}
          - aggregate_exceeds: {type: a, max: 1, over: 1h}
          - reversal_observed: undone
`,
	"updates as they are without the key": "  updates: always\n",
	"an empty list of conditions":         "  unverifiable_if: []\n  limits: []\n",
}
