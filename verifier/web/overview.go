package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// span is a time to look at, in whole steps.
type span struct {
	Name, Text   string
	length       engine.Duration
	step         engine.Duration
	since, until engine.Instant
	// label is every how many steps a time is written under the chart, format how.
	label  int
	format string
}

var spans = []span{
	{Name: "24h", Text: "24 hours", length: engine.Day, step: 30 * engine.Minute, label: 8, format: "15:04"},
	{Name: "7d", Text: "7 days", length: 7 * engine.Day, step: 4 * engine.Hour, label: 6, format: "Jan 2"},
	{Name: "30d", Text: "30 days", length: 30 * engine.Day, step: engine.Day, label: 5, format: "Jan 2"},
	{Name: "1y", Text: "52 weeks", length: 52 * engine.Week, step: engine.Week, label: 8, format: "Jan 2006"},
}

// endingAt is the span whose last step contains now.
func (s span) endingAt(now engine.Instant) span {
	step := engine.Instant(s.step)
	s.until = (now/step + 1) * step
	s.since = s.until.Sub(s.length)
	return s
}

// chooseSpan is the one that was asked for, or the shortest that has the newest action.
func chooseSpan(name string, now engine.Instant, newest *engine.Instant) span {
	for _, s := range spans {
		if s.Name == name {
			return s.endingAt(now)
		}
	}
	for _, s := range spans {
		s = s.endingAt(now)
		if name == "" && newest != nil && *newest >= s.since {
			return s
		}
	}
	return spans[0].endingAt(now)
}

type choice struct {
	Text, Link string
	Current    bool
}

type overviewView struct {
	frame
	// Empty: no action was ever recorded.
	Empty     bool
	Contracts int
	Base      string
	Spans     []choice
	Span      span
	Filters   []chip
	Counting  bool
	Stale     bool
	Total     ledger.Tally
	Tiles     []tile
	Charts    []chart
	ByContract,
	ByAgent []group
	MoreAgents bool
	Failures   []row
	Sources    []sourceView
}

// tile is one count with the list behind it.
type tile struct {
	Name, Class, Link, Note string
	Count                   int
}

// group is a line of a table by contract or agent.
type group struct {
	ledger.Tally
	Name, Link, ListLink string
	Shares               []segment
}

// chip is a filter that is on, and the address without it.
type chip struct{ Name, Value, Without string }

const (
	// failuresShown are taken from among failureRuns newest runs.
	failuresShown = 8
	failureRuns   = 2000
	agentsShown   = 15
)

// tallies is what the overview counts.
type tallies struct{ contracts, agents []ledger.Tally }

func (p *Page) overview(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	contractID, agentID := engine.Fold(query.Get("contract_id")), query.Get("agent_id")
	v := overviewView{Base: p.base(r)}
	tenant := sessionOf(r.Context()).Tenant
	var newest *engine.Instant
	err := p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Overview", "overview"); err != nil {
			return err
		}
		v.Live = "all"
		page, err := tx.ListActions(r.Context(), tenant, ledger.ActionFilter{Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Actions) == 0 {
			v.Empty = true
			documents, err := tx.ListContracts(r.Context(), "")
			v.Contracts = len(documents)
			return err
		}
		newest = &page.Actions[0].Action.RequestedAt
		return p.overviewDetails(r, tx, &v)
	})
	if err != nil {
		return err
	}
	if v.Empty {
		return p.write(w, http.StatusOK, "welcome", v)
	}
	v.Span = chooseSpan(query.Get("range"), p.Now(), newest)
	v.choices(contractID, agentID)
	filter := ledger.TallyFilter{Since: v.Span.since, Until: v.Span.until, ContractID: contractID, AgentID: agentID, Step: v.Span.step, Limit: agentsShown + 1}
	if err := p.tally(&v, tenant, filter); err != nil {
		return err
	}
	return p.write(w, http.StatusOK, "overview", v)
}

func (p *Page) overviewDetails(r *http.Request, tx ledger.Tx, v *overviewView) error {
	ctx, tenant := r.Context(), sessionOf(r.Context()).Tenant
	failed, err := tx.NewestFailures(ctx, tenant, failureRuns, failuresShown)
	if err != nil {
		return err
	}
	if v.Failures, err = p.rows(ctx, tx, tenant, failed); err != nil {
		return err
	}
	connections, err := tx.Connections(ctx, tenant)
	if err != nil {
		return err
	}
	v.Sources = sourceViews(connections, p.Now())
	return nil
}

// tally fills in the counts, as far as they are known.
func (p *Page) tally(v *overviewView, tenant string, filter ledger.TallyFilter) error {
	key := fmt.Sprintf("%q tally %+v", tenant, filter)
	found, err := count(p.figures, key, func(ctx context.Context) (t tallies, err error) {
		err = p.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
			if t.contracts, err = tx.TallyContracts(ctx, tenant, filter); err != nil {
				return err
			}
			t.agents, err = tx.TallyAgents(ctx, tenant, filter)
			return err
		})
		return t, err
	})
	if err != nil {
		return err
	}
	v.Counting, v.Stale = !found.Known, found.Stale
	if v.Counting || v.Stale {
		v.Refresh = 2
	}
	v.fill(found.Value, filter)
	return nil
}

func (v *overviewView) fill(t tallies, filter ledger.TallyFilter) {
	byContract := map[string]*ledger.Tally{}
	var order []string
	for _, one := range t.contracts {
		v.Total.Add(one)
		if byContract[one.Key] == nil {
			byContract[one.Key] = &ledger.Tally{Key: one.Key}
			order = append(order, one.Key)
		}
		byContract[one.Key].Add(one)
	}
	slices.SortStableFunc(order, func(a, b string) int { return byContract[b].Total - byContract[a].Total })
	since, until := filter.Since.String(), filter.Until.String()
	for _, id := range order {
		v.ByContract = append(v.ByContract, group{
			Tally: *byContract[id], Name: id, Link: contractPath(id), Shares: shares(*byContract[id]),
			ListLink: listPath("contract_id", id, "agent_id", filter.AgentID, "since", since, "until", until),
		})
	}
	if v.MoreAgents = len(t.agents) > agentsShown; v.MoreAgents {
		t.agents = t.agents[:agentsShown]
	}
	for _, one := range t.agents {
		g := group{Tally: one, Name: one.Key, Shares: shares(one)}
		if one.Key != "" {
			g.Link = v.address("agent_id", one.Key, filter)
			g.ListLink = listPath("agent_id", one.Key, "contract_id", filter.ContractID, "since", since, "until", until)
		}
		v.ByAgent = append(v.ByAgent, g)
	}
	list := func(more ...string) string {
		return listPath(append(more, "contract_id", filter.ContractID, "agent_id", filter.AgentID, "since", since, "until", until)...)
	}
	v.Tiles = []tile{
		{"PASS", "pass", list("verdict", "PASS"), "", v.Total.Pass},
		{"FAIL", "fail", list("verdict", "FAIL"), "", v.Total.Fail},
		{"UNKNOWN", "unknown", list("verdict", "UNKNOWN"), "", v.Total.Unknown},
		{"PENDING", "pending", list("verdict", "PENDING"), "not final", v.Total.Pending},
		{"COMPENSATED", "compensated", list("verdict", "COMPENSATED"), "of those that did not pass", v.Total.Compensated},
	}
	if v.Total.Unverified > 0 {
		v.Tiles = append(v.Tiles, tile{"UNVERIFIED", "unverified", list(), "recorded, nobody asked", v.Total.Unverified})
	}
	v.Charts = drawCharts(v.Span, t.contracts, func(from, to engine.Instant) string {
		return listPath("contract_id", filter.ContractID, "agent_id", filter.AgentID, "since", from.String(), "until", to.String())
	})
}

// address is the overview with one more filter.
func (v *overviewView) address(name, value string, filter ledger.TallyFilter) string {
	query := map[string]string{"range": v.Span.Name, "contract_id": filter.ContractID, "agent_id": filter.AgentID}
	query[name] = value
	return overviewPath(query)
}

func (v *overviewView) choices(contractID, agentID string) {
	for _, s := range spans {
		link := overviewPath(map[string]string{"range": s.Name, "contract_id": contractID, "agent_id": agentID})
		v.Spans = append(v.Spans, choice{s.Text, link, s.Name == v.Span.Name})
	}
	if contractID != "" {
		v.Filters = append(v.Filters, chip{"contract", contractID, overviewPath(map[string]string{"range": v.Span.Name, "agent_id": agentID})})
	}
	if agentID != "" {
		v.Filters = append(v.Filters, chip{"agent", agentID, overviewPath(map[string]string{"range": v.Span.Name, "contract_id": contractID})})
	}
}

func overviewPath(query map[string]string) string {
	return "/" + encoded(query)
}

// base is where the sidecar is reached, for commands to copy.
func (p *Page) base(r *http.Request) string {
	if p.PublicURL != "" {
		return p.PublicURL
	}
	if p.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
