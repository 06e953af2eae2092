package record

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Prefix is what all attributes of this project start with.
const Prefix = "countersign."

// Names of the attributes; see the package comment.
const (
	ActionsKey    = Prefix + "actions"
	FactsKey      = Prefix + "facts"
	LinksKey      = Prefix + "links"
	WatermarksKey = Prefix + "watermarks"
	FailuresKey   = Prefix + "failures"
	ContextKey    = Prefix + "context"
	ErrorKey      = Prefix + "record.error"
)

// Names of the fields.
const (
	tenantField          = "tenant"
	actionIDField        = "action_id"
	contractIDField      = "contract_id"
	contractVersionField = "contract_version"
	workflowIDField      = "workflow_id"
	agentIDField         = "agent_id"
	actionTypeField      = "action_type"
	subjectIDField       = "subject_id"
	subjectKindField     = "subject_kind"
	requestedAtField     = "requested_at"
	startedNanosField    = "started_nanos"
	paramsField          = "params"
	channelField         = "channel"
	compensatesField     = "compensates"
	traceIDField         = "trace_id"
	spanIDField          = "span_id"
	sessionIDField       = "session_id"
	referenceIDField     = "reference_id"
	toolField            = "tool"
	reportedOutcomeField = "reported_outcome"
	rawRefField          = "raw_ref"
	sourceField          = "source"
	linkedSubjectIDField = "linked_subject_id"
	factTypeField        = "fact_type"
	occurredAtField      = "occurred_at"
	attributesField      = "attributes"
	connectionField      = "connection"
	trustField           = "trust"
	agentField           = "agent"
	sessionField         = "session"
	watermarkField       = "watermark"
	receivedNanosField   = "received_nanos"
	kindField            = "kind"
	reasonField          = "reason"
	errorField           = "error"
	itemField            = "item"
)

// Owned says whether an attribute stands under Prefix.
func Owned(key string) bool { return strings.HasPrefix(key, Prefix) }

// Strip removes every attribute under Prefix and returns how many there were.
// It allocates nothing.
func Strip(attributes pcommon.Map) int {
	before := attributes.Len()
	attributes.RemoveIf(func(key string, _ pcommon.Value) bool { return Owned(key) })
	return before - attributes.Len()
}

// maxErrorText bounds, in bytes, what one error may write on telemetry: errors
// may repeat what an agent or a sender sent.
const maxErrorText = 1024

// PutError marks a span or log record from which nothing, or less, was
// recorded. What an earlier call wrote stays in front; of a long text only
// the beginning is written.
func PutError(attributes pcommon.Map, text string) {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	if before, ok := attributes.Get(ErrorKey); ok {
		text = before.Str() + "; " + text
	}
	attributes.PutStr(ErrorKey, text)
}
