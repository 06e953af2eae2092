package emit

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Scope is the instrumentation scope of all verdict telemetry. The agent side
// knows it and never takes a verdict for an action.
const Scope = "github.com/countersign-otel/countersign/verifier"

// Events of the outbox, which are also the names of log events.
const (
	Pending     = "action.pending"
	Verified    = "action.verified"
	Compensated = "action.compensated"
)

// EvaluationResult is the event of the GenAI semantic conventions (semconv v1.41.0).
const (
	EvaluationResult      = "gen_ai.evaluation.result"
	evaluationName        = "gen_ai.evaluation.name"
	evaluationLabel       = "gen_ai.evaluation.score.label"
	evaluationScore       = "gen_ai.evaluation.score.value"
	evaluationExplanation = "gen_ai.evaluation.explanation"
)

// item is one event with what it is told with.
type item struct {
	ledger.OutboxEvent
	view view.Verification
	// digest is the content hash of the contract version; empty when unknown.
	digest string
	// corrected is the action that a compensation corrects; nil for none.
	corrected *ledger.StoredAction
}

// writer makes telemetry of events.
type writer struct {
	config  Config
	version string
}

// write makes the logs and spans of a batch.
func (w writer) write(items []item) (plog.Logs, ptrace.Traces) {
	logs, traces := plog.NewLogs(), ptrace.NewTraces()
	resourceLogs := logs.ResourceLogs().AppendEmpty()
	w.resource(resourceLogs.Resource().Attributes())
	scopeLogs := resourceLogs.ScopeLogs().AppendEmpty()
	scopeLogs.Scope().SetName(Scope)
	scopeLogs.Scope().SetVersion(w.version)

	resourceSpans := traces.ResourceSpans().AppendEmpty()
	w.resource(resourceSpans.Resource().Attributes())
	scopeSpans := resourceSpans.ScopeSpans().AppendEmpty()
	scopeSpans.Scope().SetName(Scope)
	scopeSpans.Scope().SetVersion(w.version)

	for i := range items {
		w.events(scopeLogs.LogRecords(), &items[i])
		if items[i].Kind == Verified && w.config.SpanMode != Off {
			w.spans(scopeSpans.Spans(), &items[i])
		}
	}
	return logs, traces
}

func (w writer) resource(attributes pcommon.Map) {
	attributes.PutStr("service.name", "countersign")
	if w.version != "" {
		attributes.PutStr("service.version", w.version)
	}
	for key, text := range w.config.Resource {
		attributes.PutStr(key, text)
	}
}

func (w writer) events(records plog.LogRecordSlice, i *item) {
	if i.Kind == Verified {
		w.evaluation(records.AppendEmpty(), i, engine.Outcome, i.Run.Outcome)
		w.evaluation(records.AppendEmpty(), i, engine.Policy, i.Run.Policy)
	}
	record := records.AppendEmpty()
	w.start(record, i, i.Kind, i.Kind)
	attributes := record.Attributes()
	w.pair(attributes, i)
	switch i.Kind {
	case Verified:
		severity(record, i.Run.Policy.Raw)
	case Compensated:
		w.correction(record, i)
	}
}

// evaluation is one lens as an event of the GenAI conventions.
func (w writer) evaluation(record plog.LogRecord, i *item, lens engine.Lens, verdict ledger.StoredVerdict) {
	w.start(record, i, EvaluationResult, string(lens))
	severity(record, verdict.Raw)
	attributes := record.Attributes()
	attributes.PutStr(evaluationName, "action."+string(lens))
	attributes.PutStr(evaluationLabel, label(verdict.Raw))
	switch verdict.Raw {
	case engine.Verified:
		attributes.PutDouble(evaluationScore, 1)
	case engine.NotVerified:
		attributes.PutDouble(evaluationScore, 0)
	}
	attributes.PutStr(evaluationExplanation, i.view.Summary.Headline)
	attributes.PutStr("countersign.lens", string(lens))
	attributes.PutStr("countersign.verdict", verdict.Raw.Label())
	attributes.PutStr("countersign.raw_verdict", string(verdict.Raw))
	putTexts(attributes, "countersign.reasons", verdict.Reasons)
	attributes.PutStr("countersign.verdict.hash", hex.EncodeToString(verdict.Hash[:]))
	attributes.PutInt("countersign.verdict.seq", verdict.Seq)
	attributes.PutStr("countersign.chain.hash", hex.EncodeToString(verdict.ChainHash[:]))
	if replaced := replacedVerdict(i, lens); replaced != nil {
		attributes.PutStr("countersign.previous.verdict", replaced.Raw.Label())
		attributes.PutStr("countersign.previous.hash", hex.EncodeToString(replaced.Hash[:]))
	}
}

// replacedVerdict is the verdict of the same lens in the run that this one replaces; nil for the first.
func replacedVerdict(i *item, lens engine.Lens) *ledger.StoredVerdict {
	switch {
	case i.Previous == nil:
		return nil
	case lens == engine.Outcome:
		return &i.Previous.Outcome
	}
	return &i.Previous.Policy
}

// start fills in what all events share: they stand on the action's span.
func (w writer) start(record plog.LogRecord, i *item, name, idPart string) {
	record.SetEventName(name)
	record.SetTimestamp(stamp(i.Run.ComputedAt))
	// Observed when computed, so that the same event is the same bytes whenever it is sent.
	record.SetObservedTimestamp(stamp(i.Run.ComputedAt))
	record.SetTraceID(traceID(i.Action.Action.TraceID))
	record.SetSpanID(spanID(i.Action.Action.SpanID))
	record.SetSeverityNumber(plog.SeverityNumberInfo)
	record.SetSeverityText("INFO")
	record.Body().SetStr(i.view.Summary.Headline)
	attributes := record.Attributes()
	attributes.PutStr("countersign.event.id", eventID(i, name, idPart))
	w.about(attributes, i)
}

// about says which action, contract and run.
func (w writer) about(attributes pcommon.Map, i *item) {
	a := i.Action.Action
	attributes.PutStr("countersign.tenant", i.Tenant)
	attributes.PutStr("countersign.action.id", a.ActionID)
	attributes.PutStr("countersign.action.claim_id", i.Action.ClaimID)
	putText(attributes, "countersign.action.type", a.ActionType)
	putText(attributes, "countersign.agent.id", a.AgentID)
	putText(attributes, "countersign.workflow.id", a.WorkflowID)
	putText(attributes, "countersign.tool", a.Tool)
	attributes.PutStr("countersign.subject.id", a.SubjectID)
	attributes.PutStr("countersign.subject.kind", a.SubjectKind)
	attributes.PutStr("countersign.contract.id", i.Run.Contract.ID)
	attributes.PutInt("countersign.contract.version", int64(i.Run.Contract.Version))
	putText(attributes, "countersign.contract.hash", i.digest)
	attributes.PutStr("countersign.status", i.Run.Status)
	attributes.PutStr("countersign.run.id", i.Run.ID)
	attributes.PutInt("countersign.run.seq", i.Run.Seq)
	attributes.PutStr("countersign.run.triggered_by", i.Run.TriggeredBy)
	if i.Run.PreviousSeq != 0 {
		// A superseding verdict names the run that it replaces.
		attributes.PutInt("countersign.previous.seq", i.Run.PreviousSeq)
		attributes.PutBool("countersign.changed", i.Run.Changed)
	}
	if i.Previous != nil {
		attributes.PutStr("countersign.previous.run.id", i.Previous.ID)
		attributes.PutStr("countersign.previous.status", i.Previous.Status)
	}
	if trust := i.view.Summary.EvidenceTrust; trust != nil {
		attributes.PutStr("countersign.evidence.trust", trust.String())
	}
	putTexts(attributes, "countersign.evidence", evidence(i.view.Checks))
	if at := i.view.Settlement.SettlesAt; at != nil {
		attributes.PutStr("countersign.settlement.settles_at", at.String())
	}
	putTexts(attributes, "countersign.settlement.waiting_on", names(i.view.Settlement.WaitingOn))
	putTexts(attributes, "countersign.settlement.stale_sources", names(i.view.Settlement.StaleSources))
	if w.config.PublicURL != "" {
		// The address was checked when the settings were read.
		link, _ := url.JoinPath(w.config.PublicURL, "v1/actions", url.PathEscape(a.ActionID))
		attributes.PutStr("countersign.url", link)
	}
}

// pair says both verdicts.
func (w writer) pair(attributes pcommon.Map, i *item) {
	for _, lens := range []struct {
		name    engine.Lens
		verdict ledger.StoredVerdict
	}{{engine.Outcome, i.Run.Outcome}, {engine.Policy, i.Run.Policy}} {
		prefix := "countersign." + string(lens.name)
		attributes.PutStr(prefix+".verdict", lens.verdict.Raw.Label())
		putTexts(attributes, prefix+".reasons", lens.verdict.Reasons)
		attributes.PutStr(prefix+".hash", hex.EncodeToString(lens.verdict.Hash[:]))
		if replaced := replacedVerdict(i, lens.name); replaced != nil {
			attributes.PutStr(prefix+".previous_verdict", replaced.Raw.Label())
			attributes.PutStr(prefix+".previous_hash", hex.EncodeToString(replaced.Hash[:]))
		}
	}
}

// correction tells a compensation on the span of the action that is corrected:
// that is where people look (decision D18).
func (w writer) correction(record plog.LogRecord, i *item) {
	attributes := record.Attributes()
	attributes.PutStr("countersign.compensates", i.Action.Action.Compensates)
	attributes.PutStr("countersign.compensated_by", i.Action.Action.ActionID)
	record.Body().SetStr(fmt.Sprintf("%s COMPENSATED by %s", i.Action.Action.Compensates, i.Action.Action.ActionID))
	if i.corrected == nil {
		return // named, but never recorded: the event stands on the correcting action's span
	}
	record.SetTraceID(traceID(i.corrected.Action.TraceID))
	record.SetSpanID(spanID(i.corrected.Action.SpanID))
	attributes.PutStr("countersign.compensates.claim_id", i.corrected.ClaimID)
}

// evidence lists the records behind the checks, each once.
func evidence(checks []report.Check) []string {
	var refs []string
	for _, check := range checks {
		if check.Evidence != nil && !slices.Contains(refs, check.Evidence.RawRef) {
			refs = append(refs, check.Evidence.RawRef)
		}
	}
	return refs
}

func names(lagging []report.Lagging) []string {
	var list []string
	for _, l := range lagging {
		list = append(list, l.Source)
	}
	return list
}

func label(raw engine.RawVerdict) string {
	switch raw {
	case engine.Verified:
		return "pass"
	case engine.NotVerified:
		return "fail"
	}
	return "unknown"
}

// severity is INFO, WARN or ERROR for PASS, UNKNOWN or FAIL.
func severity(record plog.LogRecord, raw engine.RawVerdict) {
	number, text := plog.SeverityNumberWarn, "WARN"
	switch raw {
	case engine.Verified:
		number, text = plog.SeverityNumberInfo, "INFO"
	case engine.NotVerified:
		number, text = plog.SeverityNumberError, "ERROR"
	}
	record.SetSeverityNumber(number)
	record.SetSeverityText(text)
}

func stamp(at engine.Instant) pcommon.Timestamp { return pcommon.NewTimestampFromTime(at.Time()) }

func putText(attributes pcommon.Map, key, text string) {
	if text != "" {
		attributes.PutStr(key, text)
	}
}

func putTexts(attributes pcommon.Map, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	slice := attributes.PutEmptySlice(key)
	slice.EnsureCapacity(len(texts))
	for _, text := range texts {
		slice.AppendEmpty().SetStr(text)
	}
}
