package web

import (
	"fmt"
	"math/rand/v2"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// hostile is what an agent or a webhook might send to take over the page.
const hostile = `"><script>document.title='taken'</script><img src=x onerror="document.title='taken'"><svg/onload=alert(1)>{{.}}</title></textarea>'` + "`${1}"

// showcase fills a day: three contracts, several agents, every verdict, and the
// stories that the page is there for; busy is how many actions there are beside them. It ends at the moment that it returns.
func (f *fixture) showcase(busy int) engine.Instant {
	f.t.Helper()
	f.library()
	end := start + 22*3600
	f.busyDay(end, busy)
	f.failingRefund(end - 3000)
	f.passingRefund(end - 2400)
	f.overTheLimit(end - 5400)
	f.corrected(end - 7200)
	f.returnedPayout(end - 9000)
	f.ingest(acme, ledger.FactBatch{Facts: []engine.Fact{
		fact("stripe", "refund_created", "order_99001", end-4000, `{"amount": 75, "currency": "USD"}`),
		fact("crm", "note_added", "order_99002", end-2000, `{"author": "unknown"}`),
	}})
	f.record(acme, refund("act_unknown_20514", "order_20514", end-1800, "60"))
	f.verify(end-800, "act_unknown_20514")
	f.openRefunds(end)
	f.at(end)
	return end
}

// busyDay is what mostly happens: most actions pass, some do not.
func (f *fixture) busyDay(end engine.Instant, many int) {
	random := rand.New(rand.NewPCG(1, 2))
	agents := []string{"support-agent", "support-agent", "support-agent", "refund-bot", "refund-bot", "night-shift"}
	var batch ledger.FactBatch
	var actions []engine.Action
	var ids []string
	for i := range many {
		hour := 3.0 + 19*float64(i)/float64(many) + random.Float64()*0.7
		at := end - engine.Instant((22.2-hour)*3600) - 2000
		order := fmt.Sprintf("order_%d", 10300+i)
		a := refund(fmt.Sprintf("act_%05d", 40100+i), order, at, fmt.Sprint(20+random.IntN(200)))
		a.AgentID = agents[random.IntN(len(agents))]
		facts := refundFacts(order, at, fmt.Sprint(20+random.IntN(200)))
		switch n := random.IntN(100); {
		case n < 5:
			facts = without("customer_notified", facts)
		case n < 8:
			facts = without("order_cancelled", facts)
			a.ReportedOutcome = "error"
		case n < 10:
			facts = nil
		}
		batch.Facts = append(batch.Facts, facts...)
		actions, ids = append(actions, a), append(ids, a.ActionID)
	}
	f.ingest(acme, batch)
	f.record(acme, actions...)
	f.verify(end-1000, ids...)
}

// failingRefund is the sight that people come for: reported as a success, and it was none.
func (f *fixture) failingRefund(at engine.Instant) {
	a := refund("act_demo_refund_001", "order_10231", at, "180.0")
	f.record(acme, a)
	f.ingest(acme, ledger.FactBatch{
		Facts: append(without("order_cancelled", refundFacts("order_10231", at, "180.0")),
			fact("shopify", "order_viewed", "order_10231", at+200, `{}`),
			fact("helpdesk", "ticket_opened", "ticket_9", at-240, `{"channel": "whatsapp"}`)),
		Links:      []engine.Link{{SubjectID: "ticket_9", LinkedSubjectID: "order_10231"}},
		Watermarks: map[string]engine.Instant{"stripe": at + 960, "crm": at + 930},
	})
	f.verify(at+60, a.ActionID)
	f.verify(at+905, a.ActionID)
}

func (f *fixture) passingRefund(at engine.Instant) {
	a := refund("act_demo_refund_002", "order_10232", at, "42.50")
	f.record(acme, a)
	f.ingest(acme, ledger.FactBatch{Facts: refundFacts("order_10232", at, "42.50")})
	f.verify(at+50, a.ActionID)
}

// overTheLimit worked, and was not allowed.
func (f *fixture) overTheLimit(at engine.Instant) {
	a := refund("act_demo_refund_003", "order_10233", at, "400")
	facts := refundFacts("order_10233", at, "400")
	facts[0] = fact("shopify", "order_status", "order_10233", at-86400, `{"status": "fulfilled"}`)
	f.record(acme, a)
	f.ingest(acme, ledger.FactBatch{Facts: append(facts, fact("stripe", "refund_created", "order_10233", at+40, `{"amount": 400}`))})
	f.verify(at+60, a.ActionID)
}

// corrected failed, and a second action put it right.
func (f *fixture) corrected(at engine.Instant) {
	f.record(acme, refund("act_demo_refund_004", "order_10234", at, "90"))
	f.ingest(acme, ledger.FactBatch{Facts: without("customer_notified", refundFacts("order_10234", at, "90"))})
	f.verify(at+901, "act_demo_refund_004")
	by := refund("act_demo_refund_005", "order_10234b", at+1200, "90")
	by.Compensates, by.AgentID = "act_demo_refund_004", "repair-agent"
	f.record(acme, by)
	f.ingest(acme, ledger.FactBatch{Facts: refundFacts("order_10234b", at+1200, "90")})
	f.verify(at+1260, "act_demo_refund_005")
}

// returnedPayout passed, and the bank sent the money back.
func (f *fixture) returnedPayout(at engine.Instant) {
	f.record(acme, engine.Action{
		ActionID: "act_payout_7", ContractID: "payout", AgentID: "treasury-agent", SubjectID: "acct_77", SubjectKind: "account", RequestedAt: at,
		ReportedOutcome: "success", Params: params(`{"amount": 1200, "currency": "EUR"}`),
	})
	f.ingest(acme, ledger.FactBatch{Trust: engine.Independent, Facts: []engine.Fact{
		fact("ledger", "account_status", "acct_77", at-9*86400, `{"status": "open", "verified": true}`),
		fact("ledger", "account_balance", "acct_77", at-7200, `{"balance": 9000, "frozen": false}`),
		fact("payments", "payout_created", "acct_77", at+90, `{"amount": 1200, "status": "paid"}`),
		fact("ledger", "account_balance", "acct_77", at+140, `{"balance": 7800, "frozen": false}`),
	}})
	f.verify(at+3600, "act_payout_7")
	f.ingest(acme, ledger.FactBatch{Trust: engine.Independent, Facts: []engine.Fact{fact("payments", "payout_returned", "acct_77", at+7300, `{"reason": "account_closed"}`)}})
	f.verify(at+7310, "act_payout_7")
}

// openRefunds are not final: one in its window, one that waits for a source.
func (f *fixture) openRefunds(end engine.Instant) {
	f.record(acme, refund("act_demo_refund_006", "order_10236", end-240, "75"), refund("act_demo_refund_007", "order_10237", end-1500, "75"))
	f.ingest(acme, ledger.FactBatch{
		Facts: append(without("order_cancelled", without("note_added", without("customer_notified", refundFacts("order_10236", end-240, "75")))),
			without("note_added", refundFacts("order_10237", end-1500, "75"))...),
		Watermarks: map[string]engine.Instant{"crm": end - 700, "stripe": end},
	})
	f.verify(end, "act_demo_refund_006", "act_demo_refund_007")
}
