package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func refundFact(t *testing.T, attributes, at string) Fact {
	t.Helper()
	occurred, err := ParseInstant(at)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Fact{Source: "Stripe", Type: "refund_created", SubjectID: "order_10231", OccurredAt: occurred, Attributes: mustObject(t, attributes)}.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestD08_ContentHash pins what tells a duplicate from a conflict: stores keep it.
func TestD08_ContentHash(t *testing.T) {
	t.Parallel()
	f := refundFact(t, `{"amount":180.50,"note":"\"é\u0007"}`, "2026-09-28T10:42:07Z")
	f.SubjectKind = "order"
	want := sha256.Sum256([]byte(`["stripe","order_10231","refund_created","2026-09-28T10:42:07Z",{"amount":180.5,"note":"\"é\u0007"}]"order"`))
	if got := f.ContentHash(); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestD36_DerivedRawRef pins decision D36: the reference is a hash of the
// normalised values, the same over any path.
func TestD36_DerivedRawRef(t *testing.T) {
	t.Parallel()
	content := `["stripe","order_10231","refund_created","2026-09-28T10:42:07Z",{"amount":180,"currency":"USD"}]`
	sum := sha256.Sum256([]byte(content))
	want := "agent_api:fact:" + hex.EncodeToString(sum[:])
	for name, f := range map[string]Fact{
		"as is":                refundFact(t, `{"amount":180,"currency":"USD"}`, "2026-09-28T10:42:07Z"),
		"other order":          refundFact(t, `{"currency":"USD","amount":180}`, "2026-09-28T10:42:07Z"),
		"other spelling":       refundFact(t, `{"Amount":1.80e2,"currency":"\u0055SD"}`, "2026-09-28T10:42:07Z"),
		"other offset":         refundFact(t, `{"amount":180.0,"currency":"USD"}`, "2026-09-28T12:42:07+02:00"),
		"fraction of a second": refundFact(t, `{"amount":180,"currency":"USD"}`, "2026-09-28T10:42:07.9Z"),
	} {
		if f.RawRef != want {
			t.Errorf("%s: %s, want %s", name, f.RawRef, want)
		}
	}
	for name, f := range map[string]Fact{
		"other amount": refundFact(t, `{"amount":180.01,"currency":"USD"}`, "2026-09-28T10:42:07Z"),
		"a text":       refundFact(t, `{"amount":"180","currency":"USD"}`, "2026-09-28T10:42:07Z"),
		"other case":   refundFact(t, `{"amount":180,"currency":"usd"}`, "2026-09-28T10:42:07Z"),
		"one second":   refundFact(t, `{"amount":180,"currency":"USD"}`, "2026-09-28T10:42:08Z"),
		"no attribute": refundFact(t, `{}`, "2026-09-28T10:42:07Z"),
	} {
		if f.RawRef == want {
			t.Errorf("%s has the same reference", name)
		}
	}
	sent := refundFact(t, `{}`, "2026-09-28T10:42:07Z")
	sent.RawRef = "re_1Q2x"
	if again, err := sent.Normalize(); err != nil || again.RawRef != "re_1Q2x" {
		t.Errorf("a sent reference becomes %q (%v)", again.RawRef, err)
	}
}

// TestFactRefusals names the field of every fact that cannot be taken.
func TestFactRefusals(t *testing.T) {
	t.Parallel()
	good := Fact{Source: "stripe", Type: "refund_created", SubjectID: "order", OccurredAt: 1}
	for want, change := range map[string]func(*Fact){
		`invalid fact: source: invalid identifier "": write a letter, then letters, digits or _ . : -, at most 64 in all`:        func(f *Fact) { f.Source = "" },
		`invalid fact: fact_type: invalid identifier "a b": write a letter, then letters, digits or _ . : -, at most 64 in all`:  func(f *Fact) { f.Type = "a b" },
		`invalid fact: subject_kind: invalid identifier "1": write a letter, then letters, digits or _ . : -, at most 64 in all`: func(f *Fact) { f.SubjectKind = "1" },
		"invalid fact: invalid id: subject_id is empty; 1 to 512 bytes are needed":                                               func(f *Fact) { f.SubjectID = "" },
		"invalid fact: occurred_at: invalid time: outside the years 1970 to 9999":                                                func(f *Fact) { f.OccurredAt = -1 },
		"invalid fact: invalid id: raw_ref has the control character U+000A":                                                     func(f *Fact) { f.RawRef = "a\n" },
		"invalid fact: invalid id: raw_ref has 513 bytes; at most 512 are allowed":                                               func(f *Fact) { f.RawRef = strings.Repeat("a", 513) },
	} {
		f := good
		change(&f)
		if _, err := f.Normalize(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f, err := good.Normalize()
	if err != nil || f.SubjectKind != "record" || f.Attributes.Text() != "{}" {
		t.Errorf("defaults: %q, %s (%v)", f.SubjectKind, f.Attributes.Text(), err)
	}
}

// TestD05_EarliestIsByteOrdered pins decision D5: occurred_at, then raw_ref by its bytes.
func TestD05_EarliestIsByteOrdered(t *testing.T) {
	t.Parallel()
	facts := []Fact{
		{RawRef: "b", OccurredAt: 7}, {RawRef: "é", OccurredAt: 7}, {RawRef: "a", OccurredAt: 8}, {RawRef: "B", OccurredAt: 7},
		{RawRef: "a10", OccurredAt: 7}, {RawRef: "a9", OccurredAt: 7}, {RawRef: "z", OccurredAt: 6}, {RawRef: "a", OccurredAt: 7},
	}
	slices.SortFunc(facts, CompareFacts)
	var order []string
	for _, f := range facts {
		order = append(order, f.RawRef)
	}
	if want := []string{"z", "B", "a", "a10", "a9", "b", "é", "a"}; !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
}

func TestD36_NobodyClaimsADerivedReference(t *testing.T) {
	t.Parallel()
	fact := Fact{Source: "stripe", Type: "refund_created", SubjectID: "order_1", OccurredAt: 1}
	derived, err := fact.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := derived.Normalize(); err != nil || again.RawRef != derived.RawRef {
		t.Errorf("the fact's own reference gives %q, %v", again.RawRef, err)
	}
	fact.RawRef = "agent_api:fact:00"
	if _, err := fact.Normalize(); err == nil || err.Error() != `invalid fact: raw_ref: "agent_api:fact:00" is derived from other content; send the source system's own id, or leave raw_ref out` {
		t.Errorf("another content's reference gives %v", err)
	}
}

// TestReservedReferences: who takes the reference of somebody else's record first keeps that record out (decision D8).
func TestReservedReferences(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		source, ref string
		good        bool
	}{
		{"crm", "agent_api:action:act_1", false},
		{AgentSource, "agent_api:action:act_1", false},
		{"crm", "otel:span:7b1f0c5de2a94d3c8e6f1a2b3c4d5e01-a1b2c3d4e5f60101", false},
		{AgentSource, "otel:span:7b1f0c5de2a94d3c8e6f1a2b3c4d5e01-a1b2c3d4e5f60101", true},
		{"crm", "crm:otel:span:1", true},
	} {
		fact := Fact{RawRef: row.ref, Source: row.source, Type: "note_added", SubjectID: "order_1", OccurredAt: 1}
		if _, err := fact.Normalize(); (err == nil) != row.good {
			t.Errorf("%s of %s: %v", row.ref, row.source, err)
		}
	}
}
