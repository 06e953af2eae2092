package ledgertest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) runs(ref string) (runs []ledger.Run) {
	b.t.Helper()
	claimID := b.action(ref).ClaimID
	b.view(func(tx ledger.Tx) (err error) {
		runs, err = tx.Runs(b.t.Context(), acme, claimID)
		return err
	})
	return runs
}

func wantLeaseLost(t *testing.T, b *bundle, runs ...ledger.Run) {
	t.Helper()
	err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.StoreRuns(t.Context(), acme, runs)
		return err
	})
	if !errors.Is(err, ledger.ErrLeaseLost) {
		t.Errorf("error %v, want ErrLeaseLost", err)
	}
}

// checkChain reads a tenant's whole chain, a few verdicts at a time, and fails
// where it has a gap or does not add up (decision D25).
func (b *bundle) checkChain(tenant string) (entries []ledger.ChainEntry) {
	b.t.Helper()
	var hash [32]byte
	b.view(func(tx ledger.Tx) error {
		for {
			page, err := tx.ReadChain(b.t.Context(), tenant, int64(len(entries)), 3)
			if err != nil {
				return err
			}
			for _, e := range page {
				entries = append(entries, e)
				hash = seal.Next(hash, e.VerdictHash)
				if e.Seq != int64(len(entries)) || e.ChainHash != hash {
					b.t.Fatalf("entry %d has seq %d and chain hash %x, want %x", len(entries), e.Seq, e.ChainHash, hash)
				}
			}
			if len(page) < 3 {
				break
			}
		}
		head, err := tx.ChainHead(b.t.Context(), tenant)
		if head.Seq != int64(len(entries)) || head.Hash != hash {
			b.t.Fatalf("head is %d %x, want %d %x", head.Seq, head.Hash, len(entries), hash)
		}
		return err
	})
	return entries
}

func exerciseRuns(t *testing.T, open opener) {
	t.Run("D25_ChainIsWhole", func(t *testing.T) {
		b := setup(t, open)
		b.checkChain(acme) // empty
		b.record(act("a", "order_1"), act("b", "order_2"))
		first := b.settle(engine.ClaimID(acme, "a"), ledger.Pending, engine.NotVerified, noon)
		second := b.settle(engine.ClaimID(acme, "b"), ledger.Settled, engine.Verified, noon+1)
		wantSame(t, "ids", [2]string{first.ID, second.ID}, [2]string{"run_2", "run_4"})
		wantSame(t, "seqs", [4]int64{first.Outcome.Seq, first.Policy.Seq, second.Outcome.Seq, second.Seq}, [4]int64{1, 2, 3, 4})
		entries := b.checkChain(acme)
		wantSame(t, "entries", len(entries), 4)
		wantSame(t, "entry", entries[2], ledger.ChainEntry{
			Seq: 3, ClaimID: second.ClaimID, Lens: engine.Outcome, Raw: engine.Verified, Reasons: second.Outcome.Reasons,
			VerdictHash: second.Outcome.Hash, ChainHash: second.Outcome.ChainHash, Document: second.Outcome.Document,
		})
		wantSame(t, "the other tenant's", len(b.checkChain(other)), 0)
	})

	t.Run("EverythingIsKept", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		due := b.leaseDue(owner, noon)
		run := runOf(&due[0], due[0].ClaimID, ledger.Pending, engine.Verified, engine.NotVerified, noon)
		run.Headline = "FAIL — limit exceeded: amount at most 250 (was 400) · \"x\""
		run.Report = []byte(`{"checks": [{"value": 1.50}], "summary": {"headline": "—"}}`)
		run.PreviousSeq, run.Changed, run.TriggeredBy = 7, true, "fact:re_1"
		run.Events = []string{"action.pending"}
		stored := b.storeRuns(run)[0]
		want := stored
		want.Lease, want.Owner = nil, ""
		run.ID, run.Seq = stored.ID, stored.Seq
		run.Outcome.Seq, run.Outcome.ChainHash = stored.Outcome.Seq, stored.Outcome.ChainHash
		run.Policy.Seq, run.Policy.ChainHash = stored.Policy.Seq, stored.Policy.ChainHash
		wantSame(t, "returned", stored, run)
		wantSame(t, "all runs", b.runs("a"), []ledger.Run{want})
		wantSame(t, "latest of the action", b.action("a").Latest, &want)
		b.view(func(tx ledger.Tx) error {
			latest, err := tx.LatestRuns(t.Context(), acme, []string{want.ClaimID, "clm_unknown"})
			wantSame(t, "latest runs", latest, map[string]ledger.Run{want.ClaimID: want})
			return err
		})
		b.wantDue("a", run.NextCheckAt.String())
	})

	// A store may know from the snapshot who was verified before.
	t.Run("LatestRunsBesideASnapshot", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"), act("c", "order_3"))
		ids := []string{engine.ClaimID(acme, "a"), engine.ClaimID(acme, "b"), engine.ClaimID(acme, "c")}
		b.settle(ids[1], ledger.Pending, engine.NotVerified, noon)
		b.settle(ids[2], ledger.Settled, engine.Verified, noon)
		c := b.contractOf("refund")
		for _, row := range []struct{ snapshot, asked, want []string }{
			{ids, ids, []string{"b", "c"}}, {ids[:1], ids[:1], nil}, {ids[:1], ids, []string{"b", "c"}}, {ids, ids[1:2], []string{"b"}},
		} {
			b.view(func(tx ledger.Tx) error {
				snapshot, err := tx.Snapshot(t.Context(), acme, c, row.snapshot, nil)
				if err != nil {
					return err
				}
				wantSame(t, "actions", len(snapshot.Actions), len(row.snapshot))
				latest, err := tx.LatestRuns(t.Context(), acme, row.asked)
				var got []string
				for i, name := range []string{"a", "b", "c"} {
					if _, ok := latest[ids[i]]; ok {
						got = append(got, name)
					}
				}
				wantSame(t, fmt.Sprintf("latest runs of %d beside a snapshot of %d", len(row.asked), len(row.snapshot)), got, row.want)
				return err
			})
		}
	})

	t.Run("LatestIsTheLastOne", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		id := engine.ClaimID(acme, "a")
		b.settle(id, ledger.Pending, engine.NotVerified, noon)
		b.settle(id, ledger.Settled, engine.Verified, noon+1)
		last := b.settle(id, ledger.Pending, engine.Unverifiable, noon+2)
		runs := b.runs("a")
		wantSame(t, "runs", len(runs), 3)
		wantSame(t, "latest", b.action("a").Latest.Seq, last.Seq)
		b.wantDue("a", (noon + 2).Add(engine.Minute).String())
	})

	t.Run("BySequenceNumberAndSettled", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"), act("c", "order_3"))
		a, second := engine.ClaimID(acme, "a"), engine.ClaimID(acme, "b")
		first := b.settle(a, ledger.Settled, engine.Verified, noon)
		b.settle(a, ledger.Pending, engine.NotVerified, noon+1)
		last := b.settle(second, ledger.Settled, engine.NotVerified, noon+2)
		b.view(func(tx ledger.Tx) error {
			found, err := tx.RunsAt(t.Context(), acme, []int64{first.Seq, last.Seq, first.Seq - 1, 99})
			slices.SortFunc(found, func(a, b ledger.Run) int { return cmp.Compare(a.Seq, b.Seq) })
			wantSame(t, "runs", found, []ledger.Run{b.runs("a")[0], b.runs("b")[0]})
			if err != nil {
				return err
			}
			settled, err := tx.SettledClaims(t.Context(), acme, []string{a, second, engine.ClaimID(acme, "c"), "unknown"})
			wantSame(t, "settled now", settled, []string{second})
			if err != nil {
				return err
			}
			settled, err = tx.SettledClaims(t.Context(), other, []string{a, second})
			wantSame(t, "another tenant's", len(settled), 0)
			return err
		})
	})

	t.Run("WithoutALease", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(acme, noon, false, act("a", "order_1"))
		id := engine.ClaimID(acme, "a")
		b.storeRuns(runOf(nil, id, ledger.Pending, engine.NotVerified, engine.NotVerified, noon))
		b.wantDue("a", noon.Add(engine.Minute).String())
		b.storeRuns(runOf(nil, id, ledger.Settled, engine.Verified, engine.Verified, noon+1))
		b.wantDue("a", notDue)
	})

	t.Run("OneLostLeaseStoresNothing", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"))
		due := b.leaseDue(owner, noon)
		var runs []ledger.Run
		for i := range due {
			runs = append(runs, runOf(&due[i], due[i].ClaimID, ledger.Settled, engine.Verified, engine.Verified, noon))
		}
		runs[1].Owner = "verifier-2"
		wantLeaseLost(t, b, runs...)
		wantSame(t, "chain", len(b.checkChain(acme)), 0)
		runs[1].Owner = owner
		b.storeRuns(runs...)
		wantSame(t, "chain", len(b.checkChain(acme)), 4)
	})

	t.Run("AnEndedLeaseThatNobodyTookStillCounts", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		due := b.leaseDue(owner, noon)
		b.storeRuns(runOf(&due[0], due[0].ClaimID, ledger.Settled, engine.Verified, engine.Verified, noon.Add(engine.Hour)))
		wantSame(t, "runs", len(b.runs("a")), 1)
	})

	t.Run("TwoRunsOfOneActionInOneBatch", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(acme, noon, false, act("a", "order_1"))
		id := engine.ClaimID(acme, "a")
		stored := b.storeRuns(
			runOf(nil, id, ledger.Settled, engine.Verified, engine.Verified, noon),
			runOf(nil, id, ledger.Pending, engine.NotVerified, engine.NotVerified, noon+1))
		wantSame(t, "latest", b.action("a").Latest.Seq, stored[1].Seq)
		b.wantDue("a", (noon + 1).Add(engine.Minute).String())
		b.checkChain(acme)
	})

	t.Run("DocumentsComeBackWhole", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		for i, pair := range [][2]string{
			{`{"of":"both","lens":"outcome"}`, `{"of":"both","lens":"policy"}`},
			{"é", "è"}, {"€1", "€2"}, {"😀x", "😁x"}, {"aé", "aéb"}, {"aéb", "aé"}, {"same", "same"}, {"one", "two"}, {"1", "1\U0010FFFF"},
		} {
			run := runOf(nil, engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, engine.Verified, noon+engine.Instant(i))
			for j, verdict := range []*ledger.StoredVerdict{&run.Outcome, &run.Policy} {
				verdict.Document = pair[j]
				verdict.Hash = sha256.Sum256([]byte{byte(i), byte(j)})
			}
			stored := b.storeRuns(run)[0]
			latest := b.action("a").Latest
			wantSame(t, "latest", [2]string{latest.Outcome.Document, latest.Policy.Document}, pair)
			runs := b.runs("a")
			wantSame(t, "run", [2]string{runs[i].Outcome.Document, runs[i].Policy.Document}, pair)
			b.view(func(tx ledger.Tx) error {
				chain, err := tx.ReadChain(t.Context(), acme, stored.Outcome.Seq-1, 2)
				wantSame(t, "chain", [2]string{chain[0].Document, chain[1].Document}, pair)
				if err != nil {
					return err
				}
				second, err := tx.ReadChain(t.Context(), acme, stored.Outcome.Seq, 1) // without the row that it begins in
				wantSame(t, "second verdict", second[0].Document, pair[1])
				if err != nil {
					return err
				}
				public, err := tx.VerdictByHash(t.Context(), run.Policy.Hash)
				wantSame(t, "by hash", public.Document, pair[1])
				return err
			})
		}
	})
	t.Run("VerdictByHash", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		id := engine.ClaimID(acme, "a")
		run := b.settle(id, ledger.Settled, engine.Verified, noon)
		again := runOf(nil, id, ledger.Settled, engine.Verified, engine.Verified, noon)
		again.ComputedAt = noon + 99 // the same verdict, computed again
		b.storeRuns(again)
		b.view(func(tx ledger.Tx) error {
			for lens, verdict := range map[engine.Lens]ledger.StoredVerdict{engine.Outcome: run.Outcome, engine.Policy: run.Policy} {
				found, err := tx.VerdictByHash(t.Context(), verdict.Hash)
				if err != nil {
					return err
				}
				wantSame(t, string(lens), found, ledger.PublicVerdict{Document: verdict.Document, ComputedAt: noon})
			}
			if _, err := tx.VerdictByHash(t.Context(), [32]byte{1}); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("unknown hash: %v, want ErrNotFound", err)
			}
			return nil
		})
	})
}
