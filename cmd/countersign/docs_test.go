package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/verifier/serve"
)

// TestConfigurationIsDocumented: no setting of the sidecar is missing in docs/configuration.md.
func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range serve.Settings() {
		if !strings.Contains(string(text), "`"+setting.Key+"`") {
			t.Errorf("docs/configuration.md does not describe %s", setting.Key)
		}
	}
}

// TestLanguageIsDocumented: contracts/README.md names every key and every
// primitive with its spellings and arguments.
func TestLanguageIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../contracts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := documentKeys(t)
	for _, definition := range primitive.Definitions() {
		words = append(words, definition.Name)
		for _, spellings := range definition.Spellings {
			words = append(words, spellings...)
		}
		for _, argument := range definition.Arguments {
			words = append(words, argument.Name)
		}
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if !strings.Contains(string(text), "`"+word+"`") && !strings.Contains(string(text), "`"+word+": {") {
			t.Errorf("contracts/README.md does not describe %s", word)
		}
	}
}

// documentKeys are the keys of a contract and of its action block.
func documentKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../contracts/contract.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	keys := slices.Collect(maps.Keys(schema.Properties))
	return slices.AppendSeq(keys, maps.Keys(schema.Properties["action"].Properties))
}
