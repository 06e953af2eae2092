package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/verifier/api"
)

// The facts of the worked table at the end of the specification's full example.
const (
	eligible  = `{"source":"shopify","subject_id":"order_10231","subject_kind":"order","fact_type":"order_status","occurred_at":"2026-09-28T10:41:30Z","attributes":{"status":"eligible","total":180.0}}`
	fulfilled = `{"source":"shopify","subject_id":"order_10231","subject_kind":"order","fact_type":"order_status","occurred_at":"2026-09-28T10:41:30Z","attributes":{"status":"fulfilled","total":180.0}}`
	refund    = `{"source":"stripe","subject_id":"order_10231","subject_kind":"order","fact_type":"refund_created","occurred_at":"2026-09-28T10:42:07Z","attributes":{"amount":180.0,"currency":"USD","refund_id":"re_1Q2x"}}`
	refund400 = `{"source":"stripe","subject_id":"order_10231","subject_kind":"order","fact_type":"refund_created","occurred_at":"2026-09-28T10:42:07Z","attributes":{"amount":400,"refund_id":"re_1"}}`
	again400  = `{"source":"stripe","subject_id":"order_10231","subject_kind":"order","fact_type":"refund_created","occurred_at":"2026-09-28T10:42:09Z","attributes":{"amount":400,"refund_id":"re_2"}}`
	cancelled = `{"source":"shopify","subject_id":"order_10231","subject_kind":"order","fact_type":"order_cancelled","occurred_at":"2026-09-28T10:43:00Z"}`
	noted     = `{"source":"crm","subject_id":"order_10231","subject_kind":"order","fact_type":"note_added","occurred_at":"2026-09-28T10:43:10Z"}`
	notified  = `{"source":"messaging","subject_id":"order_10231","subject_kind":"order","fact_type":"customer_notified","occurred_at":"2026-09-28T10:43:20Z"}`
)

// verifyBody is a body of POST /v1/actions/verify.
func verifyBody(amount string, facts ...string) string {
	return `{"action_id":"act_demo_refund_001","contract_id":"refund_workflow","workflow_id":"wf_cancel_and_refund",
		"agent_id":"whatsapp-support-agent","action_type":"refund_order","subject_id":"order_10231","subject_kind":"order",
		"requested_at":"2026-09-28T10:42:00Z","params":{"amount":` + amount + `,"currency":"USD","reason":"customer_cancelled"},
		"channel":"whatsapp","facts":[` + strings.Join(facts, ",") + `]}`
}

// verdictOf is what the table compares.
type verdictOf struct {
	Status, Outcome, Policy       string
	OutcomeReasons, PolicyReasons []string
	Headline                      string
}

var (
	allObserved = []string{
		"effect_observed:stripe.refund_created", "effect_observed:shopify.order_cancelled",
		"effect_observed:crm.note_added", "effect_observed:messaging.customer_notified",
	}
	notCancelled = []string{"verified_condition_not_met", "expected_effect_missing:shopify.order_cancelled"}
	threeMissing = []string{
		"verified_condition_not_met", "expected_effect_missing:shopify.order_cancelled",
		"expected_effect_missing:crm.note_added", "expected_effect_missing:messaging.customer_notified",
	}
)

// workedTable is the table at the end of the specification's full example.
var workedTable = []struct {
	name, body, at string
	code           int
	want           verdictOf
}{
	{
		name: "eligible before, refund, note and notification after, no cancellation",
		body: verifyBody("180.0", eligible, refund, noted, notified), at: "2026-09-28T11:00:00Z", code: exitNo,
		want: verdictOf{
			"settled", "FAIL", "FAIL", notCancelled, notCancelled,
			"FAIL — Shopify order remained active despite a successful payment refund",
		},
	},
	{
		name: "the same with the cancellation",
		body: verifyBody("180.0", eligible, refund, noted, notified, cancelled), at: "2026-09-28T11:00:00Z", code: exitDone,
		want: verdictOf{
			"settled", "PASS", "PASS", allObserved, allObserved,
			"PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected",
		},
	},
	{
		name: "not eligible, two refunds of 400, over the limit, all four effects",
		body: verifyBody("400", fulfilled, refund400, again400, cancelled, noted, notified), at: "2026-09-28T11:00:00Z", code: exitNo,
		want: verdictOf{
			"settled", "PASS", "FAIL", allObserved,
			[]string{
				"precondition_unmet:shopify.order_status", "limit_exceeded:amount",
				"duplicate_effect:stripe.refund_created", "forbidden_effect_observed:stripe.refund_created",
			},
			"FAIL — Order was not eligible for a refund at the time of the action",
		},
	},
	{
		name: "no fact of any kind for the subject",
		body: verifyBody("180.0"), at: "2026-09-28T11:00:00Z", code: exitNo,
		want: verdictOf{
			"settled", "UNKNOWN", "UNKNOWN", []string{"identity_unmatched"}, []string{"identity_unmatched"},
			"UNKNOWN — Subject not found in fact sources",
		},
	},
	{
		name: "requested just now, eligible and refunded, three effects not yet",
		body: verifyBody("180.0", eligible, refund), at: "2026-09-28T10:42:10Z", code: exitNo,
		want: verdictOf{
			"pending", "FAIL", "FAIL", threeMissing, threeMissing,
			"PENDING — 1 of 4 expected effects observed so far; window closes 2026-09-28T10:57:00Z",
		},
	},
}

func TestWorkedTable(t *testing.T) {
	t.Parallel()
	for _, row := range workedTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := verifyDry(t, row.code, writeFile(t, "body.json", row.body), row.at)
			if diff := cmp.Diff(row.want, verdictIn(got)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if !got.DryRun {
				t.Error("dry_run is false")
			}
		})
	}
}

// TestD27_SameBytes: the same action, facts, contract and evaluation time give the same answer.
func TestD27_SameBytes(t *testing.T) {
	t.Parallel()
	body := workedTable[2].body
	reversed := verifyBody("400", notified, noted, cancelled, again400, refund400, fulfilled)
	first := verifyDry(t, exitNo, writeFile(t, "body.json", body), workedTable[2].at)
	second := verifyDry(t, exitNo, writeFile(t, "body.json", reversed), workedTable[2].at)
	if diff := cmp.Diff(marshal(t, first), marshal(t, second)); diff != "" {
		t.Errorf("other bytes with the facts in another order (-first +second):\n%s", diff)
	}
}

// verifyDry runs the command that needs nothing running.
func verifyDry(t *testing.T, wantCode int, body, at string) api.Verified {
	t.Helper()
	code, stdout, stderr := command(t, "actions", "verify", "--contracts", "../../contracts", "--file", body,
		"--dry-run", "--at", at, "--store", "memory:", "-o", "json")
	if code != wantCode || stderr != "" {
		t.Fatalf("exit code %d, want %d; stderr %q", code, wantCode, stderr)
	}
	var got api.Verified
	decode(t, stdout, &got)
	return got
}

func verdictIn(v api.Verified) verdictOf {
	return verdictOf{v.Status, v.Outcome.Verdict, v.Policy.Verdict, v.Outcome.Reasons, v.Policy.Reasons, v.Summary.Headline}
}

// command runs one command line as a user would and returns what it says.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
