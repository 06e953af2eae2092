package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign-otel/countersign/engine"
)

// Bounds of what is kept of a rejected fact, in bytes.
const (
	MaxRejectedItem = 4096
	maxRejectedText = 512
)

// Words for why evidence was rejected.
const (
	RejectedUnreadable  = "unreadable"
	RejectedRole        = "role"
	RejectedSource      = "source"
	RejectedTenant      = "tenant"
	RejectedInvalid     = "invalid"
	RejectedConflicting = "conflicting"
	RejectedStore       = "store"
	RejectedRule        = "rule"
	RejectedNoTrust     = "no_trust"
)

// ConflictText is what is said of a fact that is not the first with its raw_ref (decision D8).
const ConflictText = "a fact with this raw_ref and other content is known already; the first one stands"

// RejectedFact is evidence that could not be written, kept apart with the
// reason so that somebody can look at it. It is no evidence.
type RejectedFact struct {
	// Kind is "fact", "link", "watermark", or "record" for all that one was to become.
	Kind string
	// Source and Connection are as they were sent; empty where they could not be read.
	Source, Connection string
	// Reason is one of the words above.
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

// Bounds of what is kept with what was sent. A sender that is broken, or means
// harm, must not fill the store with what is no evidence.
const (
	rejectedBurst   = 1000
	rejectedEvery   = 10 // seconds until there is room for one more
	rejectedSources = 256
)

// RejectedBudget bounds how much rejected evidence of a source is kept with what
// was sent: a thousand at once, and then one every ten seconds. What is over
// that is kept as one line that counts. The zero value is ready; it is safe for
// concurrent use, and knows what one process kept.
type RejectedBudget struct {
	mu sync.Mutex
	// left is by tenant and source: no tenant uses up the room of another.
	left map[string]map[string]*rejectedRoom
}

type rejectedRoom struct {
	items int
	since engine.Instant
}

// Bound returns what may be kept at now, in the order of rejected.
func (b *RejectedBudget) Bound(tenant string, rejected []RejectedFact, now engine.Instant) []RejectedFact {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == nil {
		b.left = map[string]map[string]*rejectedRoom{}
	}
	if b.left[tenant] == nil {
		b.left[tenant] = map[string]*rejectedRoom{}
	}
	bounded := make([]RejectedFact, len(rejected))
	for i := range rejected {
		r := rejected[i].Bounded() // a source is remembered, and was sent by anybody
		source, room := roomOf(b.left[tenant], budgetOf(&r), now)
		if room.items > 0 {
			room.items--
		} else {
			r = RejectedFact{
				Kind: r.Kind, Source: source, Reason: r.Reason, Times: r.Times,
				Error: "more than is kept with what was sent: these are counted only",
			}
		}
		bounded[i] = r
	}
	return bounded
}

// budgetOf: where it is wrong who speaks, the source is only claimed, and
// invented ones must not use up the room of real ones.
func budgetOf(r *RejectedFact) (source string) {
	switch r.Reason {
	case RejectedSource, RejectedRole, RejectedTenant, RejectedUnreadable:
		return ""
	}
	return r.Source
}

// roomOf is that of a source, or, when there are too many, that which the rest shares.
func roomOf(left map[string]*rejectedRoom, source string, now engine.Instant) (string, *rejectedRoom) {
	room := left[source]
	if room == nil && len(left) >= rejectedSources {
		source = ""
		room = left[source]
	}
	if room == nil {
		room = &rejectedRoom{rejectedBurst, now}
		left[strings.Clone(source)] = room // not all that it was cut from
	}
	if more := int((now - room.since) / rejectedEvery); more > 0 {
		room.items = min(room.items+more, rejectedBurst)
		room.since += engine.Instant(more) * rejectedEvery
	}
	return source, room
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
