package web

import (
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/settle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	acme  = "acme"
	other = "globex"
)

// fixture is the page over a SQLite store of its own, with the library's
// contracts and the real verifier. Nothing settles by itself.
type fixture struct {
	t        testing.TB
	store    ledger.Ledger
	verifier *settle.Verifier
	page     *Page
	server   *httptest.Server
	clock    atomic.Int64
	// secrets by role, of tenant acme.
	secrets map[string]string
	keys    map[string]ledger.Key
}

// start is when the stories of most tests begin.
const start engine.Instant = 1_790_592_120 // 2026-09-28T10:42:00Z

func newFixture(t testing.TB) *fixture { return newFixtureWith(t, Config{}) }

func newFixtureWith(t testing.TB, c Config) *fixture {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.OpenMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, store: store, secrets: map[string]string{}, keys: map[string]ledger.Key{}}
	f.at(start)
	for _, role := range keys.Roles() {
		request := keys.Request{Role: role, Tenant: acme}
		if role == ledger.RoleEvidence {
			request.Sources = []string{"stripe"}
		}
		f.secrets[role] = f.key(request)
	}
	contracts := ledger.NewContractCache(0)
	c.Ledger, c.Contracts, c.Now = store, contracts, f.now
	c.Feed = feed.New(store, 20*time.Millisecond, nil)
	if c.Patience == 0 {
		c.Patience = time.Minute // a slow machine must not change what a page shows
	}
	c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	if c.Store == "" {
		c.Store = "sqlite:countersign.db"
	}
	if f.page, err = New(c); err != nil {
		t.Fatal(err)
	}
	f.verifier = settle.New(settle.Config{Ledger: store, Contracts: contracts, Owner: "test", Now: f.now, OnStored: func(string, []ledger.Run) { f.page.Feed.Nudge() }})
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "next: %s", r.URL.Path)
	})
	f.server = httptest.NewServer(f.page.Handler(next))
	t.Cleanup(func() {
		f.server.Close()
		f.page.Close()
	})
	return f
}

func (f *fixture) now() engine.Instant   { return engine.Instant(f.clock.Load()) }
func (f *fixture) at(now engine.Instant) { f.clock.Store(int64(now)) }

// live runs the feed until the test ends.
func (f *fixture) live() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.page.Feed.Run(ctx); err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (f *fixture) key(request keys.Request) string {
	f.t.Helper()
	key, secret, err := keys.Create(context.Background(), f.store, request, f.now())
	if err != nil {
		f.t.Fatal(err)
	}
	f.keys[request.Role] = key
	return string(secret)
}

// library publishes the contracts of the library.
func (f *fixture) library() *fixture {
	f.t.Helper()
	for _, name := range []string{"refund_workflow", "payout", "close_ticket"} {
		document, err := os.ReadFile("../../contracts/" + name + ".yaml")
		if err != nil {
			f.t.Fatal(err)
		}
		f.publish(string(document))
	}
	return f
}

func (f *fixture) publish(document string) {
	f.t.Helper()
	c, diagnostics := contract.Parse("test.yaml", []byte(document))
	if c == nil {
		f.t.Fatal(diagnostics)
	}
	f.update(func(tx ledger.Tx) error {
		return tx.PublishContracts(context.Background(), []*contract.Contract{c}, f.now())
	})
}

func (f *fixture) update(do func(tx ledger.Tx) error) {
	f.t.Helper()
	if err := f.store.Update(context.Background(), do); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) record(tenant string, actions ...engine.Action) {
	f.t.Helper()
	items := make([]ledger.RecordRequest, len(actions))
	for i, a := range actions {
		items[i] = ledger.RecordRequest{Action: a}
	}
	f.update(func(tx ledger.Tx) error {
		results, err := ledger.Record(context.Background(), tx, tenant, items, f.now())
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		return err
	})
}

func (f *fixture) ingest(tenant string, batch ledger.FactBatch) {
	f.t.Helper()
	if batch.Trust == engine.UnknownTrust {
		batch.Trust = engine.Shared
	}
	f.update(func(tx ledger.Tx) error {
		result, err := ledger.Ingest(context.Background(), tx, tenant, batch, f.now())
		for _, r := range result.RejectedFacts {
			return r.Err
		}
		return err
	})
}

// verify asks for verdicts at a moment.
func (f *fixture) verify(at engine.Instant, actionIDs ...string) {
	f.t.Helper()
	f.at(at)
	claims := make([]string, len(actionIDs))
	for i, id := range actionIDs {
		claims[i] = engine.ClaimID(acme, id)
	}
	if _, err := f.verifier.Verify(context.Background(), acme, claims, nil, "action"); err != nil {
		f.t.Fatal(err)
	}
}

// park takes an action out of the queue, as the verifier does with what it cannot verify.
func (f *fixture) park(actionID, message string) {
	f.t.Helper()
	ctx := context.Background()
	lease := ledger.Lease{Owner: "test", Now: f.now(), Until: f.now() + 60}
	f.update(func(tx ledger.Tx) error {
		due, err := tx.LeaseActions(ctx, acme, lease, []string{engine.ClaimID(acme, actionID)})
		if err != nil || len(due) != 1 {
			return fmt.Errorf("leased %d: %w", len(due), err)
		}
		return tx.Park(ctx, acme, "test", []ledger.Parked{{Due: due[0], ActionID: actionID, Error: message, At: f.now()}}, f.now())
	})
}

func fact(source, factType, subject string, at engine.Instant, attributes string) engine.Fact {
	object, err := engine.ParseObject([]byte(attributes))
	if err != nil {
		panic(err)
	}
	return engine.Fact{
		RawRef: fmt.Sprintf("%s_%s_%s_%d", source, factType, subject, at), Source: source, Type: factType,
		SubjectID: subject, SubjectKind: "order", OccurredAt: at, Attributes: object,
	}
}

func params(text string) engine.Object {
	object, err := engine.ParseObject([]byte(text))
	if err != nil {
		panic(err)
	}
	return object
}

// refund is an action of the refund story.
func refund(id, order string, at engine.Instant, amount string) engine.Action {
	return engine.Action{
		ActionID: id, ContractID: "refund_workflow", AgentID: "support-agent", SubjectID: order, SubjectKind: "order", RequestedAt: at,
		WorkflowID: "wf_" + order, Channel: "whatsapp", Tool: "refund_order", ReportedOutcome: "success",
		TraceID: "7b1f0c2d9e8a4b6f" + fmt.Sprintf("%016x", int64(at)), SpanID: fmt.Sprintf("%016x", int64(at)),
		Params: params(`{"amount": ` + amount + `, "currency": "USD", "reason": "customer_cancelled"}`),
	}
}

// refundFacts are what makes a refund pass.
func refundFacts(order string, at engine.Instant, amount string) []engine.Fact {
	return []engine.Fact{
		fact("shopify", "order_status", order, at-30, `{"status": "eligible", "total": 180.0}`),
		fact("stripe", "refund_created", order, at+7, `{"amount": `+amount+`, "currency": "USD", "status": "succeeded"}`),
		fact("shopify", "order_cancelled", order, at+21, `{"by": "api"}`),
		fact("crm", "note_added", order, at+33, `{"author": "support-agent"}`),
		fact("messaging", "customer_notified", order, at+48, `{"channel": "whatsapp"}`),
	}
}

// without leaves out the facts of one type.
func without(factType string, facts []engine.Fact) []engine.Fact {
	var kept []engine.Fact
	for _, f := range facts {
		if f.Type != factType {
			kept = append(kept, f)
		}
	}
	return kept
}

// browser is a client that keeps cookies and shows redirects.
type browser struct {
	t      testing.TB
	base   string
	client *http.Client
}

func (f *fixture) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	transport := &http.Transport{}
	f.t.Cleanup(transport.CloseIdleConnections)
	return &browser{f.t, f.server.URL, &http.Client{
		Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// reader is a browser that is signed in with the viewer's key.
func (f *fixture) reader() *browser {
	f.t.Helper()
	b := f.browser()
	if got := b.signIn(f.secrets[ledger.RoleViewer], "/"); got.status != http.StatusSeeOther {
		f.t.Fatalf("sign-in: %d %s", got.status, got.body)
	}
	return b
}

type answer struct {
	status int
	// proto is the major version of HTTP.
	proto  int
	header http.Header
	body   string
}

func (b *browser) do(method, path string, form url.Values) answer {
	b.t.Helper()
	request, err := http.NewRequest(method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return b.send(request)
}

func (b *browser) send(request *http.Request) answer {
	b.t.Helper()
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{response.StatusCode, response.ProtoMajor, response.Header, string(body)}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil)
}

// page is a page that must be there.
func (b *browser) page(path string) string {
	b.t.Helper()
	got := b.get(path)
	if got.status != http.StatusOK {
		b.t.Fatalf("GET %s: %d, location %q\n%s", path, got.status, got.header.Get("Location"), got.body)
	}
	return got.body
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

// token is the form token of a page.
func token(t testing.TB, page string) string {
	t.Helper()
	found := tokenField.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no form token in:\n%s", page)
	}
	return found[1]
}

func (b *browser) signIn(secret, next string) answer {
	b.t.Helper()
	form := token(b.t, b.page("/sign-in?next="+url.QueryEscape(next)))
	return b.do(http.MethodPost, "/sign-in", url.Values{"token": {form}, "next": {next}, "key": {secret}})
}

// wantIn demands texts of a page, as they stand or as a reader sees them.
func wantIn(t testing.TB, what, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) && !strings.Contains(html.UnescapeString(page), text) {
			t.Errorf("%s: no %q in:\n%s", what, text, body(page))
			return
		}
	}
}

func wantNotIn(t testing.TB, what, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("%s: %q in:\n%s", what, text, body(page))
			return
		}
	}
}

// body is what a page has of its own.
func body(page string) string {
	if _, after, ok := strings.Cut(page, "<main"); ok {
		page = after
	}
	return page[:min(len(page), 3000)]
}

func actionOf(id string) string { return "/actions/" + engine.ClaimID(acme, id) }
