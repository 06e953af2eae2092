package verifiedactionsreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/history"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadatatest"
)

func point(n int64, pairs ...string) metricdata.DataPoint[int64] {
	var attributes []attribute.KeyValue
	for i := 0; i < len(pairs); i += 2 {
		attributes = append(attributes, attribute.String(pairs[i], pairs[i+1]))
	}
	return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attributes...)}
}

// filling is a storage extension that has no room from some time on.
type filling struct {
	storage.Client
	full atomic.Bool
}

var _ storage.Extension = (*filling)(nil)

func (*filling) Start(context.Context, component.Host) error { return nil }
func (*filling) Shutdown(context.Context) error              { return nil }

func (f *filling) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return f, nil
}

func (f *filling) Batch(ctx context.Context, operations ...*storage.Operation) error {
	for _, op := range operations {
		if op.Type == storage.Set && f.full.Load() {
			return storage.ErrStorageFull
		}
	}
	return f.Client.Batch(ctx, operations...)
}

func TestTelemetry(t *testing.T) {
	t.Parallel()
	reader := componenttest.NewTelemetry()
	t.Cleanup(func() {
		if err := reader.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.TelemetrySettings = reader.NewTelemetrySettings()
	core, logs := observer.New(zap.DebugLevel)
	settings.Logger = zap.New(core)
	disk, id := &filling{Client: history.NewMemory()}, component.MustNewID("disk")
	config, next := testConfig(), newSwitched(consumertest.NewNop())
	config.Storage = &id
	s, err := newServer(settings, config, next)
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return testNow }
	if err := s.Start(context.Background(), host{id: disk}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	a := newSender(t, "http://"+s.listener.Addr().String())

	wires := a.chain("a", 4)
	a.batch(wires[0], wires[0], wires[1], tampered(wires[2]), []byte("x"))
	a.batch(wires[3], []byte("x"))
	a.get("/v1/receipts/verify/a-1")
	a.post(receiptPath, nil, nil)
	a.post(actionsPath, []byte(bareActions), bearer(testToken))
	a.post(actionsPath, []byte(`{"actions":[`+badAction+`]}`), bearer(testToken))
	next.to(consumertest.NewErr(errors.New("down")))
	a.single(a.chain("b", 1)[0])
	next.to(consumertest.NewNop())
	disk.full.Store(true)
	a.single(a.chain("c", 1)[0])

	metadatatest.AssertEqualReceiverVerifiedActionsReceipts(t, reader, []metricdata.DataPoint[int64]{
		point(4, "outcome", "created"), point(1, "outcome", "duplicate"), point(1, "outcome", "bad_signature"),
		point(1, "outcome", "malformed"), point(1, "outcome", "refused_before"), point(1, "outcome", "failed"),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualReceiverVerifiedActionsChain(t, reader, []metricdata.DataPoint[int64]{
		point(2, "chain_status", "anchor"), point(1, "chain_status", "linked"), point(1, "chain_status", "gap"),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualReceiverVerifiedActionsActions(t, reader, []metricdata.DataPoint[int64]{
		point(2, "outcome", "accepted"), point(1, "outcome", "invalid"),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualReceiverVerifiedActionsHistoryErrors(t, reader, []metricdata.DataPoint[int64]{point(1)}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualReceiverVerifiedActionsRequests(t, reader, []metricdata.DataPoint[int64]{
		point(2, "route", batchPath, "outcome", "accepted"), point(1, "route", verifyPath, "outcome", "accepted"),
		point(1, "route", receiptPath, "outcome", "unauthorized"), point(1, "route", receiptPath, "outcome", "busy"),
		point(1, "route", receiptPath, "outcome", "accepted"), point(1, "route", actionsPath, "outcome", "accepted"),
		point(1, "route", actionsPath, "outcome", "malformed"),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	got, err := reader.GetMetric("otelcol_receiver_accepted_spans")
	if err != nil {
		t.Fatal(err)
	}
	var accepted int64
	for _, p := range got.Data.(metricdata.Sum[int64]).DataPoints {
		accepted += p.Value
	}
	if accepted != 6 {
		t.Errorf("%d spans are reported as accepted", accepted)
	}
	for _, entry := range logs.All() {
		if entry.Level >= zap.WarnLevel && entry.Message != "receipts were taken but could not be remembered: their chain will read as a gap" {
			t.Errorf("logged %s", entry.Message)
		}
	}
	for _, span := range reader.SpanRecorder.Started() {
		if span.EndTime().IsZero() {
			t.Errorf("the operation %s does not end", span.Name())
		}
	}
}
