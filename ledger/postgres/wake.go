package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
)

var (
	makeDue       = named("MakeDue")
	wakeSubjects  = named("WakeSubjects")
	wakeReversed  = named("WakeReversed")
	wakeReaders   = named("WakeReaders")
	reversalTypes = named("ReversalTypes")
)

// evidence is what a transaction adds that actions may wait for.
type evidence struct {
	facts []newFact
	// linked are subjects that got a new link.
	linked []string
	moved  []watermark
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
	triggers := make(map[string]string, len(e.facts)+len(e.linked))
	for _, subject := range e.linked {
		triggers[subject] = "recheck"
	}
	for _, fact := range e.facts {
		// Facts come by raw_ref; the first one of a subject names the reason.
		if known, ok := triggers[fact.SubjectID]; !ok || known == "recheck" {
			triggers[fact.SubjectID] = "fact:" + fact.RawRef
		}
	}
	if len(triggers) == 0 {
		return nil, nil
	}
	subjects, reasons := make([]string, 0, len(triggers)), make([]string, 0, len(triggers))
	for subject, reason := range triggers {
		subjects, reasons = append(subjects, subject), append(reasons, reason)
	}
	return collect(ctx, t, wakeSubjects, pgx.RowTo[string], tenant, now, subjects, reasons)
}

// wakeReversed looks only at facts of a type that some contract names in
// reversed_by, which are few.
func (t *tx) wakeReversed(ctx context.Context, tenant string, e evidence, now engine.Instant) ([]string, error) {
	types := map[string]bool{}
	for _, fact := range e.facts {
		types[fact.Type] = true
	}
	if len(types) == 0 {
		return nil, nil
	}
	reversing, err := collect(ctx, t, reversalTypes, pgx.RowTo[string], slices.Collect(maps.Keys(types)))
	if err != nil || len(reversing) == 0 {
		return nil, err
	}
	var refs, subjects, sources, factTypes []string
	var times []int64
	for _, f := range e.facts {
		if !slices.Contains(reversing, f.Type) {
			continue
		}
		refs, subjects, sources, factTypes = append(refs, f.RawRef), append(subjects, f.SubjectID), append(sources, f.Source), append(factTypes, f.Type)
		times = append(times, int64(f.OccurredAt))
	}
	return collect(ctx, t, wakeReversed, pgx.RowTo[string], tenant, now, refs, subjects, sources, factTypes, times)
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
