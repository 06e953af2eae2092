package ledgerexporter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadatatest"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

func opaque(text string) configopaque.String { return configopaque.String(text) }

const testContract = `
id: refund_workflow
version: 1
kind: action
vendor: internal
vendor_display: Refunds
action_type: refund_order
outcome_type: refund_processed
claim_source: agent.actions
subject_kind: order
description: A refund shows up at the provider.
source_citation: {url: "internal://policies/refunds", retrieved: "2026-09-28", title: Refunds}
action:
  window: 15m
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created}
`

// bundle is a writer on a SQLite file of its own, with one contract published.
type bundle struct {
	*writer
	store ledger.Ledger
	url   string
}

func setup(t *testing.T, change func(*Config)) bundle {
	t.Helper()
	return setupWith(t, componenttest.NewNopTelemetrySettings(), change)
}

// setupObserved also returns what the exporter measures, and what it warns of.
func setupObserved(t *testing.T) (bundle, *componenttest.Telemetry, *observer.ObservedLogs) {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() {
		if err := telemetry.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	core, logged := observer.New(zap.WarnLevel)
	settings := telemetry.NewTelemetrySettings()
	settings.Logger = zap.New(core)
	return setupWith(t, settings, nil), telemetry, logged
}

func setupWith(t *testing.T, settings component.TelemetrySettings, change func(*Config)) bundle {
	t.Helper()
	b := bundle{url: "sqlite:" + filepath.Join(t.TempDir(), "ledger.db")}
	b.store = openStore(t, b.url)
	config := NewDefaultConfig()
	config.Store = opaque(b.url)
	if change != nil {
		change(config)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	b.writer = newTestWriter(t, settings, config, open.Ledger)
	return b
}

func newTestWriter(t *testing.T, settings component.TelemetrySettings, config *Config, open opener) *writer {
	t.Helper()
	w, err := newWriter(settings, config, open)
	if err != nil {
		t.Fatal(err)
	}
	w.now = func() time.Time { return time.Unix(1790592300, 0) }
	t.Cleanup(func() {
		if err := w.shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return w
}

// openStore opens the store beside the writer, for looking, and publishes the contract.
func openStore(t testing.TB, url string) ledger.Ledger {
	t.Helper()
	store, err := open.Ledger(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	prepare(t, store)
	return store
}

// prepare makes the schema and publishes the contract.
func prepare(t testing.TB, store ledger.Ledger) {
	t.Helper()
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	parsed, diagnostics := contract.Parse("refund_workflow.yaml", []byte(testContract))
	if parsed == nil {
		t.Fatal(diagnostics)
	}
	err := store.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.PublishContracts(t.Context(), []*contract.Contract{parsed}, 1790592000)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func refund(i int) record.Action {
	return record.Action{StartedNanos: 1790592120900000000, Action: engine.Action{
		ActionID: fmt.Sprintf("act_%03d", i), ContractID: "refund_workflow", SubjectID: fmt.Sprintf("order_%03d", i),
		RequestedAt: 1790592120, TraceID: "0102030405060708090a0b0c0d0e0f10", SpanID: fmt.Sprintf("%016x", i+1),
		Tool: "refund_order", ReportedOutcome: "success",
	}}
}

// spans carries one item of each function on a span of its own.
func spans(fill ...func(ptrace.Span)) ptrace.Traces {
	td := ptrace.NewTraces()
	scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i, f := range fill {
		span := scope.Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
		span.SetSpanID(pcommon.SpanID{7: byte(i + 1)})
		span.SetStartTimestamp(1790592120000000000)
		span.SetEndTimestamp(1790592130000000000)
		f(span)
	}
	td.MarkReadOnly()
	return td
}

// given is a copy for an exporter with a queue: merging batches takes them apart.
func given(td ptrace.Traces) ptrace.Traces {
	own := ptrace.NewTraces()
	td.CopyTo(own)
	return own
}

func withAction(a record.Action) func(ptrace.Span) {
	return func(span ptrace.Span) { record.AppendAction(span.Attributes(), a) }
}

func withFact(f record.Fact) func(ptrace.Span) {
	return func(span ptrace.Span) { record.AppendFact(span.Attributes(), f) }
}

func withContext(tenant, agent, session string) func(ptrace.Span) {
	return func(span ptrace.Span) { record.PutContext(span.Attributes(), tenant, agent, session) }
}

func factOf(t *testing.T, source, subject string) record.Fact {
	t.Helper()
	f, err := engine.Fact{Source: source, Type: "agent_message", SubjectID: subject, OccurredAt: 1790592125}.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return record.Fact{Fact: f}
}

func (b *bundle) write(t *testing.T, td ptrace.Traces) {
	t.Helper()
	if err := b.traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
}

// actions lists what the ledger holds of a tenant, by id.
func actions(t *testing.T, store ledger.Ledger, tenant string) []ledger.StoredAction {
	t.Helper()
	var found []ledger.StoredAction
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		page, err := tx.ListActions(t.Context(), tenant, ledger.ActionFilter{Limit: 500})
		found = page.Actions
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b ledger.StoredAction) int {
		return strings.Compare(a.Action.ActionID, b.Action.ActionID)
	})
	return found
}

func actionIDs(t *testing.T, store ledger.Ledger, tenant string) []string {
	t.Helper()
	var ids []string
	for _, a := range actions(t, store, tenant) {
		ids = append(ids, a.Action.ActionID)
	}
	return ids
}

func connections(t *testing.T, store ledger.Ledger) []engine.Connection {
	t.Helper()
	var found []engine.Connection
	err := store.View(t.Context(), func(tx ledger.Tx) (err error) {
		found, err = tx.Connections(t.Context(), engine.DefaultTenant)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestActionIsRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.write(t, spans(withAction(refund(1))))
	found := actions(t, b.store, engine.DefaultTenant)
	if len(found) != 1 {
		t.Fatalf("%d actions", len(found))
	}
	want := refund(1).Action
	want.ContractVersion, want.ActionType, want.SubjectKind = 1, "refund_order", "order"
	if diff := cmp.Diff(want, found[0].Action, cmp.Comparer(func(a, b engine.Object) bool { return a.Text() == b.Text() })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found[0].RecordedAt != 1790592300 {
		t.Errorf("recorded at %v", found[0].RecordedAt)
	}
}

// TestD15_RecordedThroughTheCollectorIsVerified: it is due at once.
func TestD15_RecordedThroughTheCollectorIsVerified(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.write(t, spans(withAction(refund(1))))
	found := actions(t, b.store, engine.DefaultTenant)
	if len(found) != 1 || found[0].NextCheckAt == nil || *found[0].NextCheckAt != 1790592300 {
		t.Errorf("actions %+v", found)
	}
}

func TestLogRecordsAreWritten(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ld := plog.NewLogs()
	entry := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.AppendAction(entry.Attributes(), refund(1))
	record.AppendAction(entry.Attributes(), refund(2))
	ld.MarkReadOnly()
	if err := b.logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"act_001", "act_002"}, actionIDs(t, b.store, engine.DefaultTenant)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSameBatchAgainChangesNothing: twice, then shuffled and split.
func TestSameBatchAgainChangesNothing(t *testing.T) {
	t.Parallel()
	const n = 100
	b := setup(t, nil)
	items := make([]func(ptrace.Span), 0, 2*n)
	for i := range n {
		items = append(items, withAction(refund(i)), withFact(factOf(t, engine.AgentSource, fmt.Sprint("ticket_", i))))
	}
	b.write(t, spans(items...))
	first := actions(t, b.store, engine.DefaultTenant)
	b.write(t, spans(items...))
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	b.write(t, spans(items[:n]...))
	b.write(t, spans(items[n:]...))
	if len(first) != n {
		t.Fatalf("%d actions, want %d", len(first), n)
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", first), fmt.Sprintf("%+v", actions(t, b.store, engine.DefaultTenant))); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

// TestD31_ContextCompletesTheAction whichever comes first.
func TestD31_ContextCompletesTheAction(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"context first": {1, 0}, "action first": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			batches := []ptrace.Traces{
				spans(func(ptrace.Span) {}, withAction(refund(1))),
				spans(withContext("", "support-agent", "sess-42")),
			}
			for _, i := range order {
				b.write(t, batches[i])
			}
			found := actions(t, b.store, engine.DefaultTenant)
			if len(found) != 1 || found[0].Action.AgentID != "support-agent" || found[0].Action.SessionID != "sess-42" {
				t.Errorf("actions %+v", found)
			}
		})
	}
}

func TestD10_RolesNeverDoEachOthersWork(t *testing.T) {
	t.Parallel()
	forged := factOf(t, "stripe", "order_001")
	forged.Trust = engine.Independent
	own := factOf(t, engine.AgentSource, "ticket_1")
	own.Trust = engine.Independent
	everything := []func(ptrace.Span){
		withAction(refund(1)), withFact(forged), withFact(own), withContext("", "support-agent", ""),
		withFact(factOf(t, "crm", "order_001")),
	}
	for name, tc := range map[string]struct {
		change      func(*Config)
		actions     []string
		connections []engine.Connection
	}{
		"recorder": {
			nil, []string{"act_001"},
			[]engine.Connection{{Source: "otel", Trust: engine.SelfReported, Delivered: true}},
		},
		"evidence": {
			func(c *Config) { c.Role, c.Sources = Evidence, []string{"Stripe"} }, nil,
			[]engine.Connection{{Source: "stripe", Trust: engine.Shared, Delivered: true}},
		},
		"independent evidence": {
			func(c *Config) {
				c.Role, c.Sources, c.Trust, c.Connection = Evidence, []string{"stripe", "crm"}, "independent", "hook"
			}, nil,
			[]engine.Connection{
				{Source: "crm", Name: "hook", Trust: engine.Shared, Delivered: true},
				{Source: "stripe", Name: "hook", Trust: engine.Independent, Delivered: true},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, tc.change)
			b.write(t, spans(everything...))
			if diff := cmp.Diff(tc.actions, actionIDs(t, b.store, engine.DefaultTenant)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			got := connections(t, b.store)
			slices.SortFunc(got, func(a, b engine.Connection) int { return strings.Compare(a.Source, b.Source) })
			if diff := cmp.Diff(tc.connections, got); diff != "" {
				t.Errorf("connections (-want +got):\n%s", diff)
			}
		})
	}
}

// TestD07_LinksAreEvidence: who could link subjects could borrow their facts.
func TestD07_LinksAreEvidence(t *testing.T) {
	t.Parallel()
	link := func(source, other string) func(ptrace.Span) {
		return func(span ptrace.Span) {
			record.AppendLink(span.Attributes(), record.Link{
				Source: source, Link: engine.Link{SubjectID: "order_001", LinkedSubjectID: other},
			})
		}
	}
	items := []func(ptrace.Span){link("stripe", "charge_1"), link("crm", "ticket_1"), withFact(factOf(t, "stripe", "charge_1"))}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   map[string][]string
	}{
		"recorder": {nil, map[string][]string{}},
		"evidence": {
			func(c *Config) { c.Role, c.Sources = Evidence, []string{"stripe"} },
			map[string][]string{"order_001": {"charge_1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *Config) {
				if tc.change != nil {
					tc.change(c)
				}
			})
			recorder := newTestWriter(t, componenttest.NewNopTelemetrySettings(), recorderConfig(b.url), open.Ledger)
			if err := recorder.traces(t.Context(), spans(withAction(refund(1)))); err != nil {
				t.Fatal(err)
			}
			b.write(t, spans(items...))
			b.write(t, spans(items...))
			got := linksOf(t, b.store, refund(1).Action.ActionID)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

func recorderConfig(url string) *Config {
	config := NewDefaultConfig()
	config.Store = opaque(url)
	return config
}

// linksOf are the links that a verdict on the action would see.
func linksOf(t *testing.T, store ledger.Ledger, actionID string) map[string][]string {
	t.Helper()
	parsed, diagnostics := contract.Parse("refund_workflow.yaml", []byte(testContract))
	if parsed == nil {
		t.Fatal(diagnostics)
	}
	links := map[string][]string{}
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		snapshot, err := tx.Snapshot(t.Context(), engine.DefaultTenant, parsed, []string{engine.ClaimID(engine.DefaultTenant, actionID)}, nil)
		if err == nil && len(snapshot.Links[refund(1).Action.SubjectID]) > 0 {
			links[refund(1).Action.SubjectID] = snapshot.Links[refund(1).Action.SubjectID]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return links
}

func TestD37_Tenant(t *testing.T) {
	t.Parallel()
	named := func(i int, tenant string) func(ptrace.Span) {
		a := refund(i)
		a.Tenant = tenant
		return withAction(a)
	}
	items := []func(ptrace.Span){named(1, ""), named(2, "acme"), named(3, "globex"), named(4, "victim")}
	for name, tc := range map[string]struct {
		tenants []string
		want    map[string][]string
	}{
		"only its own":   {nil, map[string][]string{"home": {"act_001"}}},
		"listed ones":    {[]string{"acme", "globex"}, map[string][]string{"home": {"act_001"}, "acme": {"act_002"}, "globex": {"act_003"}}},
		"any, when told": {[]string{"*"}, map[string][]string{"home": {"act_001"}, "acme": {"act_002"}, "globex": {"act_003"}, "victim": {"act_004"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *Config) { c.Tenant, c.Tenants = "home", tc.tenants })
			b.write(t, spans(items...))
			for _, tenant := range []string{"home", "acme", "globex", "victim", engine.DefaultTenant} {
				if diff := cmp.Diff(tc.want[tenant], actionIDs(t, b.store, tenant)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tenant, diff)
				}
			}
		})
	}
}

// TestBadItemsTakeNoOthersWithThem also pins what metrics and the log say of them.
func TestBadItemsTakeNoOthersWithThem(t *testing.T) {
	t.Parallel()
	b, telemetry, logged := setupObserved(t)

	unknown, version, selfish, foreign := refund(2), refund(3), refund(4), refund(5)
	unknown.Action.ContractID = "no_such_contract"
	version.Action.ContractVersion = 9
	selfish.Action.Compensates = selfish.Action.ActionID
	foreign.Tenant = "victim"
	batch := spans(
		withAction(refund(1)), withAction(unknown), withAction(version), withAction(selfish), withAction(foreign),
		func(s ptrace.Span) { s.Attributes().PutStr(record.ActionsKey, "no list") },
		func(s ptrace.Span) { s.Attributes().PutEmptySlice(record.FactsKey).AppendEmpty().SetInt(7) },
		func(s ptrace.Span) { s.Attributes().PutStr(record.ContextKey, "no map") },
		withFact(factOf(t, "stripe", "order_001")), withFact(factOf(t, engine.AgentSource, "ticket_1")),
		withContext("", "support-agent", ""), withAction(refund(6)),
	)
	b.write(t, batch)
	b.write(t, batch)

	if diff := cmp.Diff([]string{"act_001", "act_006"}, actionIDs(t, b.store, engine.DefaultTenant)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	point := func(n int64, kind kind, name, value string) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{
			Value: n, Attributes: attribute.NewSet(attribute.String("kind", string(kind)), attribute.String(name, value)),
		}
	}
	metadatatest.AssertEqualExporterLedgerItems(t, telemetry, []metricdata.DataPoint[int64]{
		point(2, kindAction, "outcome", "created"), point(2, kindAction, "outcome", "unchanged"),
		point(1, kindFact, "outcome", "ingested"), point(1, kindFact, "outcome", "duplicate"),
		point(2, kindContext, "outcome", "stored"),
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExporterLedgerRejectedItems(t, telemetry, []metricdata.DataPoint[int64]{
		point(4, kindAction, "reason", "unreadable"), // the one that compensates itself, and the one that is no list
		point(4, kindAction, "reason", "unknown_contract"), point(2, kindAction, "reason", "tenant"),
		point(2, kindFact, "reason", "unreadable"), point(2, kindFact, "reason", "role"),
		point(2, kindContext, "reason", "unreadable"),
	}, metricdatatest.IgnoreTimestamp())

	var said []string
	for _, entry := range logged.All() {
		said = append(said, fmt.Sprint(entry.Message, " ", entry.ContextMap()["contract_id"], " ", entry.ContextMap()["actions"]))
	}
	slices.Sort(said)
	const message = "actions were not recorded: their contract is unknown to this ledger; run countersign contracts publish with its file, or correct the rule that names it"
	if diff := cmp.Diff([]string{message + " no_such_contract 1", message + " refund_workflow 1"}, said); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestWarningsComeOnceAMinute(t *testing.T) {
	t.Parallel()
	w := newWarnings(zap.NewNop())
	at := time.Unix(1790592300, 0)
	for i, tc := range []struct {
		contract string
		after    time.Duration
		want     bool
	}{
		{"a", 0, true}, {"a", 59 * time.Second, false}, {"b", 59 * time.Second, true}, {"a", time.Minute, true},
	} {
		if got := w.due(tc.contract, at.Add(tc.after)); got != tc.want {
			t.Errorf("%d: %v, want %v", i, got, tc.want)
		}
	}
	for i := range 10 * warnContracts {
		w.due(fmt.Sprint(i), at)
	}
	if n := w.last.Len(); n != warnContracts {
		t.Errorf("%d contracts are remembered", n)
	}
}

// host remembers the statuses that were reported to it.
type host struct {
	component.Host
	mu     sync.Mutex
	events []componentstatus.Status
}

func (h *host) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event.Status())
}

func (h *host) statuses() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// TestStoreThatIsAwayAtStart: the folder of the file comes later, as a volume may.
func TestStoreThatIsAwayAtStart(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "volume")
	config := NewDefaultConfig()
	config.Store = opaque("sqlite:" + filepath.Join(folder, "ledger.db"))
	core, logged := observer.New(zap.WarnLevel)
	settings := componenttest.NewNopTelemetrySettings()
	settings.Logger = zap.New(core)
	w := newTestWriter(t, settings, config, open.Ledger)
	h := &host{Host: componenttest.NewNopHost()}
	if err := w.start(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	w.background.Wait()
	told := logged.FilterMessageSnippet("the ledger cannot be used").All()
	if len(told) != 1 || !strings.Contains(fmt.Sprint(told[0].ContextMap()["error"]), folder) {
		t.Errorf("before anything was sent, the log warns: %v", told)
	}
	err := w.traces(t.Context(), spans(withAction(refund(1))))
	if err == nil {
		t.Fatal("no error while the store is away")
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	store := openStore(t, string(config.Store))
	if err := w.traces(t.Context(), spans(withAction(refund(1)))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"act_001"}, actionIDs(t, store, engine.DefaultTenant)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}
	if diff := cmp.Diff(want, h.statuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestStoreThatIsNotMigrated(t *testing.T) {
	t.Parallel()
	no := false
	config := NewDefaultConfig()
	config.Store, config.CreateSchema = opaque("sqlite:"+filepath.Join(t.TempDir(), "ledger.db")), &no
	w := newTestWriter(t, componenttest.NewNopTelemetrySettings(), config, open.Ledger)
	err := w.traces(t.Context(), spans(withAction(refund(1))))
	if !errors.Is(err, ledger.ErrNotMigrated) || !strings.Contains(err.Error(), "run countersign migrate, or set create_schema: true") {
		t.Errorf("error %v", err)
	}
	openStore(t, string(config.Store)) // migrates
	if err := w.traces(t.Context(), spans(withAction(refund(1)))); err != nil {
		t.Errorf("after the migration: %v", err)
	}
}

// TestStoreWithoutContracts: what agents did before anybody published a contract waits for one.
func TestStoreWithoutContracts(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Store = opaque("sqlite:" + filepath.Join(t.TempDir(), "ledger.db"))
	w := newTestWriter(t, componenttest.NewNopTelemetrySettings(), config, open.Ledger)
	err := w.traces(t.Context(), spans(withAction(refund(1))))
	if !errors.Is(err, errNoContracts) || consumererror.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
	store := openStore(t, string(config.Store)) // publishes
	if err := w.traces(t.Context(), spans(withAction(refund(1)))); err != nil {
		t.Errorf("with a contract: %v", err)
	}
	if diff := cmp.Diff([]string{"act_001"}, actionIDs(t, store, engine.DefaultTenant)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// refusing is a real store that refuses batches which hold one subject, as a
// constraint that nobody foresaw would, or everything for a while.
type refusing struct {
	ledger.Ledger
	subject string // of actions
	ref     string // of facts
	whole   []error
	updates int
}

type refusingTx struct {
	ledger.Tx
	subject, ref string
}

func (t refusingTx) IngestFacts(ctx context.Context, tenant string, batch ledger.FactBatch, now engine.Instant) (ledger.Ingested, error) {
	for _, f := range batch.Facts {
		if f.RawRef == t.ref {
			return ledger.Ingested{}, errConstraint
		}
	}
	return t.Tx.IngestFacts(ctx, tenant, batch, now)
}

var errConstraint = errors.New("constraint")

func (r *refusing) Update(ctx context.Context, f func(ledger.Tx) error) error {
	r.updates++
	if len(r.whole) > 0 {
		err := r.whole[0]
		r.whole = r.whole[1:]
		return err
	}
	return r.Ledger.Update(ctx, func(tx ledger.Tx) error { return f(refusingTx{tx, r.subject, r.ref}) })
}

func (t refusingTx) RecordActions(ctx context.Context, tenant string, actions []ledger.NewAction, now engine.Instant) ([]ledger.Recorded, error) {
	for _, a := range actions {
		if a.Action.SubjectID == t.subject {
			return nil, errConstraint
		}
	}
	return t.Tx.RecordActions(ctx, tenant, actions, now)
}

func setupRefusing(t *testing.T) (*writer, *refusing) {
	t.Helper()
	config := NewDefaultConfig()
	config.Store = opaque("sqlite:" + filepath.Join(t.TempDir(), "ledger.db"))
	openStore(t, string(config.Store))
	r := &refusing{}
	w := newTestWriter(t, componenttest.NewNopTelemetrySettings(), config, func(ctx context.Context, url string) (ledger.Ledger, error) {
		store, err := open.Ledger(ctx, url)
		r.Ledger = store
		return r, err
	})
	return w, r
}

func TestPoisonIsFoundAndLeftOut(t *testing.T) {
	t.Parallel()
	w, r := setupRefusing(t)
	r.subject = "order_017"
	items := make([]func(ptrace.Span), 32)
	for i := range items {
		items[i] = withAction(refund(i))
	}
	if err := w.traces(t.Context(), spans(items...)); err != nil {
		t.Fatal(err)
	}
	ids := actionIDs(t, r.Ledger, engine.DefaultTenant)
	if len(ids) != 31 || slices.Contains(ids, "act_017") {
		t.Errorf("%d actions: %v", len(ids), ids)
	}
	if r.updates > 11 { // the whole, and two halves on each of five levels
		t.Errorf("%d transactions", r.updates)
	}
}

func TestErrorsOfTheStoreAreRetryable(t *testing.T) {
	t.Parallel()
	for _, whole := range []error{ledger.ErrUnavailable, ledger.ErrReadOnly, ledger.ErrNotMigrated, ledger.ErrNewerSchema, errNoContracts} {
		t.Run(whole.Error(), func(t *testing.T) {
			t.Parallel()
			w, r := setupRefusing(t)
			r.whole = []error{whole}
			batch := spans(withAction(refund(1)), withAction(refund(2)))
			if err := w.traces(t.Context(), batch); !errors.Is(err, whole) {
				t.Errorf("error %v, want %v", err, whole)
			}
			if r.updates != 1 {
				t.Errorf("%d transactions: a store that is away is not searched for poison", r.updates)
			}
			if err := w.traces(t.Context(), batch); err != nil {
				t.Errorf("again: %v", err)
			}
			if ids := actionIDs(t, r.Ledger, engine.DefaultTenant); len(ids) != 2 {
				t.Errorf("actions %v", ids)
			}
		})
	}
}

func TestDeadlineIsHonoured(t *testing.T) {
	t.Parallel()
	opening := make(chan struct{})
	config := NewDefaultConfig()
	config.Store = "memory:"
	w := newTestWriter(t, componenttest.NewNopTelemetrySettings(), config, func(ctx context.Context, _ string) (ledger.Ledger, error) {
		close(opening)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err := w.start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	<-opening // somebody else opens, for ever
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.traces(ctx, spans(withAction(refund(1)))); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestWholeExporter runs the exporter as the collector does, with its queue.
func TestWholeExporter(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Store = opaque("sqlite:" + filepath.Join(t.TempDir(), "ledger.db"))
	store := openStore(t, string(config.Store))
	e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := e.ConsumeTraces(t.Context(), given(spans(withAction(refund(i))))); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ids := actionIDs(t, store, engine.DefaultTenant); len(ids) != 20 {
		t.Errorf("%d actions after shutdown, want 20", len(ids))
	}
}
