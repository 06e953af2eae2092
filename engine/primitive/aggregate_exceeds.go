package primitive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// aggregateExceeds is true when the total of an effect's attribute, or the
// number of effects, over the actions in scope is above max (AC
// "aggregate_exceeds", decision D17). Evidence is the latest contributing
// fact; the value is the total. Facts without a number in attr are skipped (decision D3).
type aggregateExceeds struct {
	effect
	attr       string // "" counts
	max        engine.Decimal
	over       engine.Duration
	by         string
	contractID string
	vendor     string
}

// Scopes of an aggregate.
const (
	byAgent    = "agent"
	bySubject  = "subject"
	byContract = "contract"
)

var scopes = []string{byAgent, bySubject, byContract}

var aggregateExceedsDefinition = Definition{
	Name: "aggregate_exceeds",
	Spellings: map[Section][]string{
		AggregateLimits: {"aggregate_exceeds", "aggregate_max"},
		Condition:       {"aggregate_exceeds", "aggregate_max"},
	},
	Doc:       "True when a total or a count of effects, across the actions in scope over the lookback, is above max.",
	Arguments: aggregateExceedsArguments,
	Labels:    map[string]string{"aggregate_exceeded": "Total exceeded"},
	Parse:     parseAggregateExceeds,
}

var aggregateExceedsArguments = effectArguments(
	Argument{Name: "attr", Kind: KindIdentifier, Doc: "attribute that is summed; effects are counted when absent"},
	Argument{Name: "max", Kind: KindDecimal, Required: true, Doc: "largest allowed total"},
	Argument{Name: "over", Kind: KindDuration, Required: true, Doc: "lookback"},
	Argument{Name: "by", Kind: KindScope, Words: scopes, Doc: "whose actions count: agent (default), subject or contract"},
)

func parseAggregateExceeds(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(aggregateExceedsArguments, p.Section)...)
	if !ok {
		return Entry{}, false
	}
	call := aggregateExceeds{
		effect: parseEffect(m, p.Window), attr: m.Identifier("attr"), max: requiredDecimal(m, "max"),
		by: parseScope(m), contractID: p.ContractID, vendor: p.Vendor,
	}
	if m.Require("over") {
		call.over = m.Duration("over", 0)
	}
	return Entry{Call: call, Message: m.Text("message", MaxMessage)}, p.Reporter.Count() == before
}

func parseScope(m *diagnostic.Mapping) string {
	text, ok := m.Scalar("by")
	if !ok {
		return byAgent
	}
	if !slices.Contains(scopes, text) {
		m.Report("by", diagnostic.Diagnostic{
			Message:    fmt.Sprintf("%s: %q is no scope", m.Path("by"), text),
			Allowed:    "allowed are " + strings.Join(scopes, ", "),
			DidYouMean: diagnostic.Nearest(text, scopes),
		})
	}
	return text
}

// Aggregate is implemented by calls that look at other actions under the same contract.
type Aggregate interface {
	// Reach is how far before and after the action's request the other actions' requests may lie.
	Reach() (before, after engine.Duration)
}

// Reach implements Aggregate.
func (e aggregateExceeds) Reach() (before, after engine.Duration) { return e.over, e.within }

// Key implements Call.
func (e aggregateExceeds) Key(sources map[string]engine.Source) string {
	k := e.key("aggregate_exceeds", sources)
	delete(k, "clock_skew") // the interval of an aggregate knows no skew
	k.text("attr", e.attr)
	k.text("max", e.max.String())
	k.seconds("over", e.over)
	k.text("by", e.by)
	return k.String()
}

// Code implements Call.
func (e aggregateExceeds) Code(fired bool) string {
	code := "aggregate_exceeded:" + e.name()
	if e.attr != "" {
		code += "." + e.attr
	}
	return notUnless(fired, code)
}

// Describe implements Call.
func (e aggregateExceeds) Describe() string {
	what := "number of " + e.phrase()
	if e.attr != "" {
		what = "total " + e.attr + " of " + e.phrase()
	}
	return fmt.Sprintf("%s over %s %s at most %s", what, e.over, e.scope(), e.max)
}

func (e aggregateExceeds) scope() string {
	switch e.by {
	case bySubject:
		return "for this subject"
	case byContract:
		return "under this contract"
	}
	return "by this agent"
}

// Explain implements Call.
func (e aggregateExceeds) Explain() string { return e.sentence("at most") }

// ExplainTrue implements Rule.
func (e aggregateExceeds) ExplainTrue() string { return e.sentence("above") }

func (e aggregateExceeds) sentence(bound string) string {
	what := "the number of records"
	if e.attr != "" {
		what = "the total " + e.attr + " of records"
	}
	record := strings.TrimPrefix(e.record(), "a record ")
	return fmt.Sprintf("%s, %s %s over %s, up to %s after the request, across %s, is %s %s.",
		place(e.source), what, record, InWords(e.over), InWords(e.within), e.acrossInWords(), bound, e.max)
}

func (e aggregateExceeds) acrossInWords() string {
	switch e.by {
	case bySubject:
		return "all actions on the same record"
	case byContract:
		return "all actions under this contract"
	}
	return "all actions of the same agent"
}

// Evaluate implements Call.
func (e aggregateExceeds) Evaluate(c *engine.Case) engine.Finding {
	total := engine.Decimal{}
	var latest *engine.Fact
	seen := map[string]bool{}
	for i := range c.Snapshot.Peers {
		peer := &c.Snapshot.Peers[i]
		if !e.inScope(c, peer) {
			continue
		}
		for _, subject := range c.Snapshot.Subjects(peer.SubjectID) {
			facts := c.Snapshot.Facts[subject]
			for j := range facts {
				amount, ok := e.contribution(c, peer, &facts[j])
				if !ok || seen[facts[j].RawRef] {
					continue
				}
				seen[facts[j].RawRef] = true
				total = total.Add(amount)
				if latest == nil || engine.CompareFacts(facts[j], *latest) > 0 {
					latest = &facts[j]
				}
			}
		}
	}
	found := engine.Finding{Fired: total.Cmp(e.max) > 0, Value: engine.FindingValue{Set: true, Observed: total.String()}}
	if latest != nil {
		found.Evidence = latest.RawRef
	}
	return found
}

// inScope is decision D17: which actions count.
func (e aggregateExceeds) inScope(c *engine.Case, peer *engine.Action) bool {
	t := c.Action.RequestedAt
	if peer.RequestedAt < t.Sub(e.over) || peer.RequestedAt > t.Add(e.within) {
		return false
	}
	switch e.by {
	case byAgent:
		return e.agent(peer) == e.agent(&c.Action)
	case bySubject:
		return slices.Contains(c.Snapshot.Subjects(c.Action.SubjectID), peer.SubjectID)
	}
	return true
}

func (e aggregateExceeds) agent(a *engine.Action) string {
	if a.AgentID == "" {
		return e.vendor
	}
	return a.AgentID
}

// contribution is what one fact of an action in scope adds to the total.
func (e aggregateExceeds) contribution(c *engine.Case, peer *engine.Action, f *engine.Fact) (engine.Decimal, bool) {
	end := int64(c.Action.RequestedAt) + int64(e.within)
	at := int64(f.OccurredAt)
	if at <= end-int64(e.over) || at > end || f.Type != e.factType || (e.source != "" && f.Source != e.source) {
		return engine.Decimal{}, false
	}
	if !e.matchesAttributes(peer, f) {
		return engine.Decimal{}, false
	}
	if e.attr == "" {
		return engine.DecimalOf(1), true
	}
	return f.Attributes.Lookup(e.attr).Decimal()
}

// SQL implements Call.
func (e aggregateExceeds) SQL(b *Builder) Columns {
	t := b.Table(e.query(b))
	if e.attr == "" {
		count := fmt.Sprintf("coalesce(%s.total, 0)", t)
		return Columns{
			// A count is a whole number, so it exceeds max exactly when it exceeds max's whole part.
			Fired:    b.Dialect.compare(b.Dialect.decimal("CAST("+count+" AS text)"), ">", b.Dialect.constant(e.max.String())),
			Evidence: rawRef(t + ".latest"),
			Observed: "CAST(" + count + " AS text)",
		}
	}
	total := fmt.Sprintf("coalesce(%s.total, %s)", t, b.Dialect.constant("0"))
	return Columns{
		Fired:    b.Dialect.compare(total, ">", b.Dialect.constant(e.max.String())),
		Evidence: rawRef(t + ".latest"),
		Observed: b.Dialect.canonical(total),
	}
}

// query yields claim_id, total and latest (an order key) of the actions that have contributing facts.
func (e aggregateExceeds) query(b *Builder) string {
	amount, total := b.Dialect.constant("1"), "count(*)"
	if e.attr != "" {
		amount = b.decimalOf("f.attributes", e.attr)
		total = b.Dialect.sum("x.amount")
	}
	conditions := []string{
		"f.tenant_id = " + b.Dialect.Tenant,
		"f.fact_type = " + Literal(e.factType),
		"f.occurred_at > p.base + " + strconv.FormatInt(int64(e.within-e.over), 10),
		"f.occurred_at <= p.base + " + strconv.FormatInt(int64(e.within), 10),
	}
	if e.source != "" {
		conditions = append(conditions, "f.source = "+Literal(e.source))
	}
	conditions = append(conditions, e.attributeConditions(b, "p")...)
	return fmt.Sprintf(`WITH peer AS (
%s
), reached AS (
  SELECT p.* FROM peer p
  UNION ALL
  SELECT %s FROM peer p JOIN subject_links l ON l.tenant_id = %s AND l.subject_id = p.subject_id
)
SELECT x.claim_id, %s AS total, max(x.order_key) AS latest FROM (
  SELECT DISTINCT p.claim_id, %s AS order_key, %s AS amount
  FROM reached p JOIN facts f ON f.subject_id = p.subject_id AND %s
) x WHERE x.amount IS NOT NULL GROUP BY x.claim_id`,
		e.peers(b), linkedPeerColumns, b.Dialect.Tenant, total,
		b.Dialect.OrderKey("f.occurred_at", "f.raw_ref"), amount, strings.Join(conditions, " AND "))
}

// peerColumns are those of one action in scope: claim_id and base belong to
// the action that is judged, the rest to the action in scope.
const (
	peerColumns       = "b.claim_id, b.requested_at AS base, c.subject_id, c.action_id, c.agent_id, c.workflow_id, c.session_id, c.reference_id, c.params"
	linkedPeerColumns = "p.claim_id, p.base, l.linked_subject_id, p.action_id, p.agent_id, p.workflow_id, p.session_id, p.reference_id, p.params"
)

func (e aggregateExceeds) peers(b *Builder) string {
	conditions := []string{
		"c.tenant_id = " + b.Dialect.Tenant,
		"c.contract_id = " + Literal(e.contractID),
		fmt.Sprintf("c.requested_at >= b.requested_at - %d", e.over),
		fmt.Sprintf("c.requested_at <= b.requested_at + %d", e.within),
	}
	switch e.by {
	case byAgent:
		conditions = append(conditions, fmt.Sprintf("coalesce(c.agent_id, %s) = b.agent", Literal(e.vendor)))
	case bySubject:
		conditions = append(conditions, "c.subject_id IN (SELECT s.subject_id FROM subjects s WHERE s.claim_id = b.claim_id)")
	}
	return fmt.Sprintf("  SELECT %s FROM batch b JOIN claims c ON %s", peerColumns, strings.Join(conditions, " AND "))
}
