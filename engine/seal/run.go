package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
)

// Run is what a run of a verification says beside the documents of its two
// verdicts: what people read of it, and what the facts contained that the
// verdicts name. A verdict's document names its evidence by reference only
// (decision D24), so that a fact could be rewritten under the verdict.
// Its canonical JSON has these members.
type Run struct {
	Changed bool `json:"changed"`
	// Compensates is the action that the run's action corrects, which becomes
	// COMPENSATED once this one passes; absent for none.
	Compensates string   `json:"compensates,omitempty"`
	ComputedAt  int64    `json:"computed_at"`
	Events      []string `json:"events"`
	// Evidence has the content hash of every fact that Evidence names, in its order.
	Evidence    []string `json:"evidence"`
	Headline    string   `json:"headline"`
	NextCheckAt *int64   `json:"next_check_at,omitempty"`
	PreviousSeq int64    `json:"previous_seq"`
	// Report is the SHA-256 of the report's text.
	Report      string `json:"report"`
	Status      string `json:"status"`
	TriggeredBy string `json:"triggered_by"`
}

// Evidence are the facts that findings name, each once, in the order of the
// checks. The record of the action itself is none: its content is in the document.
func Evidence(actionID string, findings []engine.Finding) []string {
	var refs []string
	own := engine.ClaimRawRef(actionID)
	for i := range findings {
		if ref := findings[i].Evidence; ref != "" && ref != own && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Contents are the content hashes of the facts that refs name, in their order.
// The facts are those of the subject and of its linked ones, and behind them any
// of the snapshot: a total of many actions may end with a fact of another one's
// subject (decision D17). A reference that no fact has is an error.
func Contents(refs []string, s *engine.Snapshot, subject string) ([][32]byte, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	c := contents{hashes: make([][32]byte, len(refs)), missing: slices.Clone(refs), left: len(refs)}
	for _, one := range s.Subjects(subject) {
		c.find(s.Facts[one])
	}
	for _, facts := range s.Facts { // a reference is one fact's alone, so that the order is all the same
		if c.left == 0 {
			break
		}
		c.find(facts)
	}
	if c.left > 0 {
		missing := slices.DeleteFunc(c.missing, func(ref string) bool { return ref == "" })
		return nil, fmt.Errorf("no fact that was read for %s has the reference %q, which is named as evidence", subject, missing)
	}
	return c.hashes, nil
}

// contents are hashes as far as their facts were found.
type contents struct {
	hashes [][32]byte
	// missing are the references whose facts were not found yet, empty in the place of the others.
	missing []string
	left    int
}

func (c *contents) find(facts []engine.Fact) {
	for i := range facts {
		if at := slices.Index(c.missing, facts[i].RawRef); at >= 0 {
			c.hashes[at], c.missing[at] = facts[i].ContentHash(), ""
			c.left--
		}
	}
}

// NextRun is the hash that follows previous in the chain of a tenant's runs:
// SHA-256(0x02 || previous || chain hash of the run's policy verdict || SHA-256
// of the canonical JSON of the run). The first one follows 32 zero bytes. Each
// covers the chain of verdicts (decision D25) up to its own, too.
func NextRun(previous, chain [32]byte, run Run) [32]byte {
	text := buffers.Get().(*[]byte)
	*text = run.append((*text)[:0])
	content := sha256.Sum256(*text)
	buffers.Put(text)
	var buffer [97]byte
	buffer[0] = 0x02
	copy(buffer[1:33], previous[:])
	copy(buffer[33:65], chain[:])
	copy(buffer[65:], content[:])
	return sha256.Sum256(buffer[:])
}

func (r *Run) append(b []byte) []byte {
	b = strconv.AppendBool(append(b, `{"changed":`...), r.Changed)
	if r.Compensates != "" {
		b = engine.AppendString(append(b, `,"compensates":`...), r.Compensates)
	}
	b = strconv.AppendInt(append(b, `,"computed_at":`...), r.ComputedAt, 10)
	b = appendStrings(append(b, `,"events":`...), r.Events)
	b = appendStrings(append(b, `,"evidence":`...), r.Evidence)
	b = engine.AppendString(append(b, `,"headline":`...), r.Headline)
	if r.NextCheckAt != nil {
		b = strconv.AppendInt(append(b, `,"next_check_at":`...), *r.NextCheckAt, 10)
	}
	b = strconv.AppendInt(append(b, `,"previous_seq":`...), r.PreviousSeq, 10)
	b = engine.AppendString(append(b, `,"report":`...), r.Report)
	b = engine.AppendString(append(b, `,"status":`...), r.Status)
	b = engine.AppendString(append(b, `,"triggered_by":`...), r.TriggeredBy)
	return append(b, '}')
}

// Hex spells hashes as Run holds them.
func Hex(hashes [][32]byte) []string {
	texts := make([]string, len(hashes))
	for i := range hashes {
		texts[i] = hex.EncodeToString(hashes[i][:])
	}
	return texts
}
