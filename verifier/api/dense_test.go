package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/ledger"
)

// TestD35_DenseFactsNeverSinkTheGood: each that holds too much is rejected with its place.
func TestD35_DenseFactsNeverSinkTheGood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fact := func(attributes string) string {
		return `{"source": "crm", "subject_id": "s", "fact_type": "note_added", "occurred_at": "2026-09-28T10:42:00Z", "attributes": ` + attributes + `}`
	}
	zeros := func(n int) string { return strings.Repeat("0,", n-1) + "0" }
	var members strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&members, `"%x":0,`, i)
	}
	body := facts(
		fact(`{"a": [`+zeros(32_000)+`]}`), // within the limits
		fact(`{"a": [`+zeros(500_000)+`]}`),
		fact(`{`+members.String()+`"a":0}`),
		fact(`{"a": `+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`),
		`{`+members.String()+`"a":0}`,
		strings.Repeat("[", 5000)+zeros(100_000)+strings.Repeat("]", 5000),
		`{"source": "`+strings.Repeat("x", 1<<20)+`"}`,
		refunded,
	)
	var pushed Pushed
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", body).decode(t, &pushed)
	unknown := "is not known; the members are source, subject_id, subject_kind, fact_type, occurred_at, attributes, raw_ref"
	want := Pushed{Ingested: 2, Rejected: []Rejected{
		{index(1), "/facts/1/attributes", "is an invalid JSON object: the document has 1000008 bytes; at most 65536 are allowed"},
		{index(2), "/facts/2/attributes", fmt.Sprintf("is an invalid JSON object: the document has %d bytes; at most 65536 are allowed", members.Len()+len(`{"a":0}`))},
		{index(3), "/facts/3/attributes", "is an invalid JSON object: /a" + strings.Repeat("/0", 15) + " is nested deeper than 16 levels"},
		{index(4), "/facts/4/0", unknown},
		{index(5), "/facts/5", "is a list; send an object {...}"},
		{index(6), "/facts/6/source", `is an invalid identifier "` + strings.Repeat("x", 80) + `...": write a letter, then letters, digits or _ . : -, at most 64 in all`},
	}}
	if diff := cmp.Diff(want, pushed); diff != "" {
		t.Error(diff)
	}
	_, list := rejectedLines(t, f, ledger.RoleViewer)
	for _, r := range list.Rejected {
		if len(r.Item) > ledger.MaxRejectedItem {
			t.Errorf("%d bytes of an item were kept", len(r.Item))
		}
	}
	if len(list.Rejected) != len(want.Rejected) {
		t.Errorf("%d of %d rejected items were kept", len(list.Rejected), len(want.Rejected))
	}
}
