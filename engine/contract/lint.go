package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
)

// Providers are the sources that a store knows, with how long each usually
// takes to report; 0 when that is not known.
type Providers map[string]engine.Duration

// Lint names what is legal but suspicious in a contract, in the order of the
// file: checks that can never fire or never hold, checks that contradict or
// repeat each other, and gaps through which a wrong verdict could come.
// Providers is nil where no store was asked.
func Lint(file string, c *Contract, providers Providers) []diagnostic.Diagnostic {
	l := linter{contract: c, providers: providers, file: file}
	for _, call := range c.Calls {
		l.arguments = append(l.arguments, argumentsOf(call))
	}
	l.citation()
	l.eachCheck()
	l.eachPair()
	l.coverage()
	l.trees()
	l.spelling()
	slices.SortStableFunc(l.found, func(a, b diagnostic.Diagnostic) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return l.found
}

type linter struct {
	contract  *Contract
	providers Providers
	file      string
	// arguments are those of the contract's calls, in order.
	arguments []arguments
	found     []diagnostic.Diagnostic
}

// arguments are what a call key says; whatever a primitive does not have is zero.
type arguments struct {
	Primitive   string            `json:"primitive"`
	Type        string            `json:"type"`
	Source      string            `json:"source"`
	Sources     string            `json:"sources"`
	Attr        string            `json:"attr"`
	Param       string            `json:"param"`
	MinTrust    engine.Trust      `json:"min_trust"`
	Within      engine.Duration   `json:"within"`
	Over        engine.Duration   `json:"over"`
	Where       map[string]string `json:"where"`
	WhereAction map[string]string `json:"where_action"`
	Values      []string          `json:"values"`
	// Max is a quoted decimal or a whole number.
	Max json.RawMessage `json:"max"`
	key string
}

// argumentsOf reads the call key, so that lint knows arguments without knowing primitives.
func argumentsOf(call interface {
	Key(map[string]engine.Source) string
}) arguments {
	a := arguments{key: call.Key(nil)}
	// A call key is JSON that the engine wrote; what does not decode is not looked at.
	_ = json.Unmarshal([]byte(a.key), &a)
	return a
}

func (a arguments) max() (engine.Decimal, bool) {
	return engine.ReadDecimal(strings.Trim(string(a.Max), `"`))
}

// looksForOne is true when any single matching record is enough.
func (a arguments) looksForOne() bool {
	max, bounded := a.max()
	return a.Type != "" && a.Attr == "" && (!bounded || max.Cmp(engine.Decimal{}) == 0 && a.Over == 0)
}

// covers says that every record that b looks for is one that a looks for.
func (a arguments) covers(b arguments) bool {
	if a.Type != b.Type || (a.Source != "" && a.Source != b.Source) || a.Within < b.Within {
		return false
	}
	return within(a.Where, b.Where) && within(a.WhereAction, b.WhereAction)
}

// within says that b demands everything that a demands.
func within(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

func (l *linter) report(call int, format string, args ...any) {
	place := l.contract.Places[call]
	l.found = append(l.found, diagnostic.Diagnostic{
		File: l.file, Line: place.Line, Column: place.Column, Path: place.Path, Message: fmt.Sprintf(format, args...),
	})
}

func (l *linter) reportFile(path, format string, args ...any) {
	l.found = append(l.found, diagnostic.Diagnostic{
		File: l.file, Line: 1, Column: 1, Path: path, Message: fmt.Sprintf(format, args...),
	})
}

func (l *linter) citation() {
	s := l.contract.Citation
	if s.Title == "" {
		l.reportFile("source_citation.title", "source_citation has no title; readers see only its address")
	}
	if _, err := time.Parse(time.DateOnly, s.Retrieved); err != nil {
		l.reportFile("source_citation.retrieved", "source_citation.retrieved is no date like 2026-09-28, so nobody can tell which edition of the policy is meant")
	}
}

// eachCheck looks at the checks one by one.
func (l *linter) eachCheck() {
	for i, check := range l.contract.Checks {
		a := l.arguments[i]
		if a.Type != "" && a.Source == "" {
			l.report(i, "no source is named, so a record %q of any system counts, and settlement waits for none", a.Type)
		}
		switch check.Section {
		case ExpectedEffects:
			l.expected(i, a)
		case ForbiddenEffects:
			l.withinWindow(i, a)
		case AggregateLimits:
			l.aggregate(i, a)
		case Limits:
			if max, ok := a.max(); ok && max.Cmp(engine.Decimal{}) < 0 {
				l.report(i, "a parameter that is not sent counts as 0 and exceeds %s, so every action without %s fails", max, a.Param)
			}
		}
	}
}

func (l *linter) expected(i int, a arguments) {
	l.withinWindow(i, a)
	if a.Source == engine.AgentSource && a.MinTrust > engine.SelfReported {
		l.report(i, "this can never be satisfied: records of %s are always self_reported, and min_trust is %s", a.Source, a.MinTrust)
	}
	if l.providers == nil || a.Source == "" {
		return
	}
	lag, provided := l.providers[a.Source]
	if !provided {
		l.report(i, "nobody provides the source %s, so this effect can never be observed", a.Source)
	}
	if lag > a.Within {
		l.report(i, "%s usually reports %s late, longer than the %s in which this effect counts", a.Source, lag, a.Within)
	}
}

func (l *linter) withinWindow(i int, a arguments) {
	if a.Within > l.contract.Window {
		l.report(i, "it counts for %s, but the verdict settles when the window closes after %s", a.Within, l.contract.Window)
	}
}

func (l *linter) aggregate(i int, a arguments) {
	if a.Over < a.Within {
		l.report(i, "the lookback of %s is shorter than the %s after the request in which effects count, so the action's own effects can be left out", a.Over, a.Within)
	}
}

// eachPair looks at checks that do not go together.
func (l *linter) eachPair() {
	checks := l.contract.Checks
	for i := range checks {
		for j := range checks {
			if i == j {
				continue
			}
			l.forbidsExpected(i, j)
			if i < j {
				l.repeats(i, j)
				l.contradict(i, j)
			}
		}
	}
}

// forbidsExpected finds an effect whose observation fails the action although it must happen.
func (l *linter) forbidsExpected(bad, good int) {
	section := l.contract.Checks[bad].Section
	if section != ForbiddenEffects && section != ReversedBy || l.contract.Checks[good].Section != ExpectedEffects {
		return
	}
	a, b := l.arguments[bad], l.arguments[good]
	if a.looksForOne() && a.covers(b) {
		l.report(bad, "no action can pass: every record that satisfies %s also fires this", l.contract.Places[good].Path)
	}
}

func (l *linter) repeats(i, j int) {
	if l.contract.Checks[i].Section == l.contract.Checks[j].Section && l.arguments[i].key == l.arguments[j].key {
		l.report(j, "it says the same as %s; one of them is enough", l.contract.Places[i].Path)
	}
}

// contradict looks at bounds on one name, and at states that exclude each other.
func (l *linter) contradict(i, j int) {
	a, b := l.arguments[i], l.arguments[j]
	switch first, second := l.contract.Checks[i].Section, l.contract.Checks[j].Section; {
	case first == Preconditions && second == Preconditions:
		l.states(i, j)
	case first == Limits && second == Limits && a.Param == b.Param:
		l.limits(j, a, b)
		l.limits(j, b, a)
		if len(a.Values) > 0 && len(b.Values) > 0 && !overlap(a.Values, b.Values) {
			l.report(j, "no value of %s can pass: it has none in common with %s", b.Param, l.contract.Places[i].Path)
		}
	case first == Limits && b.Attr != "" && b.Attr == a.Param:
		l.ceilings(i, j)
	}
}

// limits compares a list of values with a ceiling on the same parameter.
func (l *linter) limits(at int, list, ceiling arguments) {
	max, ok := ceiling.max()
	if !ok {
		return
	}
	for _, value := range list.Values {
		if number, ok := engine.ReadDecimal(value); ok && number.Cmp(max) > 0 {
			l.report(at, "the value %s of %s is listed as allowed, but exceeds the limit of %s", value, list.Param, max)
		}
	}
}

// ceilings compares what may be asked for with what may happen.
func (l *linter) ceilings(limit, effect int) {
	asked, ok := l.arguments[limit].max()
	happened, bounded := l.arguments[effect].max()
	if ok && bounded && happened.Cmp(asked) < 0 {
		l.report(effect, "%s may be asked for up to %s, but what happens may only reach %s", l.arguments[limit].Param, asked, happened)
	}
}

func (l *linter) states(i, j int) {
	a, b := l.arguments[i], l.arguments[j]
	if a.Type != b.Type || a.Source != b.Source {
		return
	}
	for _, attr := range slices.Sorted(maps.Keys(a.Where)) {
		if other, ok := b.Where[attr]; ok && other != a.Where[attr] {
			l.report(j, "no action can pass: %s demands %s of %s, this %s, of the same record", l.contract.Places[i].Path, a.Where[attr], attr, other)
		}
	}
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(value string) bool { return slices.Contains(b, value) })
}

// coverage looks for sources whose absence would read as a failure, and at
// contracts that believe the agent.
func (l *linter) coverage() {
	named := l.namedAsMissing()
	read, reported := map[string]bool{}, map[string]bool{}
	agentOnly := true
	for i, check := range l.contract.Checks {
		for _, source := range check.Call.Sources() {
			if check.Section == ExpectedEffects && !named[source] && !reported[source] {
				reported[source] = true
				l.report(i, "unverifiable_if does not name %s as a missing source: when it never reported, the verdict is FAIL, not UNKNOWN", source)
			}
			read[source] = true
		}
		if check.Section == ExpectedEffects && l.arguments[i].Source != engine.AgentSource {
			agentOnly = false
		}
	}
	for i := len(l.contract.Checks); i < len(l.contract.Calls); i++ {
		for _, source := range strings.Split(l.arguments[i].Sources, ",") {
			if source != "" && !read[source] {
				l.report(i, "no check reads the source %s, but without it nothing can be verified", source)
			}
		}
	}
	if agentOnly {
		l.reportFile("action.expected_effects", "every expected effect comes from %s, which is the agent's own word", engine.AgentSource)
	}
}

func (l *linter) namedAsMissing() map[string]bool {
	named := map[string]bool{}
	if l.contract.UnverifiableIf == nil {
		return named
	}
	for _, leaf := range leaves(l.contract.UnverifiableIf) {
		for _, source := range strings.Split(l.arguments[leaf].Sources, ",") {
			named[source] = true
		}
	}
	return named
}

// leaves are the calls of a tree.
func leaves(t *Tree) []int {
	if t.Operator == Leaf {
		return []int{t.Call}
	}
	var all []int
	for _, child := range t.Children {
		all = append(all, leaves(child)...)
	}
	return all
}

func (l *linter) trees() {
	for _, tree := range l.contract.Exclusions {
		l.tree(tree)
	}
	if l.contract.UnverifiableIf != nil {
		l.tree(l.contract.UnverifiableIf)
	}
}

// tree finds a condition beside its own negation.
func (l *linter) tree(t *Tree) {
	verdict := map[Operator]string{All: "never holds", Any: "always holds"}[t.Operator]
	for _, one := range t.Children {
		l.tree(one)
		for _, other := range t.Children {
			if verdict != "" && one.Operator == Leaf && other.Operator == Not && other.Children[0].Operator == Leaf &&
				l.arguments[one.Call].key == l.arguments[other.Children[0].Call].key {
				l.report(other.Children[0].Call, "it stands beside its own opposite, so the condition %s", verdict)
			}
		}
	}
}
