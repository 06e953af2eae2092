package agentactionprocessor

import (
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/internal/record"
)

// warnEvery is how often the same rule is named in the log.
const warnEvery = time.Minute

// warnings tell in the log, once a minute for every rule, that a rule is for
// calls and yet does not record them. It is safe for concurrent use.
type warnings struct {
	logger *zap.Logger
	mu     sync.Mutex
	rules  []warned // by the rule's index
}

// warned is when a rule was named last, and how many calls it missed since.
type warned struct {
	at    time.Time
	calls int
}

// unrecorded names the rule, and of the call what identifies it and why it is
// not recorded: never what the agent sent as arguments.
func (w *warnings) unrecorded(now time.Time, d *decision, c *call) {
	calls, due := w.due(now, d.rule.index)
	if !due {
		return
	}
	w.logger.Warn("a tool call that a rule is for was not recorded: no contract is checked for it",
		zap.String("rule", d.rule.label()), zap.String("contract_id", d.rule.contract), zap.String("tool", c.Tool),
		zap.String("reason", reason(d.err)), zap.String("trace_id", c.trace()), zap.String("span_id", c.SpanID.String()),
		zap.Int("calls", calls))
}

// due counts a call, and says whether the rule may be named.
func (w *warnings) due(now time.Time, rule int) (calls int, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := &w.rules[rule]
	last.calls++
	if !last.at.IsZero() && now.Sub(last.at) < warnEvery {
		return 0, false
	}
	calls = last.calls
	*last = warned{at: now}
	return calls, true
}

// reason shows nothing of what the agent sent.
func reason(err error) string {
	var gap *missing
	if errors.As(err, &gap) && gap.err == nil {
		return gap.why()
	}
	if errors.As(err, &gap) {
		return gap.why() + ": see " + record.ErrorKey + " on the span or log record"
	}
	return "see " + record.ErrorKey + " on the span or log record"
}
