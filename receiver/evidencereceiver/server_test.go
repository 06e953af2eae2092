package evidencereceiver

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadatatest"
)

func TestProvedDeliveryBecomesARecord(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	if got, want := s.send(t, to("/stripe", refund).stripe(time.Now())), (response{status: http.StatusOK}); got != want {
		t.Fatalf("answered %+v, want %+v", got, want)
	}
	all := entries(sink.AllLogs())
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	entry := all[0]
	if entry.EventName() != "refund.created" || entry.Body().Str() != refund || entry.Timestamp() != 0 || entry.ObservedTimestamp() == 0 {
		t.Errorf("event %q, body %q, time %v, observed %v", entry.EventName(), entry.Body().AsString(), entry.Timestamp(), entry.ObservedTimestamp())
	}
	want := delivery.Delivery{Tenant: "acme", Source: "stripe", Connection: "stripe", Trust: engine.Independent, ID: "evt_1"}
	if diff := cmp.Diff(want, came(t, entry)); diff != "" {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
	if entry.Attributes().Len() != 1 {
		t.Errorf("attributes %v", entry.Attributes().AsRaw())
	}
}

// TestD10_TrustIsThatOfTheScheme: a provider's signature gives independent, an
// evidence key shared, and a setting can only lower it.
func TestD10_TrustIsThatOfTheScheme(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	s.send(t, to("/stripe", refund).stripe(time.Now()))
	s.send(t, to("/webhooks/github", refund).github().with("X-GitHub-Event", "ping"))
	s.send(t, to("/crm", refund).key())
	var got []delivery.Delivery
	for _, entry := range entries(sink.AllLogs()) {
		d := came(t, entry)
		d.ID = ""
		got = append(got, d)
	}
	want := []delivery.Delivery{
		{Tenant: "acme", Source: "stripe", Connection: "stripe", Trust: engine.Independent},
		{Source: "github", Connection: "github", Trust: engine.Shared},
		{Source: "crm", Connection: "crm-poller", Trust: engine.Shared},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatProvesNothingIsRefusedWithoutAWord(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	now := time.Now()
	for name, r := range map[string]*request{
		"nothing":               to("/stripe", refund),
		"malformed":             to("/stripe", refund).with("Stripe-Signature", "v1=00"),
		"too old":               to("/stripe", refund).stripe(now.Add(-time.Hour)),
		"from the future":       to("/stripe", refund).stripe(now.Add(time.Hour)),
		"other body":            {http.MethodPost, "/stripe", refund + " ", to("/stripe", refund).stripe(now).header},
		"another's signature":   to("/stripe", refund).github(),
		"another's secret":      to("/webhooks/github", refund).with("X-Hub-Signature-256", "sha256="+mac(stripeSecret, refund)),
		"no key":                to("/crm", refund),
		"wrong key":             to("/crm", refund).with("X-API-Key", "evidence_key_of_the_crN"),
		"unsigned challenge":    to("/slack", `{"type":"url_verification","challenge":"x"}`),
		"signed, then squeezed": to("/stripe", refund).stripe(now).with("Content-Encoding", "gzip"),
	} {
		want := response{status: http.StatusUnauthorized}
		if name == "signed, then squeezed" {
			want.status = http.StatusBadRequest // says that it is gzip, and is not
		}
		if got := s.send(t, r); got != want {
			t.Errorf("%s: answered %+v, want %+v", name, got, want)
		}
	}
	if n := sink.LogRecordCount(); n != 0 {
		t.Errorf("%d records went on", n)
	}
}

func TestWhatIsNoDelivery(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(), &consumertest.LogsSink{})
	for name, tc := range map[string]struct {
		request *request
		want    int
	}{
		"no endpoint":      {to("/paypal", refund), http.StatusNotFound},
		"below one":        {to("/stripe/x", refund), http.StatusNotFound},
		"reading":          {&request{http.MethodGet, "/stripe", "", http.Header{}}, http.StatusMethodNotAllowed},
		"other coding":     {to("/stripe", refund).stripe(time.Now()).with("Content-Encoding", "br"), http.StatusBadRequest},
		"too large":        {to("/crm", strings.Repeat(" ", 64<<10+1)).key(), http.StatusRequestEntityTooLarge},
		"a bomb":           {to("/crm", strings.Repeat(" ", 64<<10+1)).key().zipped(t), http.StatusRequestEntityTooLarge},
		"a torn array":     {to("/crm", `[{"id":1},`).key(), http.StatusBadRequest},
		"too many events":  {to("/crm", "["+strings.Repeat("1,", maxEvents)+"1]").key(), http.StatusRequestEntityTooLarge},
		"too many lines":   {to("/lines", strings.Repeat("1\n", maxEvents+1)).key(), http.StatusRequestEntityTooLarge},
		"as large as may":  {to("/crm", strings.Repeat(" ", 64<<10)).key(), http.StatusOK},
		"no event at all":  {to("/crm", "[]").key(), http.StatusOK},
		"nothing in lines": {to("/lines", "\n\n").key(), http.StatusOK},
	} {
		if got := s.send(t, tc.request); got.status != tc.want || got.body != "" && tc.want == http.StatusOK {
			t.Errorf("%s: answered %+v, want %d", name, got, tc.want)
		}
	}
}

// TestCompressedBodies: the signature may be over what was compressed, or over what was sent.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	for name, r := range map[string]*request{
		"signed, then compressed": to("/stripe", refund).stripe(time.Now()).zipped(t),
		"compressed, then signed": to("/stripe", refund).zipped(t).stripe(time.Now()),
	} {
		if got := s.send(t, r); got.status != http.StatusOK {
			t.Errorf("%s: answered %+v", name, got)
		}
	}
	all := entries(sink.AllLogs())
	if len(all) != 2 || all[0].Body().Str() != refund || all[1].Body().Str() != refund {
		t.Errorf("%d records", len(all))
	}
	config := testConfig()
	config.ServerConfig.CompressionAlgorithms = []string{""}
	plain := start(t, config, sink)
	if got := plain.send(t, to("/stripe", refund).stripe(time.Now()).zipped(t)); got.status != http.StatusBadRequest {
		t.Errorf("compressed, where it is off: answered %+v", got)
	}
}

// TestAcknowledgedOnlyWhenTaken: until then the sender keeps the delivery.
func TestAcknowledgedOnlyWhenTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want response
	}{
		"taken":            {nil, response{status: http.StatusOK}},
		"not now":          {errors.New("sending queue is full"), response{status: http.StatusServiceUnavailable, retryAfter: "5"}},
		"refused for good": {consumererror.NewPermanent(errors.New("secret of the pipeline")), response{status: http.StatusInternalServerError}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, testConfig(), consumertest.NewErr(tc.err))
			if tc.err == nil {
				s = start(t, testConfig(), consumertest.NewNop())
			}
			if got := s.send(t, to("/stripe", refund).stripe(time.Now())); got != tc.want {
				t.Errorf("answered %+v, want %+v", got, tc.want)
			}
		})
	}
}

// anonymous is the identity of a delivery that has none of its own.
var anonymous = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// TestScopeIsKnown: the exporter believes when a record was received where it is ours.
func TestScopeIsKnown(t *testing.T) {
	t.Parallel()
	if metadata.ScopeName != record.EvidenceScope {
		t.Errorf("the scope is %q, and internal/record knows %q", metadata.ScopeName, record.EvidenceScope)
	}
}

// TestRedeliveryIsTheSameRecord: what is made of a delivery depends on nothing but the delivery.
func TestRedeliveryIsTheSameRecord(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	const unnamed = `[{"n":1},{"n":2},{"n":1}]`
	for range 2 {
		s.send(t, to("/stripe", refund).stripe(time.Now()))
		s.send(t, to("/crm", unnamed).key())
		s.send(t, to("/webhooks/github", refund).github().with("X-GitHub-Delivery", "two\ttabs"))
	}
	var got []string
	for _, entry := range entries(sink.AllLogs()) {
		got = append(got, came(t, entry).ID)
	}
	if len(got) != 10 || !cmp.Equal(got[:5], got[5:]) {
		t.Fatalf("identities %q", got)
	}
	if got[0] != "evt_1" || got[1] == got[2] || got[1] != got[3] || !anonymous.MatchString(got[1]) || !anonymous.MatchString(got[4]) {
		t.Errorf("identities %q", got[:5])
	}
}

func TestSeveralEventsInOneBody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path, body string
		want       []string
	}{
		"array":       {"/crm", `[{"id":"a","type":"x"}, {"id":"b"}]`, []string{`{"id":"a","type":"x"}`, `{"id":"b"}`}},
		"lone object": {"/crm", `{"id":"a","type":"x"}`, []string{`{"id":"a","type":"x"}`}},
		"lines":       {"/lines", "{\"id\":\"a\"}\r\n\n{\"id\":\"b\"}", []string{`{"id":"a"}`, `{"id":"b"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := &consumertest.LogsSink{}
			s := start(t, testConfig(), sink)
			if got := s.send(t, to(tc.path, tc.body).key()); got.status != http.StatusOK {
				t.Fatalf("answered %+v", got)
			}
			var got []string
			ids := ""
			for _, entry := range entries(sink.AllLogs()) {
				got = append(got, entry.Body().Str())
				ids += came(t, entry).ID
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := "ab"[:len(tc.want)]; ids != want {
				t.Errorf("ids %s, want %s", ids, want)
			}
		})
	}
}

// TestD37_SenderCannotWriteOurAttributes: no header becomes an attribute under
// countersign., and only those that are configured become one at all.
func TestD37_SenderCannotWriteOurAttributes(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	s.send(t, to("/webhooks/github", `{"countersign.facts":[],"tenant":"globex"}`).github().
		with("countersign.facts", "x").with("X-GitHub-Hook-Id", "7").with("Tenant", "globex"))
	entry := entries(sink.AllLogs())[0]
	if d := came(t, entry); d.Tenant != "" {
		t.Errorf("tenant %s", d.Tenant)
	}
	entry.Attributes().Remove(delivery.Key)
	want := map[string]any{"http.request.header.x-github-hook-id": []any{"7"}}
	if diff := cmp.Diff(want, entry.Attributes().AsRaw()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBodyThatIsNoTextIsKept(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	s.send(t, to("/webhooks/github", "\xff\x00").github())
	entry := entries(sink.AllLogs())[0]
	if body := entry.Body(); body.Type() != pcommon.ValueTypeBytes || !cmp.Equal(body.Bytes().AsRaw(), []byte{0xff, 0}) {
		t.Errorf("body %v %q", body.Type(), body.AsString())
	}
	came(t, entry)
}

func TestSlackChallengeIsAnswered(t *testing.T) {
	t.Parallel()
	sink := &consumertest.LogsSink{}
	s := start(t, testConfig(), sink)
	got := s.send(t, to("/slack", `{"type":"url_verification","challenge":"3eZbrw1a"}`).slack(time.Now()))
	if want := (response{status: http.StatusOK, body: "3eZbrw1a"}); got != want {
		t.Errorf("answered %+v, want %+v", got, want)
	}
	if n := sink.LogRecordCount(); n != 0 {
		t.Errorf("%d records went on", n)
	}
}

// gate is a pipeline that takes nothing until it is opened.
type gate struct {
	consumertest.LogsSink
	entered, open chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 64), open: make(chan struct{})} }

func (g *gate) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return g.LogsSink.ConsumeLogs(ctx, ld)
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ consumer.Logs = (*gate)(nil)

// TestOverloadIsRefusedAtOnce: memory is bounded by what is served at a time.
func TestOverloadIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate()
	config := testConfig()
	config.MaxConcurrentRequests = 2
	s := start(t, config, g)
	var served sync.WaitGroup
	for range 2 {
		served.Go(func() {
			if got := s.send(t, to("/stripe", refund).stripe(time.Now())); got.status != http.StatusOK {
				t.Errorf("answered %+v", got)
			}
		})
		<-g.entered
	}
	want := response{status: http.StatusServiceUnavailable, retryAfter: "5"}
	if got := s.send(t, to("/stripe", refund).stripe(time.Now())); got != want {
		t.Errorf("answered %+v, want %+v", got, want)
	}
	close(g.open)
	served.Wait()
	if n := g.LogRecordCount(); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// TestShutdownEndsWhatIsServed: what is taken is acknowledged, also while the collector stops.
func TestShutdownEndsWhatIsServed(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := start(t, testConfig(), g)
	answers := make(chan response, 1)
	go func() { answers <- s.send(t, to("/stripe", refund).stripe(time.Now())) }()
	<-g.entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(t.Context()) }()
	close(g.open)
	if got := <-answers; got.status != http.StatusOK {
		t.Errorf("answered %+v", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestShutdownGivesUpWhenItHasTo(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := startWith(t, testConfig(), receivertest.NewNopSettings(metadata.Type), g)
	left := make(chan struct{})
	go func() {
		defer close(left)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r := to("/stripe", refund).stripe(time.Now())
		made, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+s.address+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Error(err)
			return
		}
		made.Header = r.header
		if got, err := client.Do(made); err == nil {
			_ = got.Body.Close()
			t.Errorf("answered %d", got.StatusCode)
		}
	}()
	<-g.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	<-left
}

func TestListenErrorNamesTheSetting(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.ServerConfig.NetAddr.Endpoint = "localhost:-1"
	made, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), config, consumertest.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	err = made.Start(t.Context(), componenttest.NewNopHost())
	if err == nil || !strings.HasPrefix(err.Error(), "endpoint: ") {
		t.Errorf("got %v", err)
	}
}

func TestOwnTelemetry(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig(), &consumertest.LogsSink{})
	now := time.Now()
	for _, r := range []*request{
		to("/stripe", refund).stripe(now), to("/stripe", refund).stripe(now), to("/stripe", refund),
		to("/stripe", refund).stripe(now.Add(-time.Hour)), to("/stripe", refund).with("Stripe-Signature", "?"),
		to("/webhooks/github", refund).with("X-Hub-Signature-256", "sha256=00"),
		to("/crm", "[1,2,3]").key(), to("/crm", "[1").key(), to("/crm", strings.Repeat(" ", 64<<10+1)).key(),
		to("/slack", `{"type":"url_verification","challenge":"x"}`).slack(now),
	} {
		s.send(t, r)
	}
	point := func(n int64, pairs ...string) metricdata.DataPoint[int64] {
		var set []attribute.KeyValue
		for i := 0; i < len(pairs); i += 2 {
			set = append(set, attribute.String(pairs[i], pairs[i+1]))
		}
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(set...)}
	}
	ignore := []metricdatatest.Option{metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()}
	metadatatest.AssertEqualReceiverEvidenceDeliveries(t, s.telemetry, []metricdata.DataPoint[int64]{
		point(2, "endpoint", "stripe", "outcome", "accepted"), point(1, "endpoint", "stripe", "outcome", "unsigned"),
		point(1, "endpoint", "stripe", "outcome", "expired"), point(1, "endpoint", "stripe", "outcome", "malformed_signature"),
		point(1, "endpoint", "github", "outcome", "bad_signature"), point(1, "endpoint", "crm", "outcome", "accepted"),
		point(1, "endpoint", "crm", "outcome", "unreadable"), point(1, "endpoint", "crm", "outcome", "too_large"),
		point(1, "endpoint", "slack", "outcome", "challenge"),
	}, ignore...)
	metadatatest.AssertEqualReceiverEvidenceEvents(t, s.telemetry, []metricdata.DataPoint[int64]{
		point(2, "endpoint", "stripe"), point(3, "endpoint", "crm"),
	}, ignore...)
	metadatatest.AssertEqualReceiverEvidenceSecretUses(t, s.telemetry, []metricdata.DataPoint[int64]{
		point(2, "endpoint", "stripe", "secret", "1"), point(2, "endpoint", "crm", "secret", "0"), point(1, "endpoint", "slack", "secret", "0"),
	}, ignore...)
	duration, err := s.telemetry.GetMetric("otelcol_receiver_evidence_duration")
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := duration.Data.(metricdata.Histogram[float64]); !ok || len(h.DataPoints) != 4 {
		t.Errorf("duration %+v", duration.Data)
	}
}

// TestSealKeyReachesOtherCollectors: with the key, and only with it, another process believes the record.
func TestSealKeyReachesOtherCollectors(t *testing.T) {
	t.Parallel()
	const key = "0123456789abcdef0123456789abcdef"
	sink := &consumertest.LogsSink{}
	config := testConfig()
	config.SealKey = configopaque.String(key)
	start(t, config, sink).send(t, to("/stripe", refund).stripe(time.Now()))
	entry := entries(sink.AllLogs())[0]
	for given, want := range map[string]bool{key: true, "": false} {
		sealer, err := delivery.NewSealer(given)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := sealer.Read(entry); ok != want {
			t.Errorf("key %q: read %t, want %t", given, ok, want)
		}
	}
}
