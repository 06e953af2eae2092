package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/refunds"
)

// TestWorkedTable plays the specification's worked table through the real
// collector and the real sidecar: telemetry in, facts in, verdicts out.
func TestWorkedTable(t *testing.T) {
	ctx, s := start(t)
	var played []refunds.Played
	for _, step := range refunds.Story(time.Now()) {
		v, err := refunds.Play(ctx, s, step)
		if err != nil {
			t.Fatal(err)
		}
		for _, difference := range step.Differences(v) {
			t.Errorf("row %d: %s", step.Number, difference)
		}
		if step.Again() && !v.Changed {
			t.Errorf("row %d: changed is false", step.Number)
		}
		played = append(played, refunds.Played{Step: step, Got: v})
	}
	checkReadme(t, played)
	if _, err := refunds.AwaitReturned(ctx, s, played); err != nil {
		t.Error(err)
	}
	actions, err := s.Actions(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(played) - 1; len(actions) != want { // one row looks at an action again
		t.Errorf("%d actions, want %d: did verdicts that came back become actions?", len(actions), want)
	}
	if out, err := s.Tool(ctx, "log", "verify", "--store", s.Store()); err != nil {
		t.Errorf("log verify: %v: %s", err, out)
	}
}

// checkReadme: what the README shows of the demo is what comes out, to the
// hash. The last row bears the time of the run.
func checkReadme(t *testing.T, played []refunds.Played) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := refunds.Table(played)
	for _, line := range lines[:len(lines)-1] {
		if !strings.Contains(string(readme), line+"\n") {
			t.Errorf("README.md does not show this line of the demo; put it there:\n%s", line)
		}
	}
}
