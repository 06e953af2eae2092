package dialect

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"
)

// logKey names a call across its records: call ids are unique in a session.
type logKey struct{ dialect, session, callID string }

// decision is a record that came before a call's result.
type decision struct {
	call Call
	used bool
}

// Logs recognises the tool calls in a batch of log records. Decision and
// result of a call are one; a rejected call has no result and is not_executed;
// an accepted one without a result in this batch is not known to have run, and
// its result makes the call when it comes.
func (r *Recognizer) Logs(ld plog.Logs) Batch {
	var found logCalls
	for i, resource := range ld.ResourceLogs().All() {
		for j, scope := range resource.ScopeLogs().All() {
			for k, record := range scope.LogRecords().All() {
				for _, d := range r.logs {
					if event := d.event(resource.Resource(), scope.Scope(), record); event != "" {
						v := &view{resource: resource.Resource(), scope: scope.Scope(), attrs: record.Attributes()}
						found.add(d, v, record, event, Position{i, j, k})
						break
					}
				}
			}
		}
	}
	return found.batch()
}

type logCalls struct {
	results   []Call
	keys      []logKey // of results
	decisions map[logKey]*decision
	order     []*decision // rejected ones, as they came
}

func (l *logCalls) add(d *logDialect, v *view, record plog.LogRecord, event string, p Position) {
	call := Call{ToolCall: d.call(v, record, event), At: p}
	key := logKey{d.Name, call.Session, call.CallID}
	if event == d.result {
		call.Start = earlier(call.End, duration(v))
		l.results = append(l.results, call)
		l.keys = append(l.keys, key)
		return
	}
	made := &decision{call: call}
	if slices.Contains(d.rejected, v.text("decision")) {
		l.order = append(l.order, made)
	}
	if call.CallID == "" {
		return
	}
	if l.decisions == nil {
		l.decisions = map[logKey]*decision{}
	}
	if l.decisions[key] == nil {
		l.decisions[key] = made
	}
}

func (l *logCalls) batch() Batch {
	b := Batch{Calls: l.results}
	for i := range b.Calls {
		made := l.decisions[l.keys[i]]
		if l.keys[i].callID == "" || made == nil {
			continue
		}
		made.used = true
		b.Calls[i].join(&made.call)
	}
	for _, made := range l.order {
		if !made.used {
			made.call.Outcome = NotExecuted
			made.call.sourced(fieldOutcome, made.call.Dialect+":attr:decision")
			b.Calls = append(b.Calls, made.call)
		}
	}
	slices.SortStableFunc(b.Calls, func(a, b Call) int { return a.At.compare(b.At) })
	return b
}

// join adds the decision's record to the result's: the call was requested
// when it was decided on.
func (c *Call) join(decision *Call) {
	if decision.Start != 0 && decision.Start <= c.End {
		c.Start = decision.Start
	}
	if c.TraceID.IsEmpty() {
		c.TraceID, c.SpanID = decision.TraceID, decision.SpanID
	}
	c.absorb(decision)
}

func (p Position) compare(q Position) int {
	return slices.Compare([]int{p.Resource, p.Scope, p.Item}, []int{q.Resource, q.Scope, q.Item})
}
