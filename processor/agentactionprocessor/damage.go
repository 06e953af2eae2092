package agentactionprocessor

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// argument reads an argument, or a part of one. What was sent and cannot be
// read gives nil, and missed says why until the next reading.
func (c *call) argument(p *path) any {
	value := p.lookup(c.Arguments.Value)
	damage := c.Arguments.Damage
	switch {
	case c.Arguments.Truncated:
		c.missed = tooLarge(c.Arguments)
	case damage == nil:
	case damage.Unreadable != "" && value == nil:
		c.missed = fmt.Errorf("the arguments do not read: %s", damage.Unreadable)
	default:
		return c.undamaged(p, value)
	}
	return value
}

// undamaged is the value unless another under its name was lost.
func (c *call) undamaged(p *path, value any) any {
	for _, loss := range c.Arguments.Damage.Lost {
		lost := strings.Join(loss.Path, ".")
		above := p.whole == lost || strings.HasPrefix(p.whole, lost+".")
		if above || p.whole == "" || strings.HasPrefix(lost, p.whole+".") {
			c.missed = errors.New(loss.Why)
		}
		if above {
			return nil
		}
	}
	if value == nil && c.Arguments.Damage.More {
		c.missed = errOthersLost
	}
	return value
}

var errOthersLost = errors.New("parts of the arguments do not read")

// plain: the arguments are a text that never was meant to be an object, as
// tools of one text take it.
func (c *call) plain() bool {
	damage := c.Arguments.Damage
	return damage != nil && damage.Unreadable != "" && !strings.HasPrefix(strings.TrimSpace(c.Arguments.Raw), "{")
}

func tooLarge(arguments dialect.Captured) error {
	if arguments.Bytes > dialect.MaxValueBytes {
		return fmt.Errorf("the arguments are larger than 64 KiB (%d bytes) and are not read", arguments.Bytes)
	}
	return fmt.Errorf("the arguments are nested deeper than %d and are not read", dialect.MaxDepth)
}

// missing says that what an action cannot do without gives no usable value.
// reason shows nothing of what the agent sent; it is nil where only err is known.
type missing struct {
	field, expression string
	reason, err       error
}

func (m *missing) Error() string {
	if m.err != nil {
		return m.field + ": " + m.err.Error()
	}
	return m.why()
}

func (m *missing) Unwrap() error { return m.err }

// why is the error without anything of what the agent sent.
func (m *missing) why() string {
	text := fmt.Sprintf("%s: %s gave no value", m.field, m.expression)
	if m.reason != nil {
		text += ": " + m.reason.Error()
	}
	return text
}

var errReplaced = errors.New("holds U+FFFD, which stands for characters that do not read: different ids would become one")

// replaced: different texts became this one.
func replaced(text string) bool { return strings.ContainsRune(text, utf8.RuneError) }

// damageNotes are what an operator is told of arguments that read in part.
func damageNotes(arguments dialect.Captured) (notes []error) {
	if arguments.Damage == nil {
		return nil
	}
	for _, note := range arguments.Damage.Notes {
		notes = append(notes, errors.New("arguments: "+note))
	}
	return notes
}

// damageOf is why not all arguments that were sent are there; nil where they are.
func damageOf(arguments dialect.Captured) error {
	damage := arguments.Damage
	if damage == nil {
		return nil
	}
	var errs []error
	if damage.Unreadable != "" && strings.HasPrefix(strings.TrimSpace(arguments.Raw), "{") {
		errs = append(errs, fmt.Errorf("params: the arguments do not read: %s", damage.Unreadable))
	}
	for i, loss := range damage.Lost {
		if i == maxReported {
			errs = append(errs, fmt.Errorf("params: and %d more", len(damage.Lost)-i))
			break
		}
		errs = append(errs, fmt.Errorf("params.%.80q: %s", strings.Join(loss.Path, "."), loss.Why))
	}
	if damage.More {
		errs = append(errs, fmt.Errorf("params: %w", errOthersLost))
	}
	return errors.Join(errs...)
}
