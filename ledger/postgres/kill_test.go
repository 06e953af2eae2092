package postgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// writerVariable tells this binary, run as a child of its own test, to write
// into a store without end and to print each batch that was acknowledged.
const writerVariable = "LEDGER_TEST_WRITER"

// Enough that facts are written without look-up.
const writtenAtOnce = 2 * leastGuess

func beWriter(address string) {
	ctx := context.Background()
	store, err := Open(ctx, address)
	for batch := 0; err == nil; batch++ {
		err = store.Update(ctx, func(tx ledger.Tx) error { return writeBatch(ctx, tx, batch) })
		if err == nil {
			fmt.Fprintln(os.Stdout, batch)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// writeBatch records actions and ingests as many facts, in one transaction.
func writeBatch(ctx context.Context, tx ledger.Tx, batch int) error {
	actions, facts := make([]ledger.NewAction, writtenAtOnce), make([]engine.Fact, writtenAtOnce)
	for i := range actions {
		id := fmt.Sprintf("%d_%d", batch, i)
		actions[i] = ledger.NewAction{Action: action("act_"+id, "order_"+id), Verify: true}
		facts[i] = fact("re_"+id, "order_"+id)
	}
	if _, err := tx.RecordActions(ctx, tenant, actions, noon); err != nil {
		return err
	}
	_, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: facts, Trust: engine.Shared}, noon)
	return err
}

// A writer that is killed in the middle of a batch leaves whole batches, all
// that it acknowledged among them, and no lock behind.
func TestWriterKilledInTheMiddleOfABatch(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	writer := exec.CommandContext(t.Context(), os.Args[0])
	writer.Env = append(os.Environ(), writerVariable+"="+address)
	writer.Stderr = os.Stderr
	output, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		batch, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the writer says %q", lines.Text())
		}
		acknowledged = batch + 1
		if acknowledged == 20 {
			if err := writer.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Wait(); err == nil || acknowledged < 20 {
		t.Fatalf("the writer ended with %v after %d batches, want it killed after 20", err, acknowledged)
	}

	store := open(t, address)
	// The batch that was under way can be written now, whether or not it was before.
	update(t, store, func(ctx context.Context, tx ledger.Tx) error { return writeBatch(ctx, tx, acknowledged) })
	conn := connect(t, address)
	for _, table := range []string{"claims", "facts", "due"} {
		var rows int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if want := (acknowledged + 1) * writtenAtOnce; rows != want {
			t.Errorf("%s has %d rows, want %d: %d batches that were acknowledged and the one under way", table, rows, want, acknowledged)
		}
	}
	wantGuessed(t, conn, (acknowledged+1)*writtenAtOnce)
}
