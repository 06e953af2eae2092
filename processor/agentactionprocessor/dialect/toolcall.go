package dialect

import "go.opentelemetry.io/collector/pdata/pcommon"

const (
	// MaxValueBytes bounds arguments and results, in bytes of their text as
	// reported. Larger ones are not parsed, only hashed (D35).
	MaxValueBytes = 64 << 10
	// MaxTextBytes bounds names and ids, in bytes (D6).
	MaxTextBytes = 512
	// MaxDepth bounds the nesting of arguments and results.
	MaxDepth = 64
)

// Signal is the kind of telemetry a dialect is written in.
type Signal string

// The signals that carry tool calls.
const (
	Spans Signal = "spans"
	Logs  Signal = "logs"
)

// Info describes a dialect.
type Info struct {
	Name         string
	Signal       Signal
	Experimental bool // not checked against captured telemetry
	DefaultOn    bool
}

// Outcome is what an agent's runtime said about a call. It never decides a
// verdict (D34).
type Outcome string

// The outcomes of D34.
const (
	Success     Outcome = "success"
	Error       Outcome = "error"
	NotExecuted Outcome = "not_executed"
	Deferred    Outcome = "deferred"
	Unknown     Outcome = "unknown"
)

// State tells a value that was not captured from an empty one (D33).
type State uint8

// NotCaptured is the zero value: a missing attribute or a sentinel.
const (
	NotCaptured State = iota
	Present
)

// Captured is a tool call's arguments or result.
//
// Value is nil when State is NotCaptured or Truncated is true. Arguments are
// then always a map[string]any; what is no object stands under "_raw".
// Results are any JSON value; text that is no JSON is a string. Numbers are
// json.Number with their exact text; an OTLP double is its shortest decimal
// text, and not-a-number and the infinities are the strings NaN, Infinity and
// -Infinity. Strings are valid UTF-8 without U+0000.
// A part of arguments that does not read is lost alone, see Damage.
type Captured struct {
	State State
	Value any
	// Raw is the text as reported, before any envelope was taken off. An OTLP
	// structure is written as JSON in the order it came. Empty when Truncated.
	Raw string
	// RawSHA256 is the lower-case hex SHA-256 of the whole reported text. It
	// stands for Raw where Truncated, and is empty otherwise.
	RawSHA256 string
	// Bytes is the length of the whole reported text.
	Bytes int
	// Truncated means larger than MaxValueBytes or nested deeper than
	// MaxDepth (structures only): hashed, not parsed.
	Truncated bool
	// Damage says what of arguments is not in Value; nil when all of it is.
	Damage *Damage
}

// ToolCall is what an agent's runtime reported about one tool call.
//
// Agent, Session and Workflow are only what stands on the span or record
// itself; an ancestor's are added by [Batch.Complete] or by the ledger (D31).
// Empty text means not captured: sentinels are removed (D33).
type ToolCall struct {
	Dialect      string
	TraceID      pcommon.TraceID
	SpanID       pcommon.SpanID
	ParentSpanID pcommon.SpanID
	SpanName     string // of a log record: its event name
	ServiceName  string
	Scope        string

	Start, End pcommon.Timestamp // by the agent's clock
	Observed   pcommon.Timestamp // by the collector's clock, zero when unknown

	Tool      string
	CallID    string
	Arguments Captured
	Result    Captured

	Agent, Session, Workflow string
	MCPSession, MCPServer    string
	MCP                      bool // carries mcp.method.name: an MCP request

	Outcome Outcome

	// Sources names, per field, the dialect and path that supplied it.
	Sources Sources
	// Problems lists what was left out, and why.
	Problems []string
}

// Context is what an agent-like span says of the calls below it (D31). Agent
// or Session may be empty, never both; they complete a call field by field.
type Context struct {
	TraceID        pcommon.TraceID
	SpanID         pcommon.SpanID
	Start, End     pcommon.Timestamp
	Agent, Session string
}

// field is one of those whose source is kept.
type field uint8

const (
	fieldTool field = iota
	fieldCallID
	fieldArguments
	fieldResult
	fieldAgent
	fieldSession
	fieldWorkflow
	fieldMCPSession
	fieldMCPServer
	fieldOutcome
	fields
)

var fieldNames = [fields]string{
	"tool", "call_id", "arguments", "result", "agent", "session", "workflow", "mcp_session", "mcp_server", "outcome",
}

// Sources says of each field where it came from. It is an array, because it
// is filled for every call and read by tools alone.
type Sources [fields]string

// Map is Sources by name of the field: tool, call_id, arguments, result, agent,
// session, workflow, mcp_session, mcp_server, outcome. Fields without a source are left out.
func (s *Sources) Map() map[string]string {
	named := map[string]string{}
	for i, source := range s {
		if source != "" {
			named[fieldNames[i]] = source
		}
	}
	return named
}

// maxProblems keeps a hostile span from growing the list.
const maxProblems = 16

func (c *ToolCall) problem(source, text string) {
	if len(c.Problems) < maxProblems {
		c.Problems = append(c.Problems, source+" "+text)
	}
}
