package ledgertest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) noteKeys(events ...ledger.KeyEvent) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.NoteKeyEvents(b.t.Context(), events) })
}

func (b *bundle) keyEvents(tenant string, filter ledger.KeyEventFilter) (page ledger.KeyEventPage) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		page, err = tx.KeyEvents(b.t.Context(), tenant, filter)
		return err
	})
	return page
}

// keyUse is one use of a key.
func keyUse(tenant, key string, at engine.Instant) ledger.KeyEvent {
	return ledger.KeyEvent{
		Tenant: tenant, Kind: ledger.KeyUsed, KeyID: key, Prefix: "cs_viewer_" + key, Route: "/v1/actions", Status: "2xx",
		Remote: "192.0.2.1", FirstAt: at,
	}
}

// as is an event as it is read again.
func as(e ledger.KeyEvent, first, last engine.Instant, times int) ledger.KeyEvent {
	e.FirstAt, e.LastAt, e.Times = first, last, times
	return e
}

// midnight begins a day of UTC, some days after that of noon.
const midnight = (noon/engine.Instant(engine.Day) + 3) * engine.Instant(engine.Day)

func exerciseKeyEvents(t *testing.T, open opener) {
	t.Run("TheSameOnOneDayCounts", func(t *testing.T) {
		b := setup(t, open)
		use, theirs := keyUse(acme, "k1", midnight), keyUse(other, "k1", midnight)
		many := keyUse(acme, "k1", midnight+5)
		many.Times, many.LastAt = 7, midnight+50
		b.noteKeys(keyUse(acme, "k1", midnight+9), theirs, use, many)
		b.noteKeys(keyUse(acme, "k1", midnight+100))
		b.noteKeys(keyUse(acme, "k1", midnight-1))
		b.noteKeys()
		wantSame(t, "days", b.keyEvents(acme, ledger.KeyEventFilter{}).Events, []ledger.KeyEvent{
			as(use, midnight, midnight+100, 10), as(use, midnight-1, midnight-1, 1),
		})
		wantSame(t, "the other tenant's", b.keyEvents(other, ledger.KeyEventFilter{}).Events, []ledger.KeyEvent{as(theirs, midnight, midnight, 1)})
	})

	t.Run("EveryDifferenceIsKept", func(t *testing.T) {
		b := setup(t, open)
		var events []ledger.KeyEvent
		for _, change := range []func(*ledger.KeyEvent){
			func(*ledger.KeyEvent) {},
			func(e *ledger.KeyEvent) { e.Kind = ledger.KeyRefused }, func(e *ledger.KeyEvent) { e.KeyID = "k2" },
			func(e *ledger.KeyEvent) { e.Prefix = "cs_other" }, func(e *ledger.KeyEvent) { e.Route = "/v1/facts" },
			func(e *ledger.KeyEvent) { e.Status = "4xx" }, func(e *ledger.KeyEvent) { e.Remote = "192.0.2.2" },
			func(e *ledger.KeyEvent) { e.Detail = "x" }, func(e *ledger.KeyEvent) { e.Route, e.Status = "/v1/actions2", "xx" },
		} {
			e := keyUse(acme, "k1", noon)
			change(&e)
			events = append(events, e)
		}
		b.noteKeys(events...)
		wantSame(t, "different ones", len(b.keyEvents(acme, ledger.KeyEventFilter{}).Events), len(events))
	})

	t.Run("Filters", func(t *testing.T) {
		b := setup(t, open)
		first, second, third := keyUse(acme, "k1", noon), keyUse(acme, "k2", noon+10), keyUse(acme, "k1", noon+20)
		first.LastAt = noon + 15
		third.Kind = ledger.KeyRevoked
		b.noteKeys(first, second, third)
		first, second, third = as(first, noon, noon+15, 1), as(second, noon+10, noon+10, 1), as(third, noon+20, noon+20, 1)
		at := func(i engine.Instant) *engine.Instant { return &i }
		for _, row := range []struct {
			name   string
			filter ledger.KeyEventFilter
			want   []ledger.KeyEvent
		}{
			{"all", ledger.KeyEventFilter{}, []ledger.KeyEvent{third, second, first}},
			{"id", ledger.KeyEventFilter{Key: "k1"}, []ledger.KeyEvent{third, first}},
			{"prefix", ledger.KeyEventFilter{Key: "cs_viewer_k2"}, []ledger.KeyEvent{second}},
			{"no key", ledger.KeyEventFilter{Key: "a\x00b"}, nil},
			{"kind", ledger.KeyEventFilter{Kind: ledger.KeyRevoked}, []ledger.KeyEvent{third}},
			{"since, when it lasted", ledger.KeyEventFilter{Since: at(noon + 15)}, []ledger.KeyEvent{third, first}},
			{"since", ledger.KeyEventFilter{Since: at(noon + 16)}, []ledger.KeyEvent{third}},
			{"until", ledger.KeyEventFilter{Until: at(noon + 20)}, []ledger.KeyEvent{second, first}},
			{"both", ledger.KeyEventFilter{Since: at(noon), Until: at(noon + 10), Key: "k1"}, []ledger.KeyEvent{first}},
		} {
			wantSame(t, row.name, b.keyEvents(acme, row.filter).Events, row.want)
		}
	})

	t.Run("Pages", func(t *testing.T) {
		b := setup(t, open)
		for i := range 7 { // three of one time each
			b.noteKeys(keyUse(acme, fmt.Sprintf("k%d", i), noon+engine.Instant(i/3)))
		}
		whole := b.keyEvents(acme, ledger.KeyEventFilter{})
		wantSame(t, "a last page", whole.Next, "")
		var found []ledger.KeyEvent
		filter := ledger.KeyEventFilter{Limit: 2}
		for pages := 1; ; pages++ {
			page := b.keyEvents(acme, filter)
			found = append(found, page.Events...)
			if filter.Cursor = page.Next; page.Next == "" {
				wantSame(t, "pages", pages, 4)
				break
			}
		}
		wantSame(t, "by pages", found, whole.Events)
		err := b.store.View(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.KeyEvents(t.Context(), acme, ledger.KeyEventFilter{Cursor: "nonsense"})
			return err
		})
		if !errors.Is(err, ledger.ErrFilter) {
			t.Errorf("cursor: %v, want ErrFilter", err)
		}
		wantSame(t, "a cursor with what no store holds", len(b.keyEvents(acme, ledger.KeyEventFilter{Cursor: "0.\x00"}).Events), 0)
	})

	t.Run("HostileTextIsBounded", func(t *testing.T) {
		b := setup(t, open)
		hostile := keyUse(acme, "k1", noon)
		hostile.Route, hostile.Remote, hostile.Detail = strings.Repeat("é", 9999), "a\x00b", "\xff"
		b.noteKeys(hostile, hostile)
		found := b.keyEvents(acme, ledger.KeyEventFilter{}).Events
		if len(found) != 1 || found[0].Times != 2 || len(found[0].Route) > 200 || found[0].Remote != "a\uFFFDb" {
			t.Errorf("%+v", found)
		}
	})

	t.Run("RetentionKeepsWhatWasDone", func(t *testing.T) {
		b := setup(t, open)
		var events []ledger.KeyEvent
		for _, kind := range ledger.KeyEventKinds() {
			for key, at := range map[string]engine.Instant{"k0": noon.Sub(engine.Day), "k1": horizon - 1, "k2": horizon} {
				e := keyUse(acme, key, at)
				e.Kind = kind
				events = append(events, e)
			}
		}
		lasting := keyUse(acme, "k3", horizon-1)
		lasting.LastAt = horizon
		b.noteKeys(append(events, lasting, keyUse(other, "k1", noon))...)
		wantSame(t, "rehearsed", b.expire(horizon, true).KeyEvents, 6)
		wantSame(t, "nothing went", len(b.keyEvents(acme, ledger.KeyEventFilter{}).Events), len(events)+1)
		page := ledger.ExpiryPage{Horizon: horizon, Limit: 4, Now: later}
		for pages := 1; ; pages++ {
			var result ledger.Expired
			b.update(func(tx ledger.Tx) (err error) {
				result, err = tx.ExpireKeyEvents(t.Context(), acme, page)
				return err
			})
			if page.After = result.Next; page.After == "" {
				wantSame(t, "pages", pages, 2)
				break
			}
		}
		for _, kind := range []string{ledger.KeyCreated, ledger.KeyRotated, ledger.KeyRevoked} {
			wantSame(t, kind, len(b.keyEvents(acme, ledger.KeyEventFilter{Kind: kind}).Events), 3)
		}
		for _, kind := range []string{ledger.KeyRefused, ledger.KeyExpiredUse} {
			wantSame(t, kind, len(b.keyEvents(acme, ledger.KeyEventFilter{Kind: kind}).Events), 1)
		}
		wantSame(t, "used", len(b.keyEvents(acme, ledger.KeyEventFilter{Kind: ledger.KeyUsed}).Events), 2)
		wantSame(t, "the other tenant's", len(b.keyEvents(other, ledger.KeyEventFilter{}).Events), 1)
		wantSame(t, "again", b.expire(horizon, false).KeyEvents, 0)
	})

	t.Run("InTheTransaction", func(t *testing.T) {
		b := setup(t, open)
		stop := errors.New("stop")
		err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
			if err := tx.NoteKeyEvents(t.Context(), []ledger.KeyEvent{keyUse(acme, "k1", noon)}); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		wantSame(t, "rolled back", len(b.keyEvents(acme, ledger.KeyEventFilter{}).Events), 0)
	})
}
