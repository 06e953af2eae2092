package main

import (
	"os"
	"strings"
	"testing"
)

// TestNearMissStandsBelowItsCheck: in the text of actions get, and not in the verdict's own answer.
func TestNearMissStandsBelowItsCheck(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	body, err := os.ReadFile("../../examples/verify.json")
	if err != nil {
		t.Fatal(err)
	}
	early := strings.Replace(string(body), "10:42:07Z", "08:42:07Z", 1)
	code, verified, stderr := command(t, "actions", "verify", "--store", store, "--file", writeFile(t, "early.json", early))
	if code != exitNo || stderr != "" || strings.Contains(verified, "near miss") {
		t.Fatalf("exit code %d, stderr %q, stdout:\n%s", code, stderr, verified)
	}
	code, shown, stderr := command(t, "actions", "get", "act_refund_001", "--store", store)
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	lines := strings.Split(shown, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    near miss: ") {
			continue
		}
		if !strings.HasPrefix(lines[i-1], "NO  expected_effects   stripe refund_created ") ||
			!strings.HasSuffix(line, " at 2026-09-28T08:42:07Z from stripe (shared) occurred 1h 59m before the action was requested (a time zone?)") {
			t.Errorf("printed:\n%s\n%s", lines[i-1], line)
		}
	}
	if strings.Count(shown, "near miss: ") != 1 {
		t.Errorf("printed:\n%s", shown)
	}
}
