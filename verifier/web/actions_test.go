package web

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var rowID = regexp.MustCompile(`<span class="dim data">([^<]*)</span>`)

// listed are the action ids of a list, in order.
func listed(page string) []string {
	var ids []string
	for _, found := range rowID.FindAllStringSubmatch(page, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// fourStories are one action of each verdict, a minute apart.
func fourStories(f *fixture) {
	f.library()
	f.record(acme, refund("passed", "order_1", start, "10"), refund("failed", "order_2", start+60, "10"), refund("unknown", "order_3", start+120, "10"))
	f.ingest(acme, ledger.FactBatch{Facts: append(refundFacts("order_1", start, "10"), without("note_added", refundFacts("order_2", start+60, "10"))...)})
	f.verify(start+2000, "passed", "failed", "unknown")
	pending := refund("pending", "order_4", start+2000, "10")
	pending.AgentID = "refund-bot"
	f.record(acme, pending)
	f.verify(start+2001, "pending")
	fix := refund("fix", "order_2b", start+2100, "10")
	fix.Compensates = "failed"
	f.record(acme, fix)
	f.ingest(acme, ledger.FactBatch{Facts: refundFacts("order_2b", start+2100, "10")})
	f.verify(start+2200, "fix")
}

func TestFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fourStories(f)
	b := f.reader()
	everything := []string{"fix", "pending", "unknown", "failed", "passed"}
	for query, want := range map[string][]string{
		"":                            everything,
		"verdict=PASS":                {"fix", "passed"},
		"verdict=fail":                {"failed"},
		"verdict=UNKNOWN":             {"pending", "unknown"}, // the provisional verdict counts, as in the API
		"verdict=COMPENSATED":         {"failed"},
		"contract_id=REFUND_WORKFLOW": everything,
		"contract_id=payout":          nil,
		"agent_id=refund-bot":         {"pending"},
		"subject_id=order_2":          {"failed"},
		"workflow_id=wf_order_3":      {"unknown"},
		"trace_id=" + strings.ToUpper(refund("", "", start, "1").TraceID): {"passed"},
		"since=2026-09-28T10:43:00Z":                                      {"fix", "pending", "unknown", "failed"},
		"since=2026-09-28+10:43":                                          {"fix", "pending", "unknown", "failed"},
		"until=2026-09-28T10:44":                                          {"failed", "passed"},
		"since=2026-09-29":                                                nil,
		"verdict=PASS&since=2026-09-28":                                   {"fix", "passed"},
	} {
		if diff := cmp.Diff(want, listed(b.page("/actions?"+query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, want := range map[string]string{
		"verdict=MAYBE": "does not name a page of the list", "since=yesterday": "since is no time. Write it like 2026-09-28 10:42, in UTC.",
		"cursor=nonsense": "does not name a page of the list", "agent_id=%00": "agent_id has the control character U+0000", "subject_id=" + strings.Repeat("x", 513): "at most 512 are allowed",
		"agent_id=%ff": "is not valid UTF-8",
	} {
		got := b.get("/actions?" + query)
		if got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, got.status)
		}
		wantIn(t, query, got.body, want)
	}
	page := b.page("/actions?verdict=PASS&agent_id=support-agent&cursor=")
	wantIn(t, "chips", page, `href="/actions?agent_id=support-agent" aria-label="Remove the filter Verdict PASS"`, `href="/actions?verdict=PASS" aria-label="Remove the filter Agent support-agent"`,
		`<option selected>PASS</option>`, `<details id="more-filters" open>`)
	wantIn(t, "nothing found", b.page("/actions?agent_id=nobody"), "No action matches these filters")
}

func TestPagesKeepTheirPlaceAndFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	var want []string
	for i := range 2*pageSize + 7 {
		a := refund(fmt.Sprintf("a%03d", i), "order_1", start+engine.Instant(i/3), "1")
		f.record(acme, a)
	}
	b := f.reader()
	link := func(page, rel string) string {
		found := regexp.MustCompile(`rel="` + rel + `" href="([^"]*)"`).FindStringSubmatch(page)
		if found == nil {
			return ""
		}
		return strings.ReplaceAll(found[1], "&amp;", "&")
	}
	var pages, addresses []string
	for address := "/actions?agent_id=support-agent&verdict="; address != ""; {
		page := b.page(address)
		pages, addresses = append(pages, page), append(addresses, address)
		want = append(want, listed(page)...)
		address = link(page, "next")
		if address != "" && !strings.Contains(address, "agent_id=support-agent") {
			t.Fatalf("the filter is lost: %s", address)
		}
	}
	if len(pages) != 3 || len(want) != 2*pageSize+7 {
		t.Fatalf("%d pages with %d actions", len(pages), len(want))
	}
	// What is recorded meanwhile does not move the pages.
	f.record(acme, refund("newest", "order_1", start+9999, "1"))
	if diff := cmp.Diff(listed(pages[2]), listed(b.page(addresses[2]))); diff != "" {
		t.Errorf("the last page moved (-want +got):\n%s", diff)
	}
	second := link(b.page(addresses[2]), "prev")
	if diff := cmp.Diff(listed(pages[1]), listed(b.page(second))); diff != "" {
		t.Errorf("back to the second page (-want +got):\n%s", diff)
	}
	if first := link(b.page(second), "prev"); listed(b.page(first))[0] != "newest" {
		t.Errorf("back to the first page: %s", first)
	}
	if strings.Contains(pages[1], "data-live") || !strings.Contains(pages[0], `data-live="all"`) {
		t.Error("only the first page may change under the reader")
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fourStories(f)
	b := f.reader()
	var hash [32]byte
	f.update(func(tx ledger.Tx) error {
		found, err := tx.Actions(t.Context(), acme, []string{"failed"})
		hash = found[0].Latest.Policy.Hash
		return err
	})
	trace := refund("", "", start+60, "1").TraceID
	for search, want := range map[string]string{
		"failed": actionOf("failed"), " failed ": actionOf("failed"), engine.ClaimID(acme, "passed"): actionOf("passed"),
		"order_3": "/actions?subject_id=order_3", trace: "/actions?trace_id=" + trace, strings.ToUpper(trace): "/actions?trace_id=" + trace,
		fmt.Sprintf("%x", hash): actionOf("failed") + "#verify", fmt.Sprintf("%X", hash): actionOf("failed") + "#verify",
	} {
		got := b.get("/actions?q=" + url.QueryEscape(search))
		if got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Errorf("%q: %d to %q, want %q", search, got.status, got.header.Get("Location"), want)
		}
	}
	for _, search := range []string{"nothing", strings.Repeat("ab", 32), "<b>"} {
		page := b.page("/actions?q=" + url.QueryEscape(search))
		wantIn(t, search, page, "Nothing is recorded under")
		if len(listed(page)) != 5 {
			t.Errorf("%q: the newest actions are not listed", search)
		}
	}
	for _, search := range []string{strings.Repeat("x", 513), "a\x00"} {
		if got := b.get("/actions?q=" + url.QueryEscape(search)); got.status != http.StatusBadRequest {
			t.Errorf("%q: %d", search, got.status)
		}
	}
	if got := b.get("/actions?q="); got.status != http.StatusOK {
		t.Errorf("empty: %d", got.status)
	}
}

func TestPeopleComeToThePageFromTheAPI(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	b := f.browser()
	for name, one := range map[string]struct {
		accept, key, method string
		want                int
	}{
		"Browser": {"text/html,application/xhtml+xml", "", http.MethodGet, http.StatusSeeOther},
		"Program": {"application/json", "", http.MethodGet, http.StatusTeapot},
		"WithKey": {"text/html", "cs_viewer_x", http.MethodGet, http.StatusTeapot},
		"Post":    {"text/html", "", http.MethodPost, http.StatusTeapot},
	} {
		request, err := http.NewRequest(one.method, b.base+"/v1/actions/a%2Fb", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", one.accept)
		if one.key != "" {
			request.Header.Set("X-API-Key", one.key)
		}
		got := b.send(request)
		if got.status != one.want {
			t.Errorf("%s: %d, want %d", name, got.status, one.want)
		}
		if one.want == http.StatusSeeOther && got.header.Get("Location") != "/actions/a%2Fb" {
			t.Errorf("%s: leads to %q", name, got.header.Get("Location"))
		}
	}
}
