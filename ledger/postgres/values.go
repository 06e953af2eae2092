package postgres

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine"
)

// null is NULL for what was not sent.
func null(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

func nullNumber(value int64) *int64 {
	if value == 0 {
		return nil
	}
	return &value
}

// text is empty for NULL.
func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// instant is nil for NULL.
func instant(value *int64) *engine.Instant {
	if value == nil {
		return nil
	}
	at := engine.Instant(*value)
	return &at
}

func nullInstant(at *engine.Instant) *int64 {
	if at == nil {
		return nil
	}
	seconds := int64(*at)
	return &seconds
}

// object is the JSON text of an object, NULL when it was not captured (decision D33).
func object(o engine.Object) *string {
	if !o.Captured() {
		return nil
	}
	text := o.Text()
	return &text
}

func parseObject(column string, value *string) (engine.Object, error) {
	if value == nil {
		return engine.Object{}, nil
	}
	o, err := engine.ReadObject(*value)
	if err != nil {
		return engine.Object{}, fmt.Errorf("%w: %s: %w", errStored, column, err)
	}
	return o, nil
}

// hashOf reads a bytea of 32 bytes.
func hashOf(column string, stored []byte) ([32]byte, error) {
	if len(stored) != 32 {
		return [32]byte{}, fmt.Errorf("%w: %s has %d bytes, want 32", errStored, column, len(stored))
	}
	return [32]byte(stored), nil
}

func compareBytes(a, b string) int { return strings.Compare(a, b) }

// actionColumns are the columns of claims that make an engine.Action, in the
// order in which statements name them: action_id to reported_outcome.
type actionColumns struct {
	action                                                         engine.Action
	requestedAt                                                    int64
	params                                                         *string
	workflow, agent, actionType, subjectKind, channel, compensates *string
	trace, span, session, reference, tool, outcome                 *string
}

func (c *actionColumns) targets() []any {
	a := &c.action
	return []any{
		&a.ActionID, &a.ContractID, &a.ContractVersion, &c.workflow, &c.agent, &c.actionType, &a.SubjectID, &c.subjectKind,
		&c.requestedAt, &c.params, &c.channel, &c.compensates, &c.trace, &c.span, &c.session, &c.reference, &c.tool, &c.outcome,
	}
}

func (c *actionColumns) value() (engine.Action, error) {
	a := c.action
	a.RequestedAt = engine.Instant(c.requestedAt)
	a.WorkflowID, a.AgentID, a.ActionType, a.SubjectKind = text(c.workflow), text(c.agent), text(c.actionType), text(c.subjectKind)
	a.Channel, a.Compensates, a.TraceID, a.SpanID = text(c.channel), text(c.compensates), text(c.trace), text(c.span)
	a.SessionID, a.ReferenceID, a.Tool, a.ReportedOutcome = text(c.session), text(c.reference), text(c.tool), text(c.outcome)
	var err error
	a.Params, err = parseObject("params of action "+a.ActionID, c.params)
	return a, err
}

// storable says that a text column can hold a text. What it cannot hold is not
// in the store: a look-up of it finds nothing, and does not fail.
func storable(value string) bool {
	return utf8.ValidString(value) && strings.IndexByte(value, 0) < 0
}

func unstorable(value string) bool { return !storable(value) }

// printable removes what a text column cannot hold; error texts may quote hostile input.
func printable(message string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(message, "\uFFFD"), "\x00", "")
}

// listed: an array column holds an empty list, not NULL.
func listed(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}
