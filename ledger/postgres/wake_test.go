package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
)

// TestTextArraysAreReadAsWritten, by the server, through the driver.
func TestTextArraysAreReadAsWritten(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgserver.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	element := rapid.OneOf(rapid.SampledFrom([]string{"", "NULL", "null", `"`, `\`, `\\"`, "{", "}", ",", " ", "a b", "ü😀", "it's"}), rapid.StringMatching(`[a-z"\\{},' ]{0,5}`))
	rapid.Check(t, func(rt *rapid.T) {
		var array textArray
		want := []*string{}
		if rapid.Bool().Draw(rt, "grow") {
			array.grow(3, 10)
		}
		for range rapid.IntRange(0, 5).Draw(rt, "elements") {
			if rapid.Bool().Draw(rt, "null") {
				array.addNull()
				want = append(want, nil)
				continue
			}
			a, b := element.Draw(rt, "text"), element.Draw(rt, "more")
			array.add(a, b)
			both := a + b
			want = append(want, &both)
		}
		var got []*string
		if err := conn.QueryRow(t.Context(), "SELECT $1::text[]", array.String()).Scan(&got); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestOrderKeysSortAsFacts: the statement takes the least key of a subject as
// its earliest fact, and its reference from behind the time.
func TestOrderKeysSortAsFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		facts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) engine.Fact {
			at := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, int64(engine.MaxInstant))).Draw(t, "at")
			return engine.Fact{RawRef: rapid.StringMatching("[ab0]{1,3}").Draw(t, "ref"), OccurredAt: engine.Instant(at)}
		}), 1, 5).Draw(t, "facts")
		var texts []string
		for i := range facts {
			var keys textArray
			addOrderKey(&keys, &facts[i])
			text := strings.Trim(keys.String(), `{}"`)
			if want := fmt.Sprintf("%012d%s", facts[i].OccurredAt, facts[i].RawRef); text != want || len(text) != orderKeyBytes(&facts[i]) {
				t.Fatalf("key %q, want %q of %d bytes", text, want, orderKeyBytes(&facts[i]))
			}
			texts = append(texts, text)
		}
		slices.SortFunc(facts, engine.CompareFacts)
		slices.Sort(texts)
		for i := range facts {
			if texts[i][orderWidth:] != facts[i].RawRef {
				t.Fatalf("%q stands where %s stands among facts", texts[i], facts[i].RawRef)
			}
		}
	})
}
