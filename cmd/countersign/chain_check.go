package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

// sealedDocument is what a verdict's document says (decision D24), as far as
// the rows beside it repeat it.
type sealedDocument struct {
	Format   string
	Tenant   string
	Contract struct {
		ID      string
		Version int
		Hash    string
	}
	Action struct {
		ActionID    string         `json:"action_id"`
		RequestedAt engine.Instant `json:"requested_at"`
	}
	Lens    engine.Lens
	Verdict engine.RawVerdict `json:"raw_verdict"`
	Reasons []string
	Checks  []struct {
		Fired    bool
		Evidence string
	}
}

// chainCheck goes along one tenant's chain.
type chainCheck struct {
	tenant  string
	running [32]byte
	// runs is the hash of the newest run, and hashed whether there was one: only
	// runs of before may be without.
	runs   [32]byte
	hashed bool
	// contracts are those that verdicts named so far; nil for one that is not published or cannot be read.
	contracts map[ledger.ContractRef]*contract.Contract
}

func newChainCheck(tenant string) *chainCheck {
	return &chainCheck{tenant: tenant, contracts: map[ledger.ContractRef]*contract.Contract{}}
}

// latestHorizon is the latest one that retention can have had at a moment. It ran
// by the clock of its own machine, which may be ahead by up to a day.
func latestHorizon(at engine.Instant) engine.Instant {
	return at.Sub(ledger.LeastRetention - engine.Day)
}

// at says whether the chain stands at a hash that log verify once printed.
func (c *chainCheck) at(head string) bool {
	return head == hex.EncodeToString(c.running[:]) || (c.hashed && head == hex.EncodeToString(c.runs[:]))
}

// chainPart is one page of the chain with what its verdicts name, read at one moment.
type chainPart struct {
	verdicts  []ledger.ChainEntry
	documents []sealedDocument
	unread    []error
	runs      map[int64]ledger.ChainRun
	facts     map[string]ledger.StoredFact
	dropped   ledger.Dropped
}

func (c *chainCheck) read(ctx context.Context, store ledger.Ledger, after int64, limit int) (page chainPart, err error) {
	err = store.View(ctx, func(tx ledger.Tx) (err error) {
		page = chainPart{runs: map[int64]ledger.ChainRun{}, facts: map[string]ledger.StoredFact{}}
		if page.verdicts, err = tx.ReadChain(ctx, c.tenant, after, limit); err != nil {
			return err
		}
		runs, err := tx.ChainRuns(ctx, c.tenant, after, limit)
		if err != nil {
			return err
		}
		for _, r := range runs {
			page.runs[r.Seq] = r
		}
		refs, contracts := page.parse()
		facts, err := tx.FactsByRef(ctx, c.tenant, refs)
		if err != nil {
			return err
		}
		for _, f := range facts {
			page.facts[f.RawRef] = f
		}
		if page.dropped, err = tx.Dropped(ctx, c.tenant); err != nil {
			return err
		}
		// A horizon that was put in by hand explains nothing that retention would have kept.
		page.dropped.Horizon = min(page.dropped.Horizon, latestHorizon(now()))
		return c.readContracts(ctx, tx, contracts)
	})
	return page, err
}

// parse reads the documents and returns the references to what they rest on, each once.
func (p *chainPart) parse() (refs []string, contracts []ledger.ContractRef) {
	p.documents, p.unread = make([]sealedDocument, len(p.verdicts)), make([]error, len(p.verdicts))
	seen := map[string]bool{}
	for i, entry := range p.verdicts {
		d := &p.documents[i]
		if p.unread[i] = json.Unmarshal([]byte(entry.Document), d); p.unread[i] != nil {
			continue
		}
		for _, check := range d.Checks {
			if ref := check.Evidence; ref != "" && !seen[ref] {
				seen[ref] = true
				refs = append(refs, ref)
			}
		}
		if ref := (ledger.ContractRef{ID: d.Contract.ID, Version: d.Contract.Version}); !slices.Contains(contracts, ref) {
			contracts = append(contracts, ref)
		}
	}
	return refs, contracts
}

func (c *chainCheck) readContracts(ctx context.Context, tx ledger.Tx, refs []ledger.ContractRef) error {
	refs = slices.DeleteFunc(refs, func(ref ledger.ContractRef) bool {
		_, known := c.contracts[ref]
		return known || ref.Version < 1 // version 0 would mean the latest
	})
	if len(refs) == 0 {
		return nil
	}
	documents, err := tx.ContractVersions(ctx, refs)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		c.contracts[ref] = nil
	}
	for _, d := range documents {
		if parsed, _ := contract.Parse(d.ID, d.Document); parsed != nil {
			c.contracts[ledger.ContractRef{ID: d.ID, Version: d.Version}] = parsed
		}
	}
	return nil
}

// check makes both hashes of one verdict again and compares it with everything
// that is stored beside it. It says what does not hold, and counts into view what does.
func (c *chainCheck) check(page chainPart, entry ledger.ChainEntry, seq int64, view *chainView) string {
	if entry.Seq != seq {
		return fmt.Sprintf("is missing; the next one stored is %d", entry.Seq)
	}
	i := slices.IndexFunc(page.verdicts, func(e ledger.ChainEntry) bool { return e.Seq == seq })
	if problem := c.checkHashes(entry); problem != "" {
		return problem
	}
	if err := page.unread[i]; err != nil {
		return fmt.Sprintf("has a document that cannot be read: %v", err)
	}
	document := page.documents[i]
	if problem := c.checkDocument(entry, document); problem != "" {
		return problem
	}
	if problem := c.checkContract(document); problem != "" {
		return problem
	}
	if problem := c.checkRun(page, entry, document, view); problem != "" {
		return problem
	}
	if problem := checkAction(runOf(page, entry).Action, document); problem != "" {
		return problem
	}
	if problem := c.checkEvidence(page, runOf(page, entry), document, view); problem != "" {
		return problem
	}
	if entry.Lens == engine.Outcome {
		return "" // the hash of the run follows that of its policy verdict
	}
	return c.checkRunHash(runOf(page, entry), view)
}

// runOf is the run of a verdict: it has the sequence number of its policy verdict.
func runOf(page chainPart, entry ledger.ChainEntry) ledger.ChainRun {
	if entry.Lens == engine.Outcome {
		return page.runs[entry.Seq+1]
	}
	return page.runs[entry.Seq]
}

// checkRunHash makes the hash of a run again, behind that of the run before.
func (c *chainCheck) checkRunHash(run ledger.ChainRun, view *chainView) string {
	if run.RunHash == nil && run.ReportHash == nil && run.Evidence == nil && !c.hashed {
		view.RunsWithoutHash++
		return ""
	}
	c.hashed = true
	if len(run.ReportHash) != len(c.runs) {
		return fmt.Sprintf("has a run %s with %d bytes as the hash of its report, want %d: it was changed", run.ID, len(run.ReportHash), len(c.runs))
	}
	if sum := sha256.Sum256(run.Report); string(run.Report) != ledger.DroppedReport && string(sum[:]) != string(run.ReportHash) {
		return fmt.Sprintf("has a run %s whose report has the hash %x, stored is %x: the report was changed", run.ID, sum, run.ReportHash)
	}
	next := run.Hash(c.runs, c.running, [32]byte(run.ReportHash))
	if string(next[:]) != string(run.RunHash) {
		return fmt.Sprintf("has a run %s with the hash %x, what it says and its predecessor make it %x: it was changed, moved or put in", run.ID, run.RunHash, next)
	}
	c.runs = next
	return ""
}

func (c *chainCheck) checkHashes(entry ledger.ChainEntry) string {
	hash := sha256.Sum256([]byte(entry.Document))
	if hash != entry.VerdictHash {
		return fmt.Sprintf("has a document with the hash %x, stored is %x: the document or the hash was changed", hash, entry.VerdictHash)
	}
	next := seal.Next(c.running, entry.VerdictHash)
	if next != entry.ChainHash {
		return fmt.Sprintf("has the chain hash %x, its predecessor makes it %x: it was changed, moved or put in", entry.ChainHash, next)
	}
	c.running = next
	return ""
}

// checkDocument compares what the row says with what was hashed: a verdict that
// was changed beside an untouched document must not pass.
func (c *chainCheck) checkDocument(entry ledger.ChainEntry, d sealedDocument) string {
	place := engine.Outcome
	if entry.Seq%2 == 0 {
		place = engine.Policy
	}
	switch {
	case d.Format != seal.Format:
		return fmt.Sprintf("has a document of the format %q, which this program does not know", d.Format)
	case d.Tenant != c.tenant:
		return fmt.Sprintf("has a document of tenant %q", d.Tenant)
	case d.Lens != entry.Lens:
		return fmt.Sprintf("is stored under the lens %s, its document says %s", entry.Lens, d.Lens)
	case d.Lens != place:
		return fmt.Sprintf("is of the lens %s, at this place stands one of %s", d.Lens, place)
	case d.Verdict != entry.Raw:
		return fmt.Sprintf("is stored as %s, its document says %s", entry.Raw, d.Verdict)
	case !slices.Equal(d.Reasons, entry.Reasons):
		return fmt.Sprintf("is stored with the reasons %q, its document says %q", entry.Reasons, d.Reasons)
	case engine.ClaimID(c.tenant, d.Action.ActionID) != entry.ClaimID:
		return fmt.Sprintf("is stored for action %s, its document is about %q", entry.ClaimID, d.Action.ActionID)
	}
	return ""
}

func (c *chainCheck) checkContract(d sealedDocument) string {
	found := c.contracts[ledger.ContractRef{ID: d.Contract.ID, Version: d.Contract.Version}]
	switch {
	case found == nil:
		return fmt.Sprintf("is under contract %s version %d, which is not in the store or cannot be read", d.Contract.ID, d.Contract.Version)
	case found.Hash != d.Contract.Hash:
		return fmt.Sprintf("is under contract %s version %d with the hash %s, in the store it has %s: the contract was changed", d.Contract.ID, d.Contract.Version, d.Contract.Hash, found.Hash)
	}
	return ""
}

// checkRun compares a verdict with its run, which has the sequence number of its policy verdict.
func (c *chainCheck) checkRun(page chainPart, entry ledger.ChainEntry, d sealedDocument, view *chainView) string {
	seq := entry.Seq
	if entry.Lens == engine.Outcome {
		if _, stray := page.runs[seq]; stray {
			return "has a run of its own, which only a policy verdict has: it was put in"
		}
		seq++
	}
	run, ok := page.runs[seq]
	switch {
	case !ok:
		return fmt.Sprintf("has no run: run %d is missing", seq)
	case run.Outcome.Seq != seq-1 || run.ID != fmt.Sprintf("run_%d", seq):
		return fmt.Sprintf("belongs to run %s with the verdicts %d and %d, which is stored under %d", run.ID, run.Outcome.Seq, run.Seq, seq)
	case run.ClaimID != entry.ClaimID:
		return fmt.Sprintf("is about action %s, its run %s about %s", entry.ClaimID, run.ID, run.ClaimID)
	case run.Contract.ID != d.Contract.ID || run.Contract.Version != d.Contract.Version:
		return fmt.Sprintf("is under contract %s version %d, its run %s under %s version %d", d.Contract.ID, d.Contract.Version, run.ID, run.Contract.ID, run.Contract.Version)
	}
	if entry.Lens == engine.Outcome {
		return "" // the report is looked at once
	}
	if string(run.Report) == ledger.DroppedReport {
		if d.Action.RequestedAt >= page.dropped.Horizon {
			return fmt.Sprintf("has lost the report of its run %s, and is too young for retention to have dropped it", run.ID)
		}
		view.DroppedReports++
		view.horizon(page.dropped)
		return ""
	}
	return c.checkReport(page, run, d)
}

// checkAction compares a verdict with what its action says of what no update
// changes (AC "Idempotency"): lists show both side by side. What it corrects is
// covered by the hash of the run.
func checkAction(a ledger.ChainAction, d sealedDocument) string {
	switch {
	case a.ActionID == "":
		return fmt.Sprintf("is about action %q, which is not in the store any more", d.Action.ActionID)
	case a.ActionID != d.Action.ActionID:
		return fmt.Sprintf("is about action %q, which is stored as %q: the action was changed", d.Action.ActionID, a.ActionID)
	case a.Contract.ID != d.Contract.ID || a.Contract.Version != d.Contract.Version:
		return fmt.Sprintf("is under contract %s version %d, its action under %s version %d: the action was changed", d.Contract.ID, d.Contract.Version, a.Contract.ID, a.Contract.Version)
	}
	return ""
}

// checkReport compares what people read with what was hashed.
func (c *chainCheck) checkReport(page chainPart, run ledger.ChainRun, d sealedDocument) string {
	var r report.Report
	if err := json.Unmarshal(run.Report, &r); err != nil {
		return fmt.Sprintf("has a run %s whose report cannot be read: %v", run.ID, err)
	}
	checks := c.contracts[run.Contract].Checks
	if len(r.Checks) != len(d.Checks) || len(checks) != len(d.Checks) {
		return fmt.Sprintf("has %d checks, the report of its run %s has %d", len(d.Checks), run.ID, len(r.Checks))
	}
	for i, row := range r.Checks {
		evidence := ""
		if row.Evidence != nil {
			evidence = row.Evidence.RawRef
		}
		switch expected := checks[i].Section == contract.ExpectedEffects; {
		case row.OK != (d.Checks[i].Fired == expected):
			return fmt.Sprintf("and the report of its run %s differ in check %d: the report says ok: %t", run.ID, i+1, row.OK)
		case evidence != d.Checks[i].Evidence:
			return fmt.Sprintf("names %q as evidence of check %d, the report of its run %s names %q", d.Checks[i].Evidence, i+1, run.ID, evidence)
		case row.Section != checks[i].Section || row.Description != checks[i].Call.Describe() || textOf(row.Message) != checks[i].Message:
			return fmt.Sprintf("has a contract whose check %d reads %q, in the report of its run %s it reads %q", i+1, checks[i].Call.Describe(), run.ID, row.Description)
		case !agrees(row.Evidence, page.facts[evidence]) && !page.cameAgain(evidence, run, d):
			return fmt.Sprintf("has the evidence %q for check %d, of which the report of its run %s says another source, type or time", evidence, i+1, run.ID)
		}
	}
	if run.Headline != r.Summary.Headline {
		return fmt.Sprintf("has a run %s with the headline %q, its report says %q", run.ID, run.Headline, r.Summary.Headline)
	}
	return ""
}

func textOf(message *string) string {
	if message == nil {
		return ""
	}
	return *message
}

// agrees compares what a report says of a fact with the fact, where that is still stored.
func agrees(shown *report.Evidence, stored ledger.StoredFact) bool {
	if shown == nil || stored.RawRef == "" || shown.RawRef != stored.RawRef {
		return true
	}
	return shown.Source == stored.Fact.Source && shown.FactType == stored.Fact.Type && shown.OccurredAt != nil && *shown.OccurredAt == stored.Fact.OccurredAt
}

// checkEvidence looks at every fact that a verdict names, and compares it with
// the one that was judged.
func (c *chainCheck) checkEvidence(page chainPart, run ledger.ChainRun, d sealedDocument, view *chainView) string {
	judged, problem := c.judged(run, d)
	if problem != "" {
		return problem
	}
	for _, check := range d.Checks {
		ref := check.Evidence
		if ref == "" {
			continue
		}
		fact, there := page.facts[ref]
		switch {
		case there:
			if problem := checkFact(fact); problem != "" {
				return problem
			}
			hash, known := judged[ref]
			switch changed := known && string(hash[:]) != string(fact.ContentHash); {
			case changed && page.cameAgain(ref, run, d):
				view.noteDropped(page, d)
			case changed:
				return fmt.Sprintf("was judged on the fact %q with the content hash %x, stored is %x: the fact was changed", ref, hash, fact.ContentHash)
			case d.Lens == engine.Outcome: // both lenses name the same evidence
				view.Facts++
			}
		case ref == engine.ClaimRawRef(d.Action.ActionID):
			// The record of the action itself.
		case d.Action.RequestedAt < page.dropped.Horizon:
			view.noteDropped(page, d)
		default:
			return fmt.Sprintf("names the fact %q as evidence, which is missing", ref)
		}
	}
	return ""
}

// judged are the content hashes of the facts that a verdict names, as they were
// judged; none for a run that has no hashes.
func (c *chainCheck) judged(run ledger.ChainRun, d sealedDocument) (map[string][32]byte, string) {
	if run.Err != nil {
		return nil, fmt.Sprintf("has a run %s whose content hashes of evidence cannot be read: %v", run.ID, run.Err)
	}
	if run.RunHash == nil && !c.hashed {
		return nil, ""
	}
	findings := make([]engine.Finding, len(d.Checks))
	for i, check := range d.Checks {
		findings[i].Evidence = check.Evidence
	}
	refs := seal.Evidence(d.Action.ActionID, findings)
	if len(refs) != len(run.Evidence) {
		return nil, fmt.Sprintf("names %d facts as evidence, its run %s has the content hashes of %d", len(refs), run.ID, len(run.Evidence))
	}
	judged := make(map[string][32]byte, len(refs))
	for i, ref := range refs {
		judged[ref] = run.Evidence[i]
	}
	return judged, ""
}

// cameAgain says that retention may have dropped the fact that was judged, and
// that the one which has its reference now was sent after the run.
func (p *chainPart) cameAgain(ref string, run ledger.ChainRun, d sealedDocument) bool {
	return d.Action.RequestedAt < p.dropped.Horizon && p.facts[ref].IngestedAt > run.ComputedAt
}

func (v *chainView) noteDropped(page chainPart, d sealedDocument) {
	if d.Lens == engine.Outcome {
		v.Dropped++
	}
	v.horizon(page.dropped)
}

func (v *chainView) horizon(dropped ledger.Dropped) { v.Horizon = &dropped.Horizon }

// derivedRef begins the references that are made of a fact's content (decision D36).
const derivedRef = "agent_api:fact:"

func checkFact(f ledger.StoredFact) string {
	if f.Err != nil {
		return fmt.Sprintf("names the fact %q as evidence, whose attributes cannot be read: %v", f.RawRef, f.Err)
	}
	if hash := f.Fact.ContentHash(); string(hash[:]) != string(f.ContentHash) {
		return fmt.Sprintf("names the fact %q as evidence, whose content has the hash %x, stored is %x: the fact was changed", f.RawRef, hash, f.ContentHash)
	}
	if !strings.HasPrefix(f.RawRef, derivedRef) {
		return ""
	}
	again := f.Fact
	again.RawRef = ""
	if again, err := again.Normalize(); err != nil || again.RawRef != f.RawRef {
		return fmt.Sprintf("names the fact %q as evidence, and that is not the reference of its content: the fact was changed", f.RawRef)
	}
	return ""
}
