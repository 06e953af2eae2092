package main

import (
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/internal/pgserver"
)

// TestContractTestsOnPostgreSQL runs the library's tests and the language's
// semantic suite on PostgreSQL; they run on SQLite by default. Nothing of them
// stays in the store.
func TestContractTestsOnPostgreSQL(t *testing.T) {
	url := pgserver.Start(t).Database(t)
	if code, stdout, stderr := command(t, "migrate", "--store", url); code != 0 {
		t.Fatalf("migrate: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr := command(t, "contracts", "test", "--store", url, "../../contracts", "../../engine/contract/contracttest/testdata")
	if code != 0 {
		t.Fatalf("contracts test: exit code %d\n%s%s", code, stdout, stderr)
	}
	if n := strings.Count(stdout, "ok  "); n < 4 {
		t.Errorf("%d test files ran, want at least 4:\n%s", n, stdout)
	}
	code, stdout, stderr = command(t, "actions", "list", "--store", url, "--tenant", testTenant, "-o", "json")
	if code != 0 || strings.Contains(stdout, "action_id") {
		t.Errorf("something stayed in the store: exit code %d\n%s%s", code, stdout, stderr)
	}
}
