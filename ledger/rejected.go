package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// Bounds of what is kept of a rejected fact, in bytes.
const (
	MaxRejectedItem = 4096
	maxRejectedText = 512
)

// RejectedFact is evidence that could not be written, kept apart with the
// reason so that somebody can look at it. It is no evidence.
type RejectedFact struct {
	// Kind is "fact" or "link".
	Kind string
	// Source and Connection are as they were sent; empty where they could not be read.
	Source, Connection string
	// Reason is a word of the exporter's metric: unreadable, role, source, tenant, invalid, conflicting, store.
	Reason string
	// Error says it in words.
	Error string
	// RawRef and SubjectID are as they were sent, where they could be read.
	RawRef, SubjectID string
	// Item is what was sent as JSON text, cut after MaxRejectedItem bytes.
	Item string
	// ReceivedAt is when it came first, LastAt when it came last, Times how often.
	ReceivedAt, LastAt engine.Instant
	Times              int
}

// ID is the same for what is sent again: a hash of all that was sent, and of the reason.
func (r *RejectedFact) ID() string {
	h := sha256.New()
	for _, text := range []string{r.Kind, r.Reason, r.Source, r.Connection, r.RawRef, r.SubjectID, r.Item} {
		h.Write([]byte(strconv.Itoa(len(text)) + ":" + text))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Bounded is what a store keeps of a rejected fact: text that any column can hold, of bounded length.
func (r RejectedFact) Bounded() RejectedFact {
	for _, text := range []*string{&r.Kind, &r.Source, &r.Connection, &r.Reason, &r.Error, &r.RawRef, &r.SubjectID} {
		*text = clean(*text, maxRejectedText)
	}
	r.Item = clean(r.Item, MaxRejectedItem)
	return r
}

// clean cuts twice: what replaces bytes that are no text is longer than they are.
func clean(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD"), "\x00", "\uFFFD")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// MergeRejected bounds rejected facts and makes one of those that are the same,
// in the order of their IDs. Times of 0 counts as once.
func MergeRejected(rejected []RejectedFact) (ids []string, merged []RejectedFact) {
	byID := map[string]RejectedFact{}
	for i := range rejected {
		r := rejected[i].Bounded()
		id := r.ID()
		r.Times = max(r.Times, 1) + byID[id].Times
		byID[id] = r
	}
	ids = slices.Sorted(maps.Keys(byID))
	for _, id := range ids {
		merged = append(merged, byID[id])
	}
	return ids, merged
}

// RejectedFilter selects rejected facts; zero fields select all.
type RejectedFilter struct {
	Source string
	// Since bounds LastAt: since <= last_at.
	Since *engine.Instant
	// Limit is 1 to 1000.
	Limit int
}

// RejectedCount says how much of a source was rejected.
type RejectedCount struct {
	Source string
	// Items are different ones, Times how often they came.
	Items, Times int
	LastAt       engine.Instant
}
