package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	watermarks    = named("WatermarksOfSources")
	deliver       = named("MeetConnections")
	meetAgent     = named("MeetAgent")
	setConnection = named("SetConnection")
	connections   = named("Connections")
)

// call is a statement with its arguments.
type call struct {
	statement
	args []any
}

// delivery notes over which connections facts came, and moves watermarks
// forward (decision D12); nil when there is nothing to note. It comes with those that move.
func (t *tx) delivery(ctx context.Context, tenant string, batch ledger.FactBatch) (*call, []watermark, error) {
	delivered := map[string]int16{}
	for source := range batch.Watermarks {
		delivered[source] = 0
	}
	for i := range batch.Facts {
		delivered[batch.Facts[i].Source] = 1
	}
	if len(delivered) == 0 {
		return nil, nil, nil
	}
	if ofAgents(batch) {
		return &call{meetAgent, []any{tenant, batch.Connection}}, nil, nil
	}
	before, err := t.watermarks(ctx, tenant, batch)
	if err != nil {
		return nil, nil, err
	}
	var moved []watermark
	var sources []string
	var trust, flags []int16
	var marks []*int64
	for source, flag := range delivered {
		sources, flags = append(sources, source), append(flags, flag)
		trust = append(trust, trustOf(source, batch.Trust))
		at, declared := batch.Watermarks[source]
		if !declared {
			marks = append(marks, nil)
			continue
		}
		marks = append(marks, nullInstant(&at))
		if old := before[source]; old == nil || *old < int64(at) {
			moved = append(moved, watermark{source, old, int64(at)})
		}
	}
	return &call{deliver, []any{tenant, batch.Connection, sources, trust, flags, marks}}, moved, nil
}

// trustOf: what the agent's side says of itself is self-reported (decision D10).
func trustOf(source string, trust engine.Trust) int16 {
	if source == engine.AgentSource {
		return int16(engine.SelfReported)
	}
	return int16(trust)
}

// watermarks are those of the connection before the batch, of the sources for which it brings one.
func (t *tx) watermarks(ctx context.Context, tenant string, batch ledger.FactBatch) (map[string]*int64, error) {
	if len(batch.Watermarks) == 0 {
		return nil, nil
	}
	sources := make([]string, 0, len(batch.Watermarks))
	for source := range batch.Watermarks {
		sources = append(sources, source)
	}
	return t.watermarksOf(ctx, tenant, batch.Connection, sources)
}

func (t *tx) watermarksOf(ctx context.Context, tenant, connection string, sources []string) (map[string]*int64, error) {
	type row struct {
		Source    string
		Watermark *int64
	}
	rows, err := collect(ctx, t, watermarks, pgx.RowToStructByPos[row], tenant, connection, sources)
	known := make(map[string]*int64, len(rows))
	for _, r := range rows {
		known[r.Source] = r.Watermark
	}
	return known, err
}

// SetConnection implements ledger.EvidenceSide.
func (t *tx) SetConnection(ctx context.Context, tenant string, setting ledger.ConnectionSetting, now engine.Instant) error {
	if err := t.enter(ctx, tenant, now); err != nil {
		return err
	}
	before, err := t.watermarksOf(ctx, tenant, setting.Name, []string{setting.Source})
	if err != nil {
		return err
	}
	var skew *int64
	if setting.ClockSkew != nil {
		seconds := int64(*setting.ClockSkew)
		skew = &seconds
	}
	trust := setting.Trust
	if setting.Source == engine.AgentSource {
		own := engine.SelfReported
		trust = &own
	}
	if _, err := t.execute(ctx, setConnection, tenant, setting.Source, setting.Name, health(setting.Health),
		smallTrust(trust), smallTrust(setting.Override), skew, nullInstant(setting.Watermark), setting.Health != nil); err != nil {
		return err
	}
	if setting.Watermark == nil {
		return nil
	}
	old := before[setting.Source]
	if old != nil && *old >= int64(*setting.Watermark) {
		return nil
	}
	_, err = t.wakeFor(ctx, tenant, evidence{moved: []watermark{{setting.Source, old, int64(*setting.Watermark)}}}, now)
	return err
}

// health is NULL for none.
func health(h *engine.Health) *string {
	if h == nil {
		return nil
	}
	return null(string(*h))
}

func smallTrust(trust *engine.Trust) *int16 {
	if trust == nil {
		return nil
	}
	small := int16(*trust)
	return &small
}

// Connections implements ledger.Reading.
func (t *tx) Connections(ctx context.Context, tenant string) ([]engine.Connection, error) {
	return collect(ctx, t, connections, scanConnection, tenant)
}

func scanConnection(row pgx.CollectableRow) (engine.Connection, error) {
	var c engine.Connection
	var health string
	var trust, override, delivered int16
	var mark *int64
	var skew int64
	err := row.Scan(&c.Source, &c.Name, &health, &trust, &override, &delivered, &mark, &skew)
	c.Health, c.Trust, c.Override = engine.Health(health), engine.Trust(trust), engine.Trust(override)
	c.Delivered, c.Watermark, c.ClockSkew = delivered != 0, instant(mark), engine.Duration(skew)
	return c, err
}
