package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refund_workflow", "payout", "close_ticket"} {
		got := contract.Explain(read(t, name+".yaml"))
		golden := filepath.Join("testdata", "explain_"+name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s reads otherwise; run go test ./engine/contract -run TestExplain -update\n%s", name, diff)
		}
	}
}

// TestExplainWithoutSubjectKind: the kind that stands for none given is "record", and
// no sentence may speak of a record of the record.
func TestExplainWithoutSubjectKind(t *testing.T) {
	t.Parallel()
	c, diagnostics := contract.Parse("c.yaml", []byte(`{id: some_contract, version: 1, kind: action, vendor: v, source_citation: {url: u},
  action: {expected_effects: [{effect_observed: {source: s, type: done}}]}}`))
	if c == nil {
		t.Fatal(diagnostics)
	}
	got := contract.Explain(c)
	if strings.Contains(got, "of the record") || !strings.Contains(got, "1. No system has any record of the subject.") {
		t.Errorf("it reads:\n%s", got)
	}
}
