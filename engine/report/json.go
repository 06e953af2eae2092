package report

import (
	"strconv"

	"github.com/countersign-otel/countersign/engine"
)

// AppendJSON appends what encoding/json makes of a report, but for characters
// that only a web page needs escaped. A report is written for every
// verification, and by hand in a fifth of the time.
func (r *Report) AppendJSON(b []byte) []byte {
	b = appendList(append(b, `{"checks":`...), r.Checks, appendCheck)
	b = engine.AppendString(append(b, `,"summary":{"headline":`...), r.Summary.Headline)
	b = appendTrust(append(b, `,"evidence_trust":`...), r.Summary.EvidenceTrust)
	b = r.Settlement.append(append(b, `},"settlement":`...))
	b = appendList(append(b, `,"sources":`...), r.Sources, appendSource)
	b = appendEvidence(append(b, `,"reversal":`...), r.Reversal)
	return append(b, '}')
}

// appendList writes null for nil.
func appendList[T any](b []byte, list []T, one func([]byte, *T) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, &list[i])
	}
	return append(b, ']')
}

func appendCheck(b []byte, c *Check) []byte {
	b = engine.AppendString(append(b, `{"section":`...), string(c.Section))
	b = engine.AppendString(append(b, `,"code":`...), c.Code)
	b = strconv.AppendBool(append(b, `,"ok":`...), c.OK)
	b = append(b, `,"message":`...)
	if c.Message == nil {
		b = append(b, "null"...)
	} else {
		b = engine.AppendString(b, *c.Message)
	}
	b = engine.AppendString(append(b, `,"description":`...), c.Description)
	b = appendValue(append(b, `,"value":`...), c.Value)
	b = appendEvidence(append(b, `,"evidence":`...), c.Evidence)
	return append(b, '}')
}

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return engine.AppendString(b, v)
	case Compared:
		b = engine.AppendString(append(b, `{"expected":`...), v.Expected)
		b = engine.AppendString(append(b, `,"observed":`...), v.Observed)
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendEvidence(b []byte, e *Evidence) []byte {
	if e == nil {
		return append(b, "null"...)
	}
	b = engine.AppendString(append(b, `{"kind":`...), e.Kind)
	b = engine.AppendString(append(b, `,"raw_ref":`...), e.RawRef)
	if e.Source != "" {
		b = engine.AppendString(append(b, `,"source":`...), e.Source)
	}
	if e.FactType != "" {
		b = engine.AppendString(append(b, `,"fact_type":`...), e.FactType)
	}
	if e.OccurredAt != nil {
		b = appendInstant(append(b, `,"occurred_at":`...), e.OccurredAt)
	}
	return append(b, '}')
}

func (s *Settlement) append(b []byte) []byte {
	b = appendInstant(append(b, `{"settles_at":`...), &s.SettlesAt)
	b = appendInstant(append(b, `,"next_check_at":`...), s.NextCheckAt)
	b = appendList(append(b, `,"waiting_on":`...), s.WaitingOn, appendLagging)
	b = appendList(append(b, `,"stale_sources":`...), s.StaleSources, appendLagging)
	return append(b, '}')
}

func appendLagging(b []byte, l *Lagging) []byte {
	b = engine.AppendString(append(b, `{"source":`...), l.Source)
	b = appendInstant(append(b, `,"watermark":`...), &l.Watermark)
	b = strconv.AppendInt(append(b, `,"behind_seconds":`...), l.BehindSeconds, 10)
	return append(b, '}')
}

func appendSource(b []byte, s *Source) []byte {
	b = engine.AppendString(append(b, `{"source":`...), s.Source)
	b = appendTrust(append(b, `,"trust":`...), s.Trust)
	b = appendInstant(append(b, `,"watermark":`...), s.Watermark)
	if s.ClockSkew != 0 {
		b = strconv.AppendInt(append(b, `,"clock_skew_seconds":`...), s.ClockSkew, 10)
	}
	return append(b, '}')
}

func appendTrust(b []byte, t *engine.Trust) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	return engine.AppendString(b, t.String())
}

func appendInstant(b []byte, i *engine.Instant) []byte {
	if i == nil {
		return append(b, "null"...)
	}
	return append(i.AppendText(append(b, '"')), '"')
}
