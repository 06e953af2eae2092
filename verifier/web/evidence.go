package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// sourceView is one source of facts.
type sourceView struct {
	engine.Source
	// Lag is how far the watermark is behind; empty without one.
	Lag string
	// Late: behind for more than an hour.
	Late        bool
	Connections []connectionView
	ReadBy      []string
	Last        *engine.Fact
	Recent      int
	// Rejected is what collectors could not write of it in the last days.
	Rejected ledger.RejectedCount
}

type connectionView struct {
	engine.Connection
	Shown string
}

// lateAfter is from when on a lag is shown as one.
const lateAfter = engine.Hour

// sourceViews merges connections by source, in the order of their names.
func sourceViews(connections []engine.Connection, now engine.Instant) []sourceView {
	merged := engine.Sources(connections, nil)
	byName := map[string]*sourceView{}
	for name, s := range merged {
		v := &sourceView{Source: s}
		if s.Watermark != nil {
			behind := engine.Duration(max(now-*s.Watermark, 0))
			v.Lag, v.Late = behind.String(), behind > lateAfter
		}
		byName[name] = v
	}
	for _, c := range connections {
		shown := c.Name
		if c.Name == engine.FactsAPI {
			shown = "facts API"
		}
		byName[c.Source].Connections = append(byName[c.Source].Connections, connectionView{c, shown})
	}
	views := make([]sourceView, 0, len(byName))
	for _, v := range byName {
		views = append(views, *v)
	}
	slices.SortFunc(views, func(a, b sourceView) int { return strings.Compare(a.Name, b.Name) })
	return views
}

type sourcesView struct {
	frame
	Sources []sourceView
	// Unheard are sources that contracts read and that never reported.
	Unheard  []sourceView
	Facts    []engine.Fact
	Counting bool
	Base     string
	// Refusals are the last ones of this process, since Since.
	Refusals []Refusal
	Since    engine.Instant
	// Rejected is what collectors could not write, the newest first; Unnamed how much of it is of no source above.
	Rejected     []ledger.RejectedFact
	Unnamed      []ledger.RejectedCount
	RejectedDays int
}

const (
	recentFacts = 200
	// rejectedShown of the last rejectedDays are listed.
	rejectedShown = 50
	rejectedDays  = 30
)

func (p *Page) sources(w http.ResponseWriter, r *http.Request) error {
	var v sourcesView
	var documents []ledger.ContractDocument
	tenant := sessionOf(r.Context()).Tenant
	err := p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Sources", "sources"); err != nil {
			return err
		}
		connections, err := tx.Connections(r.Context(), tenant)
		if err != nil {
			return err
		}
		v.Sources = sourceViews(connections, p.Now())
		if err := p.rejected(r.Context(), tx, tenant, &v); err != nil {
			return err
		}
		documents, err = tx.ListContracts(r.Context(), "")
		return err
	})
	if err != nil {
		return err
	}
	v.Live, v.Base = "all", p.base(r)
	v.Refusals, v.Since = p.refusals.of(tenant), p.refusals.since
	v.readers(documents)
	found, err := p.recent(tenant)
	if err != nil {
		return err
	}
	if v.Counting = !found.Known; v.Counting {
		v.Refresh = 2
	}
	v.Facts = found.Value
	for i := range v.Sources {
		v.Sources[i].last(found.Value)
	}
	return p.write(w, http.StatusOK, "sources", v)
}

// rejected is evidence that collectors could not write, which is kept in the store.
func (p *Page) rejected(ctx context.Context, tx ledger.Tx, tenant string, v *sourcesView) (err error) {
	since := p.Now().Sub(rejectedDays * engine.Day)
	v.RejectedDays = rejectedDays
	if v.Rejected, err = tx.RejectedFacts(ctx, tenant, ledger.RejectedFilter{Since: &since, Limit: rejectedShown}); err != nil {
		return err
	}
	counts, err := tx.CountRejected(ctx, tenant, since)
	for _, c := range counts {
		at := slices.IndexFunc(v.Sources, func(s sourceView) bool { return s.Name == c.Source })
		if at < 0 {
			v.Unnamed = append(v.Unnamed, c)
			continue
		}
		v.Sources[at].Rejected = c
	}
	return err
}

// readers says which contracts read a source, and which sources nobody has heard of.
func (v *sourcesView) readers(documents []ledger.ContractDocument) {
	for _, d := range documents {
		c, err := ledger.ParseDocument(d)
		if err != nil {
			continue // the contract's own page says so
		}
		for _, name := range c.NamedSources() {
			v.reader(name, c.ID)
		}
	}
	slices.SortFunc(v.Unheard, func(a, b sourceView) int { return strings.Compare(a.Name, b.Name) })
}

func (v *sourcesView) reader(source, contractID string) {
	for _, list := range []*[]sourceView{&v.Sources, &v.Unheard} {
		for i := range *list {
			if (*list)[i].Name == source {
				(*list)[i].ReadBy = append((*list)[i].ReadBy, contractID)
				return
			}
		}
	}
	v.Unheard = append(v.Unheard, sourceView{Source: engine.Source{Name: source}, ReadBy: []string{contractID}})
}

func (s *sourceView) last(facts []engine.Fact) {
	for i := range facts {
		if facts[i].Source != s.Name {
			continue
		}
		s.Recent++
		if s.Last == nil {
			s.Last = &facts[i]
		}
	}
}

// recent are the newest facts, of as short a time as has enough of them.
func (p *Page) recent(tenant string) (counted[[]engine.Fact], error) {
	return count(p.figures, fmt.Sprintf("%q recent facts", tenant), func(ctx context.Context) (facts []engine.Fact, err error) {
		for _, back := range []engine.Duration{10 * engine.Minute, engine.Day, 30 * engine.Day, 520 * engine.Week} {
			err = p.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
				facts, err = tx.RecentFacts(ctx, tenant, p.Now().Sub(back), recentFacts)
				return err
			})
			if err != nil || len(facts) == recentFacts {
				break
			}
		}
		return facts, err
	})
}

type orphansView struct {
	frame
	Facts    []engine.Fact
	Effects  []ledger.EffectType
	Source   string
	Sources  []string
	Spans    []choice
	Span     span
	Counting bool
	Full     bool
}

const orphansShown = 200

func (p *Page) orphans(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	v := orphansView{Source: engine.Fold(query.Get("source"))}
	tenant := sessionOf(r.Context()).Tenant
	var documents []ledger.ContractDocument
	err := p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Orphans", "orphans"); err != nil {
			return err
		}
		documents, err = tx.ListContracts(r.Context(), "")
		return err
	})
	if err != nil {
		return err
	}
	name := query.Get("range")
	if name == "" {
		name = "30d"
	}
	v.Span = chooseSpan(name, p.Now(), nil)
	for _, s := range spans {
		v.Spans = append(v.Spans, choice{s.Text, "/orphans" + encoded(map[string]string{"range": s.Name, "source": v.Source}), s.Name == v.Span.Name})
	}
	v.expected(documents)
	found, err := p.findOrphans(tenant, v.Effects, v.Span)
	if err != nil {
		return err
	}
	if v.Counting = !found.Known; v.Counting {
		v.Refresh = 2
	}
	v.Facts, v.Full = found.Value, len(found.Value) == orphansShown
	return p.write(w, http.StatusOK, "orphans", v)
}

// expected are the effects that the newest versions of all contracts expect,
// narrowed to one source where that is asked for. What cannot be read is left
// out: the contract's own page says so.
func (v *orphansView) expected(documents []ledger.ContractDocument) {
	v.Effects, _ = ledger.ExpectedEffects(documents, v.Source)
	all, _ := ledger.ExpectedEffects(documents, "")
	for _, effect := range all {
		if effect.Source != "" && !slices.Contains(v.Sources, effect.Source) {
			v.Sources = append(v.Sources, effect.Source)
		}
	}
	slices.Sort(v.Sources)
}

func (p *Page) findOrphans(tenant string, effects []ledger.EffectType, s span) (counted[[]engine.Fact], error) {
	if len(effects) == 0 {
		return counted[[]engine.Fact]{Known: true}, nil
	}
	filter := ledger.OrphanFilter{Effects: effects, Since: &s.since, Until: &s.until, Limit: orphansShown}
	key := fmt.Sprintf("%q orphans %q %d %d", tenant, effects, s.since, s.until)
	return count(p.figures, key, func(ctx context.Context) (facts []engine.Fact, err error) {
		err = p.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
			facts, err = tx.Orphans(ctx, tenant, filter)
			return err
		})
		return facts, err
	})
}

func (p *Page) parked(w http.ResponseWriter, r *http.Request) error {
	var v parkedView
	tenant := sessionOf(r.Context()).Tenant
	err := p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Needs attention", "parked"); err != nil {
			return err
		}
		parked, err := tx.ParkedActions(r.Context(), tenant, mostParked)
		for _, one := range parked {
			v.Rows = append(v.Rows, parkedRow{Parked: one, Path: actionPath(one.Due.ClaimID), Disagreeing: disagreement(one.Error)})
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.write(w, http.StatusOK, "parked", v)
}
