package web

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// drawn is the timeline of an action as the page draws it.
func drawn(t *testing.T, f *fixture, actionID, scale string) (*timeline, view.Verification) {
	t.Helper()
	var made *timeline
	var verification view.Verification
	err := f.store.View(t.Context(), func(tx ledger.Tx) (err error) {
		actions, err := tx.Actions(t.Context(), acme, []string{actionID})
		if err != nil {
			return err
		}
		a := found{stored: actions[0]}
		if a.runs, err = tx.Runs(t.Context(), acme, a.stored.ClaimID); err != nil {
			return err
		}
		if a.contract, err = f.page.Contracts.Get(t.Context(), tx, ledger.ContractRef{ID: a.stored.Action.ContractID, Version: a.stored.Action.ContractVersion}); err != nil {
			return err
		}
		if err := a.findFacts(t.Context(), tx, acme); err != nil {
			return err
		}
		if verification, err = view.Make(view.Parts{Stored: a.stored}); err != nil {
			return err
		}
		made = drawTimeline(a, verification, f.now(), scale, wideMeasures)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return made, verification
}

func (d *timeline) lane(t *testing.T, label string) lane {
	t.Helper()
	for _, l := range d.Lanes {
		if l.Label == label {
			return l
		}
	}
	t.Fatalf("no lane %q in %+v", label, d.Lanes)
	return lane{}
}

func (d *timeline) at(t *testing.T, class string) float64 {
	t.Helper()
	for _, l := range d.Lines {
		if l.Class == class {
			return l.X
		}
	}
	t.Fatalf("no line %q in %+v", class, d.Lines)
	return 0
}

func TestTimelineIsToScale(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.failingRefund(start)
	d, _ := drawn(t, f, "act_demo_refund_001", "window")
	request, close := d.at(t, "request"), d.at(t, "close")
	unit := (close - request) / 900 // fifteen minutes
	for label, seconds := range map[string]float64{
		"stripe refund_created": 7, "crm note_added": 33, "messaging customer_notified": 48, "shopify order_status (status = eligible)": -30,
	} {
		m := d.lane(t, clip(36, label)).Marks[0]
		if got := (m.X - request) / unit; math.Abs(got-seconds) > 0.1 {
			t.Errorf("%s stands at %.2f seconds, want %.0f", label, got, seconds)
		}
	}
	settled := d.at(t, "settled fail")
	if got := (settled - request) / unit; math.Abs(got-905) > 0.1 {
		t.Errorf("settled stands at %.2f seconds, want 905", got)
	}
	missing := d.lane(t, "shopify order_cancelled")
	gap := missing.Bars[len(missing.Bars)-1]
	if gap.Class != "gap missing" || gap.Text != "expected, not seen" || math.Abs(gap.X-request) > 0.1 || math.Abs(gap.X+gap.Width-close) > 0.1 {
		t.Errorf("the gap is %+v, want the window from %.2f to %.2f", gap, request, close)
	}
	if missing.State != "failed" || len(missing.Marks) != 0 {
		t.Errorf("the lane of what is missing: %+v", missing)
	}
	stripe := d.lane(t, "stripe, shared").Marks[0]
	if got := (stripe.X - request) / unit; math.Abs(got-960) > 0.1 {
		t.Errorf("the watermark of stripe stands at %.2f seconds, want 960", got)
	}
	if l := d.lane(t, "shopify, shared"); l.Bars[0].Class != "current" {
		t.Errorf("a source without a watermark: %+v", l)
	}
	if l := d.lane(t, "other records of the subject"); len(l.Marks) != 2 {
		t.Errorf("other records: %+v", l.Marks)
	}
}

func TestTimelineChoosesWhatHappened(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.passingRefund(start)
	d, _ := drawn(t, f, "act_demo_refund_002", "")
	if len(d.Scales) != 2 || !d.Scales[1].Current {
		t.Fatalf("an early PASS is drawn over the whole window: %+v", d.Scales)
	}
	if request, last := d.at(t, "request"), d.lane(t, "messaging customer_notified").Marks[0].X; last-request < 300 {
		t.Errorf("what happened takes %.0f of %.0f", last-request, d.Right-d.Left)
	}
	if len(d.Gutters) != 1 || d.Gutters[0].Text != "later" || d.at(t, "close") < d.Gutters[0].X {
		t.Errorf("the close of the window is not in a gutter: %+v", d.Gutters)
	}
	whole, _ := drawn(t, f, "act_demo_refund_002", "window")
	if !whole.Scales[0].Current || len(whole.Gutters) != 0 {
		t.Errorf("asked for the window: %+v %+v", whole.Scales, whole.Gutters)
	}
}

func TestTimelineOfAReversal(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.returnedPayout(start)
	d, _ := drawn(t, f, "act_payout_7", "")
	if d.at(t, "reversal") <= d.at(t, "close") {
		t.Error("the reversal does not stand after the window")
	}
	l := d.lane(t, "payments payout_returned")
	if l.State != "failed" || l.Marks[0].Class != "bad" {
		t.Errorf("the lane of the reversal: %+v", l)
	}
	var words []string
	for _, e := range d.Events {
		words = append(words, e.Offset+" "+e.Text)
	}
	want := []string{
		"−9d ledger account_status", "−2h ledger account_balance", "±0s the agent requested it", "+1m payments payout_created", "+2m ledger account_balance",
		"+1h the window closed", "+2h 1m payments payout_returned", "+2h 1m the verdict settled: FAIL",
	}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("in words (-want +got):\n%s", diff)
	}
}

func TestTimelineOfAnOpenWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.openRefunds(start)
	d, _ := drawn(t, f, "act_demo_refund_006", "")
	now := d.at(t, "now")
	l := d.lane(t, "crm note_added")
	gap := l.Bars[len(l.Bars)-1]
	if gap.Class != "gap awaited" || math.Abs(gap.X-now) > 0.1 || l.State != "awaited" {
		t.Errorf("what is awaited begins at %.1f, now is %.1f: %+v", gap.X, now, l)
	}
}

// However far moments lie apart, each has a place on the drawing, in order.
func TestAxisKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		moments := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, int64(engine.MaxInstant)), func(n int64) engine.Instant { return engine.Instant(n) }), 1, 40).Draw(t, "moments")
		e := newExtent(moments[0])
		for _, at := range moments[:rapid.IntRange(1, len(moments)).Draw(t, "to scale")] {
			e.include(at)
		}
		a := newAxis(e.padded(), moments, 300, 1084, 92)
		for _, one := range moments {
			x := a.x(one)
			if x < 300 || x > 1084 || math.IsNaN(x) {
				t.Fatalf("%d stands at %f", one, x)
			}
			for _, other := range moments {
				if one < other && a.x(other) < x {
					t.Fatalf("%d stands at %f, %d at %f", one, x, other, a.x(other))
				}
			}
			if c := a.clamped(one); c < 300 || c > 1084 {
				t.Fatalf("%d is clamped to %f", one, c)
			}
		}
		if n := len(a.ticks(8)); n > 10 {
			t.Fatalf("%d ticks", n)
		}
	})
}

func TestContractTextLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	for _, id := range []string{"refund_workflow", "payout", "close_ticket"} {
		var c *contract.Contract
		err := f.store.View(t.Context(), func(tx ledger.Tx) (err error) {
			c, err = f.page.Contracts.Get(t.Context(), tx, ledger.ContractRef{ID: id})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		text := textOf(c)
		var headings []string
		lines := 0
		for _, p := range text.Parts {
			if p.Heading != "" {
				headings = append(headings, p.Heading)
				lines++
			}
			lines += len(p.Paragraphs) + len(p.Items) + len(p.After)
			for _, i := range p.Items {
				if i.Message != "" {
					lines++
				}
			}
		}
		want := 0
		for _, line := range nonEmpty(contract.Explain(c)) {
			_ = line
			want++
		}
		if lines != want-2 { // the name and the version stand in the page's title
			t.Errorf("%s: %d of %d lines", id, lines, want-2)
		}
		if len(headings) < 4 || headings[0] != "Who, what, when" || headings[len(headings)-1] != "The verdicts" {
			t.Errorf("%s: headings %q", id, headings)
		}
	}
}
