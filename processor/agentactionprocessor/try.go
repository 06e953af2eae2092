package agentactionprocessor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// TryResult says what the processor makes of one recognised tool call. What
// the telemetry does not say is null.
type TryResult struct {
	SpanID    *string `json:"span_id"`
	Dialect   string  `json:"dialect"`
	Tool      *string `json:"tool"`
	CallID    *string `json:"call_id"`
	Arguments any     `json:"arguments"`
	Result    any     `json:"result"`
	// Agent and Session are completed from trace context in the same input (decision D31).
	Agent   *string `json:"agent"`
	Session *string `json:"session"`
	Outcome string  `json:"outcome"`
	// Why says what is wrong with metadata of VerifiedActions that does not
	// read. It is no call then: only Dialect and SpanID are set beside it.
	Why string `json:"why,omitempty"`
	// Rules are those that are for this tool, in their order.
	Rules []TryRule `json:"rules"`
}

// TryRule says what one rule makes of the call.
type TryRule struct {
	Rule       string `json:"rule"`
	ContractID string `json:"contract_id"`
	// Action is null when nothing is recorded; Why says why, or what is left out.
	Action *TryAction `json:"action"`
	Why    string     `json:"why"`
}

// TryAction is the action that would be recorded, in the fields of the HTTP API.
type TryAction struct {
	ActionID        string         `json:"action_id"`
	ContractID      string         `json:"contract_id"`
	ContractVersion *int           `json:"contract_version"`
	WorkflowID      *string        `json:"workflow_id"`
	AgentID         *string        `json:"agent_id"`
	ActionType      *string        `json:"action_type"`
	SubjectID       string         `json:"subject_id"`
	SubjectKind     *string        `json:"subject_kind"`
	RequestedAt     engine.Instant `json:"requested_at"`
	Params          engine.Object  `json:"params"`
	Channel         *string        `json:"channel"`
	Compensates     *string        `json:"compensates"`
	TraceID         *string        `json:"trace_id"`
	SpanID          *string        `json:"span_id"`
	SessionID       *string        `json:"session_id"`
	ReferenceID     *string        `json:"reference_id"`
}

// NewTryConfig recognises all dialects, experimental ones too, and has no rules.
func NewTryConfig() *Config {
	config := NewDefaultConfig()
	for _, info := range dialect.Names() {
		config.Dialects = append(config.Dialects, info.Name)
	}
	return config
}

// Try says what the processor makes of OTLP/JSON: traces or logs, one document
// or several after each other. It changes and records nothing. What does not
// read is a diagnostic.Diagnostic.
func Try(config *Config, otlpJSON []byte) ([]TryResult, error) {
	p, err := newBareAnnotator(config)
	if err != nil {
		return nil, err
	}
	results := []TryResult{}
	err = diagnostic.JSONDocuments(otlpJSON, func(document json.RawMessage) error {
		found, err := p.tryDocument(document)
		results = append(results, found...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// TryTraces is Try for one batch of spans.
func TryTraces(config *Config, td ptrace.Traces) ([]TryResult, error) {
	p, err := newBareAnnotator(config)
	if err != nil {
		return nil, err
	}
	own := ptrace.NewTraces()
	td.CopyTo(own)
	return p.tryTraces(own), nil
}

// TryLogs is Try for one batch of log records.
func TryLogs(config *Config, ld plog.Logs) ([]TryResult, error) {
	p, err := newBareAnnotator(config)
	if err != nil {
		return nil, err
	}
	own := plog.NewLogs()
	ld.CopyTo(own)
	return p.tryLogs(own), nil
}

func (p *annotator) tryDocument(document json.RawMessage) ([]TryResult, error) {
	var kind struct {
		Traces *json.RawMessage `json:"resourceSpans"`
		Logs   *json.RawMessage `json:"resourceLogs"`
	}
	if err := json.Unmarshal(document, &kind); err != nil || (kind.Traces == nil && kind.Logs == nil) {
		return nil, errors.New("is no OTLP/JSON: it has neither resourceSpans nor resourceLogs at the top; write what an OTLP exporter sends as JSON")
	}
	if kind.Traces != nil {
		td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(document)
		if err != nil {
			return nil, fmt.Errorf("is no OTLP/JSON traces: %w", err)
		}
		return p.tryTraces(td), nil
	}
	ld, err := new(plog.JSONUnmarshaler).UnmarshalLogs(document)
	if err != nil {
		return nil, fmt.Errorf("is no OTLP/JSON logs: %w", err)
	}
	return p.tryLogs(ld), nil
}

// trial is one call and how its rules are asked.
type trial struct {
	call
	at     dialect.Position
	decide func(c *call, each func(*decision))
	// unreadable says why this is no call.
	unreadable error
}

// unreadable are trials of metadata that does not read, on one carrier.
func unreadable(carrier dialect.ToolCall, at dialect.Position, errs []error) []trial {
	trials := make([]trial, len(errs))
	for i, err := range errs {
		trials[i] = trial{call: call{ToolCall: &carrier}, at: at, unreadable: err}
	}
	return trials
}

func (p *annotator) tryTraces(td ptrace.Traces) []TryResult {
	scan := newScanner(&p.metadata)
	scan.traces(td)
	found := p.recognizer.Traces(td)
	var trials []trial
	add := func(c call, at dialect.Position) {
		trials = append(trials, trial{call: c, at: at, decide: func(c *call, each func(*decision)) {
			place := spanAt(td, at)
			tc := ottlspan.NewTransformContext(place.resource, place.scope, place.span)
			defer tc.Close()
			decide(context.Background(), new(scratch), p.spanRules, tc, c, each)
		}})
	}
	for i := range found.Calls {
		if at := spanAt(td, found.Calls[i].At); !isOwn(at.scope.Scope()) {
			add(ofSpan(found.Calls[i].ToolCall, at.span.Attributes()), found.Calls[i].At)
		}
	}
	for _, m := range scan.found {
		at := spanAt(td, m.Position)
		calls, errs := p.metadata.callsOfSpan(at)
		for _, c := range calls {
			add(c, m.Position)
		}
		trials = append(trials, unreadable(carrierOfSpan(at), m.Position, errs)...)
	}
	return results(trials, found.Contexts)
}

func (p *annotator) tryLogs(ld plog.Logs) []TryResult {
	scan := newScanner(&p.metadata)
	scan.logs(ld)
	found := p.recognizer.Logs(ld)
	var trials []trial
	add := func(c call, at dialect.Position) {
		trials = append(trials, trial{call: c, at: at, decide: func(c *call, each func(*decision)) {
			place := logAt(ld, at)
			tc := ottllog.NewTransformContext(place.resource, place.scope, place.entry)
			defer tc.Close()
			decide(context.Background(), new(scratch), p.logRules, tc, c, each)
		}})
	}
	for i := range found.Calls {
		if !isOwn(logAt(ld, found.Calls[i].At).scope.Scope()) {
			add(call{ToolCall: found.Calls[i].ToolCall}, found.Calls[i].At)
		}
	}
	for _, m := range scan.found {
		at := logAt(ld, m.Position)
		calls, errs := p.metadata.callsOfLog(at)
		for _, c := range calls {
			add(c, m.Position)
		}
		trials = append(trials, unreadable(carrierOfLog(at), m.Position, errs)...)
	}
	return results(trials, found.Contexts)
}

// results asks the rules about every call as it stands, and completes what is
// shown as the ledger will.
func results(trials []trial, contexts []dialect.Context) []TryResult {
	slices.SortStableFunc(trials, func(a, b trial) int {
		return slices.Compare(ordinals(a.at), ordinals(b.at))
	})
	whole := dialect.Batch{Contexts: contexts}
	for i := range trials {
		whole.Calls = append(whole.Calls, dialect.Call{ToolCall: trials[i].ToolCall, At: trials[i].at})
	}
	whole = whole.Complete()
	shown := make([]TryResult, len(trials))
	for i := range trials {
		shown[i] = trials[i].result(whole.Calls[i].ToolCall)
	}
	return shown
}

func (t *trial) result(completed *dialect.ToolCall) TryResult {
	if t.unreadable != nil {
		return TryResult{
			SpanID: orNull(completed.SpanID.String()), Dialect: completed.Dialect, Outcome: string(dialect.Unknown),
			Rules: []TryRule{}, Why: t.unreadable.Error(),
		}
	}
	r := TryResult{
		SpanID: orNull(completed.SpanID.String()), Dialect: completed.Dialect,
		Tool: orNull(completed.Tool), CallID: orNull(completed.CallID),
		Arguments: completed.Arguments.Value, Result: completed.Result.Value,
		Agent: orNull(completed.Agent), Session: orNull(completed.Session),
		Outcome: string(completed.Outcome), Rules: []TryRule{},
	}
	t.decide(&t.call, func(d *decision) {
		r.Rules = append(r.Rules, d.shown(completed))
	})
	return r
}

func (d *decision) shown(completed *dialect.ToolCall) TryRule {
	r := TryRule{Rule: d.rule.label(), ContractID: d.rule.contract}
	switch {
	case completed.Outcome == dialect.NotExecuted:
		r.Why = "the runtime did not execute the call"
	case d.skipped:
		r.Why = "the condition does not hold"
	case d.err != nil:
		r.Why = d.err.Error()
	default:
		r.Action = tryAction(&d.action, completed)
		r.Why = "recorded"
		if d.note != nil {
			r.Why = "recorded without: " + d.note.Error()
		}
	}
	return r
}

func tryAction(a *engine.Action, completed *dialect.ToolCall) *TryAction {
	shown := &TryAction{
		ActionID: a.ActionID, ContractID: a.ContractID, WorkflowID: orNull(a.WorkflowID),
		AgentID: firstOrNull(a.AgentID, completed.Agent), ActionType: orNull(a.ActionType),
		SubjectID: a.SubjectID, SubjectKind: orNull(a.SubjectKind),
		RequestedAt: a.RequestedAt, Params: a.Params,
		Channel: orNull(a.Channel), Compensates: orNull(a.Compensates),
		TraceID: orNull(a.TraceID), SpanID: orNull(a.SpanID),
		SessionID: firstOrNull(a.SessionID, completed.Session), ReferenceID: orNull(a.ReferenceID),
	}
	if version := a.ContractVersion; version != 0 {
		shown.ContractVersion = &version
	}
	return shown
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func firstOrNull(first, second string) *string {
	if first != "" {
		return &first
	}
	return orNull(second)
}

func ordinals(at dialect.Position) []int { return []int{at.Resource, at.Scope, at.Item} }
