package verifiedactionsreceiver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/aevs"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/history"
)

// item is one receipt on its way.
type item struct {
	wire    []byte
	receipt *aevs.Receipt
	// agent is what the receipt's agent is called.
	agent    string
	standing history.Standing
	outcome  outcome // empty while the pipeline has not been asked
	err      error
}

// result is what a sender is told of one receipt.
type result struct {
	Status      string `json:"status"`
	ReceiptID   string `json:"receipt_id,omitempty"`
	ReferenceID string `json:"reference_id,omitempty"`
	ChainStatus string `json:"chain_status,omitempty"`
	Error       string `json:"error,omitempty"`
}

// rejected is no status that SDKs know. They keep such a receipt and flush
// those behind it, while "error" would make them keep all behind it as well.
const rejected = "rejected"

// batchReply is one result for each receipt, in order. FailedAtIndex stays
// null: a number would hold up what stands behind it.
type batchReply struct {
	Results       []result `json:"results"`
	FailedAtIndex *int     `json:"failed_at_index"`
}

// receipt serves one receipt.
func (s *server) receipt(ctx context.Context, r *http.Request) answer {
	key, body, refusal := s.authenticated(r)
	if refusal != nil {
		return *refusal
	}
	ctx = principal{key.key.ID(), key.tenant}.in(ctx)
	items := []item{{wire: body}}
	s.open(key, items)
	if err := s.deliver(ctx, key, items); err != nil {
		return notTaken(len(items), err)
	}
	a := answer{status: items[0].singleStatus(), body: items[0].result(), outcome: accepted}
	a.count(items)
	return a
}

// count is what the collector's own metrics of receivers say of the receipts.
func (a *answer) count(items []item) {
	refused := 0
	for i := range items {
		switch items[i].outcome {
		case created:
			a.spans++
		case pipelineRefused:
			refused++
		}
	}
	if a.spans == 0 && refused > 0 {
		a.spans, a.err = refused, errRefused
	}
}

// singleStatus keeps the SDK's queue moving: to anything but a success it
// holds back all receipts behind this one. So what can never be taken is a
// success with a status that says otherwise, and only what somebody here can
// put right is an error.
func (it *item) singleStatus() int {
	switch it.outcome {
	case created:
		return http.StatusCreated
	case duplicate:
		return http.StatusOK
	case notAllowed:
		return http.StatusForbidden
	case pipelineRefused:
		return http.StatusInternalServerError
	}
	return http.StatusAccepted
}

// batch serves many receipts.
func (s *server) batch(ctx context.Context, r *http.Request) answer {
	key, body, refusal := s.authenticated(r)
	if refusal != nil {
		return *refusal
	}
	wires, err := splitBatch(body)
	if err != nil {
		return refuse(http.StatusBadRequest, malformed, err)
	}
	if most := s.config.AEVS.MaxBatchReceipts; len(wires) > most {
		return refuse(http.StatusRequestEntityTooLarge, tooLarge,
			fmt.Errorf("the batch has %d receipts; aevs.max_batch_receipts is %d", len(wires), most))
	}
	ctx = principal{key.key.ID(), key.tenant}.in(ctx)
	items := make([]item, len(wires))
	for i := range wires {
		items[i].wire = wires[i]
	}
	s.open(key, items)
	if err := s.deliver(ctx, key, items); err != nil {
		return notTaken(len(items), err)
	}
	reply := batchReply{Results: make([]result, len(items))}
	for i := range items {
		reply.Results[i] = items[i].result()
	}
	a := answer{status: http.StatusOK, body: reply, outcome: accepted}
	a.count(items)
	return a
}

// splitBatch returns the receipts of a batch, which stand in it as strings.
func splitBatch(body []byte) ([][]byte, error) {
	var batch struct {
		Receipts []json.RawMessage `json:"receipts"`
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, fmt.Errorf("the batch does not read: %w", err)
	}
	if batch.Receipts == nil {
		return nil, errors.New("the batch has no list receipts")
	}
	wires := make([][]byte, len(batch.Receipts))
	for i, raw := range batch.Receipts {
		var text string
		wires[i] = raw // an object is taken as well
		if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
			wires[i] = []byte(text)
		}
	}
	return wires, nil
}

// authenticated reads the body of a request and checks its signature. The body
// of a sender without a known key is not read.
func (s *server) authenticated(r *http.Request) (*credential, []byte, *answer) {
	key, ok := s.keys[r.Header.Get(keyIDHeader)]
	if !ok {
		a := refuse(http.StatusUnauthorized, unauthorized, errUnknownKey)
		return nil, nil, &a
	}
	body, refusal := readBody(r)
	if refusal != nil {
		return nil, nil, refusal
	}
	if err := key.authenticate(r.Header, body, s.now(), &s.config.AEVS); err != nil {
		a := refuse(http.StatusUnauthorized, unauthorized, err)
		return nil, nil, &a
	}
	return key, body, nil
}

// open reads the receipts and checks their signatures.
func (s *server) open(key *credential, items []item) {
	for i := range items {
		it := &items[i]
		it.receipt, it.err = key.key.Open(it.wire)
		switch {
		case errors.Is(it.err, aevs.ErrSignature):
			it.outcome = badSignature
		case it.err != nil:
			it.outcome = malformed
		default:
			it.allow(key)
		}
	}
}

func (it *item) allow(key *credential) {
	name, ok := key.agent(it.receipt.AgentID)
	if !ok {
		it.outcome = notAllowed
		it.err = fmt.Errorf("agent %.80s may not use key %s: add it to the key's agents in the collector", it.receipt.AgentID, key.key.ID())
	}
	it.agent = name
}

// deliver takes the receipts through history and pipeline. It fails only when
// the sender has to come again; what was taken until then is remembered.
func (s *server) deliver(ctx context.Context, key *credential, items []item) error {
	if err := s.place(ctx, key, items); err != nil {
		return err
	}
	fresh := pending(items)
	err := s.consume(ctx, key, fresh)
	s.remember(ctx, key, items)
	for _, it := range fresh {
		if it.outcome == "" {
			it.outcome = failed
		}
	}
	s.settleRefused(key, items)
	s.counters.receipts(ctx, items)
	return err
}

// pending are the receipts that the pipeline has not been asked about.
func pending(items []item) []*item {
	var list []*item
	for i := range items {
		if items[i].outcome == "" {
			list = append(list, &items[i])
		}
	}
	return list
}

// place finds out which receipts came already, and how the others stand.
func (s *server) place(ctx context.Context, key *credential, items []item) error {
	open := pending(items)
	standings, err := s.history.Preview(ctx, s.entries(key, open))
	if err != nil {
		s.counters.historyError(ctx)
		return err
	}
	for i, it := range open {
		it.standing = standings[i]
		switch it.standing.Kind {
		case history.Duplicate:
			it.outcome = duplicate
		case history.Conflict:
			it.outcome = conflict
			it.err = fmt.Errorf("another receipt came with the reference id %.80s before; the first one stands", it.receipt.ReferenceID)
		}
	}
	return nil
}

func (s *server) entries(key *credential, items []*item) []history.Entry {
	list := make([]history.Entry, len(items))
	for i, it := range items {
		r := it.receipt
		list[i] = history.Entry{
			KeyID: key.key.ID(), ReferenceID: r.ReferenceID, SessionID: r.SessionID, AgentID: r.AgentID,
			ToolName: r.ToolName, Outcome: r.Status, Visibility: r.Visibility,
			Seq: r.Seq, Hash: r.Hash, PrevHash: r.PrevHash,
			StartedAt: r.Started, EndedAt: r.Ended, DurationMS: r.DurationMS, ReceivedAt: s.now().UTC(),
		}
		if r.Seq == 1 {
			list[i].Anchor, _ = key.key.Anchor(r.SessionID) // without one: unverified
		}
	}
	return list
}

// consume gives the pipeline all at once, and one by one when it refuses them
// for good, so that one bad receipt does not take the others with it.
func (s *server) consume(ctx context.Context, key *credential, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	err := s.next.ConsumeTraces(ctx, receiptTraces(key.key.ID(), items))
	switch {
	case err == nil:
		for _, it := range items {
			it.outcome = created
		}
		return nil
	case !consumererror.IsPermanent(err):
		return err
	case len(items) == 1:
		items[0].outcome, items[0].err = pipelineRefused, errRefused
		return nil
	}
	for i := range items {
		if err := s.consume(ctx, key, items[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// remember is after the fact: the pipeline has the receipts, so a history that
// cannot be written makes chains unverified, and nothing else.
func (s *server) remember(ctx context.Context, key *credential, items []item) {
	var taken []*item
	for i := range items {
		if items[i].outcome == created {
			taken = append(taken, &items[i])
		}
	}
	if len(taken) == 0 {
		return
	}
	if err := s.history.Commit(context.WithoutCancel(ctx), s.entries(key, taken)); err != nil {
		s.counters.historyError(ctx)
		s.settings.Logger.Warn("receipts were taken but could not be remembered: their chain will read as a gap", zap.Error(err))
	}
}

// settleRefused lets go of a receipt that was refused for good and comes
// again: its sender was told, and would send it for ever.
func (s *server) settleRefused(key *credential, items []item) {
	for i := range items {
		it := &items[i]
		switch it.outcome {
		case malformed, badSignature, conflict:
		default:
			continue
		}
		sum := sha256.Sum256(append([]byte(key.key.ID()+"\x00"), it.wire...))
		if again, _ := s.refused.ContainsOrAdd(sum, struct{}{}); again {
			it.outcome = refusedBefore
		}
	}
}

func (it *item) result() result {
	r := result{ReferenceID: it.receipt.ReferenceID, ReceiptID: it.receipt.Hash, ChainStatus: string(it.standing.Status)}
	switch it.outcome {
	case created:
		r.Status = "created"
	case duplicate, refusedBefore:
		r.Status = "duplicate"
	default:
		r.Status = rejected
	}
	if it.err != nil {
		r.Error = it.err.Error()
	}
	return r
}
