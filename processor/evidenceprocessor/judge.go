package evidenceprocessor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// logs judges one batch of log records. Nothing of what goes wrong stops the telemetry.
func (j *judge) logs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	b := j.begin(ctx)
	j.each(ld, b, func(tc logContext, e *entry) { j.record(b, tc, e) })
	j.counters.add(ctx, b.tally)
	return ld, nil
}

// batch is what is known while one batch is judged.
type batch struct {
	context.Context
	*tally
	tenant string
	// noTenant says why nothing of this batch can become a fact.
	noTenant error
}

func (j *judge) begin(ctx context.Context) *batch {
	b := &batch{Context: ctx, tally: newTally()}
	b.tenant, b.noTenant = j.tenancy.Of(ctx)
	return b
}

// each goes over a batch, takes what only this project may have written off
// it, and hands over every record with how it came.
// The entry is good until do returns: one serves them all.
func (j *judge) each(ld plog.Logs, b *batch, do func(logContext, *entry)) {
	e := new(entry)
	for _, resource := range ld.ResourceLogs().All() {
		b.stripped += int64(record.Strip(resource.Resource().Attributes()))
		for _, scope := range resource.ScopeLogs().All() {
			b.stripped += int64(record.Strip(scope.Scope().Attributes()))
			for _, log := range scope.LogRecords().All() {
				j.open(b, e, log)
				tc := ottllog.NewTransformContext(resource, scope, log)
				do(tc, e)
				tc.Close()
			}
		}
	}
}

// open reads how a record came, then removes that and all else under our prefix.
func (j *judge) open(b *batch, e *entry, log plog.LogRecord) {
	*e = entry{log: log, members: e.members}
	e.delivery, e.delivered = j.sealer.Read(log)
	if _, claims := log.Attributes().Get(delivery.Key); claims {
		log.Attributes().Remove(delivery.Key)
		if !e.delivered {
			b.unseals++
			b.stripped++
		}
	}
	b.stripped += int64(record.Strip(log.Attributes()))
}

// record writes on a record what the rules make of it, and what they could not make.
func (j *judge) record(b *batch, tc logContext, e *entry) {
	outcome := recordNoRule
	failed := failures{entry: e}
	var linked map[engine.Link]bool
	j.ask(b, tc, e, func(label int, m made) {
		switch {
		case m.err == nil:
			if len(m.links) > 0 && linked == nil {
				linked = map[engine.Link]bool{}
			}
			m.links = slices.DeleteFunc(m.links, func(l engine.Link) bool {
				known := linked[l]
				linked[l] = true
				return known
			})
			j.write(b, e, label, m)
			if outcome == recordNoRule {
				outcome = recordFacts
			}
			return
		case errors.Is(m.err, errBody):
			if outcome == recordUnreadable {
				return // once a record, not once a rule
			}
			outcome = recordUnreadable
			record.PutError(e.log.Attributes(), e.bodyErr.Error())
			failed.add(j, label, m)
			return
		case errors.Is(m.err, errNoTrust):
			b.facts[factCount{label, factNoTrust}]++
		default:
			b.facts[factCount{label, factFailed}]++
		}
		outcome = recordFailed
		record.PutError(e.log.Attributes(), j.labels[label]+": no "+j.kinds[label]+": "+m.err.Error())
		failed.add(j, label, m)
	})
	if len(failed.all) > 0 {
		failed.write(j.path(b, e))
	}
	b.records[outcome]++
}

// write puts on the record what a rule made of it.
func (j *judge) write(b *batch, e *entry, label int, m made) {
	came, carrier := j.path(b, e), e.log.Attributes()
	for _, l := range m.links {
		record.AppendLink(carrier, record.Link{
			Tenant: came.Tenant, Source: m.source, Connection: came.Connection, Trust: came.Trust, Link: l,
		})
	}
	b.links[label] += int64(len(m.links))
	if m.fact != nil {
		record.AppendFact(carrier, record.Fact{Tenant: came.Tenant, Connection: came.Connection, Trust: came.Trust, Fact: *m.fact})
		b.facts[factCount{label, factMade}]++
	}
	if m.watermark != nil {
		record.AppendWatermark(carrier, record.Watermark{
			Tenant: came.Tenant, Source: m.source, Connection: came.Connection, Trust: came.Trust,
			At: *m.watermark, ReceivedNanos: j.now().UnixNano(),
		})
		b.watermarks[label]++
	}
}

// path is how a record came, by its receiver or by the configuration.
func (j *judge) path(b *batch, e *entry) delivery.Delivery {
	came := delivery.Delivery{Connection: j.connection, Trust: j.trust}
	if e.delivered {
		came = e.delivery
	}
	if came.Tenant == "" {
		came.Tenant = b.tenant
	}
	return came
}

var errNoTrust = errors.New("no evidence receiver delivered the record, and trust is not set for others; set it where only systems of record can reach the pipeline")

// may says why nothing can be made of a record, whatever a rule says.
func (j *judge) may(b *batch, e *entry) error {
	switch {
	case b.noTenant != nil:
		return b.noTenant
	case !e.delivered && j.trust == engine.UnknownTrust:
		return errNoTrust
	case e.delivery.Tenant != "" && b.tenant != "" && e.delivery.Tenant != b.tenant:
		return fmt.Errorf("tenant: the receiver's is %.80q, and this processor's %.80q", e.delivery.Tenant, b.tenant)
	}
	return nil
}

// ask lets every rule make what it makes of a record. label is that of the
// rule, or of the mapping whose condition could not be evaluated.
func (j *judge) ask(b *batch, tc logContext, e *entry, each func(label int, m made)) {
	e.context = evalContext{b.Context, e}
	for _, g := range j.groups {
		j.askGroup(b, g, &e.context, tc, each)
	}
}

func (j *judge) askGroup(b *batch, g *group, ctx *evalContext, tc logContext, each func(int, made)) {
	if !g.concerns(ctx.entry) {
		return
	}
	ctx.entry.source = ctx.entry.delivery.Source
	if g.ready {
		ctx.entry.source = g.label
	}
	held, err := holds(g.condition, ctx, tc)
	if err != nil {
		each(g.index, made{err: err})
	}
	if !held {
		return
	}
	for _, r := range g.rules {
		if !r.concerns(ctx.entry) {
			continue
		}
		ctx.entry.source = r.sourceOf(ctx.entry)
		held, err := holds(r.condition, ctx, tc)
		if err == nil && held {
			err = j.may(b, ctx.entry)
		}
		switch {
		case err != nil:
			each(r.index, made{err: err})
		case held:
			r.apply(ctx, tc, func(m made) { each(r.index, m) })
		}
	}
}

// concerns says whether any rule of the group is for the record.
func (g *group) concerns(e *entry) bool {
	for _, r := range g.rules {
		if r.concerns(e) {
			return true
		}
	}
	return false
}
