package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/seal"
)

// ChainHead is where a tenant's chain ends.
type ChainHead struct {
	// Seq is the newest sequence number; 0 for an empty chain.
	Seq int64
	// Hash is the newest chain hash (decision D25), zero bytes for an empty chain.
	Hash [32]byte
	// RunHash is the hash of the newest run (seal.NextRun), zero bytes where no
	// run has one: runs of programs that did not hash runs.
	RunHash [32]byte
}

// Append gives each run its place behind the head: its outcome verdict, then its
// policy verdict, then the run itself. It returns the runs so, with what is
// stored of them beside, and the new head.
func (h ChainHead) Append(runs []Run) ([]Run, []RunHashes, ChainHead) {
	placed, hashes := slices.Clone(runs), make([]RunHashes, len(runs))
	for i := range placed {
		run := &placed[i]
		for _, verdict := range []*StoredVerdict{&run.Outcome, &run.Policy} {
			h.Seq++
			h.Hash = seal.Next(h.Hash, verdict.Hash)
			verdict.Seq, verdict.ChainHash = h.Seq, h.Hash
		}
		run.Seq, run.ID = h.Seq, fmt.Sprintf("run_%d", h.Seq)
		hashes[i].Report = sha256.Sum256(run.Report)
		h.RunHash = run.Hash(h.RunHash, h.Hash, hashes[i].Report)
		hashes[i].Run = h.RunHash
	}
	return placed, hashes, h
}

// RunHashes are stored beside a run, so that a change of it is found.
type RunHashes struct {
	// Report is the SHA-256 of the report; it stays when retention drops the report.
	Report [32]byte
	// Run is the run's place in the chain of runs.
	Run [32]byte
}

// Hash is the run's hash behind that of the run before, given the chain hash of
// its policy verdict and the SHA-256 of its report.
func (r *Run) Hash(previous, chain, report [32]byte) [32]byte {
	return seal.NextRun(previous, chain, seal.Run{
		Changed:     r.Changed,
		Compensates: r.Compensates,
		ComputedAt:  int64(r.ComputedAt),
		Events:      append([]string{}, r.Events...),
		Evidence:    seal.Hex(r.Evidence),
		Headline:    r.Headline,
		NextCheckAt: seconds(r.NextCheckAt),
		PreviousSeq: r.PreviousSeq,
		Report:      hex.EncodeToString(report[:]),
		Status:      r.Status,
		TriggeredBy: r.TriggeredBy,
	})
}

func seconds(at *engine.Instant) *int64 {
	if at == nil {
		return nil
	}
	s := int64(*at)
	return &s
}

// JoinHashes makes one column of hashes; SplitHashes reads it. What is left over
// behind the last whole hash is an error.
func JoinHashes(hashes [][32]byte) []byte {
	joined := make([]byte, 0, 32*len(hashes))
	for i := range hashes {
		joined = append(joined, hashes[i][:]...)
	}
	return joined
}

// SplitHashes is the inverse of JoinHashes.
func SplitHashes(joined []byte) ([][32]byte, error) {
	if len(joined)%32 != 0 {
		return nil, fmt.Errorf("%d bytes are no hashes of 32 bytes each", len(joined))
	}
	var hashes [][32]byte
	for hash := range slices.Chunk(joined, 32) {
		hashes = append(hashes, [32]byte(hash))
	}
	return hashes, nil
}
