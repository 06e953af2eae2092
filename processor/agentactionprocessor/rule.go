package agentactionprocessor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gobwas/glob"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
)

// rule is a compiled RuleConfig for one kind of telemetry: K is the OTTL
// context of spans or of log records.
type rule[K any] struct {
	*ruleHead
	condition *ottl.Condition[K]
	// conditionText is how it is written.
	conditionText string

	subjectID, actionID, requestedAt, compensates expression[K]
	// optional are the fields without which an action is still worth recording.
	optional []field[K]
	params   []param[K]
}

// ruleHead is what a rule says without expressions.
type ruleHead struct {
	index      int
	name       string
	tool       string
	pattern    glob.Glob // nil where tool has no wildcards
	verified   verifiedactions.Type
	contract   string
	version    int
	kind       string
	actionType string
	paramsMode string
}

type field[K any] struct {
	name  string
	value expression[K]
	into  func(*engine.Action) *string
}

type param[K any] struct {
	name  string
	value expression[K]
}

// concerns says whether the rule is for this call, its condition apart.
func (r *ruleHead) concerns(c *call) bool {
	if r.verified != "" && r.verified != c.verified {
		return false
	}
	switch {
	case r.tool == "":
		return true
	case r.pattern != nil:
		return c.Tool != "" && r.pattern.Match(c.Tool)
	}
	return r.tool == c.Tool
}

// label is what errors and metrics call the rule.
func (r *ruleHead) label() string {
	if r.name != "" {
		return r.name
	}
	return "rules[" + strconv.Itoa(r.index) + "]"
}

// holds evaluates the condition.
func (r *rule[K]) holds(ctx *callContext, tc K) (bool, error) {
	if r.condition == nil {
		return true, nil
	}
	ctx.call.missed = nil
	held, err := r.condition.Eval(ctx, tc)
	if !held && ctx.call.missed != nil && !ctx.call.plain() {
		return false, &missing{field: "condition", expression: r.conditionText, reason: ctx.call.missed}
	}
	if err != nil {
		return false, fmt.Errorf("condition: %w", err)
	}
	return held, nil
}

// action fills in the action that the rule records of the call, and notes what
// had to be left out of it.
func (r *rule[K]) action(ctx *callContext, tc K, d *decision) (err error) {
	c, a := ctx.call, &d.action
	*a = engine.Action{
		ContractID:      r.contract,
		ContractVersion: r.version,
		WorkflowID:      c.Workflow,
		AgentID:         c.Agent,
		ActionType:      r.actionType,
		SubjectKind:     r.kind,
		TraceID:         c.trace(),
		SpanID:          c.SpanID.String(),
		SessionID:       c.Session,
		ReferenceID:     c.reference,
		Tool:            c.Tool,
		ReportedOutcome: string(c.Outcome),
	}
	if a.SubjectID, err = identified(ctx, tc, &r.subjectID, "subject_id"); err != nil {
		return err
	}
	if a.ActionID, err = r.id(ctx, tc); err != nil {
		return err
	}
	notes := damageNotes(c.Arguments)
	if a.RequestedAt, err = r.moment(ctx, tc); err != nil {
		return err
	}
	if r.requestedAt.configured() && c.missed != nil {
		notes = append(notes, fmt.Errorf("requested_at: %w", c.missed))
	}
	if a.Compensates, err = evalText(ctx, tc, &r.compensates); err != nil {
		return fmt.Errorf("compensates: %w", err)
	}
	if r.compensates.configured() && c.missed != nil {
		notes = append(notes, fmt.Errorf("compensates: %w", c.missed))
	}
	notes = append(notes, r.fillOptional(ctx, tc, a)...)
	var note error
	if a.Params, d.lost, note = r.evalParams(ctx, tc); note != nil {
		notes = append(notes, note)
	}
	d.note = errors.Join(notes...)
	*a, err = a.Normalize()
	return err
}

// fillOptional leaves out what does not work, and says so.
func (r *rule[K]) fillOptional(ctx *callContext, tc K, a *engine.Action) (notes []error) {
	for i := range r.optional {
		f := &r.optional[i]
		text, err := evalText(ctx, tc, &f.value)
		if err == nil && text != "" {
			err = engine.CheckOpaque(f.name, text)
		}
		switch {
		case err != nil:
			notes = append(notes, fmt.Errorf("%s: %w", f.name, err))
		case text != "":
			*f.into(a) = text
		case f.value.configured() && ctx.call.missed != nil:
			notes = append(notes, fmt.Errorf("%s: %w", f.name, ctx.call.missed))
		}
	}
	return notes
}

// identified is the text of an expression that names what the action is about.
// It is a [missing] where nothing does.
func identified[K any](ctx *callContext, tc K, e *expression[K], name string) (string, error) {
	text, err := evalText(ctx, tc, e)
	if err == nil && replaced(text) {
		ctx.call.missed = errReplaced
	}
	if notes := damageNotes(ctx.call.Arguments); text == "" && ctx.call.missed == nil && len(notes) > 0 {
		ctx.call.missed = notes[0]
	}
	if err != nil || text == "" || ctx.call.missed != nil {
		if ctx.call.missed != nil {
			err = nil // it says more, and nothing that the agent sent
		}
		return "", &missing{field: name, expression: e.text, reason: ctx.call.missed, err: err}
	}
	return text, nil
}

func evalText[K any](ctx *callContext, tc K, e *expression[K]) (string, error) {
	if !e.configured() {
		return "", nil
	}
	value, err := e.eval(ctx, tc)
	if err != nil {
		return "", err
	}
	if err := ottlvalue.Complete(value); err != nil {
		return "", err
	}
	return ottlvalue.Text(value)
}

var errNoID = errors.New("action_id: the telemetry has no trace id and no call id; set action_id in the rule")

// id is the configured action id, else that of the telemetry (decision D13).
func (r *rule[K]) id(ctx *callContext, tc K) (string, error) {
	id, err := evalText(ctx, tc, &r.actionID)
	if err != nil {
		return "", fmt.Errorf("action_id: %w", err)
	}
	if id != "" && (ctx.call.missed != nil || replaced(id)) {
		return "", &missing{field: "action_id", expression: r.actionID.text, reason: cmp.Or(ctx.call.missed, errReplaced)}
	}
	if id != "" {
		return id, nil
	}
	if id = ctx.call.actionID(); id == "" {
		return "", errNoID
	}
	return id, nil
}

var errNoTime = errors.New("requested_at: the telemetry has no time; set requested_at in the rule")

func (r *rule[K]) moment(ctx *callContext, tc K) (engine.Instant, error) {
	if r.requestedAt.configured() {
		value, err := r.requestedAt.eval(ctx, tc)
		if err != nil {
			return 0, fmt.Errorf("requested_at: %w", err)
		}
		if value != nil {
			instant, err := instantOrNanos(value)
			if err != nil {
				return 0, fmt.Errorf("requested_at: %w", err)
			}
			return instant, nil
		}
	}
	started := ctx.call.startedNanos()
	if started == 0 {
		return 0, errNoTime
	}
	return engine.InstantOfNanos(uint64(started)), nil
}

// instantOrNanos also reads Unix nanoseconds, as OTLP writes them.
func instantOrNanos(value any) (engine.Instant, error) {
	var nanos int64
	switch v := value.(type) {
	case int64:
		nanos = v
	case json.Number:
		var err error
		if nanos, err = strconv.ParseInt(v.String(), 10, 64); err != nil {
			return 0, fmt.Errorf("%w: %.40q are no whole nanoseconds", engine.ErrInstant, v.String())
		}
	default:
		return ottlvalue.Instant(value)
	}
	if nanos < 0 {
		return 0, fmt.Errorf("%w: %d nanoseconds are before the year 1970", engine.ErrInstant, nanos)
	}
	return engine.InstantOfNanos(uint64(nanos)), nil
}
