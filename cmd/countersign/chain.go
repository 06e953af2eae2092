package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

func newLog(t *terminal) *cobra.Command {
	return group("log", "The chain of verdicts", newLogVerify(t))
}

type chainView struct {
	Tenant   string `json:"tenant"`
	OK       bool   `json:"ok"`
	Verified int64  `json:"verified"`
	// Head is the chain hash of the newest verdict; all zero for an empty chain.
	Head string `json:"head"`
	// BrokenAt is the first sequence number that does not hold; 0 when all do.
	BrokenAt int64  `json:"broken_at,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

func newLogVerify(t *terminal) *cobra.Command {
	var flags storeFlags
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Re-read the chain and what it rests on",
		Long: `Reads every verdict of the tenant from the store, makes its hash again from the stored
document and the chain hash again from its predecessor, and names the first sequence
number that does not hold. Give --head the chain hash that you noted at an earlier time
to see that the chain of today still contains it.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isHead(head) {
				return usagef("--head: %q is no chain hash of 64 lowercase hex digits, as log verify prints it", head)
			}
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				view, err := verifyChain(cmd.Context(), t, store, flags.tenant, head)
				if err != nil {
					return err
				}
				return printChain(t, view)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&head, "head", "", "a chain hash (64 hex digits) that has to stand in the chain")
	return cmd
}

// isHead: a mistyped head is no news about the chain. None given is none wanted.
func isHead(text string) bool {
	raw, err := hex.DecodeString(text)
	return text == "" || (err == nil && len(raw) == sha256.Size && text == hex.EncodeToString(raw))
}

// chainPage is how many verdicts are read at once.
const chainPage = 1000

// verifyChain reads page by page: the chain is append-only, so that what was
// read stays as it was. The head is read first; what is appended meanwhile is
// not looked at.
func verifyChain(ctx context.Context, t *terminal, store ledger.Ledger, tenant, wanted string) (chainView, error) {
	view := chainView{Tenant: tenant}
	var last int64
	var stored [32]byte
	if err := store.View(ctx, func(tx ledger.Tx) (err error) {
		last, stored, err = tx.ChainHead(ctx, tenant)
		return err
	}); err != nil {
		return view, err
	}
	bar := t.progress("verdicts", last)
	defer bar.done()
	var running [32]byte
	seen := wanted == "" || wanted == hex.EncodeToString(running[:])
	for view.Verified < last {
		var page []ledger.ChainEntry
		if err := store.View(ctx, func(tx ledger.Tx) (err error) {
			page, err = tx.ReadChain(ctx, tenant, view.Verified, int(min(chainPage, last-view.Verified)))
			return err
		}); err != nil {
			return view, err
		}
		if len(page) == 0 {
			return broken(view, view.Verified+1, fmt.Sprintf("is missing; the head says that there are %d", last)), nil
		}
		for _, entry := range page {
			next, problem := checkEntry(entry, view.Verified+1, running)
			if problem != "" {
				return broken(view, view.Verified+1, problem), nil
			}
			running = next
			seen = seen || wanted == hex.EncodeToString(running[:])
			view.Verified++
		}
		bar.at(view.Verified)
	}
	view.Head = hex.EncodeToString(running[:])
	if running != stored {
		return broken(view, last, fmt.Sprintf("has the chain hash %s, the head says %s", view.Head, hex.EncodeToString(stored[:]))), nil
	}
	if !seen {
		return broken(view, 0, fmt.Sprintf("the chain does not contain %s: it is not the chain that had this head", printable(wanted))), nil
	}
	view.OK = true
	return view, nil
}

func broken(view chainView, seq int64, problem string) chainView {
	view.OK, view.BrokenAt, view.Problem = false, seq, problem
	return view
}

// checkEntry makes both hashes again and returns the chain hash to go on with.
func checkEntry(entry ledger.ChainEntry, seq int64, previous [32]byte) (next [32]byte, problem string) {
	if entry.Seq != seq {
		return next, fmt.Sprintf("is missing; the next one stored is %d", entry.Seq)
	}
	hash := sha256.Sum256([]byte(entry.Document))
	if hash != entry.VerdictHash {
		return next, fmt.Sprintf("has a document with the hash %x, stored is %x: the document or the hash was changed", hash, entry.VerdictHash)
	}
	if problem := checkDocument(entry); problem != "" {
		return next, problem
	}
	next = seal.Next(previous, entry.VerdictHash)
	if next != entry.ChainHash {
		return next, fmt.Sprintf("has the chain hash %x, its predecessor makes it %x: it was changed, moved or put in", entry.ChainHash, next)
	}
	return next, ""
}

// checkDocument compares what the rows say with what was hashed: a verdict that
// was changed beside an untouched document must not pass.
func checkDocument(entry ledger.ChainEntry) string {
	var document struct {
		Format  string            `json:"format"`
		Lens    engine.Lens       `json:"lens"`
		Verdict engine.RawVerdict `json:"raw_verdict"`
	}
	if err := json.Unmarshal([]byte(entry.Document), &document); err != nil {
		return fmt.Sprintf("has a document that is no JSON: %v", err)
	}
	switch {
	case document.Format != seal.Format:
		return fmt.Sprintf("has a document of the format %q, which this program does not know", document.Format)
	case document.Lens != entry.Lens:
		return fmt.Sprintf("is stored under the lens %s, its document says %s", entry.Lens, document.Lens)
	case document.Verdict != entry.Raw:
		return fmt.Sprintf("is stored as %s, its document says %s", entry.Raw, document.Verdict)
	}
	return ""
}

func printChain(t *terminal, view chainView) error {
	if t.json() {
		if err := t.printJSON(view); err != nil {
			return err
		}
	} else {
		printChainText(t, view)
	}
	if !view.OK {
		return errAnswered
	}
	return nil
}

func printChainText(t *terminal, view chainView) {
	switch {
	case view.OK:
		t.printf("%s %s of tenant %s, head %s\n", t.style.green("intact:"), plural(int(view.Verified), "verdict"), printable(view.Tenant), view.Head)
	case view.BrokenAt == 0:
		t.printf("%s %s\n", t.style.red("broken:"), view.Problem)
	default:
		t.printf("%s the verdict with sequence number %d of tenant %s %s\n", t.style.red("broken:"), view.BrokenAt, printable(view.Tenant), view.Problem)
		t.printf("the %d before it hold\n", view.Verified)
	}
}
