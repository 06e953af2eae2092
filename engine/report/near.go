package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// NearMiss is the fact that came nearest to what a check was missing. It is a
// hint to people who look for the cause, worked out when an action is read: no
// evidence, and no part of any verdict, report or hash.
type NearMiss struct {
	Check      int      `json:"check" doc:"which of checks is missing a fact, counted from 0"`
	Code       string   `json:"code" doc:"the reason code of that check"`
	Miss       string   `json:"miss" enum:"before,after,since,source,attributes,subject" doc:"the one thing that is otherwise: it occurred before or after it counts, came since the verification, or is of another source, of other attributes or of a subject that is spelled differently"`
	OffSeconds int64    `json:"off_seconds" doc:"how far outside the time in which it counts; 0 within"`
	Text       string   `json:"text" doc:"the same for people, like: occurred 15s before the action was requested (a clock?)"`
	Fact       NearFact `json:"fact"`
}

// NearFact is the fact of a NearMiss.
type NearFact struct {
	Source     string         `json:"source"`
	Trust      *engine.Trust  `json:"trust" enum:"self_reported,shared,independent" doc:"of the source; what agents report is self_reported"`
	FactType   string         `json:"fact_type"`
	SubjectID  string         `json:"subject_id"`
	OccurredAt engine.Instant `json:"occurred_at"`
	RawRef     string         `json:"raw_ref"`
}

// What may be otherwise with a NearMiss.
const (
	MissBefore     = "before"
	MissAfter      = "after"
	MissSince      = "since"
	MissSource     = "source"
	MissAttributes = "attributes"
	MissSubject    = "subject"
)

// Beyond these a fact is far: it likely belongs to another action.
const (
	earliestEffect = engine.Day
	latestEffect   = engine.Week
	oldestState    = 30 * engine.Day
	latestState    = engine.Day
)

// Search looks for near misses of one action.
type Search struct {
	action engine.Action
	wanted []wanted
}

// wanted is a check that is missing a fact.
type wanted struct {
	primitive.Sought
	check int
	code  string
}

// NewSearch searches for what the checks of a report are missing a fact for. The
// report must be of this contract version and action.
func NewSearch(c *contract.Contract, a engine.Action, checks []Check) *Search {
	s := &Search{action: a}
	for i := range min(len(checks), len(c.Checks)) {
		seeker, ok := c.Checks[i].Call.(primitive.Seeker)
		if !ok || checks[i].OK || checks[i].Evidence != nil || checks[i].Section != c.Checks[i].Section {
			continue
		}
		s.wanted = append(s.wanted, wanted{seeker.Seek(), i, checks[i].Code})
	}
	return s
}

// Types are those of the facts to look at, each once; none when there is nothing to search for.
func (s *Search) Types() []string {
	var types []string
	for _, w := range s.wanted {
		if !slices.Contains(types, w.Type) {
			types = append(types, w.Type)
		}
	}
	return types
}

// Span bounds the time in which facts are looked at, both ends included.
func (s *Search) Span() (since, until engine.Instant) {
	since, until = s.action.RequestedAt, s.action.RequestedAt
	for _, w := range s.wanted {
		before, after := w.far()
		since = min(since, s.action.RequestedAt.Sub(w.Back+before))
		until = max(until, s.action.RequestedAt.Add(w.Ahead+after))
	}
	return since, until
}

// Spellings are other subjects that the action's may have been meant for: in
// lower case, in upper case or with a capital first letter, without white space
// around it or with a space on one side. Other mixtures of case are not among
// them, because each costs a look-up of its own.
func (s *Search) Spellings() []string {
	subject := s.action.SubjectID
	bare := strings.TrimSpace(subject)
	var spellings []string
	for _, text := range []string{bare, strings.ToLower(bare), strings.ToUpper(bare), capital(strings.ToLower(bare)), capital(bare)} {
		for _, spelling := range []string{text, text + " ", " " + text} {
			if spelling != subject && engine.CheckOpaque("subject_id", spelling) == nil && !slices.Contains(spellings, spelling) {
				spellings = append(spellings, spelling)
			}
		}
	}
	return spellings
}

func capital(text string) string {
	_, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:size]) + text[size:]
}

// Nearest picks the near miss of each check that has one, in the order of the
// checks: among facts of the action's own and linked subjects, and facts of its
// subject in other spellings.
func (s *Search) Nearest(facts, alike []engine.Fact, sources map[string]engine.Source) []NearMiss {
	var found []NearMiss
	for _, w := range s.wanted {
		var best *miss
		for i := range facts {
			best = nearer(best, w.judge(&s.action, &facts[i], sources[facts[i].Source], false))
		}
		for i := range alike {
			best = nearer(best, w.judge(&s.action, &alike[i], sources[alike[i].Source], true))
		}
		if best != nil {
			found = append(found, w.hint(&s.action, best))
		}
	}
	return found
}

// miss is a fact that differs in one thing from what is wanted.
type miss struct {
	kind   string
	fact   *engine.Fact
	source engine.Source
	// off is how far outside the time in which it counts.
	off   engine.Duration
	lacks []string
	// remote is how unlikely it is to be what was meant.
	remote int
}

// remoteness puts the likelier causes first. What is off by more than a day is the least likely one.
var remoteness = map[string]int{MissSince: 0, MissBefore: 1, MissAfter: 1, MissSource: 2, MissAttributes: 3, MissSubject: 4}

const leastLikely = 5

func nearer(best, m *miss) *miss {
	if best == nil || m == nil {
		return cmp.Or(best, m)
	}
	if cmp.Or(cmp.Compare(m.remote, best.remote), cmp.Compare(m.off, best.off), engine.CompareFacts(*m.fact, *best.fact)) < 0 {
		return m
	}
	return best
}

// judge says how a fact misses what is wanted; nil when it differs in more than one thing.
func (w wanted) judge(a *engine.Action, f *engine.Fact, source engine.Source, alike bool) *miss {
	if f.Type != w.Type {
		return nil
	}
	m := &miss{fact: f, source: source, lacks: w.Lacks(a, f)}
	var kinds []string
	if alike {
		kinds = append(kinds, MissSubject)
	}
	if w.Source != "" && f.Source != w.Source {
		kinds = append(kinds, MissSource)
	} else if source.Trust < w.MinTrust {
		return nil
	}
	if len(m.lacks) > 0 {
		kinds = append(kinds, MissAttributes)
	}
	before, after := w.outside(a, f, source)
	farBefore, farAfter := w.far()
	switch {
	case before > farBefore, after > farAfter:
		return nil
	case before > 0:
		kinds, m.off = append(kinds, MissBefore), before
	case after > 0:
		kinds, m.off = append(kinds, MissAfter), after
	}
	if len(kinds) > 1 {
		return nil
	}
	m.kind = MissSince
	if len(kinds) == 1 {
		m.kind = kinds[0]
	}
	if m.remote = remoteness[m.kind]; m.off > engine.Day {
		m.remote = leastLikely
	}
	return m
}

// outside is how much too early, or too late, a fact occurred; 0 for not.
func (w wanted) outside(a *engine.Action, f *engine.Fact, source engine.Source) (before, after engine.Duration) {
	from := a.RequestedAt.Sub(w.Back + w.skew(source))
	until := a.RequestedAt.Add(w.Ahead)
	return max(engine.Duration(from-f.OccurredAt), 0), max(engine.Duration(f.OccurredAt-until), 0)
}

// skew is how much too early an effect may be stamped (decision D29).
func (w wanted) skew(source engine.Source) engine.Duration {
	if w.State {
		return 0
	}
	return source.ClockSkew
}

func (w wanted) far() (before, after engine.Duration) {
	if w.State {
		return oldestState, latestState
	}
	return earliestEffect, latestEffect
}

func (w wanted) hint(a *engine.Action, m *miss) NearMiss {
	f := m.fact
	return NearMiss{
		Check: w.check, Code: w.code, Miss: m.kind, OffSeconds: int64(m.off), Text: w.words(a, m),
		Fact: NearFact{
			Source: f.Source, Trust: known(m.source.Trust), FactType: f.Type, SubjectID: f.SubjectID, OccurredAt: f.OccurredAt, RawRef: f.RawRef,
		},
	}
}

func (w wanted) words(a *engine.Action, m *miss) string {
	switch m.kind {
	case MissBefore:
		return w.beforeInWords(a, m)
	case MissAfter:
		return w.afterInWords(a, m)
	case MissSource:
		return fmt.Sprintf("is of %s, and not of %s", m.fact.Source, w.Source)
	case MissAttributes:
		return "is in time, but without " + strings.Join(m.lacks, ", ")
	case MissSubject:
		return fmt.Sprintf("is about %q, and not about %q", m.fact.SubjectID, a.SubjectID)
	}
	return "came since this verification; verify the action again"
}

func (w wanted) beforeInWords(a *engine.Action, m *miss) string {
	if w.State {
		return fmt.Sprintf("occurred %s before the lookback of %s began", m.off, w.Back)
	}
	early := engine.Duration(a.RequestedAt - m.fact.OccurredAt)
	text := fmt.Sprintf("occurred %s before the action was requested", early)
	if skew := w.skew(m.source); skew > 0 {
		text += fmt.Sprintf(", more than the clock skew of %s explains", skew)
	}
	switch {
	case early < nearRequest:
		text += " (a clock?)"
	case wholeHours(early):
		text += " (a time zone?)"
	}
	return text
}

func (w wanted) afterInWords(a *engine.Action, m *miss) string {
	late := engine.Duration(m.fact.OccurredAt - a.RequestedAt)
	text := fmt.Sprintf("occurred %s after the action was requested", late)
	if !w.State {
		text = fmt.Sprintf("occurred %s after its window of %s closed", m.off, w.Ahead)
	}
	switch {
	case !wholeHours(late):
		return text
	case w.State:
		return text + " (a time zone?)"
	}
	return fmt.Sprintf("%s, %s after the action was requested (a time zone?)", text, late)
}

// mostOffset is the largest offset from UTC that a time zone has, and nearHour how
// far beside it an effect is taken to follow its request, or to precede it. Less
// than nearRequest before the request, a clock is likely that is off (decision D29).
const (
	mostOffset  = 14 * engine.Hour
	nearHour    = 5 * engine.Minute
	nearRequest = 5 * engine.Minute
)

// wholeHours says whether a distance from the request is so near to a whole number
// of hours that a time without its zone explains it.
func wholeHours(d engine.Duration) bool {
	hours := (d + engine.Hour/2) / engine.Hour
	beside := d - hours*engine.Hour
	return hours >= 1 && hours*engine.Hour <= mostOffset && -nearHour <= beside && beside <= nearHour
}
