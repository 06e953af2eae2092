package primitive

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// InWords spells a duration out: 15 minutes, 1 hour 30 minutes, 30 days.
func InWords(d engine.Duration) string {
	var parts []string
	for _, unit := range []struct {
		size engine.Duration
		name string
	}{{engine.Day, "day"}, {engine.Hour, "hour"}, {engine.Minute, "minute"}, {engine.Second, "second"}} {
		n := d / unit.size
		d %= unit.size
		if n > 0 {
			parts = append(parts, plural(int64(n), unit.name))
		}
	}
	if len(parts) == 0 {
		return "0 seconds"
	}
	return strings.Join(parts, " ")
}

func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(n, 10) + " " + noun
}

// place is where records are looked for: In stripe, or In any system.
func place(source string) string {
	if source == "" {
		return "In any system"
	}
	return "In " + source
}

// record names an effect's records: a record "refund_created" whose status is succeeded.
func (e effect) record(more ...string) string {
	conditions := append(whereInWords(e.where), originInWords(e.origin)...)
	conditions = append(conditions, more...)
	text := fmt.Sprintf("a record %q", e.factType)
	if len(conditions) > 0 {
		text += " " + strings.Join(conditions, " and ")
	}
	return text
}

func whereInWords(pairs []pair) []string {
	var conditions []string
	for _, p := range pairs {
		value, _ := p.value.Scalar()
		conditions = append(conditions, fmt.Sprintf("whose %s is %s", p.attr, value))
	}
	return conditions
}

func originInWords(pairs []originPair) []string {
	var conditions []string
	for _, p := range pairs {
		field := "the action's " + p.field
		if param, ok := strings.CutPrefix(p.field, "param:"); ok {
			field = "the parameter " + param
		}
		conditions = append(conditions, fmt.Sprintf("whose %s is %s", p.attr, field))
	}
	return conditions
}

// sentence is: In stripe, a record ... appears within 15 minutes of the request.
func (e effect) sentence(times string, more ...string) string {
	return fmt.Sprintf("%s, %s appears%s within %s of the request.", place(e.source), e.record(more...), times, InWords(e.within))
}

// sentence is: In shopify, the latest record "order_status" ... has status eligible.
func (s state) sentence(verb string) string {
	var conditions []string
	for _, p := range s.where {
		value, _ := p.value.Scalar()
		conditions = append(conditions, p.attr+" "+value)
	}
	return fmt.Sprintf("%s, the latest record %q at the moment of the request, at most %s old, %s %s.",
		place(s.source), s.factType, InWords(s.lookback), verb, strings.Join(conditions, " and "))
}

// moreThan is how often an effect may not be seen.
func moreThan(n int64) string {
	switch n {
	case 0:
		return " at all"
	case 1:
		return " more than once"
	}
	return fmt.Sprintf(" more than %d times", n)
}
