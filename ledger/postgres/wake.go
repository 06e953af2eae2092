package postgres

import (
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	makeDue       = named("Wake")
	wakeSubjects  = named("WakeSubjects")
	wakeReversed  = named("WakeReversed")
	wakeReaders   = named("WakeReaders")
	dueContracts  = named("DueContracts")
	wakeContracts = named("WakeContracts")
	reversalTypes = named("ReversalTypes")
)

// evidence is what a transaction adds that actions may wait for.
type evidence struct {
	facts []newFact
	// links are new ones, in both directions.
	links []engine.Link
	moved []watermark
}

// watermark is one that moved forward; before is nil where there was none.
type watermark struct {
	source string
	before *int64
	after  int64
}

// makeDue queues actions, or wakes them where they are queued.
func (t *tx) makeDue(ctx context.Context, tenant string, claimIDs []string, now engine.Instant, triggeredBy string) error {
	if len(claimIDs) == 0 {
		return nil
	}
	triggers := make([]string, len(claimIDs))
	for i := range triggers {
		triggers[i] = triggeredBy
	}
	t.wake = true
	_, err := t.execute(ctx, makeDue, tenant, claimIDs, now, triggers)
	return err
}

// wakeFor makes due what waits for new evidence (decision D16) and returns how many actions that is.
func (t *tx) wakeFor(ctx context.Context, tenant string, e evidence, now engine.Instant) (int, error) {
	return t.deliverAndWake(ctx, tenant, nil, e, now)
}

// deliverAndWake is wakeFor after a delivery, if any. What need not wait for an
// answer goes in one round trip.
func (t *tx) deliverAndWake(ctx context.Context, tenant string, delivery *call, e evidence, now engine.Instant) (int, error) {
	woken := map[string]bool{}
	var undoing []string
	batch := &pgx.Batch{}
	if delivery != nil {
		batch.Queue(delivery.Text, delivery.args...)
	}
	queueWakeSubjects(batch, tenant, e, now, woken)
	queueReversalTypes(batch, e.facts, &undoing)
	if batch.Len() > 0 {
		if err := t.db.SendBatch(ctx, batch).Close(); err != nil {
			return 0, fail("deliver and wake", err)
		}
	}
	if err := t.wakeUndone(ctx, tenant, evidence{facts: ofTypes(e.facts, undoing), links: e.links}, now, woken); err != nil {
		return 0, err
	}
	awaiting, err := t.wakeReaders(ctx, tenant, e, now)
	for _, id := range awaiting {
		woken[id] = true
	}
	t.wake = t.wake || len(woken) > 0
	return len(woken), err
}

// queueWakeSubjects adds the actions that it wakes to woken.
func queueWakeSubjects(batch *pgx.Batch, tenant string, e evidence, now engine.Instant, woken map[string]bool) {
	earliest := make(map[string]*engine.Fact, len(e.facts)+len(e.links))
	for _, link := range e.links {
		earliest[link.SubjectID] = nil
	}
	for _, f := range e.facts {
		if known := earliest[f.SubjectID]; known == nil || engine.CompareFacts(*f.Fact, *known) < 0 {
			earliest[f.SubjectID] = f.Fact
		}
	}
	if len(earliest) == 0 {
		return
	}
	var subjects, keys textArray
	subjects.grow(len(earliest), bytesOf(earliest, func(subject string, _ *engine.Fact) int { return len(subject) }))
	keys.grow(len(earliest), bytesOf(earliest, func(_ string, f *engine.Fact) int { return orderKeyBytes(f) }))
	for subject, f := range earliest {
		subjects.add(subject)
		addOrderKey(&keys, f)
	}
	batch.Queue(wakeSubjects.Text, tenant, now, subjects.String(), keys.String()).Query(func(rows pgx.Rows) error {
		var id string
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { woken[id] = true; return nil })
		return err
	})
}

func bytesOf(facts map[string]*engine.Fact, size func(string, *engine.Fact) int) (sum int) {
	for subject, f := range facts {
		sum += size(subject, f)
	}
	return sum
}

// orderWidth is how many digits the time of an order key has; the year 9999 needs them all.
const orderWidth = 12

func orderKeyBytes(f *engine.Fact) int {
	if f == nil {
		return len("NULL")
	}
	return orderWidth + len(f.RawRef)
}

// addOrderKey adds what sorts as engine.CompareFacts does.
func addOrderKey(keys *textArray, f *engine.Fact) {
	if f == nil {
		keys.addNull()
		return
	}
	const zeros = "000000000000"
	var digits [20]byte
	seconds := strconv.AppendInt(digits[:0], int64(f.OccurredAt), 10)
	keys.add(zeros[:max(0, orderWidth-len(seconds))], string(seconds), f.RawRef)
}

// wakeUndone wakes what facts of a type undo that some contract names in
// reversed_by, which are few, or known ones that links bring near.
func (t *tx) wakeUndone(ctx context.Context, tenant string, e evidence, now engine.Instant, woken map[string]bool) error {
	if len(e.facts)+len(e.links) == 0 {
		return nil
	}
	var refs, subjects, sources, types []string
	var times []int64
	for _, f := range e.facts {
		refs, subjects, sources, types = append(refs, f.RawRef), append(subjects, f.SubjectID), append(sources, f.Source), append(types, f.Type)
		times = append(times, int64(f.OccurredAt))
	}
	from, to := ends(e.links)
	undone, err := collect(ctx, t, wakeReversed, pgx.RowTo[string], tenant, now, refs, subjects, sources, types, times, from, to)
	for _, id := range undone {
		woken[id] = true
	}
	return err
}

// ends of links, side by side.
func ends(links []engine.Link) (from, to []string) {
	for _, link := range links {
		from, to = append(from, link.SubjectID), append(to, link.LinkedSubjectID)
	}
	return from, to
}

// queueReversalTypes asks which types of facts undo an action under some contract.
func queueReversalTypes(batch *pgx.Batch, facts []newFact, undoing *[]string) {
	types := map[string]bool{}
	for _, f := range facts {
		types[f.Type] = true
	}
	if len(types) == 0 {
		return
	}
	batch.Queue(reversalTypes.Text, sortedKeys(types)).Query(func(rows pgx.Rows) (err error) {
		*undoing, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
}

func ofTypes(facts []newFact, types []string) []newFact {
	if len(types) == 0 {
		return nil
	}
	var some []newFact
	for _, f := range facts {
		if slices.Contains(types, f.Type) {
			some = append(some, f)
		}
	}
	return some
}

func (t *tx) wakeReaders(ctx context.Context, tenant string, e evidence, now engine.Instant) ([]string, error) {
	if len(e.moved) == 0 {
		return nil, nil
	}
	var sources []string
	var before []*int64
	var after []int64
	for _, w := range e.moved {
		sources, before, after = append(sources, w.source), append(before, w.before), append(after, w.after)
	}
	return collect(ctx, t, wakeReaders, pgx.RowTo[string], tenant, now, sources, before, after)
}

// DueContracts implements ledger.EvidenceSide.
func (t *tx) DueContracts(ctx context.Context, tenant string) ([]ledger.ContractRef, error) {
	return collect(ctx, t, dueContracts, pgx.RowToStructByPos[ledger.ContractRef], tenant)
}

// WakeContracts implements ledger.EvidenceSide.
func (t *tx) WakeContracts(ctx context.Context, tenant string, contracts []ledger.ContractRef, now engine.Instant) (int, error) {
	ids, versions := make([]string, len(contracts)), make([]int32, len(contracts))
	for i, ref := range contracts {
		ids[i], versions[i] = ref.ID, int32(ref.Version)
	}
	woken, err := t.execute(ctx, wakeContracts, tenant, now, ids, versions)
	t.wake = t.wake || woken > 0
	return int(woken), err
}
