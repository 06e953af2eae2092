package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// The sight that people come for: the agent says that it worked, the records do not.
func TestReportedSuccessBesideOutcomeFail(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.failingRefund(start)
	f.record(acme, refund("honest", "order_9", start, "1"))
	f.passingRefund(start)
	b := f.reader()
	page := b.page(actionOf("act_demo_refund_001"))
	wantIn(t, "action", page,
		`<h1>Shopify order remained active despite a successful payment refund</h1>`, `class="beside contradicted"`, `<span class="reported success">success</span>`, "The records show otherwise.",
		"Expected effect not observed: shopify order_cancelled", "expected_effect_missing:shopify.order_cancelled", "Not every expected effect was observed",
		"7b1f0c2d9e8a4b6f", "whatsapp", "customer_cancelled", "ticket_9", "The evidence is as good as its weakest source",
	)
	wantIn(t, "list", b.page("/actions"), "agent reported success")
	passing := b.page(actionOf("act_demo_refund_002"))
	wantIn(t, "passing", passing, "What an agent says never decides a verdict.")
	wantNotIn(t, "passing", passing, "contradicted", "otherwise.")
	wantIn(t, "unverified", b.page(actionOf("honest")), "No verdict yet", "nobody has asked yet", "countersign actions verify --store sqlite:countersign.db --tenant acme --action "+engine.ClaimID(acme, "honest"))
}

var cell = regexp.MustCompile(`(?s)<tr class="(ok|failed|awaited)">.*?<span class="what">([^<]*)</span>.*?</tr>`)

func TestChecksStandInTheOrderOfTheSpecification(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.overTheLimit(start)
	page := f.reader().page(actionOf("act_demo_refund_003"))
	var got []string
	for _, found := range cell.FindAllStringSubmatch(page, -1) {
		got = append(got, found[1]+" "+found[2])
	}
	want := []string{
		"failed shopify order_status (status = eligible)", "failed amount at most 250", "failed more than 1 stripe refund_created within 15m",
		"failed stripe refund_created with amount above 250", "ok stripe refund_created", "ok shopify order_cancelled", "ok crm note_added", "ok messaging customer_notified",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	wantIn(t, "values", page, "status = fulfilled", "the request itself", "amount = 400, currency = USD, status = succeeded")
}

func TestRunsSayWhatChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.failingRefund(start)
	f.ingest(acme, ledger.FactBatch{Facts: []engine.Fact{fact("shopify", "order_cancelled", "order_10231", start+300, `{}`)}})
	f.verify(start+5000, "act_demo_refund_001")
	b := f.reader()
	page := b.page(actionOf("act_demo_refund_001"))
	wantIn(t, "runs", page, "pending → settled", "outcome FAIL → PASS", "policy FAIL → PASS", "shopify order_cancelled: now ok (record of 2026-09-28 10:47:00 UTC)", "the action was recorded")
	earlier := regexp.MustCompile(`href="([^"]*\?run=\d+)"`).FindAllStringSubmatch(page, -1)
	if len(earlier) != 2 {
		t.Fatalf("%d links to earlier verifications", len(earlier))
	}
	first := b.page(earlier[1][1])
	wantIn(t, "an earlier run", first, "This is an earlier verification.", "3 of 4 expected effects observed so far", "awaited")
	for _, bad := range []string{"?run=999999", "?run=x", "?run=-1", "?run=99999999999999999999"} {
		if got := b.get(actionOf("act_demo_refund_001") + bad); got.status != http.StatusNotFound && got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, got.status)
		}
	}
}

func TestManyRunsAreShortened(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.record(acme, refund("a", "order_1", start, "1"))
	for i := range runsShown + 3 {
		f.verify(start+engine.Instant(i), "a")
	}
	b := f.reader()
	page := b.page(actionOf("a"))
	if n := strings.Count(page, "run-line"); n != runsShown {
		t.Errorf("%d runs are shown, want %d", n, runsShown)
	}
	wantIn(t, "runs", page, "3 earlier verifications")
	if n := strings.Count(b.page(actionOf("a")+"?runs=all"), "run-line"); n != runsShown+3 {
		t.Errorf("%d runs are shown of all", n)
	}
}

func TestDocumentHashesToTheVerdict(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.failingRefund(start)
	b := f.reader()
	page := b.page(actionOf("act_demo_refund_001"))
	hashes := regexp.MustCompile(`<code class="hash">([0-9a-f]{64})</code>`).FindAllStringSubmatch(page, -1)
	downloads := regexp.MustCompile(`href="([^"]*/documents/\d+)" download`).FindAllStringSubmatch(page, -1)
	if len(hashes) != 2 || len(downloads) != 2 {
		t.Fatalf("%d hashes, %d downloads", len(hashes), len(downloads))
	}
	for i := range downloads {
		got := b.get(downloads[i][1])
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(got.body))); sum != hashes[i][1] {
			t.Errorf("%s hashes to %s, want %s", downloads[i][1], sum, hashes[i][1])
		}
		if got.header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment; ") {
			t.Errorf("%s: %v", downloads[i][1], got.header)
		}
	}
	wantIn(t, "how to verify", page, "sha256sum verdict-", "curl -s "+b.base+"/v1/public/verdicts/"+hashes[1][1], "countersign log verify --store sqlite:countersign.db --tenant acme")
	for _, path := range []string{"/documents/0", "/documents/x", "/documents/777"} {
		if got := b.get(actionOf("act_demo_refund_001") + path); got.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

// An old PASS must not stand for an action that was recorded anew with another amount.
func TestRecordedAnewIsSaid(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.passingRefund(start)
	b := f.reader()
	wantNotIn(t, "before", b.page(actionOf("act_demo_refund_002")), "Recorded anew")
	f.record(acme, refund("act_demo_refund_002", "order_10232", start, "99999"))
	wantIn(t, "action", b.page(actionOf("act_demo_refund_002")), "Recorded anew since", "The verdict below is about what it said before.")
	wantIn(t, "list", b.page("/actions"), "recorded anew since")
}

func TestTraceLink(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, Config{TraceURL: "https://grafana.example/trace/{trace_id}?span={span_id}"}).library()
	a := refund("a", "order_1", start, "1")
	f.record(acme, a)
	page := f.reader().page(actionOf("a"))
	wantIn(t, "action", page, `href="https://grafana.example/trace/`+a.TraceID+`?span=`+a.SpanID+`" rel="noopener noreferrer"`, `href="/actions?trace_id=`+a.TraceID+`"`)
	if _, err := New(Config{TraceURL: "nonsense"}); err == nil {
		t.Error("a template without an address was taken")
	}
}

func TestParkedIsImpossibleToOverlook(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.record(acme, refund("a", "order_1", start, "1"), refund("b", "order_2", start, "1"))
	b := f.reader()
	wantNotIn(t, "before", b.page("/"), `class="banner"`)
	f.park("a", "evaluators disagree: check 3 of the SQL evaluator says true")
	f.park("b", "the contract cannot be read")
	for _, path := range []string{"/", "/actions", "/contracts", "/sources", "/orphans", actionOf("b")} {
		wantIn(t, path, b.page(path), `class="banner" role="alert"`, "2 actions are", "On 1 of them <strong>the two evaluators disagree</strong>")
	}
	wantIn(t, "parked", b.page("/parked"), "check 3 of the SQL evaluator says true", "the contract cannot be read", "the evaluators disagree", actionOf("a"))
	wantIn(t, "action", b.page(actionOf("b")), "Parked: this action is not verified until somebody looks", "the contract cannot be read")
	wantIn(t, "list", b.page("/actions"), `class="flag parked"`)
}

func TestContractPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fourStories(f)
	f.publish(`
id: two_versions
version: 1
kind: action
vendor: v
vendor_display: Two versions
source_citation: {url: "https://policies.example/x", retrieved: "2026-09-28"}
action:
  window: "15m"
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created}
`)
	f.publish(`
id: two_versions
version: 2
kind: action
vendor: v
vendor_display: Two versions
source_citation: {url: "https://policies.example/x", retrieved: "2026-09-28"}
action:
  window: "1h"
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created}
    - effect_observed: {source: crm, type: note_added}
`)
	b := f.reader()
	page := b.page("/contracts/refund_workflow")
	wantIn(t, "contract", page, "In stripe, a record \"refund_created\" appears within 15 minutes of the request.", "If not: Payment refund was not created",
		"Expected effect not observed: crm note_added", "50.0 %", "version 1", `href="/actions?contract_id=refund_workflow"`)
	page = b.page("/contracts/two_versions")
	wantIn(t, "newest version", page, "The window closes 1 hour after the request.", `href="https://policies.example/x"`, "<del>-   window: &#34;15m&#34;</del>", "<ins>+   window: &#34;1h&#34;</ins>",
		"<ins>+     - effect_observed: {source: crm, type: note_added}</ins>", "Version 1 → 2")
	page = b.page("/contracts/two_versions?version=1&against=2")
	wantIn(t, "older version", page, "The window closes 15 minutes after the request.", "Version 2 → 1", "version 2 is the newest", "<ins>+   window: &#34;15m&#34;</ins>")
	for path, status := range map[string]int{
		"/contracts/nothing": http.StatusNotFound, "/contracts/refund_workflow?version=7": http.StatusNotFound, "/contracts/refund_workflow?version=x": http.StatusBadRequest,
		"/contracts/refund_workflow?against=9": http.StatusNotFound, "/contracts/No%20Id": http.StatusNotFound,
	} {
		if got := b.get(path); got.status != status {
			t.Errorf("%s: %d, want %d", path, got.status, status)
		}
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	failing, independent, override := engine.Failing, engine.Independent, engine.SelfReported
	late := start - 7200
	f.ingest(acme, ledger.FactBatch{Facts: refundFacts("order_1", start-100, "1"), Watermarks: map[string]engine.Instant{"crm": late}})
	f.update(func(tx ledger.Tx) error {
		for _, s := range []ledger.ConnectionSetting{
			{Source: "bank", Name: "psd2", Health: &failing, Trust: &independent},
			{Source: "stripe", Name: engine.FactsAPI, Override: &override},
		} {
			if err := tx.SetConnection(context.Background(), acme, s, start); err != nil {
				return err
			}
		}
		return nil
	})
	page := f.reader().page("/sources")
	wantIn(t, "sources", page, "bank <span class=\"flag parked\">", `<span class="health error">error</span>`, "trust set to self reported", `<td class="number ink-unknown strong">2h</td>`,
		"declares no watermark", "Read by a contract, never heard of", "<b>payments</b>", "customer_notified on", "no contract")
}

func TestRejectedFacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.reader()
	wantIn(t, "before", b.page("/sources"), "None since this sidecar started")
	for i := range refusalsKept + 5 {
		r := Refusal{At: start, Key: "cs_evidence_abc", Rejected: i + 1, Conflicting: 7000}
		for range errorsKept + 2 {
			r.Add("/facts/3/occurred_at", hostile+strings.Repeat("x", 500))
		}
		f.page.Refused(acme, r)
	}
	f.page.Refused(other, Refusal{At: start, Key: "foreign"})
	page := b.page("/sources")
	wantIn(t, "sources", page, "cs_evidence_abc…", ">55<", "7\u202f000", "/facts/3/occurred_at: ")
	wantNotIn(t, "sources", page, "foreign", "<script>document", ">5<")
	if n := strings.Count(page, "/facts/3/occurred_at"); n != errorsKept*refusalsKept {
		t.Errorf("%d errors are remembered, want %d", n, errorsKept*refusalsKept)
	}
}

// TestRejectedByCollectors: what the store keeps aside is shown by source, as text.
func TestRejectedByCollectors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.reader()
	wantNotIn(t, "before", b.page("/sources"), "Rejected by collectors")
	f.update(func(tx ledger.Tx) error {
		if err := tx.SetConnection(context.Background(), acme, ledger.ConnectionSetting{Source: "stripe"}, start); err != nil {
			return err
		}
		if err := tx.RejectFacts(context.Background(), acme, []ledger.RejectedFact{
			{Kind: "fact", Source: "stripe", Reason: "conflicting", Error: "the first one stands", Item: `{"raw_ref":"re_77"}`},
			{Kind: "fact", Source: "stripe", Reason: "tenant", Error: hostile, Item: hostile, Times: 3},
			{Kind: "fact", Reason: "unreadable", Error: "no source"},
		}, start); err != nil {
			return err
		}
		if err := tx.RejectFacts(context.Background(), acme, []ledger.RejectedFact{
			{Kind: "fact", Source: "ancient", Reason: "tenant", Error: "long ago"},
		}, start.Sub(40*engine.Day)); err != nil {
			return err
		}
		return tx.RejectFacts(context.Background(), other, []ledger.RejectedFact{{Kind: "fact", Source: "stripe", Reason: "role", Error: "foreign"}}, start)
	})
	page := b.page("/sources")
	wantIn(t, "sources", page, "Rejected by collectors", "the first one stands", "re_77", `<a href="#kept-title">2</a>`, "1 of no readable source")
	wantNotIn(t, "sources", page, "foreign", "ancient", "<script>document")
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.record(acme, refund("a", "order_1", start, "1"))
	f.ingest(acme, ledger.FactBatch{Facts: append(refundFacts("order_1", start, "1"),
		fact("stripe", "refund_created", "order_2", start-100, `{}`), fact("crm", "note_added", "order_3", start-100, `{}`),
		fact("stripe", "refund_created", "old", start-40*86400, `{}`))})
	b := f.reader()
	page := b.page("/orphans")
	wantIn(t, "orphans", page, "order_2", "order_3")
	wantNotIn(t, "orphans", page, "order_1<", ">old<")
	page = b.page("/orphans?source=CRM")
	wantIn(t, "of one source", page, "order_3")
	wantNotIn(t, "of one source", page, "order_2")
	wantIn(t, "of a year", b.page("/orphans?range=1y"), ">old<")
	wantIn(t, "of no source", b.page("/orphans?source=nobody"), "No contract expects an effect from this source")
	wantIn(t, "of a quiet one", b.page("/orphans?source=messaging"), "None in this time. Looked for: messaging customer_notified.")
}

func TestErrorsArePagesWithAWayOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	got := f.reader().get("/actions/none")
	if got.status != http.StatusNotFound {
		t.Errorf("%d", got.status)
	}
	wantIn(t, "not found", got.body, "No action is recorded under this id.", `href="/actions"`, `aria-label="Pages"`)
}
