package evidenceprocessor

import (
	"errors"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
)

// rule is a compiled RuleConfig.
type rule struct {
	// index is the rule's place among the labels.
	index int
	label string
	// source is the only one that the rule is for; empty for any that was delivered.
	source    string
	condition *ottl.Condition[logContext]
	// conditionText is how it is written.
	conditionText string

	forEach, factType, subjectKind expression
	// firstSubject comes before subjectID.
	firstSubject, subjectID expression
	occurredAt, rawRef      expression
	whole                   expression
	attributes              []namedValue
	links                   []expression
	// watermark makes it a rule that reports, and makes nothing else.
	watermark expression
}

// kind is what the rule makes.
func (r *rule) kind() string {
	switch {
	case r.watermark.configured():
		return "watermark"
	case r.factType.configured():
		return "fact"
	}
	return "link"
}

type namedValue struct {
	name  string
	value expression
}

// made is what a rule made of a record, or of one item in it.
type made struct {
	// source says so.
	source string
	// fact is nil for a rule that only links, and where err says why there is
	// none. It is the entry's, and good until a rule makes the next one.
	fact  *engine.Fact
	links []engine.Link
	// watermark is what a rule that reports made.
	watermark *engine.Instant
	err       error
	// item is that of for_each which err is about; nil for the whole record.
	item any
}

// maxItems bounds how many facts one rule makes of one record.
const maxItems = 1000

// concerns says whether the rule is for records of this source.
func (r *rule) concerns(e *entry) bool {
	return !e.delivered || r.source == "" || r.source == e.delivery.Source
}

// holds evaluates a condition; none always holds.
func holds(condition *ottl.Condition[logContext], ctx *evalContext, tc logContext) (bool, error) {
	if condition == nil {
		return true, nil
	}
	held, err := condition.Eval(ctx, tc)
	if err != nil {
		return false, fmt.Errorf("condition: %w", err)
	}
	return held, nil
}

// apply makes what the rule makes of a record for which its condition holds.
func (r *rule) apply(ctx *evalContext, tc logContext, each func(made)) {
	if r.watermark.configured() {
		each(r.report(ctx, tc))
		return
	}
	if !r.forEach.configured() {
		each(r.one(ctx, tc))
		return
	}
	value, err := r.forEach.eval(ctx, tc)
	if err != nil {
		each(made{err: fmt.Errorf("for_each: %w", err)})
		return
	}
	list := ottlvalue.List(value)
	refs := map[string]int{}
	for i, item := range list {
		if i == maxItems {
			each(made{err: fmt.Errorf("for_each: there are %d items; only the first %d became facts", len(list), maxItems)})
			break
		}
		ctx.entry.item = item
		m := r.one(ctx, tc)
		if m.err == nil && m.fact != nil && r.rawRef.configured() {
			if other, ok := refs[m.fact.RawRef]; ok {
				m = made{err: fmt.Errorf("raw_ref: it is that of item %d; make it of something that tells items apart", other)}
			} else {
				refs[m.fact.RawRef] = i
			}
		}
		if m.err != nil {
			m.err, m.item = fmt.Errorf("item %d: %w", i, m.err), item
		}
		each(m)
	}
	ctx.entry.item = nil
}

func (r *rule) report(ctx *evalContext, tc logContext) made {
	at, err := timeOf(&r.watermark, ctx, tc)
	if err != nil {
		return made{err: fmt.Errorf("watermark: %w", err)}
	}
	return made{source: ctx.entry.source, watermark: &at}
}

func timeOf(e *expression, ctx *evalContext, tc logContext) (engine.Instant, error) {
	value, err := e.eval(ctx, tc)
	if err == nil && value == nil {
		err = errNoValue
	}
	if err != nil {
		return 0, err
	}
	return ottlvalue.Instant(value)
}

func (r *rule) one(ctx *evalContext, tc logContext) made {
	subject, err := r.subject(ctx, tc)
	if err != nil {
		return made{err: fmt.Errorf("subject_id: %w", err)}
	}
	m := made{source: ctx.entry.source}
	if r.factType.configured() {
		m.fact = &ctx.entry.fact
		if *m.fact, err = r.fact(ctx, tc, m.source, subject); err != nil {
			return made{err: err}
		}
	}
	if m.links, err = r.link(ctx, tc, subject); err != nil {
		return made{err: err}
	}
	return m
}

var (
	errNoValue = errors.New("the expression gave no value")
	errNoTime  = errors.New("the log record has no time; say in the rule when it happened")
)

func (r *rule) subject(ctx *evalContext, tc logContext) (string, error) {
	text, err := r.firstSubject.text(ctx, tc)
	if errors.Is(err, ottlvalue.ErrPartMissing) {
		err = nil
	}
	if err == nil && text == "" {
		text, err = r.subjectID.text(ctx, tc)
	}
	if err != nil {
		return "", err
	}
	if text == "" {
		return "", errNoValue
	}
	return text, engine.CheckOpaque("it", text)
}

// sourceOf: a delivery is of its receiver's source, whatever it says.
func (r *rule) sourceOf(e *entry) string {
	if e.delivered {
		return e.delivery.Source
	}
	return r.source
}

func (r *rule) fact(ctx *evalContext, tc logContext, source, subject string) (fact engine.Fact, err error) {
	fact = engine.Fact{Source: source, SubjectID: subject}
	if fact.Type, err = r.needed("fact_type", &r.factType, ctx, tc); err != nil {
		return engine.Fact{}, err
	}
	if fact.SubjectKind, err = r.subjectKind.text(ctx, tc); err != nil {
		return engine.Fact{}, fmt.Errorf("subject_kind: %w", err)
	}
	if fact.OccurredAt, err = r.moment(ctx, tc); err != nil {
		return engine.Fact{}, fmt.Errorf("occurred_at: %w", err)
	}
	if fact.Attributes, err = r.evalAttributes(ctx, tc); err != nil {
		return engine.Fact{}, err
	}
	// A reference with a hole would be shared by all records that lack the part.
	if r.rawRef.configured() {
		if fact.RawRef, err = r.needed("raw_ref", &r.rawRef, ctx, tc); err != nil {
			return engine.Fact{}, err
		}
	}
	return fact.Normalize()
}

func (r *rule) needed(key string, e *expression, ctx *evalContext, tc logContext) (string, error) {
	text, err := e.text(ctx, tc)
	if err == nil && text == "" {
		err = errNoValue
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return text, nil
}

// moment is when it happened: never when it was received, which is no property of the fact.
func (r *rule) moment(ctx *evalContext, tc logContext) (engine.Instant, error) {
	if r.occurredAt.configured() {
		return timeOf(&r.occurredAt, ctx, tc)
	}
	at := ctx.entry.log.Timestamp()
	if at == 0 {
		return 0, errNoTime
	}
	return engine.InstantOfNanos(uint64(at)), nil
}

// evalAttributes leaves out what has no value. What fails fails the fact: one
// without its amount would pass every limit (decision D3).
func (r *rule) evalAttributes(ctx *evalContext, tc logContext) (engine.Object, error) {
	var members []engine.Member
	if r.whole.configured() {
		whole, err := r.evalWhole(ctx, tc)
		if err != nil {
			return engine.Object{}, fmt.Errorf("attributes: %w", err)
		}
		members = ottlvalue.Members(whole, len(r.attributes))
	} else {
		members = make([]engine.Member, 0, len(r.attributes))
	}
	for i := range r.attributes {
		a := &r.attributes[i]
		value, err := a.value.eval(ctx, tc)
		if err != nil {
			return engine.Object{}, fmt.Errorf("attributes.%s: %w", a.name, err)
		}
		if value != nil {
			members = with(members, engine.Member{Name: a.name, Value: ottlvalue.Member(value)})
		}
	}
	object, err := engine.NewObject(engine.MapValue(members))
	if err != nil {
		return engine.Object{}, fmt.Errorf("attributes: %w", err)
	}
	return object, nil
}

// with adds a member; of one name the last counts.
func with(members []engine.Member, m engine.Member) []engine.Member {
	for i := range members {
		if members[i].Name == m.Name {
			members[i] = m
			return members
		}
	}
	return append(members, m)
}

func (r *rule) evalWhole(ctx *evalContext, tc logContext) (map[string]any, error) {
	value, err := r.whole.eval(ctx, tc)
	if err != nil {
		return nil, err
	}
	object, ok := ottlvalue.Map(value)
	if !ok {
		return nil, fmt.Errorf("it is a %s; a map is needed", ottlvalue.Kind(value))
	}
	return object, nil
}

// link connects the fact's subject with others. What has no value, and the subject itself, are left out.
func (r *rule) link(ctx *evalContext, tc logContext, subject string) ([]engine.Link, error) {
	var links []engine.Link
	for i := range r.links {
		value, err := r.links[i].eval(ctx, tc)
		if err != nil {
			return nil, fmt.Errorf("links[%d]: %w", i, err)
		}
		for _, item := range ottlvalue.List(value) {
			text, err := ottlvalue.Text(item)
			if err != nil {
				return nil, fmt.Errorf("links[%d]: %w", i, err)
			}
			if text == "" || text == subject {
				continue
			}
			l := engine.Link{SubjectID: subject, LinkedSubjectID: text}
			if err := l.Check(); err != nil {
				return nil, fmt.Errorf("links[%d]: %w", i, err)
			}
			links = append(links, l)
		}
	}
	return links, nil
}
