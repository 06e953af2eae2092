package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

// tampering is a way to change a store with four verdicts of one action, in the
// order outcome, policy, outcome, policy. ZERO stands for 32 zero bytes, FORGED
// for the content hash of the refund of 18.00, OTHER for that of another
// note, EVIDENCE for the hashes of all evidence with that note.
type tampering struct {
	name       string
	statements []string
	brokenAt   int64
	problem    string // a part of it
}

var tamperings = []tampering{
	{name: "untouched"},
	{"document", []string{`UPDATE verdicts SET document = replace(document, 'NOT_VERIFIED', 'VERIFIED') WHERE seq = 2`}, 2, "the document or the hash was changed"},
	{"verdict beside the document", []string{`UPDATE verdicts SET raw_verdict = 'VERIFIED' WHERE seq = 3`}, 3, "its document says NOT_VERIFIED"},
	{"reasons beside the document", []string{`UPDATE verdicts SET reasons = (SELECT events FROM runs WHERE seq = 2) WHERE seq = 3`}, 3, "is stored with the reasons"},
	{"lens beside the document", []string{`UPDATE verdicts SET lens = 'policy' WHERE seq = 3`}, 3, "is stored under the lens policy, its document says outcome"},
	{"action beside the document", []string{`UPDATE verdicts SET claim_id = 'clm_other' WHERE seq = 3`}, 3, "is stored for action clm_other"},
	{"hash", []string{`UPDATE verdicts SET verdict_hash = ZERO WHERE seq = 3`}, 3, "the document or the hash was changed"},
	{"chain hash", []string{`UPDATE verdicts SET chain_hash = ZERO WHERE seq = 4`}, 4, "it was changed, moved or put in"},
	{"moved", []string{`UPDATE verdicts SET seq = 9 WHERE seq = 1`, `UPDATE verdicts SET seq = 1 WHERE seq = 3`, `UPDATE verdicts SET seq = 3 WHERE seq = 9`}, 1, "it was changed, moved or put in"},
	{"removed in the middle", []string{`DELETE FROM verdicts WHERE seq = 2`}, 2, "is missing; the next one stored is 3"},
	{"removed at the end", []string{`DELETE FROM verdicts WHERE seq = 4`}, 4, "is missing; the head says that there are 4"},
	{"all removed", []string{`DELETE FROM verdicts`}, 1, "is missing; the head says that there are 4"},
	{"head", []string{`UPDATE chain_heads SET chain_hash = ZERO`}, 4, "the head says 0000"},
	{"head set back", []string{`UPDATE chain_heads SET seq = 2, chain_hash = (SELECT chain_hash FROM verdicts WHERE seq = 2)`}, 3, "stands behind the head, which says that there are 2"},
	{"put in behind the head", []string{`INSERT INTO verdicts SELECT tenant_id, 5, claim_id, lens, raw_verdict, reasons, verdict_hash, chain_hash, document FROM verdicts WHERE seq = 3`}, 5, "stands behind the head"},
	{"run removed", []string{`DELETE FROM runs WHERE seq = 4`}, 3, "has no run: run 4 is missing"},
	{"run put in", []string{`INSERT INTO runs SELECT tenant_id, 3, 'run_3', claim_id, contract_id, contract_version, computed_at, triggered_by, status, headline,
		outcome_seq, report, next_check_at, events, previous_seq, changed, evidence_hashes, report_hash, run_hash FROM runs WHERE seq = 2`}, 3, "has a run of its own"},
	{"run put in behind the head", []string{`UPDATE runs SET seq = 6 WHERE seq = 2`}, 1, "has no run: run 2 is missing"},
	{"run of another contract", []string{`UPDATE runs SET contract_id = 'payout' WHERE seq = 2`}, 1, "its run run_2 under payout version 1"},
	{"headline of a run", []string{`UPDATE runs SET headline = 'PASS' WHERE seq = 4`}, 4, `with the headline "PASS", its report says "FAIL`},
	{"report of a run", []string{`UPDATE runs SET report = REPORT WHERE seq = 4`}, 4, "has a run run_4 whose report cannot be read"},
	{"report dropped though it is young", []string{`UPDATE runs SET report = '{"checks":[],"dropped":"retention"}' WHERE seq = 4`}, 4, "is too young for retention to have dropped it"},
	{"contract", []string{`UPDATE contracts SET document = (SELECT document FROM contracts WHERE contract_id = 'payout') WHERE contract_id = 'refund_workflow'`}, 1, "the contract was changed"},
	{"contract removed", []string{`DELETE FROM contracts WHERE contract_id = 'refund_workflow'`}, 1, "which is not in the store"},
	{"fact removed", []string{`DELETE FROM facts WHERE fact_type = 'refund_created'`}, 1, "as evidence, which is missing"},
	{"fact removed under an old horizon", []string{`DELETE FROM facts WHERE fact_type = 'refund_created'`, `INSERT INTO retentions (tenant_id, horizon, dropped_at, facts, reports) VALUES ('default', 1700000000, 1790000000, 1, 0)`}, 1, "as evidence, which is missing"},
	{"fact changed", []string{`UPDATE facts SET attributes = '{"amount": 18.00}' WHERE fact_type = 'refund_created'`}, 1, "the fact was changed"},
	{"fact of another time", []string{`UPDATE facts SET occurred_at = occurred_at + 1 WHERE fact_type = 'refund_created'`}, 1, "the fact was changed"},
	{"fact moved to another subject", []string{`UPDATE facts SET subject_id = 'order_1' WHERE fact_type = 'refund_created'`}, 1, "the fact was changed"},
	{"fact changed with its hash", []string{`UPDATE facts SET attributes = '{"amount": 18.00}', content_hash = FORGED WHERE fact_type = 'refund_created'`}, 1, "that is not the reference of its content"},
	{"fact of its source's own reference changed with its hash", []string{`UPDATE facts SET attributes = '{"text": "other"}', content_hash = OTHER WHERE raw_ref = 'note_1'`}, 1, `was judged on the fact "note_1"`},
	{"fact changed with its hash and the run's", []string{`UPDATE facts SET attributes = '{"text": "other"}', content_hash = OTHER WHERE raw_ref = 'note_1'`, `UPDATE runs SET evidence_hashes = EVIDENCE`}, 2, "it was changed, moved or put in"},
	{"content of evidence removed from a run", []string{`UPDATE runs SET evidence_hashes = NULL WHERE seq = 4`}, 3, "has the content hashes of 0"},
	{"content of evidence cut", []string{`UPDATE runs SET evidence_hashes = report_hash WHERE seq = 4`}, 3, "has the content hashes of 1"},
	{"hashes removed from a run", []string{`UPDATE runs SET evidence_hashes = NULL, report_hash = NULL, run_hash = NULL WHERE seq = 4`}, 3, "has the content hashes of 0"},
	{"hash of a report removed", []string{`UPDATE runs SET report_hash = NULL WHERE seq = 4`}, 4, "0 bytes as the hash of its report"},
	{"hash of a run", []string{`UPDATE runs SET run_hash = ZERO WHERE seq = 4`}, 4, "it was changed, moved or put in"},
	{"status of a run", []string{`UPDATE runs SET status = 'pending' WHERE seq = 4`}, 4, "it was changed, moved or put in"},
	{"time of a run", []string{`UPDATE runs SET computed_at = computed_at - 1 WHERE seq = 2`}, 2, "it was changed, moved or put in"},
	{"value in a report", []string{`UPDATE runs SET report = replace(reportAS_TEXT, '180', '80')AS_JSON WHERE seq = 4`}, 4, "the report was changed"},
	{"head of runs", []string{`UPDATE chain_heads SET run_hash = ZERO`}, 4, "the head says 0000"},
	{"fact unreadable", []string{`UPDATE facts SET attributes = '[1]' WHERE fact_type = 'refund_created'`}, 1, "whose attributes cannot be read"},
	{"listed verdict", []string{`UPDATE claims SET latest_policy = 'VERIFIED'`}, 4, "is listed with another verdict"},
	{"listed settled verdict", []string{`UPDATE claims SET settled_policy = 'VERIFIED'`}, 4, "is listed with another verdict"},
	{"listed older run", []string{`UPDATE claims SET latest_seq = 2`}, 4, "is listed with another verdict"},
	{"listed as never verified", []string{`UPDATE claims SET latest_seq = NULL, latest_status = NULL, latest_outcome = NULL, latest_policy = NULL, settled_policy = NULL`}, 4, "is listed with another verdict"},
	{"what retention drops", []string{`DELETE FROM facts WHERE fact_type = 'refund_created'`, `UPDATE runs SET report = '{"checks":[],"dropped":"retention"}' WHERE seq = 2`,
		`INSERT INTO retentions (tenant_id, horizon, dropped_at, facts, reports) VALUES ('default', 1790700000, 1790700000, 1, 1)`}, 0, ""},
	{"what came again after retention had dropped it", []string{`UPDATE facts SET attributes = '{"text": "other"}', content_hash = OTHER, ingested_at = (SELECT max(computed_at) + 1 FROM runs) WHERE raw_ref = 'note_1'`,
		`INSERT INTO retentions (tenant_id, horizon, dropped_at, facts, reports) VALUES ('default', 1790700000, 1790700000, 1, 1)`}, 0, ""},
	{"old fact changed with its hash", []string{`UPDATE facts SET attributes = '{"text": "other"}', content_hash = OTHER WHERE raw_ref = 'note_1'`,
		`INSERT INTO retentions (tenant_id, horizon, dropped_at, facts, reports) VALUES ('default', 1790700000, 1790700000, 1, 1)`}, 1, `was judged on the fact "note_1"`},
	{"young fact that came again", []string{`UPDATE facts SET attributes = '{"text": "other"}', content_hash = OTHER, ingested_at = (SELECT max(computed_at) + 1 FROM runs) WHERE raw_ref = 'note_1'`}, 1, `was judged on the fact "note_1"`},
	{"action removed", []string{`DELETE FROM claims`}, 1, "which is not in the store any more"},
	{"action under another id", []string{`UPDATE claims SET action_id = 'act_other'`}, 1, `which is stored as "act_other"`},
	{"action under another contract", []string{`UPDATE claims SET contract_id = 'payout'`}, 1, "its action under payout version 1"},
	{"action under another version", []string{`UPDATE claims SET contract_version = 2`}, 1, "its action under refund_workflow version 2"},
	{"action that corrects another one since", []string{`UPDATE claims SET compensates = 'act_failed'`}, 2, "it was changed, moved or put in"},
	{"report with another time of its evidence", []string{`UPDATE runs SET report = replace(reportAS_TEXT, '2026-09-28T10:42:07Z', '2026-09-28T10:42:09Z')AS_JSON`}, 2, "says another source, type or time"},
	{"report with another sentence", []string{`UPDATE runs SET report = replace(reportAS_TEXT, 'stripe refund_created', 'nothing')AS_JSON`}, 2, "in the report of its run"},
	{"facts that no verdict names", []string{`DELETE FROM facts WHERE raw_ref = 'nobody'`}, 0, ""},
}

// TestLogVerify: an untouched chain holds; each way to change it names the
// first sequence number that does not hold any more.
func TestLogVerify(t *testing.T) {
	t.Parallel()
	for _, tamper := range tamperings {
		t.Run(tamper.name, func(t *testing.T) {
			t.Parallel()
			store := migrated(t)
			writeFourVerdicts(t, store)
			statements := tamper.spelled("zeroblob(32)", "x'%x'", "'no report'")
			if len(statements) > 0 {
				breakStore(t, store, statements...)
			}
			tamper.check(t, store)
		})
	}
}

// sharedTamperings are those of what PostgreSQL stores once for two documents.
var sharedTamperings = []tampering{
	{"less of the document before", []string{`UPDATE verdicts SET shared = shared - 1 WHERE seq = 2`}, 2, "the document or the hash was changed"},
	{"nothing of the document before", []string{`UPDATE verdicts SET shared = NULL WHERE seq = 2`}, 2, "the document or the hash was changed"},
	{"the document that another one begins as", []string{`UPDATE verdicts SET document = 'X' || substr(document, 2) WHERE seq = 1`}, 1, "the document or the hash was changed"},
	{"a beginning that an outcome verdict does not have", []string{
		`UPDATE verdicts v SET document = left(o.document, v.shared) || v.document, shared = NULL FROM verdicts o WHERE v.seq = 2 AND o.seq = 1`,
		`UPDATE verdicts v SET shared = 11, document = substr(v.document, 12) WHERE v.seq = 3`,
	}, 3, "the document or the hash was changed"},
}

// TestLogVerifyOnPostgreSQL: the same on PostgreSQL, as a superuser, whom no grant stops.
func TestLogVerifyOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	for _, tamper := range slices.Concat(tamperings, sharedTamperings) {
		t.Run(tamper.name, func(t *testing.T) {
			url := server.DatabaseFrom(t, "four_verdicts", func(_ context.Context, url string) error {
				if code, _, stderr := command(t, "migrate", "--store", url); code != exitDone {
					return errors.New(stderr)
				}
				writeFourVerdicts(t, url)
				return nil
			})
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for _, statement := range append([]string{noConstraint}, tamper.spelled(`decode(repeat('00', 32), 'hex')`, `decode('%x', 'hex')`, `'"no report"'`)...) {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			tamper.check(t, url)
		})
	}
}

// spelled writes the statements as a dialect does.
func (tamper tampering) spelled(zero, binary, report string) []string {
	object := func(text string) engine.Object {
		o, err := engine.ParseObject([]byte(text))
		if err != nil {
			panic(err)
		}
		return o
	}
	fact := func(source, kind string, at engine.Instant, attributes engine.Object) [32]byte {
		return engine.Fact{Source: source, Type: kind, SubjectID: "order_10231", SubjectKind: "record", OccurredAt: at, Attributes: attributes}.ContentHash()
	}
	none, eligible, amount := object(`{}`), object(`{"status": "eligible"}`), object(`{"amount": 180.00}`)
	forged := fact("stripe", "refund_created", 1790592127, object(`{"amount": 18.00}`))
	other := fact("crm", "note_added", 1790592140, object(`{"text": "other"}`))
	evidence := ledger.JoinHashes([][32]byte{
		fact("shopify", "order_status", 1790592090, eligible), fact("stripe", "refund_created", 1790592127, amount), other,
		fact("messaging", "customer_notified", 1790592151, none),
	})
	text, json := "", ""
	if strings.HasPrefix(zero, "decode") { // PostgreSQL
		text, json = "::text", "::json"
	}
	var statements []string
	for _, s := range tamper.statements {
		s = strings.NewReplacer("ZERO", zero, "FORGED", fmt.Sprintf(binary, forged), "OTHER", fmt.Sprintf(binary, other), "EVIDENCE", fmt.Sprintf(binary, evidence), "REPORT", report, "AS_TEXT", text, "AS_JSON", json).Replace(s)
		statements = append(statements, s)
	}
	return statements
}

func (tamper tampering) check(t *testing.T, store string) {
	t.Helper()
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
}

// TestLogVerifyHorizon: who puts in the note of a retention cannot explain with it
// that evidence of the last 30 days is gone.
func TestLogVerifyHorizon(t *testing.T) {
	t.Parallel()
	for name, horizon := range map[string]string{
		"latest of all": `(SELECT max(computed_at) + 1 FROM runs)`,
		"a week ago":    `(SELECT max(computed_at) - 604800 FROM runs)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := migrated(t)
			writeVerdicts(t, store, now().Sub(14*engine.Day))
			breakStore(
				t, store, `DELETE FROM facts WHERE fact_type = 'refund_created'`,
				`INSERT INTO retentions (tenant_id, horizon, dropped_at, facts, reports) VALUES ('default', `+horizon+`, `+horizon+`, 1, 0)`,
			)
			tampering{brokenAt: 1, problem: "as evidence, which is missing"}.check(t, store)
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
	code, _, stderr := command(t, "actions", "verify", "--store", store, "act_refund_001")
	if code != exitNo {
		t.Fatal(stderr)
	}
	for _, head := range []string{then.Head, then.RunHead} {
		if code, stdout, _ := command(t, "log", "verify", "--store", store, "--head", head); code != exitDone {
			t.Errorf("exit code %d, want %d: %s", code, exitDone, stdout)
		}
	}
	other := strings.Repeat("ab", 32)
	code, stdout, _ = command(t, "log", "verify", "--store", store, "--head", other)
	want := "broken: the chain does not contain " + other + ": it is not the chain that had this head\n"
	if diff := cmp.Diff(want, stdout); code != exitNo || diff != "" {
		t.Errorf("exit code %d, want %d; stdout (-want +got):\n%s", code, exitNo, diff)
	}
}

// noConstraint: who may change the store may also take away what forbids it.
const noConstraint = `ALTER TABLE runs DROP CONSTRAINT runs_hashed`

// unhashed makes a store's runs those of a program that did not hash runs.
var unhashed = []string{
	`UPDATE runs SET evidence_hashes = NULL, report_hash = NULL, run_hash = NULL`,
	`UPDATE chain_heads SET run_hash = NULL`,
}

// TestLogVerifyOfEarlierRuns: runs without a hash hold where all before are
// without, and are counted; the next run begins the chain of runs. A head of runs
// that was noted before somebody took the hashes away is missed.
func TestLogVerifyOfEarlierRuns(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		store := storeWithFourVerdicts(t)
		noted := verifiedLog(t, store).RunHead
		breakStore(t, store, unhashed...)
		checkEarlierRuns(t, store, noted)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		store := pgserver.Start(t).Database(t)
		if code, _, stderr := command(t, "migrate", "--store", store); code != exitDone {
			t.Fatal(stderr)
		}
		writeFourVerdicts(t, store)
		noted := verifiedLog(t, store).RunHead
		db, err := sql.Open("pgx", store)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range append([]string{noConstraint}, unhashed...) {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		checkEarlierRuns(t, store, noted)
	})
}

// TestRunsOfEarlierProgramsAreRefused: a program that does not hash runs and was
// running before the store was migrated cannot put one behind those that are hashed.
func TestRunsOfEarlierProgramsAreRefused(t *testing.T) {
	t.Parallel()
	const run = `INSERT INTO runs (tenant_id, seq, run_id, claim_id, contract_id, contract_version, computed_at, triggered_by, status, headline,
		outcome_seq, report, next_check_at, events, previous_seq, changed)
		SELECT tenant_id, seq + 2, 'run_6', claim_id, contract_id, contract_version, computed_at + 1, triggered_by, status, headline,
		outcome_seq + 2, report, next_check_at, events, seq, changed FROM runs WHERE seq = 4`
	server := pgserver.Start(t)
	for driver, store := range map[string]string{"sqlite": migrated(t), "pgx": server.Database(t)} {
		if code, _, stderr := command(t, "migrate", "--store", store); code != exitDone {
			t.Fatal(stderr)
		}
		writeFourVerdicts(t, store)
		db, err := sql.Open(driver, strings.TrimPrefix(store, "sqlite:"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		want := map[string]string{"sqlite": "of an earlier version: end that program", "pgx": "runs_hashed"}[driver]
		if _, err := db.ExecContext(t.Context(), run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", driver, err, want)
		}
	}
}

func checkEarlierRuns(t *testing.T, store, noted string) {
	t.Helper()
	if got := verifiedLog(t, store); !got.OK || got.RunsWithoutHash != 2 || got.RunHead != strings.Repeat("0", 64) {
		t.Errorf("without hashes: %+v", got)
	}
	writeFourVerdicts(t, store)
	got := verifiedLog(t, store)
	if !got.OK || got.RunsWithoutHash != 2 || got.Verified != 8 {
		t.Errorf("with runs of this program behind them: %+v", got)
	}
	if code, stdout, _ := command(t, "log", "verify", "--store", store, "--head", noted); code != exitNo {
		t.Errorf("exit code %d, want %d: %s", code, exitNo, stdout)
	}
	_, stdout, _ := command(t, "log", "verify", "--store", store)
	if want := "2 runs of an earlier version, whose reports and facts are not covered by a hash of the run\n"; !strings.HasSuffix(stdout, want) {
		t.Errorf("got %q, want at the end %q", stdout, want)
	}
}

func verifiedLog(t *testing.T, store string) (view chainView) {
	t.Helper()
	_, stdout, _ := command(t, "log", "verify", "--store", store, "-o", "json")
	decode(t, stdout, &view)
	return view
}

// storeWithFourVerdicts verifies one action twice.
func storeWithFourVerdicts(t *testing.T) string {
	t.Helper()
	store := migrated(t)
	writeFourVerdicts(t, store)
	return store
}

func writeFourVerdicts(t *testing.T, store string) {
	t.Helper()
	writeVerdicts(t, store, 1790592120)
}

// writeVerdicts writes them about the action of the example as if it had been requested at another moment.
func writeVerdicts(t *testing.T, store string, requested engine.Instant) {
	t.Helper()
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile("../../examples/verify.json")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`2026-[0-9T:-]*Z`).ReplaceAllFunc(text, func(stamp []byte) []byte {
		at, err := engine.ParseInstant(string(stamp))
		if err != nil {
			t.Fatal(err)
		}
		return []byte((requested + at - 1790592120).String())
	})
	const note = `"fact_type": "note_added", `
	request := filepath.Join(t.TempDir(), "verify.json")
	if err := os.WriteFile(request, bytes.Replace(text, []byte(note), []byte(note+`"raw_ref": "note_1", `), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if code, _, stderr := command(t, "actions", "verify", "--store", store, "--file", request); code != exitNo {
			t.Fatal(stderr)
		}
	}
}

// breakStore does what a person with the file could do: the triggers that keep
// verdicts append-only do not stop the owner.
func breakStore(t *testing.T, store string, statements ...string) {
	t.Helper()
	runOnFile(t, store, append(append(dropTriggers(t, store), "PRAGMA foreign_keys = OFF"), statements...)...)()
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
