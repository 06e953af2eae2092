package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

// TestOrderKeysSortAsFacts: the statement takes the least key of a subject as its earliest fact, and its reference from behind the time.
func TestOrderKeysSortAsFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var facts []*engine.Fact
		for range rapid.IntRange(0, 5).Draw(t, "facts") {
			facts = append(facts, rapid.Custom(func(t *rapid.T) *engine.Fact {
				if rapid.Bool().Draw(t, "none") {
					return nil
				}
				at := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, int64(engine.MaxInstant))).Draw(t, "at")
				return &engine.Fact{RawRef: rapid.StringMatching("[ab0]{1,3}").Draw(t, "ref"), OccurredAt: engine.Instant(at)}
			}).Draw(t, "fact"))
		}
		keys := orderKeys(facts)
		var known []*engine.Fact
		var texts []string
		for i, f := range facts {
			if (f == nil) != (keys[i] == nil) {
				t.Fatalf("fact %v has the key %v", f, keys[i])
			}
			if f != nil {
				if want := fmt.Sprintf("%012d%s", f.OccurredAt, f.RawRef); *keys[i] != want {
					t.Fatalf("key %q, want %q", *keys[i], want)
				}
				known, texts = append(known, f), append(texts, *keys[i])
			}
		}
		slices.SortFunc(known, func(a, b *engine.Fact) int { return engine.CompareFacts(*a, *b) })
		slices.Sort(texts)
		for i, f := range known {
			if !strings.HasSuffix(texts[i], f.RawRef) {
				t.Fatalf("%q stands where %s stands among facts", texts[i], f.RawRef)
			}
		}
	})
}
