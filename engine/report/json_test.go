package report

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// TestReportIsWrittenAsGoWritesIt: any report, with every member there and not there.
func TestReportIsWrittenAsGoWritesIt(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom([]rune("\"\\/<>&\b\f\n\r\t\u0000\u001f\u007f\u00e9\U0001F600—a")), 0, 8, -1), rapid.StringMatching(`[a-z_.:]{0,8}`))
	instant := rapid.Custom(func(t *rapid.T) engine.Instant {
		return engine.Instant(rapid.Int64Range(0, int64(engine.MaxInstant)).Draw(t, "at"))
	})
	trust := rapid.Ptr(rapid.SampledFrom([]engine.Trust{engine.SelfReported, engine.Shared, engine.Independent}), true)
	evidence := rapid.Ptr(rapid.Custom(func(t *rapid.T) Evidence {
		return Evidence{text.Draw(t, "kind"), text.Draw(t, "ref"), text.Draw(t, "source"), text.Draw(t, "type"), rapid.Ptr(instant, true).Draw(t, "occurred")}
	}), true)
	lagging := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Lagging {
		return Lagging{text.Draw(t, "source"), instant.Draw(t, "watermark"), rapid.Int64().Draw(t, "behind")}
	}), 0, 2)
	value := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 2).Draw(t, "value") {
		case 0:
			return nil
		case 1:
			return text.Draw(t, "text")
		}
		return Compared{text.Draw(t, "expected"), text.Draw(t, "observed")}
	})
	rapid.Check(t, func(t *rapid.T) {
		r := Report{
			Checks: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Check {
				return Check{
					contract.Section(text.Draw(t, "section")), text.Draw(t, "code"), rapid.Bool().Draw(t, "ok"), rapid.Ptr(text, true).Draw(t, "message"),
					text.Draw(t, "description"), value.Draw(t, "value"), evidence.Draw(t, "evidence"),
				}
			}), 0, 3).Draw(t, "checks"),
			Summary:    Summary{text.Draw(t, "headline"), trust.Draw(t, "trust")},
			Settlement: Settlement{false, instant.Draw(t, "settles"), rapid.Ptr(instant, true).Draw(t, "next"), lagging.Draw(t, "waiting"), lagging.Draw(t, "stale")},
			Sources: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Source {
				return Source{text.Draw(t, "source"), trust.Draw(t, "trust"), rapid.Ptr(instant, true).Draw(t, "watermark"), rapid.Int64Range(-1, 1).Draw(t, "skew")}
			}), 0, 2).Draw(t, "sources"),
			Reversal: evidence.Draw(t, "reversal"),
		}
		for _, list := range []*[]Lagging{&r.Settlement.WaitingOn, &r.Settlement.StaleSources} {
			if rapid.Bool().Draw(t, "no list") {
				*list = nil
			}
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(r); err != nil {
			t.Fatal(err)
		}
		if got := string(r.AppendJSON(nil)) + "\n"; got != want.String() {
			t.Fatalf("got  %s\nwant %s", got, want.String())
		}
	})
}
