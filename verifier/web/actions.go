package web

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// row is one action of a list.
type row struct {
	view.Row
	Path string
	// Verdict is what stands in front: the policy verdict, PENDING or UNVERIFIED.
	Verdict string
	// Text is the headline without the verdict in front of it.
	Text string
	// Contradicted: the agent reported success and the outcome is FAIL.
	Contradicted bool
	// Differs: the lenses settled on different verdicts.
	Differs bool
	Parked  bool
}

func rowOf(stored ledger.StoredAction, compensation *ledger.Compensation) (row, error) {
	shown, err := view.RowOf(stored, compensation)
	if err != nil {
		return row{}, err
	}
	r := row{Row: shown, Path: actionPath(stored.ClaimID), Verdict: verdictOf(shown.Status, shown.Policy), Parked: stored.ParkedError != ""}
	r.Text = headlineText(shown.Summary.Headline)
	r.Differs = shown.Status == ledger.Settled && shown.Outcome.Verdict != shown.Policy.Verdict
	r.Contradicted = contradicted(shown.Status, shown.Outcome, shown.Action.ReportedOutcome)
	return r, nil
}

// verdictOf is one word for a verification.
func verdictOf(status string, policy *view.Lens) string {
	switch {
	case policy == nil:
		return "UNVERIFIED"
	case status == ledger.Pending:
		return "PENDING"
	}
	return policy.Verdict
}

// headlineText is a headline without the word in front, which stands beside it.
func headlineText(headline string) string {
	if _, text, ok := strings.Cut(headline, " — "); ok {
		return text
	}
	return headline
}

// reportedSuccess is what an agent's runtime says of a call that worked (decision D34).
const reportedSuccess = "success"

func contradicted(status string, outcome *view.Lens, reported string) bool {
	return status == ledger.Settled && outcome != nil && outcome.RawVerdict == engine.NotVerified && reported == reportedSuccess
}

// rows shows actions of a list, with their corrections: one statement for all.
func (p *Page) rows(ctx context.Context, tx ledger.Tx, tenant string, actions []ledger.StoredAction) ([]row, error) {
	if len(actions) == 0 {
		return nil, nil
	}
	ids := make([]string, len(actions))
	for i := range actions {
		ids[i] = actions[i].Action.ActionID
	}
	compensations, err := tx.Compensations(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	shown := make([]row, len(actions))
	for i := range actions {
		var compensation *ledger.Compensation
		if c, ok := compensations[actions[i].Action.ActionID]; ok {
			compensation = &c
		}
		if shown[i], err = rowOf(actions[i], compensation); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// field is one filter of the list.
type field struct{ Name, Label, Value, Hint string }

type actionsView struct {
	frame
	Verdicts  []string
	Verdict   string
	Contracts []string
	Contract  string
	Fields    []field
	Chips     []chip
	Rows      []row
	// Missed is a search that found nothing.
	Missed string
	// Older and Newer are the pages beside this one; First is where the list begins.
	Older, Newer, First string
	// Paged: this is not the first page.
	Paged bool
	// MoreFilters are in use: show them open.
	MoreFilters bool
}

var verdictFilters = []string{"PASS", "FAIL", "UNKNOWN", "PENDING", "COMPENSATED"}

const (
	pageSize = 50
	// trailLength is how many pages back can be gone to one by one.
	trailLength = 30
)

// actions is the list. A search leads to what it finds.
func (p *Page) actions(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	search := strings.TrimSpace(query.Get("q"))
	if search != "" {
		if err := engine.CheckOpaque("what you look for", search); err != nil {
			return badRequest("%s.", plain(err.Error()))
		}
		found, err := p.search(r.Context(), sessionOf(r.Context()).Tenant, search)
		if err != nil {
			return err
		}
		if found != "" {
			http.Redirect(w, r, found, http.StatusSeeOther)
			return nil
		}
	}
	filter, err := filterOf(query)
	if err != nil {
		return err
	}
	v, err := p.list(r, query, filter)
	if err != nil {
		return err
	}
	v.Search, v.Missed = search, search
	return p.write(w, http.StatusOK, "actions", v)
}

// filterOf reads the filters of an address, as the API names them.
func filterOf(query url.Values) (ledger.ActionFilter, error) {
	filter := ledger.ActionFilter{
		Verdict: strings.ToUpper(query.Get("verdict")), ContractID: engine.Fold(query.Get("contract_id")), AgentID: query.Get("agent_id"),
		SubjectID: query.Get("subject_id"), TraceID: engine.Fold(query.Get("trace_id")), WorkflowID: query.Get("workflow_id"),
		Cursor: query.Get("cursor"), Limit: pageSize,
	}
	for _, given := range []struct{ name, text string }{
		{"verdict", filter.Verdict}, {"contract_id", filter.ContractID}, {"agent_id", filter.AgentID}, {"subject_id", filter.SubjectID},
		{"trace_id", filter.TraceID}, {"workflow_id", filter.WorkflowID}, {"cursor", filter.Cursor},
	} {
		if given.text == "" {
			continue
		}
		if err := engine.CheckOpaque(given.name, given.text); err != nil {
			return ledger.ActionFilter{}, badRequest("%s.", plain(err.Error()))
		}
	}
	var err error
	if filter.Since, err = moment("since", query.Get("since")); err != nil {
		return ledger.ActionFilter{}, err
	}
	filter.Until, err = moment("until", query.Get("until"))
	return filter, err
}

// moment reads a time as people and date fields write it; without a zone it is UTC.
func moment(name, text string) (*engine.Instant, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if at, err := engine.ParseInstant(text); err == nil {
		return &at, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			if at, err := engine.InstantOf(parsed); err == nil {
				return &at, nil
			}
		}
	}
	return nil, badRequest("%s is no time. Write it like 2026-09-28 10:42, in UTC.", name)
}

func (p *Page) list(r *http.Request, query url.Values, filter ledger.ActionFilter) (actionsView, error) {
	v := actionsView{Verdicts: verdictFilters, Verdict: filter.Verdict, Contract: filter.ContractID}
	tenant := sessionOf(r.Context()).Tenant
	var next string
	err := p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		if v.frame, err = p.frame(r, tx, "Actions", "actions"); err != nil {
			return err
		}
		documents, err := tx.ListContracts(r.Context(), "")
		if err != nil {
			return err
		}
		for _, d := range documents {
			v.Contracts = append(v.Contracts, d.ID)
		}
		page, err := tx.ListActions(r.Context(), tenant, filter)
		if err != nil {
			return err
		}
		next = page.Next
		v.Rows, err = p.rows(r.Context(), tx, tenant, page.Actions)
		return err
	})
	if err != nil {
		return actionsView{}, err
	}
	v.pages(query, next)
	v.filters(query, filter)
	if !v.Paged {
		v.Live = "all"
	}
	return v, nil
}

// pages are the addresses beside this one. The trail says where the pages before it began.
func (v *actionsView) pages(query url.Values, next string) {
	cursor, trail := query.Get("cursor"), splitTrail(query.Get("trail"))
	v.Paged = cursor != ""
	v.First = withPage(query, "", nil)
	if next != "" {
		v.Older = withPage(query, next, append(trail, cursor))
	}
	if !v.Paged {
		return
	}
	v.Newer = v.First
	if n := len(trail); n > 0 {
		v.Newer = withPage(query, trail[n-1], trail[:n-1])
	}
}

func splitTrail(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "~")
}

func withPage(query url.Values, cursor string, trail []string) string {
	page := url.Values{}
	for name, values := range query {
		if name != "cursor" && name != "trail" && name != "q" && len(values) > 0 && values[0] != "" {
			page[name] = values[:1]
		}
	}
	if cursor != "" {
		page.Set("cursor", cursor)
	}
	if n := len(trail); n > trailLength {
		trail = trail[n-trailLength:]
	}
	if joined := strings.Join(trail, "~"); joined != "" {
		page.Set("trail", joined)
	}
	if len(page) == 0 {
		return "/actions"
	}
	return "/actions?" + page.Encode()
}

func (v *actionsView) filters(query url.Values, filter ledger.ActionFilter) {
	v.Fields = []field{
		{"agent_id", "Agent", filter.AgentID, "support-agent"},
		{"subject_id", "Subject", filter.SubjectID, "order_10231"},
		{"trace_id", "Trace", filter.TraceID, "32 hex digits"},
		{"workflow_id", "Workflow", filter.WorkflowID, "wf_1"},
		{"since", "Requested from", query.Get("since"), "2026-09-28 10:00"},
		{"until", "and before", query.Get("until"), "2026-09-29"},
	}
	on := append([]field{{"verdict", "Verdict", filter.Verdict, ""}, {"contract_id", "Contract", filter.ContractID, ""}}, v.Fields...)
	for _, f := range on {
		if f.Value == "" {
			continue
		}
		without := url.Values{}
		for name, values := range query {
			without[name] = values
		}
		without.Del(f.Name)
		v.Chips = append(v.Chips, chip{f.Label, f.Value, withPage(without, "", nil)})
		v.MoreFilters = v.MoreFilters || (f.Name != "verdict" && f.Name != "contract_id")
	}
}

// search finds an action by its ids or a verdict's hash, or the actions of a
// subject or trace; empty when there are none.
func (p *Page) search(ctx context.Context, tenant, text string) (address string, err error) {
	err = p.Ledger.View(ctx, func(tx ledger.Tx) error {
		for _, look := range []func() (string, error){
			func() (string, error) { return byHash(ctx, tx, tenant, text) },
			func() (string, error) { return byReference(ctx, tx, tenant, text) },
			func() (string, error) {
				return byFilter(ctx, tx, tenant, ledger.ActionFilter{SubjectID: text, Limit: 1}, "subject_id", text)
			},
			func() (string, error) {
				trace := engine.Fold(text)
				return byFilter(ctx, tx, tenant, ledger.ActionFilter{TraceID: trace, Limit: 1}, "trace_id", trace)
			},
		} {
			if address, err = look(); err != nil || address != "" {
				return err
			}
		}
		return nil
	})
	return address, err
}

func byHash(ctx context.Context, tx ledger.Tx, tenant, text string) (string, error) {
	hash, err := hex.DecodeString(strings.ToLower(text))
	if err != nil || len(hash) != 32 {
		return "", nil // not a hash
	}
	found, err := tx.ActionsByHash(ctx, tenant, [32]byte(hash), 1)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return actionPath(found[0]) + "#verify", nil
}

func byReference(ctx context.Context, tx ledger.Tx, tenant, text string) (string, error) {
	found, err := tx.Actions(ctx, tenant, []string{text})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return actionPath(found[0].ClaimID), nil
}

func byFilter(ctx context.Context, tx ledger.Tx, tenant string, filter ledger.ActionFilter, name, value string) (string, error) {
	page, err := tx.ListActions(ctx, tenant, filter)
	if err != nil || len(page.Actions) == 0 {
		return "", err
	}
	return listPath(name, value), nil
}
