package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
)

var (
	makeDue       = named("Wake")
	wakeSubjects  = named("WakeSubjects")
	wakeReversed  = named("WakeReversed")
	wakeReaders   = named("WakeReaders")
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
	woken := map[string]bool{}
	for _, wake := range []func(context.Context, string, evidence, engine.Instant) ([]string, error){
		t.wakeSubjects, t.wakeReversed, t.wakeReaders,
	} {
		claimIDs, err := wake(ctx, tenant, e, now)
		if err != nil {
			return 0, err
		}
		for _, id := range claimIDs {
			woken[id] = true
		}
	}
	t.wake = t.wake || len(woken) > 0
	return len(woken), nil
}

func (t *tx) wakeSubjects(ctx context.Context, tenant string, e evidence, now engine.Instant) ([]string, error) {
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
		return nil, nil
	}
	subjects, keys := make([]string, 0, len(earliest)), make([]*string, 0, len(earliest))
	for subject, f := range earliest {
		subjects, keys = append(subjects, subject), append(keys, orderKey(f))
	}
	return collect(ctx, t, wakeSubjects, pgx.RowTo[string], tenant, now, subjects, keys)
}

// orderKey sorts as engine.CompareFacts does.
func orderKey(f *engine.Fact) *string {
	if f == nil {
		return nil
	}
	key := fmt.Sprintf("%012d%s", f.OccurredAt, f.RawRef)
	return &key
}

// wakeReversed looks only at facts of a type that some contract names in
// reversed_by, which are few.
func (t *tx) wakeReversed(ctx context.Context, tenant string, e evidence, now engine.Instant) ([]string, error) {
	reversing, err := t.reversing(ctx, e.facts)
	if err != nil || len(reversing)+len(e.links) == 0 {
		return nil, err
	}
	var refs, subjects, sources, types []string
	var times []int64
	for _, f := range reversing {
		refs, subjects, sources, types = append(refs, f.RawRef), append(subjects, f.SubjectID), append(sources, f.Source), append(types, f.Type)
		times = append(times, int64(f.OccurredAt))
	}
	from, to := ends(e.links)
	return collect(ctx, t, wakeReversed, pgx.RowTo[string], tenant, now, refs, subjects, sources, types, times, from, to)
}

// ends of links, side by side.
func ends(links []engine.Link) (from, to []string) {
	for _, link := range links {
		from, to = append(from, link.SubjectID), append(to, link.LinkedSubjectID)
	}
	return from, to
}

// reversing are the facts of a type that undoes an action under some contract.
func (t *tx) reversing(ctx context.Context, facts []newFact) ([]newFact, error) {
	types := map[string]bool{}
	for _, f := range facts {
		types[f.Type] = true
	}
	if len(types) == 0 {
		return nil, nil
	}
	undoing, err := collect(ctx, t, reversalTypes, pgx.RowTo[string], sortedKeys(types))
	if err != nil || len(undoing) == 0 {
		return nil, err
	}
	var reversing []newFact
	for _, f := range facts {
		if slices.Contains(undoing, f.Type) {
			reversing = append(reversing, f)
		}
	}
	return reversing, nil
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
