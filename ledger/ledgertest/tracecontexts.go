package ledgertest

import (
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

const trace = "0af7651916cd43dd8448eb211c80319c"

func (b *bundle) contexts(now engine.Instant, contexts ...ledger.TraceContext) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.RecordTraceContexts(b.t.Context(), acme, contexts, now) })
}

// span is an agent-like span of the trace.
func span(id string, start, end int64, agent, session string) ledger.TraceContext {
	return ledger.TraceContext{TraceID: trace, SpanID: id, StartNanos: start, EndNanos: end, Agent: agent, Session: session}
}

// started is an action whose span started at a nanosecond.
func started(id string, nanos int64) ledger.RecordRequest {
	a := act(id, "order_1")
	a.TraceID = trace
	return ledger.RecordRequest{Action: a, StartedNanos: nanos, Verify: true}
}

func (b *bundle) who(ref string) [2]string {
	b.t.Helper()
	a := b.action(ref).Action
	return [2]string{a.AgentID, a.SessionID}
}

func exerciseTraceContexts(t *testing.T, open opener) {
	outer, inner := span("01", 100, 900, "outer", "s-outer"), span("02", 200, 300, "inner", "")
	later, foreign := span("03", 400, 500, "later", "s-later"), ledger.TraceContext{TraceID: "1" + trace[1:], SpanID: "04", StartNanos: 240, EndNanos: 260, Agent: "foreign", Session: "foreign"}
	want := [2]string{"inner", "s-outer"}

	t.Run("D31_ContextFirst", func(t *testing.T) {
		b := setup(t, open)
		b.contexts(noon, outer, inner, later, foreign)
		got := b.recordItems(acme, noon, started("a", 250))
		wantSame(t, "recorded", [2]string{got[0].Action.AgentID, got[0].Action.SessionID}, want)
		wantSame(t, "stored", b.who("a"), want)
	})

	t.Run("D31_ActionFirst", func(t *testing.T) {
		b := setup(t, open)
		b.recordItems(acme, noon, started("a", 250))
		b.contexts(noon, foreign, later)
		wantSame(t, "not yet", b.who("a"), [2]string{})
		b.contexts(noon, outer)
		wantSame(t, "outer", b.who("a"), [2]string{"outer", "s-outer"})
		b.contexts(noon, inner)
		wantSame(t, "inner", b.who("a"), want)
	})

	t.Run("D31_OrderOfArrivalChangesNothing", func(t *testing.T) {
		b := setup(t, open)
		b.contexts(noon, inner)
		b.recordItems(acme, noon, started("a", 250))
		b.contexts(noon, later, outer)
		wantSame(t, "stored", b.who("a"), want)
	})

	t.Run("D31_IntervalIsClosedAndTiesAreBySpan", func(t *testing.T) {
		b := setup(t, open)
		b.contexts(noon, span("0a", 100, 200, "low", ""), span("0b", 100, 200, "high", ""))
		b.recordItems(acme, noon, started("start", 100), started("end", 200), started("before", 99), started("after", 201))
		wantSame(t, "at the start", b.who("start")[0], "high")
		wantSame(t, "at the end", b.who("end")[0], "high")
		wantSame(t, "before", b.who("before")[0], "")
		wantSame(t, "after", b.who("after")[0], "")
	})

	t.Run("D31_SentWins", func(t *testing.T) {
		b := setup(t, open)
		b.contexts(noon, outer)
		sent := started("a", 250)
		sent.Action.AgentID = "bot"
		b.recordItems(acme, noon, sent, started("b", 250))
		wantSame(t, "sent with the record", b.who("a"), [2]string{"bot", "s-outer"})
		sent.Action.ActionID = "b"
		b.recordItems(acme, noon, sent)
		b.contexts(noon, inner)
		wantSame(t, "sent with an update", b.who("b"), [2]string{"bot", "s-outer"})
		b.recordItems(acme, noon, started("b", 250))
		wantSame(t, "not sent again", b.who("b"), [2]string{"bot", "s-outer"})
	})

	t.Run("D31_FirstUnderASpanIdStands", func(t *testing.T) {
		b := setup(t, open)
		b.contexts(noon, outer)
		b.contexts(noon, span("01", 100, 900, "forged", "forged"), span("05", 100, 100, "x", ""), span("05", 100, 900, "y", ""))
		b.recordItems(acme, noon, started("a", 250))
		wantSame(t, "stored", b.who("a"), [2]string{"outer", "s-outer"})
	})

	t.Run("D31_MakesDueWhatIsVerifiedOrDue", func(t *testing.T) {
		b := setup(t, open)
		quiet := started("quiet", 250)
		quiet.Verify = false
		settled := started("settled", 250)
		b.recordItems(acme, noon, quiet, settled, started("pending", 250))
		b.settle(engine.ClaimID(acme, "settled"), ledger.Settled, engine.Verified, noon)
		b.settle(engine.ClaimID(acme, "pending"), ledger.Pending, engine.NotVerified, noon)
		b.contexts(noon+5, outer)
		b.wantDue("quiet", notDue)
		b.wantDue("settled", notDue)
		b.wantDue("pending", (noon + 5).String())
		wantSame(t, "quiet", b.who("quiet"), [2]string{"outer", "s-outer"})
		wantSame(t, "settled", b.who("settled"), [2]string{})
		b.settle(engine.ClaimID(acme, "pending"), ledger.Pending, engine.NotVerified, noon+6)
		b.contexts(noon+7, outer, later)
		b.wantDue("pending", (noon + 6).Add(engine.Minute).String()) // nothing changed
	})

	t.Run("TenantsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		b.recordItems(other, noon, started("a", 250))
		b.contexts(noon, outer)
		b.update(func(tx ledger.Tx) error {
			found, err := tx.Actions(t.Context(), other, []string{"a"})
			if err == nil {
				wantSame(t, "agent", found[0].Action.AgentID, "")
			}
			return err
		})
	})
}
