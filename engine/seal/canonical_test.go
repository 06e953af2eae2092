package seal

import (
	"encoding/json"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// document says in Go's own terms what Seal writes.
type document struct {
	Action   actionPart        `json:"action"`
	Checks   []checkedPart     `json:"checks"`
	Contract contractPart      `json:"contract"`
	Format   string            `json:"format"`
	Lens     engine.Lens       `json:"lens"`
	Verdict  engine.RawVerdict `json:"raw_verdict"`
	Reasons  []string          `json:"reasons"`
	Tenant   string            `json:"tenant"`
}

type checkedPart struct {
	Call     string `json:"call"`
	Evidence string `json:"evidence,omitempty"`
	Fired    bool   `json:"fired"`
	Value    string `json:"value,omitempty"`
}

type contractPart struct {
	Hash    string `json:"hash"`
	ID      string `json:"id"`
	Version int    `json:"version"`
}

// library is the canonical JSON that RFC 8785's library makes.
func library(t *rapid.T, v any) string {
	plain, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := jcs.Transform(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(canonical)
}

// awkward texts hold all that Go or RFC 8785 escapes, and some that neither does.
var (
	awkward = rapid.StringOfN(rapid.SampledFrom([]rune("\"\\/<>&\u2028\u2029\u2027\u202a\b\f\n\r\t\u0000\u0001\u001f\u007f\u0080\u00e9\ufffd\ufeff\U0001F600u208 aZ")), 0, 12, -1)
	text    = rapid.OneOf(awkward, rapid.String())
	texts   = rapid.SliceOfN(text, 0, 3)
)

// TestD24_WhatIsWrittenIsWhatTheLibraryWrites: the documents of both lenses are
// the bytes that RFC 8785's library makes, whatever the texts.
func TestD24_WhatIsWrittenIsWhatTheLibraryWrites(t *testing.T) {
	t.Parallel()
	params, err := engine.ParseObject([]byte(`{"amount": 180.50, "note": "\"\u2028<é>\\"}`))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Subject{
			Tenant: text.Draw(t, "tenant"), Calls: texts.Draw(t, "calls"),
			Contract: &contract.Contract{Hash: text.Draw(t, "hash"), ID: text.Draw(t, "id"), Version: rapid.IntRange(1, 1<<31).Draw(t, "version")},
			Action: engine.Action{
				ActionID: text.Draw(t, "action"), AgentID: text.Draw(t, "agent"), SubjectID: text.Draw(t, "subject"),
				RequestedAt: engine.Instant(rapid.Int64Range(0, int64(engine.MaxInstant)).Draw(t, "at")),
				Params:      rapid.SampledFrom([]engine.Object{{}, engine.EmptyObject(), params}).Draw(t, "params"),
			},
		}
		findings, checks := make([]engine.Finding, len(s.Calls)), make([]checkedPart, len(s.Calls))
		for i, call := range s.Calls {
			findings[i] = engine.Finding{
				Evidence: text.Draw(t, "evidence"), Fired: rapid.Bool().Draw(t, "fired"),
				Value: engine.FindingValue{Set: true, Compared: rapid.Bool().Draw(t, "compared"), Expected: text.Draw(t, "expected"), Observed: text.Draw(t, "observed")},
			}
			checks[i] = checkedPart{call, findings[i].Evidence, findings[i].Fired, ValueText(findings[i].Value)}
		}
		verdict := func(name string) engine.Verdict {
			return engine.Verdict{Raw: engine.RawVerdict(text.Draw(t, name)), Reasons: texts.Draw(t, name+" reasons")}
		}
		outcome, policy := verdict("outcome"), verdict("policy")
		sealedOutcome, sealedPolicy := Seal(s, outcome, policy, findings)
		d := document{
			Action: action(s.Action), Checks: checks, Contract: contractPart{s.Contract.Hash, s.Contract.ID, s.Contract.Version}, Format: Format,
			Lens: engine.Outcome, Verdict: outcome.Raw, Reasons: outcome.Reasons, Tenant: s.Tenant,
		}
		if want := library(t, d); sealedOutcome.Document != want {
			t.Fatalf("outcome\ngot  %q\nwant %q", sealedOutcome.Document, want)
		}
		d.Lens, d.Verdict, d.Reasons = engine.Policy, policy.Raw, policy.Reasons
		if want := library(t, d); sealedPolicy.Document != want {
			t.Fatalf("policy\ngot  %q\nwant %q", sealedPolicy.Document, want)
		}
	})
}

// TestRunIsWrittenAsTheLibraryWrites: so are the bytes that a run's hash covers.
func TestRunIsWrittenAsTheLibraryWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(0, 1<<53)
		r := Run{
			Changed: rapid.Bool().Draw(t, "changed"), Compensates: text.Draw(t, "compensates"), ComputedAt: small.Draw(t, "computed at"), Events: texts.Draw(t, "events"), Evidence: texts.Draw(t, "evidence"),
			Headline: text.Draw(t, "headline"), PreviousSeq: small.Draw(t, "previous"), Report: text.Draw(t, "report"), Status: text.Draw(t, "status"), TriggeredBy: text.Draw(t, "trigger"),
		}
		if rapid.Bool().Draw(t, "checked again") {
			next := small.Draw(t, "next")
			r.NextCheckAt = &next
		}
		if got, want := string(r.append(nil)), library(t, r); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}
