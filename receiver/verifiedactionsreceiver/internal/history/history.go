package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// MaxBroken bounds how many receipts learn of a wrong link before them.
const MaxBroken = 4096

// History is safe for concurrent use. Nothing else may write to its client.
type History struct {
	client storage.Client
	most   uint64
	// whole says that all there ever was is in client, until something is forgotten.
	whole bool

	mu sync.Mutex
}

// New keeps at most most receipts, at least 1, in client. persistent says that
// client keeps over a restart: what is not in it then never came.
func New(client storage.Client, most int, persistent bool) *History {
	return &History{client: client, most: uint64(max(most, 1)), whole: persistent}
}

// Preview says how the receipts stand if they were added in this order. It
// changes nothing.
func (h *History) Preview(ctx context.Context, entries []Entry) ([]Standing, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, standings, err := h.add(ctx, entries)
	return standings, err
}

// Commit adds the receipts. Duplicates and conflicts change nothing.
func (h *History) Commit(ctx context.Context, entries []Entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	tx, _, err := h.add(ctx, entries)
	if err != nil {
		return err
	}
	return tx.write()
}

// Lookup finds a receipt.
func (h *History) Lookup(ctx context.Context, keyID, referenceID string) (Entry, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return read[Entry](h.begin(ctx), receiptKey(keyID, referenceID))
}

// Close closes the client.
func (h *History) Close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client.Close(ctx)
}

func (h *History) add(ctx context.Context, entries []Entry) (*transaction, []Standing, error) {
	tx := h.begin(ctx)
	if err := tx.fetchFor(entries); err != nil {
		return nil, nil, fmt.Errorf("remembered receipts: %w", err)
	}
	standings := make([]Standing, len(entries))
	for i := range entries {
		var err error
		if standings[i], err = tx.add(entries[i]); err != nil {
			return nil, nil, fmt.Errorf("remembered receipts: %w", err)
		}
	}
	return tx, standings, nil
}

// What stands in the store, each under a key of 34 bytes:
//
//	r/<hash of key id, reference id>        Entry
//	c/<hash of key id, session id, number>  the r/ key of the first with that number
//	s/<hash of key id, session id>          session
//	q/<n>                                   queued, the n-th that came
//	ends                                    ends
const endsKey = "ends"

func receiptKey(keyID, referenceID string) string { return hashed("r/", keyID, referenceID) }

func linkKey(e *Entry, seq uint64) string {
	return hashed("c/", e.KeyID, e.SessionID, strconv.FormatUint(seq, 10))
}

func sessionKey(e *Entry) string { return hashed("s/", e.KeyID, e.SessionID) }

func queueKey(n uint64) string { return "q/" + strconv.FormatUint(n, 10) }

// hashed makes a key of what an agent sent: of one length, and in an alphabet
// that every store takes. No part may hold a zero byte, which control
// characters in ids are refused for.
func hashed(prefix string, parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	const bytes = 16
	return prefix + hex.EncodeToString(sum.Sum(nil)[:bytes])
}

// queued is a place in the order of arrival.
type queued struct {
	Receipt string `json:"r"`
	Link    string `json:"c"`
	Session string `json:"s"`
	Seq     uint64 `json:"n"`
}

// session is what is known of a session as a whole.
type session struct {
	// Receipts is how many of its receipts are remembered.
	Receipts uint64 `json:"n"`
	// Forgotten is the highest number of one that no longer is.
	Forgotten uint64 `json:"f,omitempty"`
}

// ends are the numbers of the oldest receipt in the queue and of the next.
type ends struct {
	First uint64 `json:"first"`
	Next  uint64 `json:"next"`
	// Lost says that a whole session was forgotten.
	Lost bool `json:"lost,omitempty"`
}

// transaction reads through to the store and keeps what is to be written.
type transaction struct {
	context.Context
	history *History
	fetched map[string][]byte // nil for what is not there
	changed map[string][]byte // nil to delete
}

func (h *History) begin(ctx context.Context) *transaction {
	return &transaction{ctx, h, map[string][]byte{}, map[string][]byte{}}
}

// fetchFor gets at once what adding these receipts in order reads: a store may
// take a transaction of its own for every single read.
func (tx *transaction) fetchFor(entries []Entry) error {
	keys := []string{endsKey}
	for i := range entries {
		e := &entries[i]
		keys = append(keys, receiptKey(e.KeyID, e.ReferenceID), sessionKey(e),
			linkKey(e, e.Seq-1), linkKey(e, e.Seq), linkKey(e, e.Seq+1))
	}
	if err := tx.fetch(keys); err != nil {
		return err
	}
	var linked []string
	for _, key := range keys {
		if holder, ok, _ := read[string](tx, key); ok {
			linked = append(linked, holder)
		}
	}
	return tx.fetch(linked)
}

func (tx *transaction) fetch(keys []string) error {
	var operations []*storage.Operation
	for _, key := range keys {
		if _, ok := tx.fetched[key]; !ok {
			tx.fetched[key] = nil
			operations = append(operations, storage.GetOperation(key))
		}
	}
	if len(operations) == 0 {
		return nil
	}
	if err := tx.history.client.Batch(tx, operations...); err != nil {
		return err
	}
	for _, op := range operations {
		tx.fetched[op.Key] = op.Value
	}
	return nil
}

// read is false for what is not there, and for what does not read: a history
// that was damaged knows less, and goes on.
func read[T any](tx *transaction, key string) (T, bool, error) {
	var value T
	text, ok := tx.changed[key]
	if !ok {
		if err := tx.fetch([]string{key}); err != nil {
			return value, false, err
		}
		text = tx.fetched[key]
	}
	if text == nil || json.Unmarshal(text, &value) != nil {
		var none T
		return none, false, nil
	}
	return value, true, nil
}

func (tx *transaction) set(key string, value any) error {
	text, err := json.Marshal(value)
	tx.changed[key] = text
	return err
}

func (tx *transaction) delete(key string) { tx.changed[key] = nil }

// write stores everything at once.
func (tx *transaction) write() error {
	operations := make([]*storage.Operation, 0, len(tx.changed))
	for key, value := range tx.changed {
		if value == nil {
			operations = append(operations, storage.DeleteOperation(key))
		} else {
			operations = append(operations, storage.SetOperation(key, value))
		}
	}
	if len(operations) == 0 {
		return nil
	}
	if err := tx.history.client.Batch(tx, operations...); err != nil {
		return fmt.Errorf("remembered receipts: %w", err)
	}
	return nil
}
