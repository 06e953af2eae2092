package main

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLogVerify: an untouched chain holds; each way to change it names the
// first sequence number that does not hold any more.
func TestLogVerify(t *testing.T) {
	t.Parallel()
	for _, tamper := range []struct {
		name, statement string
		brokenAt        int64
		problem         string // a part of it
	}{
		{name: "untouched"},
		{"document", `UPDATE verdicts SET document = replace(document, 'NOT_VERIFIED', 'VERIFIED') WHERE seq = 2`, 2, "the document or the hash was changed"},
		{"verdict beside the document", `UPDATE verdicts SET raw_verdict = 'VERIFIED' WHERE seq = 3`, 3, "its document says NOT_VERIFIED"},
		{"hash", `UPDATE verdicts SET verdict_hash = zeroblob(32) WHERE seq = 3`, 3, "the document or the hash was changed"},
		{"chain hash", `UPDATE verdicts SET chain_hash = zeroblob(32) WHERE seq = 4`, 4, "it was changed, moved or put in"},
		{"removed in the middle", `DELETE FROM verdicts WHERE seq = 2`, 2, "is missing; the next one stored is 3"},
		{"removed at the end", `DELETE FROM verdicts WHERE seq = 4`, 4, "is missing; the head says that there are 4"},
		{"head", `UPDATE chain_heads SET chain_hash = zeroblob(32)`, 4, "the head says 0000"},
	} {
		t.Run(tamper.name, func(t *testing.T) {
			t.Parallel()
			store := storeWithFourVerdicts(t)
			if tamper.statement != "" {
				breakStore(t, store, tamper.statement)
			}
			code, stdout, stderr := command(t, "log", "verify", "--store", store, "-o", "json")
			var got chainView
			decode(t, stdout, &got)
			wantCode := exitNo
			if tamper.brokenAt == 0 {
				wantCode = exitDone
			}
			if code != wantCode || stderr != "" {
				t.Errorf("exit code %d, want %d; stderr %q", code, wantCode, stderr)
			}
			if got.OK != (tamper.brokenAt == 0) || got.BrokenAt != tamper.brokenAt || !strings.Contains(got.Problem, tamper.problem) {
				t.Errorf("got %+v, want broken at %d: %s", got, tamper.brokenAt, tamper.problem)
			}
		})
	}
}

// TestLogVerifyHead: a head that was noted earlier stands in the chain of later, and in no other.
func TestLogVerifyHead(t *testing.T) {
	t.Parallel()
	store := storeWithFourVerdicts(t)
	_, stdout, _ := command(t, "log", "verify", "--store", store, "-o", "json")
	var then chainView
	decode(t, stdout, &then)
	code, _, stderr := command(t, "actions", "verify", "--store", store, "--action", "act_refund_001")
	if code != exitNo {
		t.Fatal(stderr)
	}
	if code, stdout, _ := command(t, "log", "verify", "--store", store, "--head", then.Head); code != exitDone {
		t.Errorf("exit code %d, want %d: %s", code, exitDone, stdout)
	}
	other := strings.Repeat("ab", 32)
	code, stdout, _ = command(t, "log", "verify", "--store", store, "--head", other)
	want := "broken: the chain does not contain " + other + ": it is not the chain that had this head\n"
	if diff := cmp.Diff(want, stdout); code != exitNo || diff != "" {
		t.Errorf("exit code %d, want %d; stdout (-want +got):\n%s", code, exitNo, diff)
	}
}

// storeWithFourVerdicts verifies one action twice.
func storeWithFourVerdicts(t *testing.T) string {
	t.Helper()
	store := migrated(t)
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	for range 2 {
		if code, _, stderr := command(t, "actions", "verify", "--store", store, "--file", "../../examples/verify.json"); code != exitNo {
			t.Fatal(stderr)
		}
	}
	return store
}

// breakStore does what a person with the file could do: the triggers that keep
// verdicts append-only do not stop the owner.
func breakStore(t *testing.T, store, statement string) {
	t.Helper()
	statements := append(dropTriggers(t, store), "PRAGMA foreign_keys = OFF", statement)
	runOnFile(t, store, statements...)()
}

func dropTriggers(t *testing.T, store string) []string {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(store, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var statements []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, "DROP TRIGGER "+name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return statements
}
