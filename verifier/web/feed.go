package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/feed"
)

const (
	// defaultHeartbeat keeps proxies from closing a quiet connection; the session is looked at again then.
	defaultHeartbeat = 20 * time.Second
	// defaultSlowClient is how long a browser may take to read an event.
	defaultSlowClient = 10 * time.Second
)

// event says which actions have a new verdict, or were parked, up to a chain position.
type event struct {
	Seq    int64    `json:"seq"`
	Claims []string `json:"claims"`
	// More: others changed too, which are not named.
	More bool `json:"more"`
}

func eventOf(told []ledger.Event) event {
	all := event{}
	seen := map[string]bool{}
	for i := range told {
		all.Seq = told[i].Seq
		if !seen[told[i].ClaimID] {
			seen[told[i].ClaimID] = true
			all.Claims = append(all.Claims, told[i].ClaimID)
		}
	}
	return all
}

// live serves server-sent events: one event "verdicts" per change.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	s, err := p.find(r)
	if err != nil {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	reader, err := p.Feed.Join(r.Context(), s.Tenant, s.KeyID, nil)
	if errors.Is(err, feed.ErrFull) || errors.Is(err, feed.ErrKeyFull) {
		err = &failure{http.StatusServiceUnavailable, "Too many pages are open. Reload to see what is new."}
	}
	if err != nil {
		told := explained(err)
		http.Error(w, told.text, told.status)
		return
	}
	defer reader.Close()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &stream{w: w, control: http.NewResponseController(w), patience: p.SlowClient}
	_ = out.control.SetReadDeadline(time.Time{}) // an open page is no slow client
	// With an id at once, a browser that is cut off before the first event says that it comes back.
	if !out.send(fmt.Sprintf("retry: 2000\nid: %d\n\n", reader.At().Seq)) {
		return
	}
	// What happened while the browser was away is not named: it loads again all the same.
	if r.Header.Get("Last-Event-ID") != "" && !out.tell(event{Seq: reader.At().Seq, More: true}) {
		return
	}
	p.stream(r, out, reader)
}

func (p *Page) stream(r *http.Request, out *stream, reader *feed.Reader) {
	beat := time.NewTicker(p.Heartbeat)
	defer beat.Stop()
	for {
		told, changed, err := reader.Read(r.Context())
		if err != nil || len(told) > 0 && !out.tell(eventOf(told)) {
			return
		}
		if len(told) > 0 {
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-p.Feed.Closed():
			return
		case <-changed:
		case <-beat.C:
			if _, err := p.find(r); err != nil || !out.send(": still here\n\n") {
				return
			}
		}
	}
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// patience is how long the browser may take to read.
	patience time.Duration
}

func (s *stream) tell(told event) bool {
	data, err := json.Marshal(told)
	return err == nil && s.send(fmt.Sprintf("id: %d\nevent: verdicts\ndata: %s\n\n", told.Seq, data))
}

func (s *stream) send(text string) bool {
	// Not every response writer has deadlines (tests); the server's own hold then.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	if s.control.Flush() != nil {
		return false
	}
	// HTTP/2 resets a stream when its deadline passes, also when nothing waits to be written.
	_ = s.control.SetWriteDeadline(time.Time{})
	return true
}
