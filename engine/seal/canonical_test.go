package seal

import (
	"encoding/json"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

// TestD24_WhatIsWrittenIsWhatTheLibraryWrites: the short way and RFC 8785's
// library make the same bytes of any texts.
func TestD24_WhatIsWrittenIsWhatTheLibraryWrites(t *testing.T) {
	t.Parallel()
	// All that one of both escapes, and some that neither does.
	awkward := rapid.StringOfN(rapid.SampledFrom([]rune("\"\\/<>&\u2028\u2029\u2027\u202a\b\f\n\r\t\u0000\u0001\u001f\u007f\u0080\u00e9\ufffd\ufeff\U0001F600u208 aZ")), 0, 12, -1)
	text := rapid.OneOf(awkward, rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		d := document{
			Action:   actionPart{text.Draw(t, "action"), text.Draw(t, "agent"), text.Draw(t, "params"), text.Draw(t, "at"), text.Draw(t, "subject")},
			Contract: contractPart{text.Draw(t, "hash"), text.Draw(t, "id"), rapid.IntRange(1, 1<<31).Draw(t, "version")},
			Format:   Format, Lens: engine.Policy, Verdict: text.Draw(t, "verdict"), Tenant: text.Draw(t, "tenant"),
			Reasons: rapid.SliceOfN(text, 0, 3).Draw(t, "reasons"),
			Checks: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) checkedPart {
				return checkedPart{text.Draw(t, "call"), text.Draw(t, "evidence"), rapid.Bool().Draw(t, "fired"), text.Draw(t, "value")}
			}), 0, 3).Draw(t, "checks"),
		}
		plain, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		want, err := jcs.Transform(plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := canonicalJSON(d)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%v\ngot  %q\nwant %q", err, got, want)
		}
	})
}
