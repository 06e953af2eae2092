package ledgertest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/ledger"
)

// snapshot is that of one action under its own contract.
func (b *bundle) snapshot(ref string) (snapshot *engine.Snapshot) {
	b.t.Helper()
	action := b.action(ref)
	c := b.contractOf(action.Action.ContractID)
	b.view(func(tx ledger.Tx) (err error) {
		snapshot, err = tx.Snapshot(b.t.Context(), acme, c, []string{action.ClaimID}, nil)
		return err
	})
	return snapshot
}

// judge evaluates actions in the store and in Go, which must agree (decision D23).
func (b *bundle) judge(c *contract.Contract, unavailable []string, actionIDs ...string) map[string]engine.Evaluation {
	b.t.Helper()
	ids := []string{"clm_unknown"}
	for _, id := range actionIDs {
		ids = append(ids, engine.ClaimID(acme, id))
	}
	found := map[string]engine.Evaluation{}
	b.view(func(tx ledger.Tx) error {
		judged, err := tx.Evaluate(b.t.Context(), acme, c, ids, unavailable)
		if err != nil {
			return err
		}
		snapshot, err := tx.Snapshot(b.t.Context(), acme, c, ids, unavailable)
		if err != nil {
			return err
		}
		derived := goeval.Evaluate(c, snapshot)
		wantSame(b.t, "evaluated", [2]int{len(judged), len(derived)}, [2]int{len(actionIDs), len(actionIDs)})
		for _, e := range judged {
			found[e.ActionID] = e
		}
		for _, e := range derived {
			if differences := goeval.Differences(c, found[e.ActionID], e); len(differences) > 0 {
				b.t.Errorf("evaluators disagree on %s:\n%s", e.ActionID, strings.Join(differences, "\n"))
			}
		}
		return nil
	})
	return found
}

func verdict(e engine.Evaluation) string {
	return string(e.Outcome.Raw) + " / " + string(e.Policy.Raw) + " " + strings.Join(e.Policy.Reasons, ",")
}

func exerciseEvaluation(t *testing.T, open opener) {
	t.Run("D23_StoreAndGoAgree", func(t *testing.T) {
		b := setup(t, open)
		c := b.contractOf("refund")
		paid := func(id, subject, amount string) engine.Action {
			a := act(id, subject)
			a.Params, a.AgentID = params(t, `{"amount": `+amount+`}`), "bot"
			return a
		}
		b.record(paid("good", "order_1", "180.0"), paid("large", "order_2", "251"), paid("twice", "order_3", `"180"`), paid("silent", "order_4", "1"), act("linked", "order_5"))
		at := func(ref, source, factType, subject string, seconds engine.Instant, attributes string) engine.Fact {
			return fact(t, ref, source, factType, subject, noon+seconds, attributes)
		}
		b.ingest(noon,
			at("s1", "shopify", "order_status", "order_1", 0, `{"status":"Eligible"}`), at("r1", "stripe", "refund_created", "order_1", 7, `{"amount":180.00}`), at("n1", "crm", "note_added", "order_1", 900, `{}`),
			at("s2", "shopify", "order_status", "order_2", 0, `{"status":"eligible"}`), at("r2", "stripe", "refund_created", "order_2", 7, `{"amount":251}`), at("n2", "crm", "note_added", "order_2", 1, `{}`),
			at("s3", "shopify", "order_status", "order_3", 0, `{"status":"shipped"}`), at("r3", "stripe", "refund_created", "order_3", 7, `{"amount":180.0}`), at("r3b", "stripe", "refund_created", "order_3", 8, `{"amount":180.0}`), at("n3", "crm", "note_added", "order_3", 901, `{}`),
			at("s5", "shopify", "order_status", "ticket_5", 0, `{"status":"eligible"}`), at("r5", "stripe", "refund_created", "ticket_5", 7, `{"amount":0.1}`), at("n5", "crm", "note_added", "order_5", 1, `{}`))
		b.link(noon, "order_5", "ticket_5")
		found := b.judge(c, nil, "good", "large", "twice", "silent", "linked")
		got := map[string]string{}
		for id, e := range found {
			got[id] = verdict(e)
		}
		// bot's refunds within the day are 180 + 251 + 180 + 180 = 791, above 500.
		wantSame(t, "verdicts", got, map[string]string{
			"good":   "VERIFIED / NOT_VERIFIED aggregate_exceeded:stripe.refund_created.amount",
			"large":  "VERIFIED / NOT_VERIFIED limit_exceeded:amount,aggregate_exceeded:stripe.refund_created.amount",
			"twice":  "NOT_VERIFIED / NOT_VERIFIED precondition_unmet:shopify.order_status,aggregate_exceeded:stripe.refund_created.amount,duplicate_effect:stripe.refund_created",
			"silent": "UNVERIFIABLE / UNVERIFIABLE identity_unmatched",
			"linked": "VERIFIED / VERIFIED effect_observed:stripe.refund_created,effect_observed:crm.note_added",
		})
		wantSame(t, "unavailable", verdict(b.judge(c, []string{"stripe"}, "linked")["linked"]), "UNVERIFIABLE / UNVERIFIABLE missing_fact_source")
	})

	t.Run("D17_PeersOfEveryVersionWithinReach", func(t *testing.T) {
		b := setup(t, open)
		requested := func(id, subject string, at engine.Instant) engine.Action {
			a := act(id, subject)
			a.RequestedAt = at
			return a
		}
		day := 24 * engine.Hour
		b.record(requested("first", "order_1", noon.Sub(day)), requested("too_early", "order_1", noon.Sub(day)-1), requested("last", "order_1", noon.Add(15*engine.Minute)), requested("too_late", "order_1", noon.Add(15*engine.Minute)+1))
		second := parse(t, bytes.Replace(version(t, "refund", 2).Document, []byte("max: 500"), []byte("max: 900"), 1))
		b.publish(second, version(t, "refund_other", 1))
		foreign := requested("foreign", "order_1", noon)
		foreign.ContractID = "refund_other"
		b.record(requested("judged", "order_2", noon), foreign)
		snapshot := b.snapshot("judged")
		var peers []string
		for _, p := range snapshot.Peers {
			peers = append(peers, p.ActionID)
		}
		wantSame(t, "peers", peers, []string{"first", "judged", "last"})
	})

	t.Run("SnapshotHoldsNothingForeign", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.recordFor(other, noon, false, act("a", "order_1"))
		b.ingest(noon, b.fact("n1", "crm", "note_added", "order_1", noon), b.fact("n2", "crm", "note_added", "order_2", noon))
		b.ingestBatch(other, noon, ledger.FactBatch{
			Facts: []engine.Fact{b.fact("n3", "shopify", "order_status", "order_1", noon)},
			Links: []engine.Link{{SubjectID: "order_1", LinkedSubjectID: "order_2"}},
		})
		snapshot := b.snapshot("a")
		wantSame(t, "actions", [2]int{len(snapshot.Actions), len(snapshot.Peers)}, [2]int{1, 1})
		wantSame(t, "subjects", snapshot.Subjects("order_1"), []string{"order_1"})
		wantSame(t, "facts", rawRefs(snapshot.Facts["order_1"]), []string{"n1"})
		wantSame(t, "sources", len(snapshot.Sources), 1)
	})
}
