package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// Kinds of key events.
const (
	// KeyCreated, KeyRotated and KeyRevoked are what was done to a key. They are never dropped.
	KeyCreated = "created"
	KeyRotated = "rotated"
	KeyRevoked = "revoked"
	// KeyUsed: a request was let in. KeyRefused: the key may not do what was
	// asked. KeyExpiredUse: the key had expired or was revoked.
	KeyUsed       = "used"
	KeyRefused    = "refused"
	KeyExpiredUse = "expired_use"
)

// KeyEventKinds lists the kinds of key events.
func KeyEventKinds() []string {
	return []string{KeyCreated, KeyRotated, KeyRevoked, KeyUsed, KeyRefused, KeyExpiredUse}
}

// maxKeyText bounds each text of a key event, in bytes.
const maxKeyText = 200

// KeyEvent is what was done to a key, or with it. Those that differ in nothing
// but their time are one on each day (of UTC). It holds no secret.
type KeyEvent struct {
	Tenant string
	// Kind is one of KeyEventKinds.
	Kind string
	// KeyID and Prefix name the key.
	KeyID, Prefix string
	// Route is the pattern of the endpoint, like /v1/actions/{ref}, and Status the
	// class of the answer, like 2xx; empty for what was done on the command line.
	Route, Status string
	// Remote is the client's IPv4 address, or the /64 network of its IPv6 address.
	Remote string
	// Detail is the role of a created key, the successor of a rotated one, why a use was refused.
	Detail string
	// FirstAt is when it happened first on this day, LastAt when last, Times how often.
	FirstAt, LastAt engine.Instant
	Times           int
}

// ID is the same for what happens again on the same day: a hash of all but times and counts.
func (e *KeyEvent) ID() string {
	h := sha256.New()
	day := strconv.FormatInt(int64(e.FirstAt)/int64(engine.Day), 10)
	for _, text := range []string{day, e.Tenant, e.Kind, e.KeyID, e.Prefix, e.Route, e.Status, e.Remote, e.Detail} {
		h.Write([]byte(strconv.Itoa(len(text)) + ":" + text))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Bounded is what a store keeps of a key event: text that any column can hold, of bounded length.
func (e KeyEvent) Bounded() KeyEvent {
	for _, text := range []*string{&e.Kind, &e.KeyID, &e.Prefix, &e.Route, &e.Status, &e.Remote, &e.Detail} {
		*text = clean(*text, maxKeyText)
	}
	return e
}

// MergedKeyEvent is a key event under its ID.
type MergedKeyEvent struct {
	ID string
	KeyEvent
}

// MergeKeyEvents bounds key events and makes one of those that are the same, in
// the order of tenants and IDs. Times of 0 counts as once, and LastAt of 0 is FirstAt.
func MergeKeyEvents(events []KeyEvent) []MergedKeyEvent {
	places := map[string]int{}
	var merged []MergedKeyEvent
	for _, e := range events {
		e = e.Bounded()
		e.Times, e.LastAt = max(e.Times, 1), max(e.LastAt, e.FirstAt)
		id := e.ID()
		place, known := places[id]
		if !known {
			places[id] = len(merged)
			merged = append(merged, MergedKeyEvent{id, e})
			continue
		}
		m := &merged[place]
		m.FirstAt, m.LastAt, m.Times = min(m.FirstAt, e.FirstAt), max(m.LastAt, e.LastAt), m.Times+e.Times
	}
	slices.SortFunc(merged, func(a, b MergedKeyEvent) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	return merged
}

// KeyEventFilter selects key events; zero fields select all.
type KeyEventFilter struct {
	// Key is the id of a key, or its prefix.
	Key  string
	Kind string
	// Since and Until select what happened in the time since <= t < until, as far
	// as times are known: an event has its first and its last one.
	Since, Until *engine.Instant
	// Cursor is KeyEventPage.Next of the page before.
	Cursor string
	// Limit is 1 to 500; 0 means 50.
	Limit int
}

// KeyEventPage is one page, by FirstAt, the newest first.
type KeyEventPage struct {
	Events []KeyEvent
	// Next is empty on the last page.
	Next string
}

// KeyEventCursor is for stores: where a page begins, before everything for an
// empty text. It fails with ErrFilter.
func (f KeyEventFilter) KeyEventCursor() (firstAt int64, id string, err error) {
	if f.Cursor == "" {
		return int64(engine.MaxInstant) + 1, "", nil
	}
	at, id, ok := strings.Cut(f.Cursor, ".")
	firstAt, err = strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return 0, "", fmt.Errorf("%w: the cursor is not one that a page gave as next", ErrFilter)
	}
	return firstAt, id, nil
}

// Span is for stores: the time that is selected. An event that was last seen at
// since began on the same day.
func (f KeyEventFilter) Span() (began, since, until engine.Instant) {
	until = engine.MaxInstant + 1
	if f.Since != nil {
		since = *f.Since
	}
	if f.Until != nil {
		until = *f.Until
	}
	return since - engine.Instant(engine.Day), since, until
}

// PageOf is for stores: it makes a page of up to one event more than was asked for.
func (f KeyEventFilter) PageOf(found []MergedKeyEvent) KeyEventPage {
	var page KeyEventPage
	if len(found) > f.limit() {
		found = found[:f.limit()]
		last := found[len(found)-1]
		page.Next = fmt.Sprintf("%d.%s", last.FirstAt, last.ID)
	}
	for _, e := range found {
		page.Events = append(page.Events, e.KeyEvent)
	}
	return page
}

// Ask is for stores: one more than a page holds.
func (f KeyEventFilter) Ask() int { return f.limit() + 1 }

func (f KeyEventFilter) limit() int {
	if f.Limit <= 0 || f.Limit > 500 {
		return 50
	}
	return f.Limit
}
