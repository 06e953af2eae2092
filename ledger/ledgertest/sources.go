package ledgertest

import (
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) connections() (found []engine.Connection) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		found, err = tx.Connections(b.t.Context(), acme)
		return err
	})
	return found
}

func (b *bundle) setConnection(now engine.Instant, setting ledger.ConnectionSetting) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.SetConnection(b.t.Context(), acme, setting, now) })
}

func exerciseSources(t *testing.T, open opener) {
	t.Run("D10_TrustIsTheConnections", func(t *testing.T) {
		b := setup(t, open)
		agent := b.fact("s1", "otel", "agent_action", "order_1", noon)
		b.ingest(noon, b.fact("re_1", "stripe", "refund_created", "order_1", noon), agent)
		b.ingestBatch(acme, noon, ledger.FactBatch{
			Facts:      []engine.Fact{b.fact("re_2", "stripe", "refund_created", "order_1", noon)},
			Connection: "webhook", Trust: engine.Independent,
		})
		// A connection keeps the trust with which it was made.
		b.ingestBatch(acme, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("re_3", "stripe", "refund_created", "order_1", noon)}, Trust: engine.Independent})
		wantSame(t, "connections", b.connections(), []engine.Connection{
			{Source: "otel", Trust: engine.SelfReported, Delivered: true},
			{Source: "stripe", Trust: engine.Shared, Delivered: true},
			{Source: "stripe", Name: "webhook", Trust: engine.Independent, Delivered: true},
		})
	})

	t.Run("D12_WatermarksMoveForwardOnly", func(t *testing.T) {
		b := setup(t, open)
		declare := func(at engine.Instant) {
			b.ingestBatch(acme, noon, ledger.FactBatch{Watermarks: map[string]engine.Instant{"crm": at}, Trust: engine.Shared})
		}
		want := func(at engine.Instant) {
			t.Helper()
			wantSame(t, "connections", b.connections(), []engine.Connection{{Source: "crm", Trust: engine.Shared, Watermark: &at}})
		}
		declare(noon)
		want(noon)
		declare(noon - 10)
		want(noon)
		declare(noon + 10)
		want(noon + 10)
		older, newer := noon, noon+20
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Watermark: &older})
		want(noon + 10)
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Watermark: &newer})
		want(noon + 20)
	})

	t.Run("SettingsLeaveTheRest", func(t *testing.T) {
		b := setup(t, open)
		healthy, failing, none := engine.Healthy, engine.Failing, engine.NoHealth
		independent, override, skew, watermark := engine.Independent, engine.Shared, 5*engine.Second, noon
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Name: "poll", Health: &healthy, Trust: &independent, Override: &override, ClockSkew: &skew, Watermark: &watermark})
		want := engine.Connection{Source: "crm", Name: "poll", Health: healthy, Trust: independent, Override: override, ClockSkew: skew, Watermark: &watermark}
		wantSame(t, "all set", b.connections(), []engine.Connection{want})
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Name: "poll"})
		wantSame(t, "nothing set", b.connections(), []engine.Connection{want})
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Name: "poll", Health: &failing})
		want.Health = failing
		wantSame(t, "health set", b.connections(), []engine.Connection{want})
		lifted := engine.UnknownTrust
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Name: "poll", Health: &none, Override: &lifted})
		want.Health, want.Override = none, lifted
		wantSame(t, "health and override taken back", b.connections(), []engine.Connection{want})
		b.ingestBatch(acme, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("n1", "crm", "note_added", "order_1", noon)}, Connection: "poll", Trust: engine.Shared})
		want.Delivered = true
		wantSame(t, "delivered", b.connections(), []engine.Connection{want})
	})

	t.Run("D10_AgentSourceStaysSelfReported", func(t *testing.T) {
		b := setup(t, open)
		independent := engine.Independent
		b.setConnection(noon, ledger.ConnectionSetting{Source: engine.AgentSource, Trust: &independent})
		wantSame(t, "connections", b.connections(), []engine.Connection{{Source: "otel", Trust: engine.SelfReported}})
	})
}
