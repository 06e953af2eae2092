package contract_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the code says into testdata")

// small is a valid contract to whose action block a case is appended.
const small = `id: small
version: 1
kind: action
vendor: internal
source_citation: {url: "internal://p"}
action:
  expected_effects: [{effect_observed: seen}]
`

// refusal is one case of testdata/refusals.txt.
type refusal struct{ name, text, want string }

const refusalsFile = "testdata/refusals.txt"

func readCases(t testing.TB, file string) (preamble string, cases []refusal) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "\n=== ")
	for _, part := range parts[1:] {
		part = strings.TrimSuffix(part, "\n") + "\n"
		name, rest, _ := strings.Cut(part, "\n")
		text, want, ok := strings.Cut(rest, "\n---\n")
		if !ok {
			t.Fatalf("%s: case %q has no --- line", file, name)
		}
		cases = append(cases, refusal{name, text + "\n", want})
	}
	return parts[0] + "\n", cases
}

func (r refusal) document() string {
	if strings.Contains(r.text, "kind") {
		return r.text
	}
	return small + r.text
}

// beyondSchema marks what JSON Schema has no words for.
func (r refusal) beyondSchema() bool { return strings.HasSuffix(r.name, "(beyond the schema)") }

func TestRefusals(t *testing.T) {
	t.Parallel()
	preamble, cases := readCases(t, refusalsFile)
	var b strings.Builder
	b.WriteString(preamble)
	for _, c := range cases {
		parsed, diagnostics := contract.Parse("contract.yaml", []byte(c.document()))
		if parsed != nil || len(diagnostics) == 0 {
			t.Errorf("%s: accepted", c.name)
		}
		got := texts(diagnostics)
		if diff := cmp.Diff(c.want, got); diff != "" && !*update {
			t.Errorf("%s: other diagnostics (-want +got):\n%s", c.name, diff)
		}
		b.WriteString("=== " + c.name + "\n" + c.text + "---\n" + got)
	}
	if *update {
		if err := os.WriteFile(refusalsFile, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
