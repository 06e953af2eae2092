package ledgerexporter

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// watermarkEvery is how often watermarks are written. Facts never wait for it.
const watermarkEvery = time.Second

// maxObserved bounds how many connections of tenants are followed.
const maxObserved = 10_000

// watermarks observes how far sources have reported, and takes what connections
// report themselves (decision D12). A watermark
// that is ahead of facts which still wait somewhere would let a verdict settle
// without them, so it is held back
//
//   - behind every fact of a batch that is being written, or that failed and
//     waits to be tried again;
//   - for facts that were received before this exporter started or last failed
//     to write: what was received before those may still be in the queue, behind them;
//   - behind the clock of this host at the time a fact came, however fast the
//     sender's is, less the time that a batch may wait to be filled.
//
// What the store refused moves nothing. It is no evidence, and holds nothing
// either: one poisoned fact would hold its source for ever.
//
// Silence moves nothing, unless the operator gave an idle timeout: the time
// counts from the newest fact, the start and the last failure, whichever is last.
//
// What a connection reports needs neither lateness nor idle timeout: it says by
// itself that everything has been sent, before the report. So it counts as soon
// as no batch that was queued before it can be on its way unseen, and stays
// behind what is not stored, like the others. Where the queue outlives the
// process, what was under way when that ended comes behind newer things: then
// reports wait until something that was received since has come.
//
// It is safe for concurrent use. Times are passed in.
type watermarks struct {
	configs map[string]WatermarkConfig
	tenant  string
	// follows is that of an evidence exporter: whichever of its sources reports one day.
	follows bool
	// outlives says that the queue is kept when the process ends.
	outlives bool
	seed     maphash.Seed
	// filling is how long a received item may wait until its batch is begun.
	filling time.Duration

	// gate is held for reading while a batch is looked through, and for writing
	// while watermarks are worked out: no batch is on its way then unseen.
	gate sync.RWMutex

	mu sync.Mutex
	// since is the start or the last failure.
	since  time.Time
	began  time.Time
	loaded bool
	states map[observed]*observation
	// reported is what connections say of themselves.
	reported map[observed]*reports
	// freshAt is when the first item came that was received since the start.
	freshAt time.Time
	// finished: no batch comes any more.
	finished bool
	// outstanding are batches that are not stored yet, by their content.
	outstanding map[digest]*outstanding
	// lost is what does not fit into outstanding; it holds until the exporter starts anew.
	lost map[whose]engine.Instant
}

// maxOutstanding bounds the batches that failed and were never tried again.
const maxOutstanding = 1_000

// digest tells a batch that is tried again from others.
type digest uint64

// outstanding is what of a batch is not stored yet.
type outstanding struct {
	// oldest is the earliest fact of each source.
	oldest  map[whose]engine.Instant
	writing int
	failed  bool
}

// whose is a source. What of it is missing holds all of its connections: the
// source has the earliest watermark of those that have one, whichever delivered the fact.
type whose struct{ tenant, source string }

// observed is whose watermark it is.
type observed struct {
	tenant, source string
	path           path
}

type observation struct {
	newest  engine.Instant // occurred_at of the newest fact that counts; 0 for none
	heard   time.Time      // when the last fact came
	written engine.Instant
}

// reports are those of one connection. What comes while one waits becomes the
// next, so that many of them cannot put each other off.
type reports struct {
	at            engine.Instant // up to where it counts; 0 for none
	waiting, next claim
	written       engine.Instant
}

// claim is what was reported, and when that was last; the zero value is none.
type claim struct {
	at   engine.Instant
	seen time.Time
}

func newWatermarks(config *Config) *watermarks {
	w := &watermarks{
		configs: map[string]WatermarkConfig{}, tenant: config.Tenant, follows: config.Role == Evidence, seed: maphash.MakeSeed(),
		states: map[observed]*observation{}, reported: map[observed]*reports{},
		outstanding: map[digest]*outstanding{}, lost: map[whose]engine.Instant{},
	}
	if queue := config.QueueConfig; queue.HasValue() {
		w.outlives = queue.Get().StorageID != nil
		if queue.Get().Batch.HasValue() {
			w.filling = queue.Get().Batch.Get().FlushTimeout
		}
	}
	for source, one := range config.Watermarks {
		w.configs[engine.Fold(source)] = one
	}
	return w
}

// off says that there is nothing to follow.
func (w *watermarks) off() bool { return !w.follows }

func (w *watermarks) start(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since, w.began = now, now
}

// finish says that every batch has come to its end.
func (w *watermarks) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
}

// look is called before a batch is looked through, and seen when that is done.
func (w *watermarks) look() { w.gate.RLock() }

// seen notes the facts that are about to be written, and returns their digest for end.
func (w *watermarks) seen(items []item, reported []report, now time.Time) digest {
	defer w.gate.RUnlock()
	if w.off() {
		return 0
	}
	oldest, sum := w.oldest(items)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outlives && w.freshAt.IsZero() && w.anyFresh(items, reported) {
		w.freshAt = now
	}
	if len(oldest) == 0 {
		return 0
	}
	if w.outstanding[sum] == nil {
		w.outstanding[sum] = &outstanding{oldest: oldest}
	}
	w.outstanding[sum].writing++
	return sum
}

// oldest are the earliest facts of each source.
func (w *watermarks) oldest(items []item) (map[whose]engine.Instant, digest) {
	var hash maphash.Hash
	hash.SetSeed(w.seed)
	oldest := map[whose]engine.Instant{}
	for i := range items {
		it := &items[i]
		if it.kind != kindFact {
			continue
		}
		key := whose{it.tenant, it.fact.Source}
		if at, ok := oldest[key]; !ok || it.fact.OccurredAt < at {
			oldest[key] = it.fact.OccurredAt
		}
		for _, text := range [...]string{it.tenant, it.path.connection, it.fact.Source, it.fact.RawRef} {
			_, _ = hash.WriteString(text)
			_ = hash.WriteByte(0)
		}
	}
	return oldest, digest(hash.Sum64())
}

// anyFresh says that something was received since the start. A queue keeps its order.
func (w *watermarks) anyFresh(items []item, reported []report) bool {
	fresh := func(nanos int64) bool { return nanos > 0 && time.Unix(0, nanos).After(w.began) }
	return slices.ContainsFunc(reported, func(r report) bool { return fresh(r.receivedNanos) }) ||
		slices.ContainsFunc(items, func(it item) bool { return fresh(it.receivedNanos) })
}

// end notes what became of a batch.
func (w *watermarks) end(sum digest, items []item, reported []report, err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle(sum, err != nil)
	if err != nil {
		w.since = now
		return
	}
	for i := range items {
		if items[i].kind == kindFact && !items[i].refused {
			w.observe(&items[i], now)
		}
	}
	for i := range reported {
		w.take(&reported[i], now)
	}
}

// take keeps a report until it may count.
func (w *watermarks) take(r *report, now time.Time) {
	state := w.reported[r.observed]
	if state == nil {
		if len(w.reported) == maxObserved {
			return
		}
		state = &reports{}
		w.reported[r.observed] = state
	}
	if state.waiting.seen.IsZero() {
		state.waiting = claim{r.at, now}
		return
	}
	state.next = claim{max(state.next.at, r.at), now}
}

// ripen lets those count that have waited long enough.
func (w *watermarks) ripen(r *reports, now time.Time) {
	ripe := func(seen time.Time) bool {
		return !seen.IsZero() && (w.finished || now.Sub(seen) >= w.filling+watermarkEvery)
	}
	for ripe(r.waiting.seen) && (!w.outlives || ripe(w.freshAt)) {
		r.at = max(r.at, r.waiting.at)
		r.waiting, r.next = r.next, claim{}
	}
}

func (w *watermarks) settle(sum digest, failed bool) {
	o := w.outstanding[sum]
	if o == nil {
		return
	}
	o.writing--
	o.failed = failed
	switch {
	case o.writing == 0 && !failed:
		delete(w.outstanding, sum)
	case o.writing == 0 && len(w.outstanding) > maxOutstanding:
		for key, at := range o.oldest {
			if known, ok := w.lost[key]; !ok || at < known {
				w.lost[key] = at
			}
		}
		delete(w.outstanding, sum)
	}
}

func (w *watermarks) observe(it *item, now time.Time) {
	config, ok := w.configs[it.fact.Source]
	if !ok {
		return
	}
	key := observed{it.tenant, it.fact.Source, it.path}
	state := w.states[key]
	if state == nil {
		if len(w.states) == maxObserved {
			return
		}
		state = &observation{}
		w.states[key] = state
	}
	state.heard = now
	if !w.isFresh(it.receivedNanos, config, now) {
		return
	}
	clock, err := engine.InstantOf(now.Add(-w.filling))
	if err != nil {
		return
	}
	state.newest = max(state.newest, min(it.fact.OccurredAt, clock))
}

// isFresh says that nothing that was received before waits behind this fact. A
// record that does not say when it was received counts once its source's lateness
// has passed since the start or the last failure.
func (w *watermarks) isFresh(receivedNanos int64, config WatermarkConfig, now time.Time) bool {
	if receivedNanos > 0 {
		return time.Unix(0, receivedNanos).After(w.since)
	}
	return now.Sub(w.since) >= config.Lateness
}

// mark is a watermark to write.
type mark struct {
	observed
	at engine.Instant
}

// due are the watermarks that have moved, in a fixed order.
func (w *watermarks) due(now time.Time) []mark {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.waiting()
	moved := map[observed]engine.Instant{}
	move := func(key observed, at, written engine.Instant) {
		if oldest, held := waiting[whose{key.tenant, key.source}]; held {
			at = min(at, oldest-1)
		}
		if at > written {
			moved[key] = max(moved[key], at)
		}
	}
	for key, state := range w.states {
		if at, ok := w.reached(key, state, now); ok {
			move(key, at, state.written)
		}
	}
	for key, state := range w.reported {
		w.ripen(state, now)
		move(key, state.at, state.written)
	}
	marks := make([]mark, 0, len(moved))
	for key, at := range moved {
		marks = append(marks, mark{key, at})
	}
	slices.SortFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.path.connection, b.path.connection), cmp.Compare(a.source, b.source), cmp.Compare(a.path.trust, b.path.trust))
	})
	return marks
}

// waiting are the earliest facts that are not stored yet.
func (w *watermarks) waiting() map[whose]engine.Instant {
	waiting := maps.Clone(w.lost)
	for _, o := range w.outstanding {
		for key, at := range o.oldest {
			if known, ok := waiting[key]; !ok || at < known {
				waiting[key] = at
			}
		}
	}
	return waiting
}

func (w *watermarks) reached(key observed, state *observation, now time.Time) (engine.Instant, bool) {
	config := w.configs[key.source]
	clock, err := engine.InstantOf(now.Add(-w.filling))
	if err != nil {
		return 0, false
	}
	lateness := engine.Instant((config.Lateness + time.Second - 1) / time.Second)
	quiet := now.Sub(latest(state.heard, w.since))
	if config.IdleTimeout > 0 && quiet >= config.IdleTimeout {
		return clock - lateness, true
	}
	return state.newest - lateness, state.newest > 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *watermarks) wrote(marks []mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range marks {
		if state := w.states[m.observed]; state != nil {
			state.written = max(state.written, m.at)
		}
		if state := w.reported[m.observed]; state != nil {
			state.written = max(state.written, m.at)
		}
	}
}

// load follows connections that have a watermark already, so that after a
// restart the clock moves on those that stay silent.
func (w *watermarks) load(connections []engine.Connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded = true
	for _, c := range connections {
		if _, ok := w.configs[c.Source]; !ok || c.Watermark == nil || len(w.states) == maxObserved {
			continue
		}
		key := observed{w.tenant, c.Source, path{c.Name, c.Trust}}
		if w.states[key] == nil {
			w.states[key] = &observation{written: *c.Watermark}
		}
	}
}

// write brings the store up to date; where nothing moved, it needs none. An error is no reason to hold telemetry up.
func (w *watermarks) write(ctx context.Context, open func(context.Context) (ledger.Ledger, error), now time.Time) error {
	at, err := engine.InstantOf(now)
	if err != nil {
		return err
	}
	if !w.loaded && len(w.configs) > 0 {
		store, err := open(ctx)
		if err == nil {
			err = w.readKnown(ctx, store)
		}
		if err != nil {
			return err
		}
	}
	marks := w.due(now)
	if len(marks) == 0 {
		return nil
	}
	store, err := open(ctx)
	if err != nil {
		return err
	}
	err = store.Update(ctx, func(tx ledger.Tx) error { return writeMarks(ctx, tx, marks, at) })
	if err == nil {
		w.wrote(marks)
	}
	return err
}

func (w *watermarks) readKnown(ctx context.Context, store ledger.Ledger) error {
	return store.View(ctx, func(tx ledger.Tx) error {
		connections, err := tx.Connections(ctx, w.tenant)
		if err == nil {
			w.load(connections)
		}
		return err
	})
}

// writeMarks makes one call for each tenant and path, however many sources it has.
func writeMarks(ctx context.Context, tx ledger.Tx, marks []mark, now engine.Instant) error {
	batches := map[observed]map[string]engine.Instant{}
	for _, m := range marks {
		key := observed{tenant: m.tenant, path: m.path}
		if batches[key] == nil {
			batches[key] = map[string]engine.Instant{}
		}
		batches[key][m.source] = m.at
	}
	keys := slices.SortedFunc(maps.Keys(batches), func(a, b observed) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.path.connection, b.path.connection), cmp.Compare(a.path.trust, b.path.trust))
	})
	var errs []error
	for _, key := range keys {
		_, err := tx.IngestFacts(ctx, key.tenant, ledger.FactBatch{
			Watermarks: batches[key], Connection: key.path.connection, Trust: key.path.trust,
		}, now)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
