package ledgertest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) setSource(now engine.Instant, setting ledger.SourceSetting) (set ledger.SourceSet) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		set, err = ledger.SetSource(b.t.Context(), tx, acme, setting, now)
		return err
	})
	return set
}

// under is a contract that expects one effect, and nothing else.
func under(t *testing.T, id, effect, rest string) *contract.Contract {
	t.Helper()
	head, _, _ := bytes.Cut(refundYAML, []byte("action:\n"))
	head = bytes.Replace(head, []byte("id: refund\n"), []byte("id: "+id+"\n"), 1)
	return parse(t, append(head, "action:\n  expected_effects:\n    - effect_observed: "+effect+"\n"+rest...))
}

func exerciseSettings(t *testing.T, open opener) {
	shared, independent, none := engine.Shared, engine.Independent, engine.UnknownTrust
	skew, exact := 30*engine.Second, 0*engine.Second

	t.Run("D10_D29_OfTheSourceWhateverDelivers", func(t *testing.T) {
		b := setup(t, open)
		webhook := engine.Connection{Source: "stripe", Name: "webhook", Trust: independent, Delivered: true}
		b.ingestBatch(acme, noon, ledger.FactBatch{
			Facts:      []engine.Fact{b.fact("re_1", "stripe", "refund_created", "order_1", noon)},
			Connection: "webhook", Trust: independent,
		})
		word := engine.Connection{Source: "stripe", Override: shared, ClockSkew: skew}
		set := b.setSource(noon, ledger.SourceSetting{Source: "stripe", Trust: &shared, ClockSkew: &skew})
		wantSame(t, "set", set, ledger.SourceSet{
			Before: ledger.SourceState{Source: engine.Source{Name: "stripe", Trust: independent, Present: true}, Connections: []engine.Connection{webhook}},
			After: ledger.SourceState{
				Source:      engine.Source{Name: "stripe", Trust: shared, Override: shared, Present: true, ClockSkew: skew},
				Connections: []engine.Connection{word, webhook},
			},
		})
		set = b.setSource(noon, ledger.SourceSetting{Source: "stripe", Trust: &none, ClockSkew: &exact})
		wantSame(t, "taken back", set.After.Source, engine.Source{Name: "stripe", Trust: independent, Present: true})
		b.ingest(noon, b.fact("re_2", "stripe", "refund_created", "order_1", noon))
		wantSame(t, "pushed later on", b.connections(), []engine.Connection{{Source: "stripe", Trust: shared, Delivered: true}, webhook})
	})

	t.Run("D11_HealthOfAConnection", func(t *testing.T) {
		b := setup(t, open)
		healthy, failing, silent := engine.Healthy, engine.Failing, engine.NoHealth
		set := func(health *engine.Health) bool {
			return b.setSource(noon, ledger.SourceSetting{Source: "crm", Connection: "poll", Health: health}).After.Present
		}
		wantSame(t, "healthy before the first fact", set(&healthy), true)
		b.setSource(noon, ledger.SourceSetting{Source: "crm", Trust: &shared})
		b.ingestBatch(acme, noon, ledger.FactBatch{
			Facts: []engine.Fact{b.fact("n1", "crm", "note_added", "order_1", noon)}, Connection: "poll", Trust: independent,
		})
		wantSame(t, "the only provider is in error", set(&failing), false)
		wantSame(t, "taken back", set(&silent), true)
	})

	t.Run("WakesWhatReadsTheSource", func(t *testing.T) {
		b := setup(t, open)
		b.publish(
			under(t, "any", "{type: refund_created}", ""), under(t, "far", "{source: bank, type: paid}", ""),
			under(t, "needs", "{source: bank, type: paid}", "  unverifiable_if: {missing_fact_source: [stripe]}\n"),
		)
		later := noon.Add(engine.Minute).String()
		reads := b.waiting("reads", "order_1")
		for _, id := range []string{"any", "far", "needs"} {
			a := act(id, "order_1")
			a.ContractID = id
			b.record(a)
			due := b.leaseDue(owner, noon)
			run := runOf(&due[0], due[0].ClaimID, ledger.Pending, engine.NotVerified, engine.NotVerified, noon)
			run.Contract = due[0].Contract
			b.storeRuns(run)
		}
		b.done("settled", "order_1")
		b.record(act("broken", "order_2"))
		b.park(noon, ledger.Parked{Due: b.leaseDue(owner, noon)[0], Error: "evaluators disagree"})
		b.update(func(tx ledger.Tx) error {
			_, err := ledger.SetSource(t.Context(), tx, other, ledger.SourceSetting{Source: "stripe", ClockSkew: &skew}, noon+5)
			return err
		})
		b.wantDue("reads", later)

		wantSame(t, "woken", b.setSource(noon+5, ledger.SourceSetting{Source: "stripe", ClockSkew: &skew}).Woken, 4)
		for id, due := range map[string]string{
			"reads": (noon + 5).String(), "any": (noon + 5).String(), "needs": (noon + 5).String(), "broken": (noon + 5).String(), "far": later, "settled": notDue,
		} {
			b.wantDue(id, due)
		}
		wantSame(t, "why", b.triggers(noon + 5)[reads], "recheck")
		wantSame(t, "again", b.setSource(noon+6, ledger.SourceSetting{Source: "stripe", ClockSkew: &skew}).Woken, 0)
		b.settle(reads, ledger.Pending, engine.NotVerified, noon)
		b.setSource(noon+7, ledger.SourceSetting{Source: "stripe", Trust: &independent})
		b.wantDue("reads", (noon + 7).String())
	})

	t.Run("LeasedWorkStaysDue", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		due := b.leaseDue(owner, noon)
		b.setSource(noon+5, ledger.SourceSetting{Source: "stripe", ClockSkew: &skew})
		b.storeRuns(runOf(&due[0], due[0].ClaimID, ledger.Pending, engine.NotVerified, engine.NotVerified, noon))
		b.wantDue("a", (noon + 5).String())
	})

	t.Run("Refusals", func(t *testing.T) {
		b := setup(t, open)
		b.setConnection(noon, ledger.ConnectionSetting{Source: "crm", Name: "poll", Override: &shared, ClockSkew: &skew})
		before, most, less := -engine.Second, ledger.MostClockSkew+1, skew-1
		healthy, silent := engine.Healthy, engine.NoHealth
		for _, refused := range []struct {
			setting ledger.SourceSetting
			want    string
		}{
			{ledger.SourceSetting{Source: "My Bank", Trust: &shared}, `cannot set the source: invalid identifier "My Bank": write a letter, then letters, digits or _ . : -, at most 64 in all`},
			{ledger.SourceSetting{Source: engine.AgentSource, Trust: &independent}, "cannot set the source: otel is what agents tell of themselves, and stays self_reported whatever is set"},
			{ledger.SourceSetting{Source: "crm", ClockSkew: &before}, "cannot set the source: a clock skew is from 0s to 1h, and -1s is not; what is off by more is in another time zone: have the source send its times with their offset"},
			{ledger.SourceSetting{Source: "crm", ClockSkew: &most}, "cannot set the source: a clock skew is from 0s to 1h, and 3601s is not; what is off by more is in another time zone: have the source send its times with their offset"},
			{ledger.SourceSetting{Source: "crm", Connection: "a\nb", Health: &healthy}, `cannot set the source: invalid id: connection has the control character U+000A`},
			{ledger.SourceSetting{Source: "crm", Connection: "pol", Health: &silent}, `cannot set the source: crm has no connection "pol", so that no health of it can be taken back; countersign sources list shows its connections`},
			{ledger.SourceSetting{Source: "crm", Health: &silent}, `cannot set the source: crm has no connection of pushed facts, so that no health of it can be taken back; countersign sources list shows its connections`},
			{ledger.SourceSetting{Source: "cmr", Trust: &none, ClockSkew: &exact}, `cannot set the source: nothing is known of cmr, so that nothing can be taken back; countersign sources list shows the sources`},
			{ledger.SourceSetting{Source: "crm", Trust: &independent}, `cannot set the source: the connection "poll" overrides its trust as shared, and the lower of two holds; have the program that set it take it back`},
			{ledger.SourceSetting{Source: "crm", ClockSkew: &less}, `cannot set the source: the connection "poll" has a clock skew of 30s, and the larger of two holds; have the program that set it take it back`},
		} {
			err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
				_, err := ledger.SetSource(t.Context(), tx, acme, refused.setting, noon)
				return err
			})
			if !errors.Is(err, ledger.ErrSetting) || err.Error() != refused.want {
				t.Errorf("%v, want %s", err, refused.want)
			}
		}
		wantSame(t, "nothing is stored", len(b.connections()), 1)
	})
}
