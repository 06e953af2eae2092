package ledger

import (
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
)

// TestRejectedBudget: a thousand of a source at once, then one every ten
// seconds, each source for itself, and none of it lost from the count.
func TestRejectedBudget(t *testing.T) {
	t.Parallel()
	const noon engine.Instant = 1790596800
	var b RejectedBudget
	bound := func(source string, n int, at engine.Instant) (shown, counted int) {
		t.Helper()
		sent := make([]RejectedFact, n)
		for i := range sent {
			sent[i] = RejectedFact{Kind: "fact", Source: source, Reason: "rule", Item: strconv.Itoa(i), RawRef: "r", SubjectID: "s", Connection: "c", Error: "e"}
		}
		got := b.Bound("default", sent, at)
		_, merged := MergeRejected(got)
		times := 0
		for _, r := range merged {
			times += r.Times
			if r.Item == "" {
				counted = r.Times
				if r.Source != source && r.Source != "" || r.RawRef != "" || r.SubjectID != "" {
					t.Errorf("what is only counted says %+v", r)
				}
			} else {
				shown++
			}
		}
		if times != n {
			t.Errorf("%d of %d are counted", times, n)
		}
		return shown, counted
	}
	for _, step := range []struct {
		source         string
		n              int
		at             engine.Instant
		shown, counted int
	}{
		{"crm", 1200, noon, 1000, 200},
		{"crm", 5, noon + 9, 0, 5},
		{"stripe", 5, noon + 9, 5, 0},
		{"crm", 5, noon + 35, 3, 2},
		{"crm", 5, noon + 39, 0, 5},
		{"crm", 5, noon + 40, 1, 4},
		{"crm", 1200, noon + 86400, 1000, 200},
		{"crm", 5, noon, 0, 5}, // a clock that goes back gives nothing
	} {
		if shown, counted := bound(step.source, step.n, step.at); shown != step.shown || counted != step.counted {
			t.Errorf("%+v: %d shown, %d counted", step, shown, counted)
		}
	}
	for i := range 3000 {
		b.Bound("default", []RejectedFact{{Source: "claimed" + strconv.Itoa(i), Reason: RejectedSource}}, noon)
	}
	if shown, _ := bound("of its own", 5, noon); shown != 5 {
		t.Errorf("sources that are only claimed leave a real one room for %d", shown)
	}
	for i := range 1000 {
		bound("invented"+strconv.Itoa(i), 2, noon)
	}
	if n := len(b.left["default"]); n > rejectedSources+1 {
		t.Errorf("%d sources are remembered", n)
	}
	if shown, _ := bound("one more", 1200, noon); shown > 1000 {
		t.Errorf("%d of sources beyond those are shown", shown)
	}
	if got := b.Bound("another", []RejectedFact{{Source: "crm", Reason: "rule", Item: "{}"}}, noon); got[0].Item != "{}" || got[0].Source != "crm" {
		t.Errorf("a flood of one tenant leaves another no room: %+v", got)
	}
}

// TestRejectedBudgetRemembersLittle: a source is whatever somebody wrote there.
func TestRejectedBudgetRemembersLittle(t *testing.T) {
	t.Parallel()
	var b RejectedBudget
	b.Bound("default", []RejectedFact{{Source: strings.Repeat("x", 1<<20), Reason: RejectedInvalid}}, 0)
	for source := range b.left["default"] {
		if len(source) > maxRejectedText {
			t.Errorf("a source of %d bytes is remembered", len(source))
		}
	}
}
