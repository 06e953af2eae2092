package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
)

// TestLibrary: the contracts that come with the program pass their own tests.
func TestLibrary(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "contracts", "test", "../../contracts", "-o", "json")
	var got struct {
		OK    bool
		Files []fileResult
	}
	decode(t, stdout, &got)
	if code != exitDone || stderr != "" || !got.OK || len(got.Files) < 3 {
		t.Errorf("exit code %d, stderr %q:\n%s", code, stderr, stdout)
	}
	for _, file := range got.Files {
		if len(file.Uncovered) > 0 {
			t.Errorf("%s leaves checks uncovered: %q", file.File, file.Uncovered)
		}
	}
}

// took is what differs between two runs.
var took = regexp.MustCompile(`\d+(\.\d+)?(ms|µs|s|m\d+s)\n`)

// TestContractTestFails: a failing test says which action, where, what was
// expected and what came, and whether all checks were met.
func TestContractTestFails(t *testing.T) {
	t.Parallel()
	dir := contractDir(t, func(tests string) string {
		return strings.NewReplacer("1 of 4 expected", "2 of 4 expected", `"limit_exceeded:amount", ok: true`, `"limit_exceeded:amount", ok: false`).Replace(tests)
	})
	code, stdout, stderr := command(t, "contracts", "test", dir)
	want := `FAIL  DIR/refund_workflow_test.yaml:5: refunded, noted and told, but the order was not cancelled
      action act_refund (line 13): checks: limit_exceeded:amount: ok
        - expected  false
        + got       true
FAIL  DIR/refund_workflow_test.yaml:88: requested just now, only the refund is there
      action act_1 (line 92): headline
        - expected  PENDING — 2 of 4 expected effects observed so far; window closes 2026-09-28T10:57:00Z
        + got       PENDING — 1 of 4 expected effects observed so far; window closes 2026-09-28T10:57:00Z
FAIL  DIR/refund_workflow_test.yaml  14 tests  TOOK
`
	got := took.ReplaceAllString(strings.ReplaceAll(stdout, dir, "DIR"), "TOOK\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if code != exitNo || stderr != "countersign: 1 test file of 1 failed\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

func TestContractTestSelects(t *testing.T) {
	t.Parallel()
	dir := contractDir(t, func(tests string) string { return tests })
	code, stdout, _ := command(t, "contracts", "test", "--run", "limit$", dir)
	want := "ok    DIR/refund_workflow_test.yaml  1 test  TOOK\n"
	if got := took.ReplaceAllString(strings.ReplaceAll(stdout, dir, "DIR"), "TOOK\n"); code != exitDone || got != want {
		t.Errorf("exit code %d, stdout %q, want %q", code, got, want)
	}
	badInput{
		args: []string{"contracts", "test", "--run", "nothing is called so", dir}, code: exitUsage,
		stdout: "ok    " + dir + "/refund_workflow_test.yaml  0 tests  TOOK\n",
		stderr: "countersign: no test matches --run nothing is called so\n",
	}.checkTook(t)
	badInput{
		args: []string{"contracts", "test", "--run", "(", dir}, code: exitUsage,
		stderr: "countersign: --run: error parsing regexp: missing closing ): `(`\n",
	}.check(t)
}

// checkTook is check without the time that something took.
func (b badInput) checkTook(t *testing.T) {
	t.Helper()
	code, stdout, stderr := command(t, b.args...)
	if code != b.code {
		t.Errorf("exit code %d, want %d", code, b.code)
	}
	if diff := cmp.Diff(b.stdout+b.stderr, took.ReplaceAllString(stdout, "TOOK\n")+stderr); diff != "" {
		t.Errorf("stdout and stderr (-want +got):\n%s", diff)
	}
}

// contractDir holds refund_workflow and its tests, changed.
func contractDir(t *testing.T, change func(tests string) string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"refund_workflow.yaml", "refund_workflow_test.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../contracts", name))
		if err != nil {
			t.Fatal(err)
		}
		content := string(text)
		if isTestFile(name) {
			content = change(content)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestContractsDiff replays what a store recorded under a stricter edit.
func TestContractsDiff(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	for name, amount := range map[string]string{"act_small": "90", "act_large": "180"} {
		body := strings.NewReplacer("act_demo_refund_001", name, "order_10231", "order_"+name).Replace(verifyBody(amount, eligible, refund, noted, notified, cancelled))
		if code, _, stderr := command(t, "actions", "verify", "--store", store, "--file", writeFile(t, "body.json", body)); code != exitDone {
			t.Fatal(stderr)
		}
	}
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	stricter := writeFile(t, "stricter.yaml", strings.Replace(string(text), "param_max: {param: amount, max: 250}", "param_max: {param: amount, max: 100}", 1))
	badInput{
		args: []string{"contracts", "diff", "../../contracts/refund_workflow.yaml", stricter, "--store", store, "--since", "9999d"}, code: exitDone,
		stdout: "act_large  PASS -> FAIL  FAIL — limit exceeded: amount at most 100 (was 180)\n" +
			"2 actions replayed, 1 verdict would change: 1 PASS -> FAIL\n",
	}.check(t)
	code, stdout, _ := command(t, "contracts", "diff", "../../contracts/refund_workflow.yaml", stricter, "--store", store, "--since", "9999d", "-o", "json")
	var got struct {
		Replayed int
		Changes  map[string]int
		Changed  []changedAction
	}
	decode(t, stdout, &got)
	if code != exitDone || got.Replayed != 2 || got.Changes["PASS -> FAIL"] != 1 || len(got.Changed) != 1 || got.Changed[0].New.PolicyReasons[0] != "limit_exceeded:amount" {
		t.Errorf("exit code %d, got %+v", code, got)
	}
	badInput{
		args: []string{"contracts", "diff", "../../contracts/refund_workflow.yaml", "../../contracts/payout.yaml", "--store", store}, code: exitUsage,
		stderr: "countersign: ../../contracts/refund_workflow.yaml is refund_workflow and ../../contracts/payout.yaml is payout; name two versions of one contract\n",
	}.check(t)
	// Nothing of this was stored.
	if code, stdout, _ := command(t, "log", "verify", "--store", store, "-o", "json"); code != exitDone || !strings.Contains(stdout, `"verified": 4`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestContractsDiffStreams replays more than a page: what changed is printed
// while the bar still moves, and the JSON is one document.
func TestContractsDiffStreams(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	const actions = diffPage + diffPage/2
	recordRefunds(t, store, actions)
	old := "../../contracts/refund_workflow.yaml"
	text, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	stricter := writeFile(t, "stricter.yaml", strings.Replace(string(text), "param_max: {param: amount, max: 250}", "param_max: {param: amount, max: 100}", 1))

	// One writer for both, so that their order shows.
	var screen bytes.Buffer
	terminal := newTerminal(strings.NewReader(""), &screen, &screen)
	terminal.showsProgress = true
	diffCommand := newContractsDiff(terminal)
	diffCommand.SetArgs([]string{old, stricter, "--store", store, "--since", "9999d"})
	if err := diffCommand.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := screen.String()
	bar, line := strings.Index(shown, fmt.Sprintf("] %d/%d", diffPage, actions)), "  PASS -> FAIL  "
	if bar < 0 || !strings.Contains(shown[:bar], line) || !strings.Contains(shown[bar:], line) {
		t.Errorf("want lines before and after the bar at %d of %d, got %d lines before, %d after", diffPage, actions, strings.Count(shown[:max(bar, 0)], line), strings.Count(shown[max(bar, 0):], line))
	}
	summary := fmt.Sprintf("%d actions replayed, %d verdicts would change: %[2]d PASS -> FAIL\n", actions, actions/2)
	if !strings.HasSuffix(shown, summary) {
		t.Errorf("want %q at the end, got %q", summary, shown[max(0, len(shown)-200):])
	}

	code, stdout, stderr := command(t, "contracts", "diff", old, stricter, "--store", store, "--since", "9999d", "-o", "json")
	var got struct {
		Replayed int
		Changes  map[string]int
		Changed  []changedAction
	}
	decode(t, stdout, &got)
	if code != exitDone || stderr != "" || got.Replayed != actions || len(got.Changed) != actions/2 {
		t.Errorf("exit code %d, %d replayed, %d changed, stderr %q", code, got.Replayed, len(got.Changed), stderr)
	}
}

// TestChange: what is printed never reads as if nothing had changed.
func TestChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after verdictLabel
		want          string
	}{
		{"policy", verdictLabel{"settled", "PASS", "PASS", nil, ""}, verdictLabel{"settled", "PASS", "FAIL", nil, ""}, "PASS -> FAIL"},
		{"outcome alone", verdictLabel{"settled", "PASS", "FAIL", nil, ""}, verdictLabel{"settled", "FAIL", "FAIL", nil, ""}, "outcome PASS -> outcome FAIL"},
		{"provisional", verdictLabel{"pending", "PASS", "PASS", nil, ""}, verdictLabel{"pending", "PASS", "FAIL", nil, ""}, "PENDING (PASS so far) -> PENDING (FAIL so far)"},
		{"settled by the edit", verdictLabel{"pending", "PASS", "PASS", nil, ""}, verdictLabel{"settled", "PASS", "PASS", nil, ""}, "PENDING (PASS so far) -> PASS"},
	} {
		if from, to := change(c.before, c.after); from+" -> "+to != c.want {
			t.Errorf("%s: got %s -> %s, want %s", c.name, from, to, c.want)
		}
	}
}

// recordRefunds records refunds of 90 and of 180 by turns, every effect in place, whose windows are still open.
func recordRefunds(t *testing.T, store string, n int) {
	t.Helper()
	requested := now()
	effects := []engine.Fact{
		{Source: "shopify", Type: "order_status", OccurredAt: requested.Add(-engine.Minute), Attributes: object(t, `{"status": "eligible"}`)},
		{Source: "stripe", Type: "refund_created", OccurredAt: requested},
		{Source: "shopify", Type: "order_cancelled", OccurredAt: requested},
		{Source: "crm", Type: "note_added", OccurredAt: requested},
		{Source: "messaging", Type: "customer_notified", OccurredAt: requested},
	}
	var actions []ledger.NewAction
	batch := ledger.FactBatch{Connection: engine.FactsAPI, Trust: engine.Shared}
	for i := range n {
		action := engine.Action{
			ActionID: fmt.Sprintf("act_%04d", i), ContractID: "refund_workflow", ContractVersion: 1, ActionType: "refund_order",
			SubjectID: fmt.Sprintf("order_%04d", i), SubjectKind: "order", RequestedAt: requested,
			Params: object(t, fmt.Sprintf(`{"amount": %d}`, 90*(1+i%2))),
		}
		actions = append(actions, ledger.NewAction{Action: action})
		for _, fact := range effects {
			fact.SubjectID, fact.SubjectKind = action.SubjectID, action.SubjectKind
			fact, err := fact.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			batch.Facts = append(batch.Facts, fact)
		}
	}
	err := withStore(t.Context(), store, func(l ledger.Ledger) error {
		return l.Update(t.Context(), func(tx ledger.Tx) error {
			if _, err := tx.RecordActions(t.Context(), "default", actions, requested); err != nil {
				return err
			}
			_, err := tx.IngestFacts(t.Context(), "default", batch, requested)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func object(t *testing.T, text string) engine.Object {
	t.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRulesTry shows what the collector's example makes of a sample.
func TestRulesTry(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "rules", "try", "--input", "../../examples/telemetry/vercel-ai-v6.json", "--config", "../../examples/collector.yaml", "-o", "json")
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	var got []struct {
		SpanID, Dialect, Tool string
		Rules                 []struct {
			ContractID string `json:"contract_id"`
			Action     *struct {
				SubjectID string `json:"subject_id"`
			}
		}
	}
	decode(t, stdout, &got)
	if len(got) != 2 || len(got[0].Rules) != 1 || got[0].Rules[0].Action == nil || got[0].Rules[0].Action.SubjectID != "A-1001" || len(got[1].Rules) != 0 {
		t.Errorf("got %+v", got)
	}
	badInput{
		args: []string{"rules", "try", "--input", "../../examples/verify.json"}, code: exitUsage,
		stderr: "countersign: ../../examples/verify.json:1:1: is no OTLP/JSON: it has neither resourceSpans nor resourceLogs at the top; write what an OTLP exporter sends as JSON\n",
	}.check(t)
}

// TestPrintable: text from outside cannot move the cursor or hide what follows.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain — text":    "plain — text",
		"\x1b[2Jcleared":  `\u001b[2Jcleared`,
		"line\nfeed":      `line\u000afeed`,
		"turned\u202eend": `turned\u202eend`,
		"\u009bcsi":       `\u009bcsi`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) is %q, want %q", text, got, want)
		}
	}
}

// TestPublishTellsNewVersionsFromKnownOnes: who publishes a library again sees what that changed.
func TestPublishTellsNewVersionsFromKnownOnes(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	document, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	second := writeFile(t, "second.yaml", strings.Replace(string(document), "\nversion: 1\n", "\nversion: 2\n", 1))
	publish := func(want string, more ...string) {
		t.Helper()
		code, stdout, stderr := command(t, append([]string{"contracts", "publish", "--store", store, "../../contracts/refund_workflow.yaml"}, more...)...)
		if got := hashShown.ReplaceAllString(stdout, "(HASH)"); code != exitDone || got != want {
			t.Errorf("exit code %d, stderr %q, printed\n%swant\n%s", code, stderr, got, want)
		}
	}
	publish("published refund_workflow version 1 (HASH)\n")
	publish("unchanged refund_workflow version 1 (HASH)\npublished refund_workflow version 2 (HASH)\n", second)
	_, stdout, _ := command(t, "contracts", "publish", "--store", store, "-o", "json", second)
	var got struct{ Published, Unchanged []contractView }
	decode(t, stdout, &got)
	if got.Published == nil || len(got.Published) != 0 || len(got.Unchanged) != 1 || got.Unchanged[0].Version != 2 {
		t.Errorf("printed %s", stdout)
	}
	_, stdout, _ = command(t, "contracts", "list", "refund_workflow", "--store", store)
	if lines := strings.Split(stdout, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], "refund_workflow  1 ") || !strings.HasPrefix(lines[2], "refund_workflow  2 ") {
		t.Errorf("all versions are listed as\n%s", stdout)
	}
}

var (
	hashShown   = regexp.MustCompile(`\([0-9a-f]{12}\)`)
	listedHash  = regexp.MustCompile(` [0-9a-f]{12} `)
	listedTime  = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)
	refundLine  = "refund_workflow  1        HASH          15m     TIME\n"
	listedTitle = "CONTRACT         VERSION  HASH          WINDOW  PUBLISHED\n"
)

// TestContractsList asks a store and a sidecar, which answer alike.
func TestContractsList(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	badInput{args: []string{"contracts", "list", "--store", store}, stdout: "no contract is published; countersign contracts publish does it\n"}.check(t)
	badInput{args: []string{"contracts", "list", "nope", "--store", store}, code: exitNo, stderr: "countersign: no contract \"nope\" is published; contracts list, or GET /v1/contracts, names those that are\n"}.check(t)
	badInput{
		args: []string{"contracts", "list", "a", "b", "--store", store}, code: exitUsage,
		stderr: "countersign: countersign contracts list takes the id of one contract or nothing, got 2 arguments\nsee: countersign contracts list --help\n",
	}.check(t)
	s := serving(t)
	for _, args := range [][]string{{}, {"refund_workflow"}} {
		args = append([]string{"contracts", "list"}, args...)
		_, direct, _ := command(t, append(args, "--store", s.store)...)
		code, asked, stderr := s.as(t, "viewer", args...)
		got := listedTime.ReplaceAllString(listedHash.ReplaceAllString(asked, " HASH         "), "TIME")
		if code != exitDone || direct != asked || !strings.HasPrefix(got, listedTitle) || !strings.Contains(got, "\n"+refundLine) {
			t.Errorf("%q: exit code %d, stderr %q; the sidecar says\n%sthe store\n%s", args, code, stderr, got, direct)
		}
	}
	_, stdout, _ := s.as(t, "viewer", "contracts", "list", "REFUND_workflow", "-o", "json")
	var list api.ContractList
	decode(t, stdout, &list)
	if len(list.Contracts) != 1 || list.Contracts[0].Window != "15m" || list.Contracts[0].Document == "" {
		t.Errorf("printed %s", stdout)
	}
	badInput{args: []string{"contracts", "list", "--server", s.url, "--api-key-file", writeFile(t, "key", s.keys["recorder"])}, code: exitCouldNot,
		stderr: "countersign: a key with the role recorder may not inspect sources, contracts and reports; roles that may: analyst, viewer\n"}.check(t)
}
