package main

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/internal/pgserver"
)

// oldStory is the example as it would have happened long ago.
func oldStory(t *testing.T) string {
	t.Helper()
	var facts string
	for i, source := range []string{"shopify order_status", "stripe refund_created", "crm note_added", "messaging customer_notified"} {
		var name, kind string
		if _, err := fmt.Sscan(source, &name, &kind); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			facts += ","
		}
		facts += fmt.Sprintf(`{"source": %q, "subject_id": "order_1", "fact_type": %q, "occurred_at": "2020-01-01T10:00:0%dZ", "attributes": {"status": "eligible", "amount": 180.00}}`, name, kind, i)
	}
	return writeFile(t, "old.json", `{"action_id": "act_old", "contract_id": "refund_workflow", "subject_id": "order_1", "requested_at": "2020-01-01T10:00:00Z",
		"params": {"amount": 180.00, "currency": "USD"}, "facts": [`+facts+`]}`)
}

var horizons = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// TestRetention: what was dropped is told apart from what was taken away.
func TestRetention(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		checkRetention(t, migrated(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := pgserver.Start(t).Database(t)
		if code, _, stderr := command(t, "migrate", "--store", url); code != exitDone {
			t.Fatal(stderr)
		}
		checkRetention(t, url)
	})
}

func checkRetention(t *testing.T, store string) {
	t.Helper()
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	if code, _, stderr := command(t, "actions", "verify", "--store", store, "--file", oldStory(t), "-o", "json"); code == exitCouldNot || code == exitUsage {
		t.Fatal(stderr)
	}
	for _, step := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"retention", "--older-than", "29d"}, exitUsage, "", "countersign: invalid duration: less than 30 days would be kept; reversals and late facts need what is younger\n"},
		{[]string{"retention", "--older-than", "soon"}, exitUsage, "", "countersign: --older-than: invalid duration: \"soon\"; write <n>m, <n>h, <n>d or <n>w with n from 1 to 9999, like \"15m\"\n"},
		{[]string{"retention", "--older-than", "400d", "--dry-run"}, exitDone, "tenant default: would drop 4 facts and 0 reports from before HORIZON; 0 and 0 that are as old are still needed\n", ""},
		{[]string{"retention", "--older-than", "400d", "--all-tenants"}, exitDone, "tenant default: dropped 4 facts and 0 reports from before HORIZON; 0 and 0 that are as old are still needed\n", ""},
		{[]string{"retention", "--older-than", "400d"}, exitDone, "tenant default: dropped 0 facts and 0 reports from before HORIZON; 0 and 0 that are as old are still needed\n", ""},
		{[]string{"actions", "verify", "--action", "act_old"}, exitCouldNot, "", "countersign: older than what retention keeps: action \"act_old\"; its last verdict stands\n"},
	} {
		code, stdout, stderr := command(t, append(step.args, "--store", store)...)
		if diff := cmp.Diff(step.stdout+step.stderr, horizons.ReplaceAllString(stdout+stderr, "HORIZON")); code != step.code || diff != "" {
			t.Errorf("%v: exit code %d, want %d (-want +got):\n%s", step.args, code, step.code, diff)
		}
	}
	code, stdout, stderr := command(t, "log", "verify", "--store", store, "-o", "json")
	var got chainView
	decode(t, stdout, &got)
	if got.Horizon == nil {
		t.Fatalf("no horizon: %s%s", stdout, stderr)
	}
	got.Head, got.RunHead, got.Horizon = "", "", nil
	if diff := cmp.Diff(chainView{Tenant: "default", OK: true, Verified: 2, Dropped: got.Dropped}, got); code != exitDone || diff != "" || got.Dropped < 1 {
		t.Errorf("exit code %d (-want +got):\n%s", code, diff)
	}
	if code, _, stderr := command(t, "actions", "get", "act_old", "--store", store); code != exitDone || stderr != "" {
		t.Errorf("an action without its report: exit code %d: %s", code, stderr)
	}
}

// TestMigrateDistribute: without Citus nothing is distributed, and it is said why.
func TestMigrateDistribute(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "migrate", "--distribute", "--store", migrated(t))
	want := "countersign: --distribute needs a postgres:// store: a sqlite store stays on one machine\n"
	if diff := cmp.Diff(want, stdout+stderr); code != exitUsage || diff != "" {
		t.Errorf("exit code %d, want %d (-want +got):\n%s", code, exitUsage, diff)
	}
	code, stdout, stderr = command(t, "migrate", "--distribute", "--store", pgserver.Start(t).Database(t))
	want = "countersign: the database has no citus extension: run CREATE EXTENSION citus on the coordinator and add its nodes\n"
	if diff := cmp.Diff(want, stdout+stderr); code != exitCouldNot || diff != "" {
		t.Errorf("exit code %d, want %d (-want +got):\n%s", code, exitCouldNot, diff)
	}
}
