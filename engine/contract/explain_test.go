package contract_test

import (
	"os"
	"path/filepath"
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
