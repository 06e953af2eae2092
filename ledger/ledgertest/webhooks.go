package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// crm is the endpoint of these stories.
const crm = "crm"

func delivery(id string, seq int64) ledger.NewDelivery {
	return ledger.NewDelivery{ID: id, Event: ledger.Position{Seq: seq}, Kind: "action.verified", Payload: `{"id": "` + id + `", "x": "—"}`}
}

func (b *bundle) enqueue(now engine.Instant, upTo int64, deliveries ...ledger.NewDelivery) (before ledger.Position) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		if before, err = tx.LockWebhook(b.t.Context(), acme, crm); err != nil {
			return err
		}
		return tx.EnqueueDeliveries(b.t.Context(), acme, crm, ledger.Position{Seq: upTo}, deliveries, now)
	})
	return before
}

func (b *bundle) leaseDeliveries(owner, endpoint string, now engine.Instant, limit int) (leased []ledger.Delivery) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		leased, err = tx.LeaseDeliveries(b.t.Context(), acme, endpoint, leaseOf(owner, now), limit)
		return err
	})
	return leased
}

func (b *bundle) completeDeliveries(owner string, now engine.Instant, results ...ledger.DeliveryResult) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.CompleteDeliveries(b.t.Context(), acme, owner, results, now) })
}

func (b *bundle) deadLetters(filter ledger.DeadLetterFilter) (page ledger.DeadLetterPage) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		page, err = tx.DeadLetters(b.t.Context(), acme, filter)
		return err
	})
	return page
}

func deliveryIDs(deliveries []ledger.Delivery) (ids []string) {
	for _, d := range deliveries {
		ids = append(ids, d.ID)
	}
	return ids
}

func exerciseWebhooks(t *testing.T, open opener) {
	t.Run("ANewEndpointBeginsAtTheEnd", func(t *testing.T) {
		b := setup(t, open)
		wantSame(t, "of an empty store", b.enqueue(noon, 0), ledger.Position{})
		b.record(act("a", "order_1"))
		run := b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon, "action.verified")
		wantSame(t, "stays where it was", b.enqueue(noon, run.Seq), ledger.Position{})
		wantSame(t, "goes on", b.enqueue(noon, run.Seq), ledger.Position{Seq: run.Seq})
		var begins, head ledger.Position
		b.update(func(tx ledger.Tx) (err error) {
			begins, err = tx.LockWebhook(t.Context(), acme, "later")
			head = b.headOf(tx)
			return err
		})
		wantSame(t, "a later one", begins, head)
	})

	t.Run("EachIsToldOnce", func(t *testing.T) {
		b := setup(t, open)
		b.enqueue(noon, 4, delivery("m2", 2), delivery("m4", 4))
		b.enqueue(noon+1, 6, delivery("m4", 4), delivery("m6", 6))
		wantSame(t, "another endpoint's", deliveryIDs(b.leaseDeliveries(owner, "other", noon+1, 10)), []string(nil))
		leased := b.leaseDeliveries(owner, crm, noon+1, 2)
		want := ledger.Delivery{NewDelivery: delivery("m2", 2), Endpoint: crm, State: ledger.DeliveryWaiting, CreatedAt: noon, Attempts: 1, DueAt: noon}
		wantSame(t, "first", leased[0], want)
		wantSame(t, "the oldest", deliveryIDs(leased), []string{"m2", "m4"})
		wantSame(t, "the rest", deliveryIDs(b.leaseDeliveries("other", crm, noon+1, 10)), []string{"m6"})
		b.completeDeliveries("other", noon+1, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryDelivered}) // not its own
		b.completeDeliveries(owner, noon+1, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryDelivered, Status: 204})
		wantSame(t, "taken over", deliveryIDs(b.leaseDeliveries("third", crm, noon.Add(2*engine.Minute), 10)), []string{"m4", "m6"})
		b.completeDeliveries(owner, noon+2, ledger.DeliveryResult{ID: "m4", State: ledger.DeliveryDead}) // lost
		wantSame(t, "nothing was given up", len(b.deadLetters(ledger.DeadLetterFilter{}).Deliveries), 0)
	})

	t.Run("RetryGiveUpAndReplay", func(t *testing.T) {
		b := setup(t, open)
		b.enqueue(noon, 2, delivery("m2", 2))
		b.leaseDeliveries(owner, crm, noon, 1)
		b.completeDeliveries(owner, noon, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryWaiting, DueAt: noon + 10, Status: 503, Error: "503 \xff"})
		wantSame(t, "before it is due", len(b.leaseDeliveries(owner, crm, noon+9, 1)), 0)
		again := b.leaseDeliveries(owner, crm, noon+10, 1)
		wantSame(t, "again", [3]any{again[0].Attempts, again[0].Status, again[0].Error}, [3]any{2, 503, "503 \uFFFD"})
		b.completeDeliveries(owner, noon+11, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryDead, Status: 500, Error: "500", DueAt: noon + 10})
		wantSame(t, "given up", len(b.leaseDeliveries(owner, crm, noon.Add(engine.Hour), 1)), 0)
		finished := noon + 11
		want := ledger.Delivery{
			NewDelivery: delivery("m2", 2), Endpoint: crm, State: ledger.DeliveryDead, CreatedAt: noon, Attempts: 2,
			Status: 500, Error: "500", DueAt: noon + 10, FinishedAt: &finished,
		}
		wantSame(t, "dead letter", b.deadLetters(ledger.DeadLetterFilter{}), ledger.DeadLetterPage{Deliveries: []ledger.Delivery{want}})
		replay := func(tenant string, ids ...string) (replayed []string) {
			b.update(func(tx ledger.Tx) (err error) {
				replayed, err = tx.ReplayDeliveries(t.Context(), tenant, ids, noon+20)
				return err
			})
			return replayed
		}
		wantSame(t, "another tenant's", replay(other, "m2"), []string(nil))
		wantSame(t, "replayed", replay(acme, "m2", "unknown", "\x00"), []string{"m2"})
		wantSame(t, "no dead letter any more", len(b.deadLetters(ledger.DeadLetterFilter{}).Deliveries), 0)
		leased := b.leaseDeliveries(owner, crm, noon+20, 1)
		wantSame(t, "all attempts again", [2]any{leased[0].Attempts, leased[0].Payload}, [2]any{1, delivery("m2", 2).Payload})
		b.completeDeliveries(owner, noon+21, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryDelivered, Status: 200})
		wantSame(t, "also what was delivered", replay(acme, "m2"), []string{"m2"})
	})

	t.Run("DeadLettersByPages", func(t *testing.T) {
		b := setup(t, open)
		var all []ledger.NewDelivery
		var results []ledger.DeliveryResult
		for i := range 5 {
			d := delivery(fmt.Sprintf("m%d", i), int64(2*i+2))
			all = append(all, d)
			results = append(results, ledger.DeliveryResult{ID: d.ID, State: ledger.DeliveryDead})
		}
		b.enqueue(noon, 10, all...)
		b.leaseDeliveries(owner, crm, noon, 10)
		b.completeDeliveries(owner, noon, results[:3]...)
		b.completeDeliveries(owner, noon+1, results[3:]...)
		var found []string
		filter := ledger.DeadLetterFilter{Endpoint: crm, Limit: 2}
		for {
			page := b.deadLetters(filter)
			found = append(found, deliveryIDs(page.Deliveries)...)
			if filter.Cursor = page.Next; filter.Cursor == "" {
				break
			}
		}
		wantSame(t, "newest first", found, []string{"m4", "m3", "m2", "m1", "m0"})
		wantSame(t, "of another endpoint", len(b.deadLetters(ledger.DeadLetterFilter{Endpoint: "other"}).Deliveries), 0)
		err := b.store.View(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.DeadLetters(t.Context(), acme, ledger.DeadLetterFilter{Cursor: "x"})
			return err
		})
		if !errors.Is(err, ledger.ErrFilter) {
			t.Errorf("cursor x: %v, want ErrFilter", err)
		}
	})

	t.Run("OldOnesGo", func(t *testing.T) {
		b := setup(t, open)
		b.enqueue(noon, 8, delivery("m2", 2), delivery("m4", 4), delivery("m6", 6), delivery("m8", 8))
		b.leaseDeliveries(owner, crm, noon, 3)
		b.completeDeliveries(owner, noon, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryDelivered})
		b.completeDeliveries(owner, noon+10, ledger.DeliveryResult{ID: "m4", State: ledger.DeliveryDelivered}, ledger.DeliveryResult{ID: "m6", State: ledger.DeliveryDead})
		expire := func(endpoint, state string, before engine.Instant) (n int) {
			b.update(func(tx ledger.Tx) (err error) {
				n, err = tx.ExpireDeliveries(t.Context(), acme, endpoint, state, before, 10)
				return err
			})
			return n
		}
		wantSame(t, "another endpoint's", expire("other", ledger.DeliveryDelivered, noon+99), 0)
		wantSame(t, "the older one", expire(crm, ledger.DeliveryDelivered, noon+10), 1)
		wantSame(t, "dead letters stay", len(b.deadLetters(ledger.DeadLetterFilter{}).Deliveries), 1)
		wantSame(t, "until they go", expire(crm, ledger.DeliveryDead, noon+11), 1)
		wantSame(t, "what waits stays", deliveryIDs(b.leaseDeliveries(owner, crm, noon.Add(engine.Day), 10)), []string{"m8"})
	})

	// Nobody sends what an endpoint was to be told that is not in the settings any more.
	t.Run("RetentionTakesWhatNobodySends", func(t *testing.T) {
		b := setup(t, open)
		b.enqueue(noon, 8, delivery("waits", 2), delivery("leased", 4), delivery("dead", 6), delivery("delivered", 8), delivery("replayed", 10), delivery("done lately", 12))
		b.leaseDeliveries(owner, crm, noon, 6)
		b.completeDeliveries(owner, noon,
			ledger.DeliveryResult{ID: "waits", State: ledger.DeliveryWaiting, DueAt: noon + 9}, ledger.DeliveryResult{ID: "dead", State: ledger.DeliveryDead},
			ledger.DeliveryResult{ID: "delivered", State: ledger.DeliveryDelivered}, ledger.DeliveryResult{ID: "replayed", State: ledger.DeliveryDead})
		b.completeDeliveries(owner, horizon, ledger.DeliveryResult{ID: "done lately", State: ledger.DeliveryDelivered})
		replay := func(tenant string, now engine.Instant, ids ...string) (replayed []string) {
			b.update(func(tx ledger.Tx) (err error) {
				replayed, err = tx.ReplayDeliveries(t.Context(), tenant, ids, now)
				return err
			})
			slices.Sort(replayed)
			return replayed
		}
		replay(acme, horizon, "replayed")
		b.update(func(tx ledger.Tx) error {
			if _, err := tx.LockWebhook(t.Context(), other, crm); err != nil {
				return err
			}
			return tx.EnqueueDeliveries(t.Context(), other, crm, ledger.Position{}, []ledger.NewDelivery{delivery("theirs", 1)}, noon)
		})
		wantSame(t, "rehearsed", b.expire(horizon, true).Webhooks, 4)
		page := ledger.ExpiryPage{Horizon: horizon, Limit: 2, Now: later}
		for pages := 1; ; pages++ {
			var result ledger.Expired
			b.update(func(tx ledger.Tx) (err error) {
				result, err = tx.ExpireWebhooks(t.Context(), acme, page)
				return err
			})
			if page.After = result.Next; page.After == "" {
				wantSame(t, "pages", pages, 3)
				break
			}
		}
		wantSame(t, "left", replay(acme, later, "waits", "leased", "dead", "delivered", "replayed", "done lately"), []string{"done lately", "replayed"})
		wantSame(t, "the other tenant's", replay(other, later, "theirs"), []string{"theirs"})
		wantSame(t, "again", b.expire(horizon, false).Webhooks, 0)
	})

	// Several sidecars enqueue and deliver for one endpoint: everything is enqueued once, and leased by one at a time.
	t.Run("SeveralAtOnce", func(t *testing.T) {
		b := setup(t, open)
		const events, workers = 40, 4
		b.enqueue(noon, 0)
		var told [workers][]string
		together(t, workers, func(ctx context.Context, w int) error {
			for range events / 4 {
				err := b.store.Update(ctx, func(tx ledger.Tx) error {
					from, err := tx.LockWebhook(ctx, acme, crm)
					if err != nil || from.Seq == events {
						return err
					}
					d := delivery(fmt.Sprintf("m%d", from.Seq+1), from.Seq+1)
					return tx.EnqueueDeliveries(ctx, acme, crm, d.Event, []ledger.NewDelivery{d}, noon)
				})
				if err != nil {
					return err
				}
				var leased []ledger.Delivery
				err = b.store.Update(ctx, func(tx ledger.Tx) (err error) {
					leased, err = tx.LeaseDeliveries(ctx, acme, crm, leaseOf(fmt.Sprint(w), noon), 3)
					return err
				})
				if err != nil {
					return err
				}
				told[w] = append(told[w], deliveryIDs(leased)...)
			}
			return nil
		})
		all := slices.Concat(told[:]...)
		all = append(all, deliveryIDs(b.leaseDeliveries(owner, crm, noon, events))...)
		slices.Sort(all)
		wantSame(t, "leased", len(all), events)
		wantSame(t, "each once", len(slices.Compact(all)), events)
	})
}

func (b *bundle) headOf(tx ledger.Tx) ledger.Position {
	b.t.Helper()
	head, err := tx.EventHead(b.t.Context(), acme)
	if err != nil {
		b.t.Fatal(err)
	}
	return head
}
