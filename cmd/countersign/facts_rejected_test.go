package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

func TestFactsRejected(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "ledger.db")
	store, err := open.Ledger(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.RejectFacts(t.Context(), engine.DefaultTenant, []ledger.RejectedFact{{
			Kind: "fact", Source: "crm", Reason: "source", Error: "none of this exporter's \x1b[2Jsources", RawRef: "n_1", SubjectID: "order_1", Item: "{}", Times: 2,
		}}, 1790592300)
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	badInput{
		args: []string{"facts", "rejected", "--store", url},
		stdout: "LAST                  TIMES  KIND  SOURCE  REASON  SUBJECT  RAW REF  ERROR\n" +
			"2026-09-28T10:45:00Z  2      fact  crm     source  order_1  n_1      none of this exporter's \\u001b[2Jsources\n",
	}.check(t)
	badInput{args: []string{"facts", "rejected", "--store", url, "--source", "CRM", "--since", "2026-09-28T10:45:01Z"}, stdout: "nothing was rejected\n"}.check(t)
	_, stdout, _ := command(t, "facts", "rejected", "--store", url, "-o", "json")
	if !strings.Contains(stdout, `"sources": [`) || !strings.Contains(stdout, `"raw_ref": "n_1"`) {
		t.Error(stdout)
	}
}
