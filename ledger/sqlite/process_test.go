package sqlite_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

// programEnv makes the test binary another program: tests need processes that
// can be killed, or that are somebody else.
const programEnv = "COUNTERSIGN_SQLITE_TEST_PROGRAM"

var programs = map[string]func(ctx context.Context, path string, out io.Writer) error{
	"write":  writeBatches,
	"settle": settleDue,
	"open":   openAndRecord,
}

func TestMain(m *testing.M) {
	name := os.Getenv(programEnv)
	if name == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := programs[name](context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start starts a program on a file.
func start(t *testing.T, program, path string, change ...func(*exec.Cmd)) (cmd *exec.Cmd, out *bufio.Scanner, errs *strings.Builder) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	errs = &strings.Builder{}
	cmd = exec.CommandContext(t.Context(), binary, path)
	cmd.Env = append(os.Environ(), programEnv+"="+program)
	cmd.Stderr = errs
	for _, f := range change {
		f(cmd)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(pipe), errs
}

// Sizes of a batch of the program "write".
const (
	factsPerBatch   = 40
	actionsPerBatch = 5
)

func batchFacts(batch int) []engine.Fact {
	facts := make([]engine.Fact, factsPerBatch)
	for i := range facts {
		facts[i] = engine.Fact{
			RawRef: fmt.Sprintf("evt_%d_%d", batch, i), Source: "stripe", Type: "refund_created", SubjectID: fmt.Sprintf("order_%d", batch),
			SubjectKind: "order", OccurredAt: noon, Attributes: engine.EmptyObject(),
		}
	}
	return facts
}

func actionID(batch, i int) string { return fmt.Sprintf("act_%d_%d", batch, i) }

// writeBatches stores facts, actions and half of the actions' runs, a batch a
// transaction, and prints the number of each batch once it is committed, until it is killed.
func writeBatches(ctx context.Context, path string, out io.Writer) error {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	first, err := nextBatch(ctx, store)
	if err != nil {
		return err
	}
	for batch := first; ; batch++ {
		err := store.Update(ctx, func(tx ledger.Tx) error { return writeBatch(ctx, tx, batch) })
		if err != nil {
			return err
		}
		fmt.Fprintln(out, batch)
	}
}

// nextBatch goes on where the program before was killed.
func nextBatch(ctx context.Context, store ledger.Ledger) (next int, err error) {
	err = store.View(ctx, func(tx ledger.Tx) error {
		s, err := tx.Summary(ctx, tenant, ledger.ActionFilter{})
		next = s.Total / actionsPerBatch
		return err
	})
	return next, err
}

func writeBatch(ctx context.Context, tx ledger.Tx, batch int) error {
	if _, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: batchFacts(batch), Trust: engine.Shared}, noon); err != nil {
		return err
	}
	var actions []ledger.NewAction
	var runs []ledger.Run
	for i := range actionsPerBatch {
		actions = append(actions, ledger.NewAction{Verify: true, Action: engine.Action{
			ActionID: actionID(batch, i), ContractID: "refund_workflow", ContractVersion: 1, SubjectID: fmt.Sprintf("order_%d", batch), RequestedAt: noon,
		}})
		if i%2 == 0 {
			runs = append(runs, settledRun(engine.ClaimID(tenant, actionID(batch, i)), nil))
		}
	}
	if _, err := tx.RecordActions(ctx, tenant, actions, noon); err != nil {
		return err
	}
	_, err := tx.StoreRuns(ctx, tenant, runs)
	return err
}

func settledRun(claimID string, due *ledger.Due) ledger.Run {
	run := ledger.Run{
		ClaimID: claimID, Lease: due, Contract: ledger.ContractRef{ID: "refund_workflow", Version: 1}, ComputedAt: noon,
		TriggeredBy: "action", Status: ledger.Settled, Headline: "PASS", Events: []string{"action.verified"},
	}
	for lens, v := range map[string]*ledger.StoredVerdict{"outcome": &run.Outcome, "policy": &run.Policy} {
		v.Raw, v.Document = engine.Verified, lens+" of "+claimID
		v.Hash = sha256.Sum256([]byte(v.Document))
	}
	return run
}

// settleDue settles what is due until nothing comes any more: the file "done"
// beside the store says that the writers have ended.
func settleDue(ctx context.Context, path string, _ io.Writer) error {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	owner := strconv.Itoa(os.Getpid())
	lease := ledger.Lease{Owner: owner, Now: noon, Until: noon.Add(engine.Hour)}
	for {
		_, missing := os.Stat(filepath.Join(filepath.Dir(path), "done"))
		var due []ledger.Due
		err := store.Update(ctx, func(tx ledger.Tx) (err error) {
			due, err = tx.LeaseDue(ctx, tenant, lease, 7)
			return err
		})
		if err != nil {
			return err
		}
		if len(due) == 0 && missing == nil {
			return store.Close()
		}
		var runs []ledger.Run
		for i := range due {
			run := settledRun(due[i].ClaimID, &due[i])
			run.Owner = owner
			runs = append(runs, run)
		}
		err = store.Update(ctx, func(tx ledger.Tx) error {
			_, err := tx.StoreRuns(ctx, tenant, runs)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// openAndRecord records one action.
func openAndRecord(ctx context.Context, path string, _ io.Writer) error {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(store.Update(ctx, func(tx ledger.Tx) error { return writeBatch(ctx, tx, 0) }), store.Close())
}

// sharedFile is a migrated file with the contract published.
func sharedFile(t *testing.T) (path string, store ledger.Ledger) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "countersign.db")
	store, err := sqlite.Open(t.Context(), path)
	migrated(t, store, err)
	err = store.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.PublishContracts(t.Context(), []*contract.Contract{library(t, "refund_workflow")}, noon)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path, store
}

// TestKilledWriter: nothing that was acknowledged is lost, nothing is doubled,
// no batch is there by half, and the chain is whole.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	path, store := sharedFile(t)
	acknowledged := -1
	for round := range 5 {
		cmd, out, errs := start(t, "write", path)
		// Killed after some batches, in the middle of the next one, wherever that is.
		for n := 0; n < 3+4*round && out.Scan(); n++ {
			var err error
			if acknowledged, err = strconv.Atoi(out.Text()); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // what was acknowledged before the signal came
			acknowledged, _ = strconv.Atoi(out.Text())
		}
		_ = cmd.Wait()
		if errs.Len() > 0 {
			t.Fatalf("round %d: the writer failed: %s", round, errs)
		}
		checkBatches(t, store, acknowledged)
	}
}

// checkBatches checks that batches 0 to acknowledged are there, at most one more, and all of them whole.
func checkBatches(t *testing.T, store ledger.Ledger, acknowledged int) {
	t.Helper()
	batches, err := nextBatch(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if batches != acknowledged+1 && batches != acknowledged+2 {
		t.Fatalf("%d batches are stored, %d were acknowledged", batches, acknowledged+1)
	}
	for batch := range batches + 1 {
		var counts ledger.Ingested
		err := store.Rehearse(t.Context(), func(tx ledger.Tx) (err error) {
			counts, err = tx.IngestFacts(t.Context(), tenant, ledger.FactBatch{Facts: batchFacts(batch)}, noon)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		want := ledger.Ingested{Duplicates: factsPerBatch}
		if batch == batches {
			want = ledger.Ingested{Ingested: factsPerBatch}
		}
		if counts.Ingested != want.Ingested || counts.Duplicates != want.Duplicates {
			t.Fatalf("batch %d of %d: %+v, want %+v", batch, batches, counts, want)
		}
	}
	checkChain(t, store, batches*2*((actionsPerBatch+1)/2))
}

// checkChain reads the whole chain (decision D25).
func checkChain(t *testing.T, store ledger.Ledger, want int) {
	t.Helper()
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		entries, err := tx.ReadChain(t.Context(), tenant, 0, 1_000_000)
		if err != nil {
			return err
		}
		var hash [32]byte
		for i, e := range entries {
			if hash = seal.Next(hash, e.VerdictHash); e.Seq != int64(i+1) || e.ChainHash != hash {
				return fmt.Errorf("chain breaks at entry %d, seq %d", i+1, e.Seq)
			}
		}
		head, err := tx.ChainHead(t.Context(), tenant)
		if err == nil && (head.Seq != int64(len(entries)) || head.Hash != hash || len(entries) != want) {
			err = fmt.Errorf("chain has %d entries, its head says %d, want %d", len(entries), head.Seq, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestProcessesShareOneFile: one process writes, as the collector does, and two
// settle, as the sidecar does. Every action is settled once, and the writer's
// commits wake this process.
func TestProcessesShareOneFile(t *testing.T) {
	t.Parallel()
	path, store := sharedFile(t)
	wake, err := store.Wake(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writer, out, writerErrs := start(t, "write", path)
	var settlers []*exec.Cmd
	var settlerErrs []*strings.Builder
	for range 2 {
		cmd, _, errs := start(t, "settle", path)
		settlers, settlerErrs = append(settlers, cmd), append(settlerErrs, errs)
	}
	for n := 0; n < 60 && out.Scan(); n++ {
		select {
		case <-wake:
		case <-t.Context().Done():
		}
	}
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for out.Scan() { // to its end
		continue
	}
	_ = writer.Wait()
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "done"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, cmd := range settlers {
		if err := cmd.Wait(); err != nil {
			t.Errorf("settler %d: %v: %s", i, err, settlerErrs[i])
		}
	}
	if writerErrs.Len() > 0 {
		t.Errorf("writer: %s", writerErrs)
	}
	batches, err := nextBatch(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if batches < 60 {
		t.Errorf("%d batches were written, want 60", batches)
	}
	checkSettledOnce(t, store, batches)
}

func checkSettledOnce(t *testing.T, store ledger.Ledger, batches int) {
	t.Helper()
	checkChain(t, store, batches*2*actionsPerBatch)
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		s, err := tx.Summary(t.Context(), tenant, ledger.ActionFilter{})
		if err == nil && (s.Pass != batches*actionsPerBatch || s.Unverified != 0) {
			err = fmt.Errorf("summary %+v, want all %d settled", s, batches*actionsPerBatch)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
