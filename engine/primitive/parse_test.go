package primitive_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write what the code says into testdata")

const parseFile = "testdata/parse.txt"

// sources has one with a clock skew, which is part of the call keys it concerns (decision D29).
var sources = map[string]engine.Source{
	"payments": {Name: "payments", ClockSkew: 5},
	"ledger":   {Name: "ledger"},
}

// TestParse parses every line "section: {spelling: argument}" of parse.txt and
// compares everything that a call says of itself. An exhaustive set: every
// spelling of every primitive in every section must stand in the file.
func TestParse(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(parseFile)
	if err != nil {
		t.Fatal(err)
	}
	missing := everySpelling()
	var got strings.Builder
	for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if line == "" || line[0] == ' ' {
			continue // what a call said; written again below
		}
		if line[0] == '#' {
			got.WriteString(line + "\n")
			continue
		}
		section, spelling, said := parseLine(t, line)
		delete(missing, string(section)+" "+spelling)
		got.WriteString("\n" + line + "\n" + said)
	}
	for spelling := range missing {
		t.Errorf("%s has no case for %s", parseFile, spelling)
	}
	if *update {
		if err := os.WriteFile(parseFile, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), got.String()); diff != "" {
		t.Errorf("calls say otherwise; run go test ./engine/primitive -run TestParse -update\n%s", diff)
	}
}

func everySpelling() map[string]bool {
	all := map[string]bool{}
	for _, d := range primitive.Definitions() {
		for section, spellings := range d.Spellings {
			for _, spelling := range spellings {
				all[string(section)+" "+spelling] = true
			}
		}
	}
	return all
}

func parseLine(t *testing.T, line string) (section primitive.Section, spelling, said string) {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(line), &document); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	root := document.Content[0]
	section, spelling = primitive.Section(root.Content[0].Value), root.Content[1].Content[0].Value
	d, ok := primitive.Find(section, spelling)
	if !ok {
		t.Fatalf("%s: not in this section", line)
	}
	r := &diagnostic.Reporter{File: "parse.txt"}
	p := primitive.Parsing{Reporter: r, Section: section, Window: 15 * engine.Minute, ContractID: "payout", Vendor: "internal"}
	entry, ok := d.Parse(p, root.Content[1].Content[1], "argument")
	if !ok || r.Count() > 0 {
		t.Fatalf("%s: %v", line, r.Err())
	}
	return section, spelling, says(entry)
}

// says is everything that a call tells about itself.
func says(entry primitive.Entry) string {
	c := entry.Call
	var b strings.Builder
	fmt.Fprintf(&b, "  key       %s\n  fired     %s\n  otherwise %s\n  describe  %s\n  explain   %s\n", c.Key(sources), c.Code(true), c.Code(false), c.Describe(), c.Explain())
	if rule, ok := c.(primitive.Rule); ok {
		fmt.Fprintf(&b, "  true      %s\n", rule.ExplainTrue())
	}
	if names := c.Sources(); len(names) > 0 {
		fmt.Fprintf(&b, "  sources   %s\n", strings.Join(names, ", "))
	}
	if e, ok := c.(primitive.Effect); ok {
		source, factType := e.EffectType()
		fmt.Fprintf(&b, "  effect    %q %q\n", source, factType)
	}
	if entry.Message != "" {
		fmt.Fprintf(&b, "  message   %s\n", entry.Message)
	}
	return b.String()
}

// TestDefinitionsAreComplete: what the schema, the reference page and the labels are made from.
func TestDefinitionsAreComplete(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range primitive.Definitions() {
		names = append(names, d.Name)
		if d.Doc == "" || !strings.HasSuffix(d.Doc, ".") {
			t.Errorf("%s has no sentence of documentation", d.Name)
		}
		if len(d.Spellings) == 0 || len(d.Arguments) == 0 && d.Bare == "" {
			t.Errorf("%s cannot be written", d.Name)
		}
		if _, ok := d.Spellings[primitive.Condition]; !ok {
			t.Errorf("D19: %s does not stand in condition trees", d.Name)
		}
		for _, a := range d.Arguments {
			if a.Doc == "" || a.Kind == "" {
				t.Errorf("%s.%s has no documentation or no kind", d.Name, a.Name)
			}
		}
		for _, c := range d.Choices {
			for _, key := range c.Keys {
				if !slices.ContainsFunc(d.Arguments, func(a primitive.Argument) bool { return a.Name == key }) {
					t.Errorf("%s chooses by %s, which is no argument", d.Name, key)
				}
			}
		}
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(names))); len(unique) != len(names) {
		t.Errorf("a name stands twice: %v", names)
	}
}

// TestSpellingsNameOneDefinition: within a section a spelling means one thing.
func TestSpellingsNameOneDefinition(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, d := range primitive.Definitions() {
		for section, spellings := range d.Spellings {
			for _, spelling := range spellings {
				place := string(section) + " " + spelling
				if other, twice := seen[place]; twice {
					t.Errorf("%s means %s and %s", place, other, d.Name)
				}
				seen[place] = d.Name
			}
		}
	}
}

func TestInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[engine.Duration]string{
		0: "0 seconds", 1: "1 second", 45: "45 seconds", 15 * engine.Minute: "15 minutes", 90 * engine.Minute: "1 hour 30 minutes",
		24 * engine.Hour: "1 day", 4 * engine.Week: "28 days", engine.Day + engine.Hour + engine.Minute + 1: "1 day 1 hour 1 minute 1 second",
	} {
		if got := primitive.InWords(d); got != want {
			t.Errorf("%d s are %q, want %q", d, got, want)
		}
	}
}
