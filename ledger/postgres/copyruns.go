package postgres

import (
	"context"
	"sort"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// The columns stand in the order in which they are written.
const (
	copyVerdictsSQL = `COPY verdicts (tenant_id, seq, claim_id, lens, raw_verdict, reasons, verdict_hash, chain_hash, shared, document) FROM STDIN BINARY`
	copyRunsSQL     = `COPY runs (tenant_id, seq, run_id, claim_id, contract_id, contract_version, computed_at, triggered_by, status,
  headline, outcome_seq, report, next_check_at, events, previous_seq, changed, evidence_hashes, report_hash, run_hash) FROM STDIN BINARY`
)

// copyVerdicts stores the two verdicts of each run. Their documents differ in
// their last members alone (decision D24), so that of the second one only that
// end is stored, with how much of the first one comes before it.
func (t *tx) copyVerdicts(ctx context.Context, tenant string, runs []ledger.Run) error {
	shares := t.countsCharacters()
	return fail("CopyVerdicts", t.copyRows(ctx, copyVerdictsSQL, 2*len(runs), func(w *rowWriter, i int) {
		run := &runs[i/2]
		lens, v := engine.Outcome, &run.Outcome
		if i%2 == 1 {
			lens, v = engine.Policy, &run.Policy
		}
		w.text(tenant)
		w.bigint(v.Seq)
		w.text(run.ClaimID)
		w.text(string(lens))
		w.text(string(v.Raw))
		w.texts(v.Reasons)
		w.bytea(v.Hash[:])
		w.bytea(v.ChainHash[:])
		if lens == engine.Outcome || !shares {
			w.null()
			w.text(v.Document)
			return
		}
		shared := sharedStart(run.Outcome.Document, v.Document)
		w.integer(utf8.RuneCountInString(v.Document[:shared]))
		w.text(v.Document[shared:])
	}))
}

// countsCharacters says whether the server counts the characters of a text as Go
// does. In a database of another encoding, such as the SQL_ASCII that initdb
// makes in the locale C, left() would cut in other places: there every document
// is stored whole.
func (t *tx) countsCharacters() bool {
	return t.db.Conn().PgConn().ParameterStatus("server_encoding") == "UTF8"
}

// sharedStart is how many bytes two texts begin with alike, up to the end of a character.
func sharedStart(a, b string) int {
	n := sort.Search(min(len(a), len(b)), func(i int) bool { return a[:i+1] != b[:i+1] })
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

func (t *tx) copyRuns(ctx context.Context, tenant string, runs []ledger.Run, hashes []ledger.RunHashes) error {
	return fail("CopyRuns", t.copyRows(ctx, copyRunsSQL, len(runs), func(w *rowWriter, i int) {
		r := &runs[i]
		w.text(tenant)
		w.bigint(r.Seq)
		w.text(r.ID)
		w.text(r.ClaimID)
		w.text(r.Contract.ID)
		w.integer(r.Contract.Version)
		w.bigint(int64(r.ComputedAt))
		w.text(r.TriggeredBy)
		w.text(r.Status)
		w.text(r.Headline)
		w.bigint(r.Outcome.Seq)
		w.present(r.Report)
		w.instant(r.NextCheckAt)
		w.texts(r.Events)
		w.bigint(r.PreviousSeq)
		w.boolean(r.Changed)
		w.hashes(r.Evidence)
		w.bytea(hashes[i].Report[:])
		w.bytea(hashes[i].Run[:])
	}))
}

// present is NULL for an empty text.
func (w *rowWriter) present(text []byte) {
	if len(text) == 0 {
		w.null()
		return
	}
	w.bytea(text)
}

func (w *rowWriter) instant(at *engine.Instant) {
	if at == nil {
		w.null()
		return
	}
	w.bigint(int64(*at))
}

// hashes is what ledger.JoinHashes makes of them.
func (w *rowWriter) hashes(hashes [][32]byte) {
	w.bytes = w.length(32 * len(hashes))
	for i := range hashes {
		w.bytes = append(w.bytes, hashes[i][:]...)
	}
}
