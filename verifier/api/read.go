package api

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Get is GET /actions/{ref}: an action with its latest verification.
func (s *Service) Get(ctx context.Context, caller Caller, ref string) (shown view.Verification, err error) {
	if err := caller.need(keys.Read); err != nil {
		return view.Verification{}, err
	}
	err = s.view(ctx, func(tx ledger.Tx) error {
		stored, err := find(ctx, tx, caller.Tenant, ref)
		if err != nil {
			return err
		}
		if shown, err = s.show(ctx, tx, caller.Tenant, stored, nil, nil); err != nil {
			return err
		}
		shown = woken(shown, stored)
		shown.NearMisses, err = s.nearMisses(ctx, tx, caller, stored)
		return err
	})
	return shown, err
}

// nearMisses are hints that tell of facts: who may not look at sources, as the
// agents' side may not, gets none.
func (s *Service) nearMisses(ctx context.Context, tx ledger.Tx, caller Caller, stored ledger.StoredAction) ([]report.NearMiss, error) {
	if stored.Latest == nil || !keys.May(caller.Role, keys.Inspect) {
		return nil, nil
	}
	c, err := s.contractOf(ctx, tx, stored.Action) // from the cache: versions do not change
	if errors.Is(err, ledger.ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, nil // one that this program cannot read: what is stored is shown all the same
	}
	return view.NearMisses(ctx, tx, caller.Tenant, c, stored)
}

// Page is one page of a list of actions, newest first.
type Page struct {
	Actions []view.Row `json:"actions"`
	Next    *string    `json:"next_cursor" doc:"null on the last page"`
}

// List is GET /actions.
func (s *Service) List(ctx context.Context, caller Caller, filter ledger.ActionFilter) (page Page, err error) {
	if err := caller.need(keys.Read); err != nil {
		return Page{}, err
	}
	err = s.view(ctx, func(tx ledger.Tx) error {
		found, err := tx.ListActions(ctx, caller.Tenant, filter)
		if err != nil {
			return badCursor(filter, err)
		}
		page, err = s.rows(ctx, tx, caller.Tenant, found)
		return err
	})
	return page, err
}

// badCursor says so when the cursor is what the store could not read.
func badCursor(filter ledger.ActionFilter, err error) error {
	for _, foreseen := range []error{ledger.ErrUnavailable, ledger.ErrReadOnly, ledger.ErrNotMigrated, ledger.ErrNewerSchema, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, foreseen) {
			return err
		}
	}
	if filter.Cursor == "" {
		return err
	}
	return badParameter("cursor", "is not one that a page gave as next_cursor")
}

func (s *Service) rows(ctx context.Context, tx ledger.Tx, tenant string, found ledger.ActionPage) (Page, error) {
	ids := make([]string, len(found.Actions))
	for i, stored := range found.Actions {
		ids[i] = stored.Action.ActionID
	}
	page := Page{Actions: make([]view.Row, 0, len(ids))}
	if len(ids) == 0 {
		return page, nil
	}
	compensations, err := tx.Compensations(ctx, tenant, ids)
	if err != nil {
		return Page{}, err
	}
	for _, stored := range found.Actions {
		row, err := s.row(ctx, tx, stored, compensations)
		if err != nil {
			return Page{}, err
		}
		page.Actions = append(page.Actions, row)
	}
	if found.Next != "" {
		page.Next = &found.Next
	}
	return page, nil
}

func (s *Service) row(ctx context.Context, tx ledger.Tx, stored ledger.StoredAction, compensations map[string]ledger.Compensation) (view.Row, error) {
	var compensation *ledger.Compensation
	if c, ok := compensations[stored.Action.ActionID]; ok {
		compensation = &c
	}
	row, err := view.RowOf(stored, compensation)
	if err != nil || row.Settlement.SettlesAt != nil {
		return row, err
	}
	c, err := s.contractOf(ctx, tx, stored.Action) // from the cache: versions do not change
	if err != nil {
		return view.Row{}, err
	}
	settlesAt := c.SettlesAt(stored.Action.RequestedAt)
	row.Settlement.SettlesAt = &settlesAt
	return row, nil
}

// History is all verifications of an action, oldest first.
type History struct {
	Action view.Action      `json:"action"`
	Runs   []view.StoredRun `json:"runs"`
}

// Runs is GET /actions/{ref}/runs.
func (s *Service) Runs(ctx context.Context, caller Caller, ref string) (history History, err error) {
	if err := caller.need(keys.Read); err != nil {
		return History{}, err
	}
	err = s.view(ctx, func(tx ledger.Tx) error {
		stored, err := find(ctx, tx, caller.Tenant, ref)
		if err != nil {
			return err
		}
		runs, err := tx.Runs(ctx, caller.Tenant, stored.ClaimID)
		if err != nil {
			return err
		}
		history = History{Action: view.ActionOf(stored), Runs: make([]view.StoredRun, len(runs))}
		for i := range runs {
			if history.Runs[i], err = view.RunOf(runs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return history, err
}

// Counts are actions by the policy verdict of their latest run. Pending
// and compensated overlap with the others.
type Counts struct {
	Total       int `json:"total"`
	Pass        int `json:"pass"`
	Fail        int `json:"fail"`
	Unknown     int `json:"unknown"`
	Pending     int `json:"pending"`
	Compensated int `json:"compensated"`
	Unverified  int `json:"unverified"`
}

// Summary is GET /actions/summary.
func (s *Service) Summary(ctx context.Context, caller Caller, filter ledger.ActionFilter) (Counts, error) {
	if err := caller.need(keys.Read); err != nil {
		return Counts{}, err
	}
	var counted ledger.Summary
	err := s.view(ctx, func(tx ledger.Tx) (err error) {
		counted, err = tx.Summary(ctx, caller.Tenant, filter)
		return err
	})
	return Counts(counted), err
}

// SourceList is the sources of a tenant.
type SourceList struct {
	Sources []SourceState `json:"sources"`
}

// SourceState is what the connections of one source amount to.
type SourceState struct {
	Source           string            `json:"source"`
	Trust            *engine.Trust     `json:"trust" enum:"self_reported,shared,independent"`
	Override         *engine.Trust     `json:"trust_override" enum:"self_reported,shared,independent" doc:"the operator's word on trust, which holds; null for none"`
	Present          bool              `json:"present" doc:"missing_fact_source does not hold"`
	Watermark        *engine.Instant   `json:"watermark" doc:"everything up to then has been sent"`
	Lag              *string           `json:"lag" doc:"how far the watermark is behind now, like 2h 10m; null without a watermark"`
	BehindSeconds    *int64            `json:"behind_seconds" doc:"the same in seconds"`
	ClockSkewSeconds int64             `json:"clock_skew_seconds" doc:"how much too early it may stamp an effect"`
	Connections      []ConnectionState `json:"connections"`
}

// ConnectionState is one provider of a source.
type ConnectionState struct {
	Name      string          `json:"name" doc:"facts_api for pushed facts"`
	Health    *engine.Health  `json:"health" enum:"healthy,syncing,error"`
	Trust     *engine.Trust   `json:"trust"`
	Override  *engine.Trust   `json:"trust_override"`
	Delivered bool            `json:"delivered" doc:"at least one fact ever came"`
	Watermark *engine.Instant `json:"watermark"`
}

// FactsAPI is how the connection without a name is shown.
const FactsAPI = "facts_api"

// Sources is GET /sources.
func (s *Service) Sources(ctx context.Context, caller Caller) (SourceList, error) {
	if err := caller.need(keys.Inspect); err != nil {
		return SourceList{}, err
	}
	var connections []engine.Connection
	err := s.view(ctx, func(tx ledger.Tx) (err error) {
		connections, err = tx.Connections(ctx, caller.Tenant)
		return err
	})
	if err != nil {
		return SourceList{}, err
	}
	slices.SortFunc(connections, func(a, b engine.Connection) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	list := SourceList{Sources: []SourceState{}}
	for len(connections) > 0 {
		n := 1
		for n < len(connections) && connections[n].Source == connections[0].Source {
			n++
		}
		list.Sources = append(list.Sources, DescribeSource(connections[0].Source, connections[:n], s.Now()))
		connections = connections[n:]
	}
	return list, nil
}

// DescribeSource is what GET /sources says of the source that some connections provide.
func DescribeSource(name string, connections []engine.Connection, now engine.Instant) SourceState {
	source := engine.Sources(connections, nil)[name]
	state := SourceState{
		Source: name, Trust: known(source.Trust), Override: known(source.Override), Present: source.Present,
		Watermark: source.Watermark, ClockSkewSeconds: int64(source.ClockSkew),
		Connections: make([]ConnectionState, len(connections)),
	}
	for i, c := range connections {
		state.Connections[i] = connectionState(c)
	}
	if source.Watermark != nil {
		behind := max(int64(now-*source.Watermark), 0)
		lag := engine.Duration(behind).String()
		state.BehindSeconds, state.Lag = &behind, &lag
	}
	return state
}

func connectionState(c engine.Connection) ConnectionState {
	state := ConnectionState{c.Name, nil, known(c.Trust), known(c.Override), c.Delivered, c.Watermark}
	if c.Name == engine.FactsAPI {
		state.Name = FactsAPI
	}
	if c.Health != engine.NoHealth {
		state.Health = &c.Health
	}
	return state
}

func known(t engine.Trust) *engine.Trust {
	if t == engine.UnknownTrust {
		return nil
	}
	return &t
}
