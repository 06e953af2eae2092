package verifiedactionsreceiver

import (
	"errors"
	"net/http"
	"slices"

	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/history"
)

// verification is what anybody with a reference id may know of a receipt.
type verification struct {
	history.Entry
	// ReceiptID is the receipt's hash.
	ReceiptID string `json:"receipt_id"`
	Verified  bool   `json:"verified"`
	// Signature is valid: receipts with another are not taken.
	Signature string `json:"payload_signature"`
}

// verify answers without authentication, as the protocol wants. Reference ids
// cannot be guessed, and inputs and outputs are not kept.
func (s *server) verify(w http.ResponseWriter, r *http.Request) {
	ctx := s.obsreport.StartTracesOp(r.Context())
	a := s.inSlot(func() answer { return s.lookup(r) })
	s.obsreport.EndTracesOp(ctx, aevsFormat, 0, a.err)
	s.counters.request(ctx, verifyPath, a.outcome)
	s.write(w, &a)
}

func (s *server) lookup(r *http.Request) answer {
	id := r.PathValue("reference_id")
	for _, keyID := range s.keyIDs() {
		found, ok, err := s.history.Lookup(r.Context(), keyID, id)
		if err != nil {
			s.counters.historyError(r.Context())
			s.settings.Logger.Warn("remembered receipts could not be read", zap.Error(err))
			return refuse(http.StatusServiceUnavailable, busy, errors.New("remembered receipts could not be read; come again later"))
		}
		if ok && found.ReferenceID == id {
			sound := found.Status == history.Anchor || found.Status == history.Linked
			return answer{status: http.StatusOK, outcome: accepted,
				body: verification{found, found.Hash, sound, "valid"}}
		}
	}
	return answer{status: http.StatusNotFound, outcome: accepted,
		body: problem{"no receipt with this reference id is remembered here"}}
}

func (s *server) keyIDs() []string {
	ids := make([]string, 0, len(s.keys))
	for id := range s.keys {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
