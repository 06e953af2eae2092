package api

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// RejectedList is evidence that collectors could not write, or that was pushed
// and not taken, the newest first, and how much of each source.
type RejectedList struct {
	Rejected []RejectedFact  `json:"rejected"`
	Sources  []RejectedCount `json:"sources" doc:"how much was rejected of each source since then, whatever source was asked for"`
}

// RejectedFact is one fact, link or watermark that could not be written or made. It is no evidence.
type RejectedFact struct {
	Kind       string         `json:"kind" enum:"fact,link,watermark,record" doc:"record is all that one was to become"`
	Source     string         `json:"source" doc:"as it was sent; empty where it could not be read"`
	Connection string         `json:"connection"`
	Reason     string         `json:"reason" enum:"unreadable,role,source,tenant,invalid,conflicting,store,rule,no_trust"`
	Error      string         `json:"error"`
	RawRef     string         `json:"raw_ref"`
	SubjectID  string         `json:"subject_id"`
	Item       string         `json:"item" doc:"what was sent, as JSON text of at most 4096 bytes; empty where there was more of it than is kept"`
	ReceivedAt engine.Instant `json:"received_at" doc:"when it came first"`
	LastAt     engine.Instant `json:"last_at" doc:"when it came last"`
	Times      int            `json:"times"`
}

// RejectedCount says how much of one source was rejected.
type RejectedCount struct {
	Source string         `json:"source"`
	Items  int            `json:"items"`
	Times  int            `json:"times"`
	LastAt engine.Instant `json:"last_at"`
}

// RejectedQuery narrows the list.
type RejectedQuery struct {
	Source string
	Since  *engine.Instant
	// Limit is 1 to 1000.
	Limit int
}

// Rejected is GET /facts/rejected.
func (s *Service) Rejected(ctx context.Context, caller Caller, query RejectedQuery) (RejectedList, error) {
	if err := caller.need(keys.Inspect); err != nil {
		return RejectedList{}, err
	}
	var found []ledger.RejectedFact
	var counts []ledger.RejectedCount
	var since engine.Instant
	if query.Since != nil {
		since = *query.Since
	}
	err := s.view(ctx, func(tx ledger.Tx) (err error) {
		if found, err = tx.RejectedFacts(ctx, caller.Tenant, ledger.RejectedFilter(query)); err != nil {
			return err
		}
		counts, err = tx.CountRejected(ctx, caller.Tenant, since)
		return err
	})
	list := RejectedList{Rejected: make([]RejectedFact, len(found)), Sources: make([]RejectedCount, len(counts))}
	for i := range found {
		r := &found[i]
		list.Rejected[i] = RejectedFact{
			r.Kind, r.Source, r.Connection, r.Reason, r.Error, r.RawRef, r.SubjectID, r.Item, r.ReceivedAt, r.LastAt, r.Times,
		}
	}
	for i, c := range counts {
		list.Sources[i] = RejectedCount(c)
	}
	return list, err
}
