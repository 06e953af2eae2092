package evidenceprocessor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
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
	// Rules are those that made something of the record or failed to, and then
	// those that did not: each of the configuration's own, and each mapping of
	// which no rule did. A rule that makes several facts stands there several times.
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
	// Elsewhere is the source whose records the rule is for, where this record is
	// of another one or another mapping made something of it.
	Elsewhere string `json:"-"`
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
	// Connection is the endpoint's; empty is that of the source's name.
	Connection string
	// Array says that the endpoint takes an array as several events.
	Array bool
	// Event is the event's name, which some senders put into a header.
	Event string
	// Trust is the endpoint's; engine.UnknownTrust is that of a provider's signature.
	Trust engine.Trust
}

// Try says what the processor makes of a file: OTLP/JSON logs, or the bodies of
// webhooks as they are sent; one document or several after each other. It
// changes and records nothing. What does not read is a diagnostic.Diagnostic.
func Try(config *Config, input []byte, as TryAs) ([]TryResult, error) {
	j, err := newBareJudge(config)
	if err != nil {
		return nil, err
	}
	results := []TryResult{}
	err = diagnostic.JSONDocuments(input, func(document json.RawMessage) error {
		ld, err := logsOf(document, as)
		if err != nil {
			return err
		}
		results = append(results, j.try(ld, as)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
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
			return plog.Logs{}, fmt.Errorf("is no OTLP/JSON logs: %w", err)
		}
		return ld, nil
	}
	ld := plog.NewLogs()
	list := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, event := range as.events(document) {
		entry := list.AppendEmpty()
		entry.Body().SetStr(string(event))
		entry.SetEventName(as.Event)
	}
	return ld, nil
}

// events are what the endpoint makes of a body.
func (a TryAs) events(document json.RawMessage) []json.RawMessage {
	var events []json.RawMessage
	if a.Array && json.Unmarshal(document, &events) == nil {
		return events
	}
	return []json.RawMessage{document}
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
	told, known := map[int]bool{}, e.delivered
	believing.ask(b, tc, e, func(label int, m made) {
		told[label], known = true, known || m.err == nil
		r.Rules = append(r.Rules, j.shown(label, m))
	})
	r.Rules = append(r.Rules, j.passed(b, tc, e, told, known)...)
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
	return delivery.Delivery{Source: source, Connection: cmp.Or(a.Connection, source), Trust: a.trust()}
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

// passed are those that made nothing. The rules of a mapping are many, and for
// few of its events each: where all were silent, the mapping is. The source of a
// record is known where it came by an endpoint, or where something was made of it.
func (j *judge) passed(b *batch, tc logContext, e *entry, told map[int]bool, known bool) []TryRule {
	ctx := evalContext{b.Context, e}
	var all []TryRule
	say := func(label, why, elsewhere string) {
		all = append(all, TryRule{Rule: label, Links: []engine.Link{}, Why: why, Elsewhere: elsewhere})
	}
	for _, g := range j.groups {
		if g.ready {
			if !g.told(told) {
				say(g.label, g.silence(&ctx, tc), g.elsewhere(e, known))
			}
			continue
		}
		for _, r := range g.rules {
			if !told[r.index] {
				say(r.label, r.silence(&ctx, tc), r.elsewhere(e))
			}
		}
	}
	return all
}

// elsewhere is the mapping's source where the record is none of its.
func (g *group) elsewhere(e *entry, known bool) string {
	if g.concerns(e) && (e.delivered || !known) {
		return ""
	}
	return g.label
}

func (r *rule) elsewhere(e *entry) string {
	if r.concerns(e) {
		return ""
	}
	return r.source
}

func (g *group) told(told map[int]bool) bool {
	return told[g.index] || slices.ContainsFunc(g.rules, func(r *rule) bool { return told[r.index] })
}

// silence says why a mapping made nothing.
func (g *group) silence(ctx *evalContext, tc logContext) string {
	if !g.concerns(ctx.entry) {
		return "it is for records of " + g.label
	}
	ctx.entry.source = g.label
	if held, err := holds(g.condition, ctx, tc); err == nil && !held {
		return "the condition does not hold: " + oneLine(g.conditionText)
	}
	names := make([]string, len(g.rules))
	for i, r := range g.rules {
		names[i] = strings.TrimPrefix(r.label, g.label+"/")
	}
	why := "the condition of none of its rules holds: " + strings.Join(names, ", ")
	if ctx.entry.log.EventName() == "" {
		why += "; the record names no event"
	}
	return why
}

// silence says why a rule made nothing.
func (r *rule) silence(ctx *evalContext, tc logContext) string {
	if !r.concerns(ctx.entry) {
		return "it is for records of " + r.source
	}
	ctx.entry.source = r.sourceOf(ctx.entry)
	if held, err := holds(r.condition, ctx, tc); err == nil && !held {
		return "the condition does not hold: " + oneLine(r.conditionText)
	}
	return "for_each gives no item"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
