package dialect

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// logDialect is how one program writes tool calls in log records: a record of
// the decision to run the tool, and one of its result.
type logDialect struct {
	Info
	// result and decision are the names of the two events.
	result, decision string
	// bareNames: event.name may lack the part before the dot; the record's
	// body, its scope or its service must then say whose event it is.
	scope, service string

	tool, callID             texts
	arguments, output        values
	agent, session, workflow texts
	mcpServer                texts

	// rejected are the decisions after which the tool is not run.
	rejected []string
}

func labelledLogs(dialects ...*logDialect) []*logDialect {
	for _, d := range dialects {
		for _, list := range []texts{d.tool, d.callID, d.agent, d.session, d.workflow, d.mcpServer} {
			list.prefix(d.Name)
		}
		d.arguments.prefix(d.Name)
		d.output.prefix(d.Name)
	}
	return dialects
}

// event names the record's event, "" when it is none of this dialect's.
func (d *logDialect) event(resource pcommon.Resource, scope pcommon.InstrumentationScope, record plog.LogRecord) string {
	name := record.EventName()
	if name == "" {
		name = textAt(record.Attributes(), "event.name")
	}
	body := ""
	if record.Body().Type() == pcommon.ValueTypeStr {
		body = record.Body().Str()
	}
	for _, full := range [...]string{d.result, d.decision} {
		if name == full || body == full {
			return full
		}
		if d.scope != "" && name != "" && name == bare(full) && d.isOwn(resource, scope) {
			return full
		}
	}
	return ""
}

// bare is an event's name without the program's.
func bare(full string) string { return full[strings.IndexByte(full, '.')+1:] }

func (d *logDialect) isOwn(resource pcommon.Resource, scope pcommon.InstrumentationScope) bool {
	return strings.HasPrefix(scope.Name(), d.scope) || serviceName(resource) == d.service
}

func (d *logDialect) call(v *view, record plog.LogRecord, event string) *ToolCall {
	at := recordTime(v, record)
	call := &ToolCall{
		Dialect:     d.Name,
		TraceID:     record.TraceID(),
		SpanID:      record.SpanID(),
		SpanName:    event,
		ServiceName: v.serviceName(),
		Scope:       v.scope.Name(),
		Start:       at,
		End:         at,
		Observed:    record.ObservedTimestamp(),
	}
	u, from := d.arguments.find(v, func(r reported) understood { return understandArguments(r, nil) })
	if u.State == Present {
		call.Arguments = u.Captured
		call.sourced(fieldArguments, from)
	}
	u, from = d.output.find(v, understandResult)
	if u.State == Present {
		call.Result = u.Captured
		call.sourced(fieldResult, from)
	}
	call.fillText(v, fieldTool, &call.Tool, d.tool, toolSentinel)
	call.fillText(v, fieldCallID, &call.CallID, d.callID, callIDSentinel)
	call.fillText(v, fieldAgent, &call.Agent, d.agent, nil)
	call.fillText(v, fieldSession, &call.Session, d.session, nil)
	call.fillText(v, fieldWorkflow, &call.Workflow, d.workflow, nil)
	call.fillText(v, fieldMCPServer, &call.MCPServer, d.mcpServer, nil)
	d.fillOutcome(v, call, event)
	return call
}

// fillOutcome: a decision alone says nothing of how the call went.
func (d *logDialect) fillOutcome(v *view, call *ToolCall, event string) {
	call.Outcome = Unknown
	if event == d.decision {
		return
	}
	switch v.text("success") {
	case "true":
		call.Outcome = Success
	case "false":
		call.Outcome = Error
	default:
		return
	}
	call.sourced(fieldOutcome, d.Name+":attr:success")
}

// recordTime is when the event happened by the agent's clock. Codex writes
// zero there; then it is when the record was observed, then what the record
// says in words.
func recordTime(v *view, record plog.LogRecord) pcommon.Timestamp {
	if record.Timestamp() != 0 {
		return record.Timestamp()
	}
	if record.ObservedTimestamp() != 0 {
		return record.ObservedTimestamp()
	}
	at, err := time.Parse(time.RFC3339Nano, v.text("event.timestamp"))
	if err != nil || at.Unix() < 0 || at.Unix() > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return pcommon.NewTimestampFromTime(at)
}

// maxDuration bounds what a record may say the tool took.
const maxDuration = 31 * 24 * time.Hour

// duration reads duration_ms, a number or a number's text.
func duration(v *view) time.Duration {
	value, ok := v.attrs.Get("duration_ms")
	if !ok {
		return 0
	}
	ms := 0.0
	switch value.Type() {
	case pcommon.ValueTypeInt:
		ms = float64(value.Int())
	case pcommon.ValueTypeDouble:
		ms = value.Double()
	case pcommon.ValueTypeStr:
		if len(value.Str()) > 32 {
			return 0
		}
		parsed, err := strconv.ParseFloat(value.Str(), 64)
		if err != nil {
			return 0
		}
		ms = parsed
	}
	if !(ms > 0 && ms <= float64(maxDuration/time.Millisecond)) { // also when not a number
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func earlier(at pcommon.Timestamp, by time.Duration) pcommon.Timestamp {
	if uint64(at) <= uint64(by) {
		return at
	}
	return at - pcommon.Timestamp(by)
}
