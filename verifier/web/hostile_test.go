package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// hostileStore is a tenant in which every field that an agent, a webhook or a
// contract's author controls is an attempt to take over the page.
func hostileStore(t testing.TB) *fixture {
	t.Helper()
	f := newFixtureWith(t, Config{TraceURL: "https://traces.example/{trace_id}?span={span_id}"})
	f.publish(`
id: hostile
version: 1
kind: action
vendor: "` + yaml(hostile[:115]) + `"
vendor_display: "` + yaml(hostile[:115]) + `"
description: "` + yaml(hostile) + `"
source_citation: {url: "javascript:alert(1)", retrieved: "2026-09-28", title: "` + yaml(hostile) + `", notes: "` + yaml(hostile) + `"}
action:
  window: "15m"
  limits:
    - param_in: {param: reason, values: [a]}
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created, message: "<img src=x onerror=alert(1)>"}
    - effect_observed: {source: crm, type: note_added, message: "</script><script>alert(1)</script>"}
`)
	quoted, err := engine.ParseObject([]byte(`{"reason": ` + quote(hostile) + `, ` + quote(hostile) + `: [` + quote(hostile) + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	a := engine.Action{
		ActionID: hostile, ContractID: "hostile", WorkflowID: hostile, AgentID: hostile, ActionType: hostile, SubjectID: hostile, SubjectKind: hostile,
		RequestedAt: start, Params: quoted, Channel: hostile, TraceID: hostile, SpanID: hostile, SessionID: hostile, ReferenceID: hostile,
		Tool: hostile, ReportedOutcome: hostile,
	}
	f.record(acme, a)
	by := a
	by.ActionID, by.Compensates = hostile+"2", hostile
	f.record(acme, by)
	facts := []engine.Fact{
		{RawRef: hostile, Source: "stripe", Type: "refund_created", SubjectID: hostile, OccurredAt: start + 5, Attributes: quoted},
		{RawRef: hostile + "2", Source: "helpdesk", Type: "ticket", SubjectID: hostile + "3", OccurredAt: start - 5, Attributes: quoted},
		{RawRef: hostile + "6", Source: "crm", Type: "note_added", SubjectID: hostile, OccurredAt: start - 5, Attributes: quoted},
		{RawRef: hostile + "4", Source: "stripe", Type: "refund_created", SubjectID: hostile + "5", OccurredAt: start, Attributes: quoted},
	}
	f.ingest(acme, ledger.FactBatch{
		Facts: facts, Connection: hostile, Links: []engine.Link{{SubjectID: hostile + "3", LinkedSubjectID: hostile}},
		Watermarks: map[string]engine.Instant{"stripe": start},
	})
	f.update(func(tx ledger.Tx) error {
		return tx.RejectFacts(context.Background(), acme, []ledger.RejectedFact{
			{Kind: "fact", Source: hostile, Connection: hostile, Reason: hostile, Error: hostile, RawRef: hostile, SubjectID: hostile, Item: hostile},
			{Kind: "fact", Source: "stripe", Reason: "invalid", Error: hostile, Item: hostile},
		}, start)
	})
	f.verify(start+10, hostile, hostile+"2")
	f.verify(start+4000, hostile)
	third := a
	third.ActionID = hostile + "6"
	f.record(acme, third)
	f.park(third.ActionID, "evaluators disagree: "+hostile)
	return f
}

func yaml(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
}

func quote(text string) string { return engine.StringValue(text).Canonical() }

// hostilePages are all pages that show what others sent.
func hostilePages() []string {
	q := url.QueryEscape(hostile)
	claim := actionOf(hostile)
	return []string{
		"/", "/?agent_id=" + q + "&contract_id=" + q, "/actions", "/actions?q=" + q + "nothing", "/actions?agent_id=" + q + "&subject_id=" + q + "&workflow_id=" + q,
		"/actions?trace_id=" + q + "&contract_id=hostile", claim, claim + "?scale=" + q, claim + "?scale=close", actionOf(hostile + "2"), actionOf(hostile + "6"),
		"/contracts", "/contracts/hostile", "/contracts/" + url.PathEscape(hostile), "/sources", "/orphans", "/orphans?source=" + q + "&range=" + q, "/parked",
		"/actions?since=" + q, claim + "?run=" + q, "/actions/" + url.PathEscape(hostile+"nothing"), "/actions?cursor=" + q,
	}
}

// TestHostileTextStaysText parses what the pages send: whatever was in the
// fields, there is no element, attribute or address that the templates do not have.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	f := hostileStore(t)
	b := f.reader()
	shown := 0
	for _, path := range hostilePages() {
		got := b.get(path)
		if got.status >= http.StatusInternalServerError || got.status == http.StatusSeeOther {
			t.Errorf("%s: %d %s", path, got.status, body(got.body))
		}
		page, err := html.Parse(strings.NewReader(got.body))
		if err != nil {
			t.Fatal(err)
		}
		harmless(t, path, page)
		if strings.Contains(text(page), hostile) {
			shown++
		}
	}
	sources := b.get("/sources").body
	if !strings.Contains(sources, "Rejected by collectors") || strings.Contains(sources, hostile) {
		t.Error("what collectors rejected is not shown, or as it was sent")
	}
	if shown < 12 {
		t.Errorf("the text is shown on %d pages; it should be on most", shown)
	}
	signIn := f.browser().page("/sign-in?next=" + url.QueryEscape("/"+hostile))
	page, err := html.Parse(strings.NewReader(signIn))
	if err != nil {
		t.Fatal(err)
	}
	harmless(t, "/sign-in", page)
}

var elements = map[string]bool{}

func init() {
	for _, name := range strings.Fields(`html head meta title link script noscript body svg symbol path use a header div nav form input button span p strong
		b main footer time h1 h2 h3 section ul ol li table thead tbody tr th td details summary label select option pre code bdi br text rect line circle g
		dl dt dd ins del`) {
		elements[name] = true
	}
}

// harmless fails on every element, attribute and address that no template has.
func harmless(t *testing.T, path string, n *html.Node) {
	t.Helper()
	if n.Type == html.ElementNode {
		if !elements[n.Data] {
			t.Errorf("%s: an element <%s>", path, n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
				t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
			case a.Key == "href" && !ourAddress(a.Val), a.Key == "action" && !strings.HasPrefix(a.Val, "/"), a.Key == "src" && !strings.HasPrefix(a.Val, "/assets/"):
				t.Errorf("%s: <%s %s=%q>", path, n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "script" && n.FirstChild != nil {
			t.Errorf("%s: a script in the page", path)
		}
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		harmless(t, path, child)
	}
}

func ourAddress(address string) bool {
	return strings.HasPrefix(address, "#") || (strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//")) || strings.HasPrefix(address, "https://traces.example/")
}

func text(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		b.WriteString(text(child))
	}
	return b.String()
}

func TestEveryAnswerIsProtected(t *testing.T) {
	t.Parallel()
	f := hostileStore(t)
	b := f.reader()
	paths := append(hostilePages(), "/sign-in", "/assets/nothing.css", actionOf(hostile)+"/documents/2", "/actions/none")
	for _, path := range paths {
		h := b.get(path).header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "private, no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	page := b.page("/")
	for _, name := range []string{"page.css", "page.js", "mark.svg"} {
		address, err := assetPath(name)
		if err != nil {
			t.Fatal(err)
		}
		wantIn(t, "page", page, address)
		got := b.get(address)
		if got.status != http.StatusOK || got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || got.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", address, got.status, got.header)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"order_1": "order_1", "Zürich 東京 🙂": "Zürich 東京 🙂", "a\u202Eb": "a[U+202E]b", "a\u200bb": "a[U+200B]b", "\x00\x1b": "[U+0000][U+001B]",
		"line\nline\ttab": "line\nline\ttab", "a\u2028b": "a[U+2028]b", "\xff": "\uFFFD", "a\u00a0b": "a\u00a0b", "\ufeffx": "[U+FEFF]x", "\u2066x\u2069": "[U+2066]x[U+2069]",
	} {
		if got := plain(given); got != want {
			t.Errorf("plain(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestTraceLinkEscapesWhatTelemetrySays(t *testing.T) {
	t.Parallel()
	a := engine.Action{TraceID: `x"/../?a=b&c#d javascript:`, SpanID: "é"}
	want := "https://t.example/trace/x%22%2F..%2F%3Fa%3Db%26c%23d+javascript%3A?span=%C3%A9"
	if got := traceLink("https://t.example/trace/{trace_id}?span={span_id}", a); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := traceLink("https://t.example/{trace_id}", engine.Action{}); got != "" {
		t.Errorf("without a trace: %q", got)
	}
	for template, want := range map[string]string{
		"": "", "https://t.example/{trace_id}": "", "http://localhost:3000/t?x={trace_id}&y={span_id}": "",
		"javascript:{trace_id}":      `page.trace_url is "javascript:{trace_id}"; write an address like https://grafana.example/trace/{trace_id}?span={span_id}`,
		"https://t.example/no-place": `page.trace_url is "https://t.example/no-place"; write an address like https://grafana.example/trace/{trace_id}?span={span_id}`,
	} {
		err := checkTraceURL(template)
		if got := errorText(err); got != want {
			t.Errorf("%q: %s, want %s", template, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
