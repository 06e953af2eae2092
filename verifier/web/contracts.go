package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// contractText is a contract in plain language, in parts.
type contractText struct {
	ID, Display, Path string
	Version           int
	Parts             []part
	Citation          string
}

// part is what stands under one heading.
type part struct {
	Heading    string
	Paragraphs []string
	Items      []item
	// After are sentences below the items.
	After []string
}

// item is one rule and what is said when it is broken.
type item struct{ Text, Message string }

// textOf parts contract.Explain at its headings and lists.
func textOf(c *contract.Contract) *contractText {
	text := &contractText{ID: c.ID, Display: c.VendorDisplay, Version: c.Version, Path: contractPath(c.ID), Citation: web(c.Citation.URL)}
	var now part
	flush := func() {
		if now.Heading != "" || len(now.Paragraphs) > 0 {
			text.Parts = append(text.Parts, now)
		}
	}
	lines := strings.Split(strings.TrimSuffix(contract.Explain(c), "\n"), "\n")
	for _, line := range lines[min(2, len(lines)):] { // the first two are the display name and the version
		switch {
		case line == "":
		case capitals(line):
			flush()
			now = part{Heading: line[:1] + strings.ToLower(line[1:])}
		default:
			now.add(line)
		}
	}
	flush()
	return text
}

func (p *part) add(line string) {
	if message, ok := strings.CutPrefix(line, "   "); ok && len(p.Items) > 0 {
		p.Items[len(p.Items)-1].Message = message
		return
	}
	if number, rest, ok := strings.Cut(line, ". "); ok && len(number) <= 3 && strings.Trim(number, "0123456789") == "" {
		p.Items = append(p.Items, item{Text: rest})
		return
	}
	if len(p.Items) > 0 {
		p.After = append(p.After, line)
		return
	}
	p.Paragraphs = append(p.Paragraphs, line)
}

// capitals says whether a line is a heading of contract.Explain.
func capitals(line string) bool {
	return strings.ContainsFunc(line, unicode.IsUpper) && !strings.ContainsFunc(line, unicode.IsLower) && len(line) > 3
}

type contractRow struct {
	ledger.ContractDocument
	Display, Path, Does string
	Tally               ledger.Tally
	Shares              []segment
	// Unreadable: the version was published by another program and cannot be read by this one.
	Unreadable bool
}

type contractsView struct {
	frame
	Rows     []contractRow
	Span     span
	Counting bool
}

// contractSpan is what pass rates of contracts are counted over.
const contractSpan = "30d"

func (p *Page) contracts(w http.ResponseWriter, r *http.Request) error {
	v := contractsView{Span: chooseSpan(contractSpan, p.Now(), nil)}
	tenant := sessionOf(r.Context()).Tenant
	var documents []ledger.ContractDocument
	err := p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Contracts", "contracts"); err != nil {
			return err
		}
		documents, err = tx.ListContracts(r.Context(), "")
		return err
	})
	if err != nil {
		return err
	}
	found, err := p.contractTallies(tenant, v.Span)
	if err != nil {
		return err
	}
	if v.Counting = !found.Known; v.Counting || found.Stale {
		v.Refresh = 2
	}
	for _, d := range documents {
		row := contractRow{ContractDocument: d, Path: contractPath(d.ID)}
		if c, err := ledger.ParseDocument(d); err != nil {
			row.Unreadable = true
		} else {
			row.Display, row.Does = c.VendorDisplay, c.Description
		}
		for _, t := range found.Value {
			if t.Key == d.ID {
				row.Tally.Add(t)
			}
		}
		row.Shares = shares(row.Tally)
		v.Rows = append(v.Rows, row)
	}
	return p.write(w, http.StatusOK, "contracts", v)
}

func (p *Page) contractTallies(tenant string, s span) (counted[[]ledger.Tally], error) {
	filter := ledger.TallyFilter{Since: s.since, Until: s.until, Step: s.step}
	return count(p.figures, fmt.Sprintf("%q contracts %+v", tenant, filter), func(ctx context.Context) (found []ledger.Tally, err error) {
		err = p.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
			found, err = tx.TallyContracts(ctx, tenant, filter)
			return err
		})
		return found, err
	})
}

// contractFigures is what the page of one contract counts.
type contractFigures struct {
	tallies []ledger.Tally
	reasons []ledger.ReasonCount
}

func (p *Page) contractFigures(tenant, id string, s span) (counted[contractFigures], error) {
	filter := ledger.TallyFilter{Since: s.since, Until: s.until, ContractID: id, Step: s.step}
	return count(p.figures, fmt.Sprintf("%q contract %+v", tenant, filter), func(ctx context.Context) (found contractFigures, err error) {
		err = p.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
			if found.tallies, err = tx.TallyContracts(ctx, tenant, filter); err != nil {
				return err
			}
			found.reasons, err = tx.CountReasons(ctx, tenant, id, reasonActions)
			return err
		})
		return found, err
	})
}

type contractView struct {
	frame
	ID       string
	Newest   int
	Text     *contractText
	Version  versionRow
	Versions []versionRow
	Document string
	// Against is the version that Difference compares with; 0 for none.
	Against    int
	Difference []diffLine
	Same       bool
	Span       span
	Counting   bool
	Tally      ledger.Tally
	Charts     []chart
	Fires      []fires
	FiresOf    int
	ListLink   string
	// Problem: this program cannot read the version.
	Problem string
}

type versionRow struct {
	Version     int
	Hash        string
	PublishedAt engine.Instant
	Link        string
	DiffLink    string
	Current     bool
}

// fires is how often a check decided.
type fires struct {
	reason
	Actions int
	Share   float64
	Good    bool
}

// reasonActions are the newest actions whose reasons are counted.
const reasonActions = 2000

func (p *Page) contract(w http.ResponseWriter, r *http.Request) error {
	id := engine.Fold(r.PathValue("id"))
	version, err := versionOf(r, "version")
	if err != nil {
		return err
	}
	against, err := versionOf(r, "against")
	if err != nil {
		return err
	}
	v := contractView{ID: id, Span: chooseSpan(contractSpan, p.Now(), nil), FiresOf: reasonActions, ListLink: listPath("contract_id", id)}
	tenant := sessionOf(r.Context()).Tenant
	var documents []ledger.ContractDocument
	err = p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Contract "+clip(64, id), "contracts"); err != nil {
			return err
		}
		if _, err := engine.Identifier(id); err != nil {
			return notFound("No contract with this id is published.")
		}
		if documents, err = tx.ListContracts(r.Context(), id); err != nil {
			return err
		}
		if len(documents) == 0 {
			return notFound("No contract with this id is published.")
		}
		return nil
	})
	if err != nil {
		return err
	}
	v.Live = "all"
	if err := v.versions(documents, version, against); err != nil {
		return err
	}
	found, err := p.contractFigures(tenant, id, v.Span)
	if err != nil {
		return err
	}
	if v.Counting = !found.Known; v.Counting || found.Stale {
		v.Refresh = 2
	}
	v.fires(found.Value.reasons)
	for _, t := range found.Value.tallies {
		v.Tally.Add(t)
	}
	v.Charts = drawCharts(v.Span, found.Value.tallies, func(from, to engine.Instant) string {
		return listPath("contract_id", id, "since", from.String(), "until", to.String())
	})
	return p.write(w, http.StatusOK, "contract", v)
}

func versionOf(r *http.Request, name string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return 0, badRequest("%s is no version of a contract.", name)
	}
	return version, nil
}

// versions shows one version, the newest unless another was asked for, and
// compares it with another, the one before it unless another was asked for.
func (v *contractView) versions(documents []ledger.ContractDocument, version, against int) error {
	if version == 0 {
		version = documents[len(documents)-1].Version
	}
	shown, other := -1, -1
	for i, d := range documents {
		if d.Version == version {
			shown = i
		}
		if d.Version == against {
			other = i
		}
	}
	if shown < 0 || (against != 0 && other < 0) {
		return notFound("This contract has no such version.")
	}
	if against == 0 && shown > 0 {
		other = shown - 1
	}
	for i := len(documents) - 1; i >= 0; i-- {
		d := documents[i]
		row := versionRow{Version: d.Version, Hash: d.Hash, PublishedAt: d.PublishedAt, Current: i == shown}
		row.Link = fmt.Sprintf("%s?version=%d", contractPath(d.ID), d.Version)
		if i != shown {
			row.DiffLink = fmt.Sprintf("%s?version=%d&against=%d#difference", contractPath(d.ID), version, d.Version)
		}
		v.Versions = append(v.Versions, row)
		if i == shown {
			v.Version = row
		}
	}
	v.Newest = documents[len(documents)-1].Version
	v.Document = string(documents[shown].Document)
	if c, err := ledger.ParseDocument(documents[shown]); err != nil {
		v.Problem = err.Error()
	} else {
		v.Text = textOf(c)
	}
	if other >= 0 {
		v.Against = documents[other].Version
		v.Difference = difference(string(documents[other].Document), v.Document)
		v.Same = len(v.Difference) == 0
	}
	return nil
}

func (v *contractView) fires(counts []ledger.ReasonCount) {
	most := 0
	for _, c := range counts {
		most = max(most, c.Actions)
	}
	for _, c := range counts {
		v.Fires = append(v.Fires, fires{
			reason: reason{c.Code, report.Label(c.Code)}, Actions: c.Actions, Share: round(float64(c.Actions) / float64(most) * 100),
			Good: strings.HasPrefix(c.Code, "effect_observed:"),
		})
	}
	slices.SortStableFunc(v.Fires, func(a, b fires) int { // what stopped an action comes first
		switch {
		case a.Good == b.Good:
			return 0
		case a.Good:
			return 1
		}
		return -1
	})
}
