package sqlite

import (
	"context"
	"maps"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	watermarksOfSources      = fixed.Named("WatermarksOfSources")
	meetConnections          = fixed.Named("MeetConnections")
	setConnection            = fixed.Named("SetConnection")
	claimsAwaitingWatermarks = fixed.Named("ClaimsAwaitingWatermarks")
	connections              = fixed.Named("Connections")
)

// move is a watermark that moved forward (decision D12).
type move struct {
	source string
	from   *engine.Instant
	to     engine.Instant
}

// meetConnections notes which connections a batch came over, and returns the watermarks that moved.
func (t *tx) meetConnections(ctx context.Context, tenant string, facts ledger.FactBatch) ([]move, error) {
	delivered := map[string]bool{}
	for i := range facts.Facts {
		delivered[facts.Facts[i].Source] = true
	}
	for source := range facts.Watermarks {
		if !delivered[source] {
			delivered[source] = false // met, without a fact
		}
	}
	if len(delivered) == 0 {
		return nil, nil
	}
	before, err := t.watermarks(ctx, tenant, facts)
	if err != nil {
		return nil, err
	}
	var rows batch
	var moved []move
	for _, source := range slices.Sorted(maps.Keys(delivered)) {
		rows.row().text(source).integer(int64(trustOf(source, facts.Trust))).truth(delivered[source])
		to, declared := facts.Watermarks[source]
		if !declared {
			rows.null()
			continue
		}
		rows.integer(int64(to))
		if from := before[source]; from == nil || *from < to {
			moved = append(moved, move{source, from, to})
		}
	}
	_, err = t.execute(ctx, meetConnections, tenant, facts.Connection, rows.parameter())
	return moved, err
}

// trustOf is decision D10: what agents say of themselves is self-reported.
func trustOf(source string, trust engine.Trust) engine.Trust {
	if source == engine.AgentSource {
		return engine.SelfReported
	}
	return trust
}

// watermarks are those that stand for the sources whose watermark is declared.
func (t *tx) watermarks(ctx context.Context, tenant string, facts ledger.FactBatch) (map[string]*engine.Instant, error) {
	before := map[string]*engine.Instant{}
	if len(facts.Watermarks) == 0 {
		return before, nil
	}
	sources := slices.Collect(maps.Keys(facts.Watermarks))
	_, err := collect(ctx, t, watermarksOfSources, func(scan scan) (struct{}, error) {
		var source string
		var at engine.Instant
		err := scan(&source, &at)
		before[source] = &at
		return struct{}{}, err
	}, tenant, facts.Connection, list(sources))
	return before, err
}

// findAwaiting adds the actions whose window a moved watermark passed.
func (t *tx) findAwaiting(ctx context.Context, tenant string, moved []move, wakes wakeList) error {
	if len(moved) == 0 {
		return nil
	}
	var rows batch
	for _, m := range moved {
		rows.row().text(m.source).instant(m.from).integer(int64(m.to))
	}
	awaiting, err := collect(ctx, t, claimsAwaitingWatermarks, column[string], tenant, rows.parameter())
	for _, claimID := range awaiting {
		wakes.add(claimID, "recheck")
	}
	return err
}

// SetConnection implements ledger.EvidenceSide.
func (t *tx) SetConnection(ctx context.Context, tenant string, setting ledger.ConnectionSetting, now engine.Instant) error {
	if _, err := t.execute(ctx, ownTenant, tenant, now); err != nil {
		return err
	}
	var moved []move
	if to := setting.Watermark; to != nil {
		before, err := t.watermarks(ctx, tenant, ledger.FactBatch{
			Connection: setting.Name, Watermarks: map[string]engine.Instant{setting.Source: *to},
		})
		if err != nil {
			return err
		}
		if from := before[setting.Source]; from == nil || *from < *to {
			moved = append(moved, move{setting.Source, from, *to})
		}
	}
	trust := setting.Trust
	if setting.Source == engine.AgentSource {
		self := engine.SelfReported
		trust = &self
	}
	_, err := t.execute(ctx, setConnection, tenant, setting.Source, setting.Name, health(setting.Health),
		number(trust), number(setting.Override), number(setting.ClockSkew), number(setting.Watermark), setting.Health != nil)
	if err != nil {
		return err
	}
	wakes := wakeList{}
	if err := t.findAwaiting(ctx, tenant, moved, wakes); err != nil {
		return err
	}
	return t.wakeAll(ctx, tenant, wakes, now)
}

// health is NULL for none.
func health(h *engine.Health) any {
	if h == nil || *h == engine.NoHealth {
		return nil
	}
	return string(*h)
}

// number is a setting's value, or NULL for one that stays.
func number[T ~int64 | ~uint8](value *T) any {
	if value == nil {
		return nil
	}
	return int64(*value)
}

// Connections implements ledger.Reading.
func (t *tx) Connections(ctx context.Context, tenant string) ([]engine.Connection, error) {
	return collect(ctx, t, connections, func(scan scan) (c engine.Connection, err error) {
		var health *engine.Health
		err = scan(&c.Source, &c.Name, &health, &c.Trust, &c.Override, &c.Delivered, &c.Watermark, &c.ClockSkew)
		c.Health = orZero(health)
		return c, err
	}, tenant)
}
