package evidenceprocessor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// TryResult says what the processor makes of one log record. What the record
// does not say is null.
type TryResult struct {
	Event      *string `json:"event"`
	Source     *string `json:"source"`
	Connection *string `json:"connection"`
	Trust      *string `json:"trust"`
	DeliveryID *string `json:"delivery_id"`
	// Rules are those that made something of the record or failed to, and the
	// configuration's own that are for its source, in their order. A rule that
	// makes several facts stands there several times.
	Rules []TryRule `json:"rules"`
}

// TryRule says what one rule makes of the record.
type TryRule struct {
	Rule string `json:"rule"`
	// Fact is null when none is made; Why says why.
	Fact  *TryFact      `json:"fact"`
	Links []engine.Link `json:"links"`
	// Watermark is what a rule with watermark reports; it makes no fact.
	Watermark *engine.Instant `json:"watermark,omitempty"`
	Why       string          `json:"why"`
}

// TryFact is the fact that would be made, in the fields of the HTTP API.
type TryFact struct {
	Source      string         `json:"source"`
	SubjectID   string         `json:"subject_id"`
	SubjectKind string         `json:"subject_kind"`
	FactType    string         `json:"fact_type"`
	OccurredAt  engine.Instant `json:"occurred_at"`
	Attributes  engine.Object  `json:"attributes"`
	RawRef      string         `json:"raw_ref"`
}

// TryAs is what a file cannot say: how the records would come. Records that a
// receiver of this process sealed come as they say.
type TryAs struct {
	// Source is the endpoint's; empty lets every rule have a look.
	Source string
	// Event is the event's name, which some senders put into a header.
	Event string
	// Trust is the endpoint's; engine.UnknownTrust is that of a provider's signature.
	Trust engine.Trust
}

// Try says what the processor makes of a file: OTLP/JSON logs, or the bodies of
// webhooks as they are sent; one document or several after each other. It
// changes and records nothing.
func Try(config *Config, input []byte, as TryAs) ([]TryResult, error) {
	j, err := newBareJudge(config)
	if err != nil {
		return nil, err
	}
	results := []TryResult{}
	decoder := json.NewDecoder(bytes.NewReader(input))
	for {
		var document json.RawMessage
		if err := decoder.Decode(&document); err != nil {
			if errors.Is(err, io.EOF) {
				return results, nil
			}
			return nil, fmt.Errorf("the input is not JSON at byte %d: %w", decoder.InputOffset(), err)
		}
		ld, err := logsOf(document, as)
		if err != nil {
			return nil, err
		}
		results = append(results, j.try(ld, as)...)
	}
}

// TryLogs is Try for one batch of log records.
func TryLogs(config *Config, ld plog.Logs, as TryAs) ([]TryResult, error) {
	j, err := newBareJudge(config)
	if err != nil {
		return nil, err
	}
	own := plog.NewLogs()
	ld.CopyTo(own)
	return j.try(own, as), nil
}

func logsOf(document json.RawMessage, as TryAs) (plog.Logs, error) {
	var kind struct {
		Logs *json.RawMessage `json:"resourceLogs"`
	}
	if json.Unmarshal(document, &kind) == nil && kind.Logs != nil {
		ld, err := new(plog.JSONUnmarshaler).UnmarshalLogs(document)
		if err != nil {
			return plog.Logs{}, fmt.Errorf("the input is no OTLP/JSON logs: %w", err)
		}
		return ld, nil
	}
	ld := plog.NewLogs()
	entry := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	entry.Body().SetStr(string(document))
	entry.SetEventName(as.Event)
	return ld, nil
}

func (j *judge) try(ld plog.Logs, as TryAs) []TryResult {
	b := &batch{Context: context.Background(), tally: newTally()}
	results := []TryResult{}
	j.each(ld, b, func(tc logContext, e *entry) {
		if as.Event != "" {
			e.log.SetEventName(as.Event)
		}
		results = append(results, j.tryOne(b, tc, e, as))
	})
	return results
}

func (j *judge) tryOne(b *batch, tc logContext, e *entry, as TryAs) TryResult {
	if !e.delivered && as.Source != "" {
		e.delivered, e.delivery = true, as.delivery()
	}
	came := j.path(b, e)
	if !e.delivered && came.Trust == engine.UnknownTrust {
		came.Trust = as.trust()
	}
	r := TryResult{
		Event: orNull(e.log.EventName()), Source: orNull(came.Source), Connection: orNull(came.Connection),
		Trust: orNull(came.Trust.String()), DeliveryID: orNull(came.ID), Rules: []TryRule{},
	}
	// Whether the pipeline may believe the record is not what is tried here.
	believing := *j
	compiled := *j.compiled
	compiled.trust = came.Trust
	believing.compiled = &compiled
	told := map[int]bool{}
	believing.ask(b, tc, e, func(label int, m made) {
		told[label] = true
		r.Rules = append(r.Rules, j.shown(label, m))
	})
	r.Rules = append(r.Rules, j.passed(e, told)...)
	return r
}

func (a TryAs) trust() engine.Trust {
	if a.Trust == engine.UnknownTrust {
		return engine.Independent
	}
	return a.Trust
}

func (a TryAs) delivery() delivery.Delivery {
	source := engine.Fold(a.Source)
	return delivery.Delivery{Source: source, Connection: source, Trust: a.trust()}
}

func (j *judge) shown(label int, m made) TryRule {
	t := TryRule{Rule: j.labels[label], Links: []engine.Link{}, Why: "made"}
	if m.err != nil {
		t.Why = m.err.Error()
		return t
	}
	t.Links, t.Watermark = append(t.Links, m.links...), m.watermark
	if m.watermark != nil {
		t.Why = "reported"
		return t
	}
	if m.fact == nil {
		t.Why = "only links"
		return t
	}
	t.Fact = &TryFact{
		Source: m.fact.Source, SubjectID: m.fact.SubjectID, SubjectKind: m.fact.SubjectKind, FactType: m.fact.Type,
		OccurredAt: m.fact.OccurredAt, Attributes: m.fact.Attributes, RawRef: m.fact.RawRef,
	}
	return t
}

// passed are the configuration's own rules that made nothing. Those of a
// mapping are many, and silent when a record is not for them.
func (j *judge) passed(e *entry, told map[int]bool) []TryRule {
	var all []TryRule
	for _, g := range j.groups {
		if g.ready {
			continue
		}
		for _, r := range g.rules {
			if told[r.index] {
				continue
			}
			why := "the condition does not hold, or there is no item"
			if !r.concerns(e) {
				why = "it is for records of " + r.source
			}
			all = append(all, TryRule{Rule: r.label, Links: []engine.Link{}, Why: why})
		}
	}
	return all
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
