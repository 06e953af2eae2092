package agentactionprocessor

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// ownScope is how the instrumentation scopes of this project start. What they
// say is about verdicts and never an action: no verdict is verified in turn.
const ownScope = "github.com/countersign-otel/countersign/"

func isOwn(scope pcommon.InstrumentationScope) bool { return strings.HasPrefix(scope.Name(), ownScope) }

// Attributes of spans that become facts (AC "OpenTelemetry").
const (
	factTypeKey    = "agent.action.type"
	factSubjectKey = "agent.action.subject_id"
	factFromKey    = "agent.action.from"
	factToKey      = "agent.action.to"
	factNameKey    = "agent.action.name"
)

// metadataKeys are where VerifiedActions metadata stands.
type metadataKeys struct {
	verifiedactions.Keys
	messages []string
	// first are the bytes that keys of interest start with.
	first [256]bool
}

func newMetadataKeys(config *VerifiedActionsConfig) metadataKeys {
	k := metadataKeys{
		Keys:     verifiedactions.Keys{Version: config.VersionKey, Payload: config.PayloadKey},
		messages: config.MessageKeys,
	}
	for _, key := range append([]string{record.Prefix, factTypeKey, config.VersionKey}, config.MessageKeys...) {
		k.first[key[0]] = true
	}
	return k
}

// marks say what a span or log record may carry beside a tool call.
type marks uint8

const (
	mayBeFact marks = 1 << iota
	hasMetadata
)

// marked is a span or log record with marks.
type marked struct {
	dialect.Position
	marks marks
}

// scanner goes once over all attributes of a batch, removes those that only
// this project may write, and notes what is worth a second look.
type scanner struct {
	keys     *metadataKeys
	stripped int
	marks    marks
	found    []marked
}

func newScanner(keys *metadataKeys) *scanner { return &scanner{keys: keys} }

// strip looks at the first byte before anything else: this runs for every
// attribute of all telemetry, and next to none is of interest.
func (s *scanner) strip(attributes pcommon.Map) {
	owned := false
	for key := range attributes.All() {
		if key == "" || !s.keys.first[key[0]] {
			continue
		}
		switch {
		case record.Owned(key):
			owned = true
		case key == factTypeKey:
			s.marks |= mayBeFact
		case key == s.keys.Version || slices.Contains(s.keys.messages, key):
			s.marks |= hasMetadata
		}
	}
	if owned {
		s.stripped += record.Strip(attributes)
	}
}

func (s *scanner) traces(td ptrace.Traces) {
	for i, resource := range td.ResourceSpans().All() {
		s.strip(resource.Resource().Attributes())
		for j, scope := range resource.ScopeSpans().All() {
			s.strip(scope.Scope().Attributes())
			own := isOwn(scope.Scope())
			for k, span := range scope.Spans().All() {
				s.marks = 0
				s.span(span)
				s.note(own, dialect.Position{Resource: i, Scope: j, Item: k})
			}
		}
	}
}

func (s *scanner) span(span ptrace.Span) {
	s.strip(span.Attributes())
	factual := s.marks & mayBeFact // on the span itself, not on an event
	events := span.Events()
	for i := range events.Len() {
		s.strip(events.At(i).Attributes())
	}
	links := span.Links()
	for i := range links.Len() {
		s.strip(links.At(i).Attributes())
	}
	s.marks = s.marks&^mayBeFact | factual
}

func (s *scanner) logs(ld plog.Logs) {
	for i, resource := range ld.ResourceLogs().All() {
		s.strip(resource.Resource().Attributes())
		for j, scope := range resource.ScopeLogs().All() {
			s.strip(scope.Scope().Attributes())
			own := isOwn(scope.Scope())
			for k, entry := range scope.LogRecords().All() {
				s.marks = 0
				s.strip(entry.Attributes())
				s.marks &^= mayBeFact // facts are made of spans only
				if bodyMayHoldMetadata(entry.Body(), s.keys) {
					s.marks |= hasMetadata
				}
				s.note(own, dialect.Position{Resource: i, Scope: j, Item: k})
			}
		}
	}
}

func (s *scanner) note(own bool, at dialect.Position) {
	if s.marks != 0 && !own {
		s.found = append(s.found, marked{at, s.marks})
	}
}

// bodyMayHoldMetadata is a cheap first look.
func bodyMayHoldMetadata(body pcommon.Value, keys *metadataKeys) bool {
	switch body.Type() {
	case pcommon.ValueTypeStr:
		return strings.Contains(body.Str(), keys.Version)
	case pcommon.ValueTypeMap:
		if _, ok := body.Map().Get(keys.Version); ok {
			return true
		}
		content, ok := body.Map().Get("content")
		return ok && content.Type() == pcommon.ValueTypeSlice
	}
	return false
}
