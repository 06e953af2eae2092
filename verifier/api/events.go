package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Bounds of a stream of events.
const (
	// defaultHeartbeat keeps proxies from closing a quiet stream.
	defaultHeartbeat = 15 * time.Second
	// defaultSlowClient is how long a client may take to read what was sent.
	defaultSlowClient = 10 * time.Second
	// keyCheck is how many heartbeats a key is trusted for.
	keyCheck = 4
	// retryAfter is what clients are told to wait before they come again, in milliseconds.
	retryAfter = "2000"
)

// Listen begins to read a tenant's events after a position, or at the end when
// it is nil. Close the reader.
func (s *Service) Listen(ctx context.Context, caller Caller, after *ledger.Position) (*feed.Reader, error) {
	if err := caller.need(keys.Read); err != nil {
		return nil, err
	}
	if s.Feed == nil {
		return nil, problem(http.StatusServiceUnavailable, CodeUnavailable, "this process tells no events")
	}
	reader, err := s.Feed.Join(ctx, caller.Tenant, caller.ID, after)
	switch {
	case errors.Is(err, feed.ErrFull):
		return nil, problem(http.StatusServiceUnavailable, CodeBusy, "%d clients listen already; try again, or ask another sidecar", feed.MostReaders)
	case errors.Is(err, feed.ErrKeyFull):
		return nil, problem(http.StatusTooManyRequests, CodeTooMany, "%d clients listen with this key already; end some, or ask for a key of your own", feed.MostOfKey)
	case errors.Is(err, feed.ErrAhead):
		return nil, badParameter("Last-Event-ID", "is of an event that the store does not have; was the store restored from an older copy? Begin without one, or at 0-0")
	case err != nil:
		return nil, s.asProblem(ctx, err)
	}
	return reader, nil
}

type eventsInput struct {
	HTTP        Exchange
	LastEventID string   `header:"Last-Event-ID" maxLength:"40" doc:"id of the last event that was read: the stream goes on after it, also with events from while nobody listened. 0-0 is the beginning; without one the stream begins now"`
	Since       string   `query:"last_event_id" maxLength:"40" doc:"the same, for clients that cannot send the header at first; the header wins"`
	Types       []string `query:"type" maxItems:"8" doc:"kinds of events, separated by commas: action.pending, action.verified, action.compensated, action.parked; in any case"`
	ContractID  string   `query:"contract_id"`
	AgentID     string   `query:"agent_id"`
	Verdict     string   `query:"verdict" enum:"PASS,FAIL,UNKNOWN,PENDING" doc:"policy verdict of settled verifications, or PENDING, in any case; leaves parked actions out"`
}

func (in *eventsInput) after() (*ledger.Position, error) {
	name, text := "Last-Event-ID", in.LastEventID
	if text == "" {
		name, text = "last_event_id", in.Since
	}
	if text == "" {
		return nil, nil
	}
	position, err := ledger.ParsePosition(text)
	if err != nil {
		return nil, badParameter(name, "is an %v, or 0-0 for the beginning", err)
	}
	return &position, nil
}

func (in *eventsInput) filter() (view.EventFilter, error) {
	kinds := make([]string, len(in.Types))
	for i, kind := range in.Types {
		kinds[i] = engine.Fold(kind)
		if !slices.Contains(view.EventKinds(), kinds[i]) {
			return view.EventFilter{}, badParameter("type", "%q is none of %s", clip(kind), strings.Join(view.EventKinds(), ", "))
		}
	}
	return view.EventFilter{Kinds: kinds, ContractID: engine.Fold(in.ContractID), AgentID: in.AgentID, Verdict: in.Verdict}, nil
}

// eventsPath is left out of the durations of requests: a stream that lasts is no slow request.
const eventsPath = "/v1/events"

func (h *handler) events() {
	o := operation("stream-events", http.MethodGet, eventsPath, "Stream events as they happen (server-sent events)", keys.Read, 422, 503)
	o.Description += " Every event is told at least once to who resumes with the id of the last one it read; ids are the same each time and grow." +
		" The stream ends when the sidecar does, or when the client is slow to read: come again with Last-Event-ID."
	schema := h.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[view.Event](), true, "")
	o.Responses = map[string]*huma.Response{"200": {
		Description: "events; data of each is this object",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: schema}},
	}}
	register(h, o, keys.Read, h.getEvents)
}

func (h *handler) getEvents(ctx context.Context, caller Caller, in *eventsInput) (*huma.StreamResponse, error) {
	after, err := in.after()
	if err != nil {
		return nil, err
	}
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	reader, err := h.Listen(ctx, caller, after)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer reader.Close()
		r, w := humago.Unwrap(hc)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		s := &eventStream{handler: h, caller: caller, request: r, reader: reader, filter: filter, response: w, control: http.NewResponseController(w), told: nowhere}
		_ = s.control.SetReadDeadline(time.Time{}) // who listens is no slow client
		s.run(r.Context())
	}}, nil
}

// eventStream is one client. What it has not read yet is nowhere but in the store and in the feed.
type eventStream struct {
	*handler
	caller   Caller
	request  *http.Request
	reader   *feed.Reader
	filter   view.EventFilter
	response http.ResponseWriter
	control  *http.ResponseController
	// told is the position of the last id that was sent; nowhere before the first.
	told ledger.Position
}

// nowhere is no place of any sequence. The zero Position is one, the end of a tenant without events.
var nowhere = ledger.Position{Seq: -1}

func (s *eventStream) run(ctx context.Context) {
	beat := time.NewTicker(s.Heartbeat)
	defer beat.Stop()
	beats := 0
	// The place is told at once, so that who is cut off before the first event misses nothing.
	if !s.send([]byte("retry: " + retryAfter + "\n" + s.place())) {
		return
	}
	for {
		events, changed, err := s.reader.Read(ctx)
		if err != nil {
			if !errors.Is(err, feed.ErrClosed) && ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "a stream of events ended", "tenant", s.caller.Tenant, "error", err)
			}
			return
		}
		if len(events) > 0 {
			if !s.tell(events) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Feed.Closed():
			return
		case <-changed:
		case <-beat.C:
			beats++
			if beats%keyCheck == 0 && !s.stillGood() || !s.send([]byte(": still here\n"+s.place())) {
				return
			}
		}
	}
}

// stillGood looks the key up again: one that was revoked hears no more.
func (s *eventStream) stillGood() bool {
	secret, err := secretOf(s.request.Header)
	if err != nil {
		return false
	}
	key, err := keys.Find(s.request.Context(), s.Ledger, secret, s.Now()) // no request of its own for the limits
	return err == nil && key.Tenant == s.caller.Tenant && Caller{key}.need(keys.Read) == nil
}

// place is an id without an event: clients remember it, also where a filter left all events out.
func (s *eventStream) place() string {
	at := s.reader.At()
	if at == s.told {
		return "\n"
	}
	s.told = at
	return "id: " + at.String() + "\n\n"
}

// tell sends those of some events that the client asked for.
func (s *eventStream) tell(events []ledger.Event) bool {
	var text []byte
	for i := range events {
		e := &events[i]
		if !s.filter.Match(e) {
			continue
		}
		data, err := json.Marshal(view.EventOf(*e))
		if err != nil { // texts and numbers always encode
			return false
		}
		text = append(text, "id: "+e.String()+"\nevent: "+e.Kind+"\ndata: "...)
		text = append(append(text, data...), "\n\n"...)
		s.told = e.Position
	}
	return len(text) == 0 || s.send(text)
}

// send fails when the client does not read in time: its connection ends, and it may come again.
func (s *eventStream) send(text []byte) bool {
	// Not every response writer has deadlines (tests); the server's own hold then.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.SlowClient))
	if _, err := s.response.Write(text); err != nil {
		return false
	}
	if s.control.Flush() != nil {
		return false
	}
	// HTTP/2 resets a stream when its deadline passes, also when nothing waits to be written.
	_ = s.control.SetWriteDeadline(time.Time{})
	return true
}
