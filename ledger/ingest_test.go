package ledger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

// TestNormalFactsAreNormal, in the order sent, each with the place of those that are refused,
// and what was sent stays as it was.
func TestNormalFactsAreNormal(t *testing.T) {
	t.Parallel()
	draw := func(t *rapid.T) engine.Fact {
		f := engine.Fact{RawRef: "r", Source: "stripe", Type: "refund_created", SubjectID: "s", SubjectKind: "order", Attributes: engine.EmptyObject()}
		switch rapid.IntRange(0, 8).Draw(t, "what") {
		case 0:
			f.Source = "Stripe"
		case 1:
			f.Type = "Refund_created"
		case 2:
			f.SubjectKind = ""
		case 3:
			f.RawRef = ""
		case 4:
			f.Attributes = engine.Object{}
		case 5:
			f.SubjectID = ""
		}
		return f
	}
	rapid.Check(t, func(t *rapid.T) {
		var sent, want []engine.Fact
		var refused []int
		for i := range rapid.IntRange(0, 5).Draw(t, "facts") {
			f := draw(t)
			sent = append(sent, f)
			if normal, err := f.Normalize(); err == nil {
				want = append(want, normal)
			} else {
				refused = append(refused, i)
			}
		}
		before := append([]engine.Fact(nil), sent...)
		got, bad := normalFacts(sent)
		var places []int
		for _, r := range bad {
			if !strings.Contains(r.Err.Error(), "subject_id") {
				t.Error(r.Err)
			}
			places = append(places, r.Index)
		}
		same := cmp.Comparer(func(a, b engine.Object) bool { return a.Text() == b.Text() })
		if len(want)+len(got) > 0 && !cmp.Equal(want, got, same) || !cmp.Equal(refused, places) || !cmp.Equal(before, sent, same) {
			t.Errorf("got %v, refused %v; want %v, %v", got, places, want, refused)
		}
	})
}
