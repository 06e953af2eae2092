package emit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// backend is a tracing back end that keeps annotations as the real ones do:
// the last one of a name and key.
type backend struct {
	mu sync.Mutex
	// kept by what the real one tells them apart by.
	kept map[string]annotationSeen
	// spans that it has; nil for all.
	spans map[string]bool
	calls int
	// answer, when set, is given instead; before is called before a request is answered.
	answer int
	before func()
}

type annotationSeen struct {
	Label, Explanation string
	Score              *float64
	Metadata           map[string]any
}

func (b *backend) get(key string) annotationSeen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept[key]
}

// asked is how many requests came.
func (b *backend) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *backend) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key := range b.kept {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// handle answers requests of one path; read keeps what a body holds, or says what is wrong with it and with which status.
func (b *backend) handle(t *testing.T, path, authorization string, read func(*backend, []byte) (int, error)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		b.calls++
		before := b.before
		b.before = nil
		b.mu.Unlock()
		if before != nil {
			before()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.answer != 0 {
			w.WriteHeader(b.answer)
			return
		}
		if r.Method != http.MethodPost || r.URL.RequestURI() != path || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != authorization {
			t.Errorf("%s %s with %v", r.Method, r.URL.RequestURI(), r.Header)
		}
		status, err := read(b, body)
		if err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func strictly(body []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// newPhoenixStub checks requests as Phoenix' own models do (AnnotateSpansRequestBody),
// answers 404 for the whole request when it does not have a span, and replaces by name, span and identifier.
func newPhoenixStub(t *testing.T) (*backend, string) {
	t.Helper()
	b := &backend{kept: map[string]annotationSeen{}}
	return b, b.handle(t, "/v1/span_annotations?sync=true", "Bearer phoenix-secret", func(b *backend, body []byte) (int, error) {
		var request struct {
			Data []struct {
				SpanID        string `json:"span_id"`
				Name          string `json:"name"`
				AnnotatorKind string `json:"annotator_kind"`
				Result        *struct {
					Label       string   `json:"label"`
					Score       *float64 `json:"score"`
					Explanation string   `json:"explanation"`
				} `json:"result"`
				Metadata   map[string]any `json:"metadata"`
				Identifier string         `json:"identifier"`
			} `json:"data"`
		}
		if err := strictly(body, &request); err != nil {
			return http.StatusUnprocessableEntity, err
		}
		for _, d := range request.Data {
			switch {
			case len(d.SpanID) != 16 || d.Name == "" || d.Name == "note" || d.AnnotatorKind != "CODE" || d.Identifier == "" || d.Result == nil:
				return http.StatusUnprocessableEntity, fmt.Errorf("%+v", d)
			case b.spans != nil && !b.spans[d.SpanID]:
				return http.StatusNotFound, fmt.Errorf("spans with IDs %s do not exist", d.SpanID)
			}
		}
		for _, d := range request.Data {
			b.kept[d.SpanID+" "+d.Name+" "+d.Identifier] = annotationSeen{d.Result.Label, d.Result.Explanation, d.Result.Score, d.Metadata}
		}
		return 0, nil
	})
}

// newLangfuseStub checks requests as Langfuse's API definition does (CreateScoreRequest) and replaces by id.
func newLangfuseStub(t *testing.T) (*backend, string) {
	t.Helper()
	b := &backend{kept: map[string]annotationSeen{}}
	// pk-lf-1:langfuse-secret
	return b, b.handle(t, "/api/public/scores", "Basic cGstbGYtMTpsYW5nZnVzZS1zZWNyZXQ=", func(b *backend, body []byte) (int, error) {
		var s struct {
			ID            string         `json:"id"`
			TraceID       string         `json:"traceId"`
			ObservationID string         `json:"observationId"`
			Name          string         `json:"name"`
			Value         any            `json:"value"`
			DataType      string         `json:"dataType"`
			Comment       string         `json:"comment"`
			Metadata      map[string]any `json:"metadata"`
			Environment   string         `json:"environment"`
		}
		if err := strictly(body, &s); err != nil {
			return http.StatusBadRequest, err
		}
		value, text := s.Value.(string)
		if !text || s.DataType != "CATEGORICAL" || s.ID == "" || s.TraceID != actionTrace || s.ObservationID != actionSpan || s.Environment != "production" {
			return http.StatusBadRequest, fmt.Errorf("%+v", s)
		}
		b.kept[s.Name+" "+s.ID] = annotationSeen{Label: value, Explanation: s.Comment, Metadata: s.Metadata}
		return 0, nil
	})
}

func toPhoenix(address string) Config {
	c := DefaultConfig()
	c.Phoenix.Endpoint, c.Phoenix.APIKey, c.PublicURL = address, "phoenix-secret", "https://countersign.example"
	return patient(c)
}

func toLangfuse(address string) Config {
	c := DefaultConfig()
	c.Langfuse = LangfuseConfig{Endpoint: address + "/", PublicKey: "pk-lf-1", SecretKey: "langfuse-secret", Environment: "production"}
	return patient(c)
}

// patient settings do not fail because a machine is slow, and try again at once.
func patient(c Config) Config {
	c.Timeout, c.MaxBackOff = time.Minute, 20*time.Millisecond
	return c
}

// sent runs an emitter until the outbox is empty.
func (f *fixture) sent(t *testing.T, c Config) {
	t.Helper()
	stop := f.emitting(t, c)
	within(t, time.Minute, "the outbox is empty", func() bool {
		f.clock.Add(1)
		return f.left(t) == 0
	})
	stop()
}

// TestAnnotations: both back ends get a settled verdict for each lens on the
// action's span, and a later verdict replaces it.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stub  func(*testing.T) (*backend, string)
		to    func(string) Config
		score bool
	}{"Phoenix": {newPhoenixStub, toPhoenix, true}, "Langfuse": {newLangfuseStub, toLangfuse, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			b, address := row.stub(t)
			first := f.verify(t, "act_1", 3, "")
			f.sent(t, row.to(address))
			keys := b.keys()
			if len(keys) != 2 || !strings.Contains(keys[0], "action.outcome ") || !strings.Contains(keys[1], "action.policy ") {
				t.Fatalf("kept %q", keys)
			}
			for _, key := range keys {
				got := b.get(key)
				if got.Label != "fail" || got.Explanation != first.Headline || (row.score && (got.Score == nil || *got.Score != 0)) {
					t.Errorf("%s: %+v, want %s", key, got, first.Headline)
				}
				if got.Metadata["countersign.action.id"] != "act_1" || got.Metadata["countersign.verdict"] != "FAIL" || len(fmt.Sprint(got.Metadata["countersign.verdict.hash"])) != 64 {
					t.Errorf("%s leads to %v", key, got.Metadata)
				}
			}
			second := f.verify(t, "act_1", 4, "")
			if second.PreviousSeq != first.Seq {
				t.Fatalf("the second run replaces %d, not %d", second.PreviousSeq, first.Seq)
			}
			f.sent(t, row.to(address))
			if again := b.keys(); !slices.Equal(again, keys) {
				t.Errorf("a later verdict stands beside the first: %q", again)
			}
			for _, key := range keys {
				if got := b.get(key); got.Label != "pass" || got.Explanation != second.Headline || (row.score && (got.Score == nil || *got.Score != 1)) {
					t.Errorf("%s: %+v, want %s", key, got, second.Headline)
				}
			}
		})
	}
}

func TestUnknownHasNoScore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b, address := newPhoenixStub(t)
	f.verify(t, "act_1", 0, "")
	f.sent(t, toPhoenix(address))
	for _, key := range b.keys() {
		if got := b.get(key); got.Label != "unknown" || got.Score != nil {
			t.Errorf("%s: %+v", key, got)
		}
	}
	if len(b.keys()) != 2 {
		t.Errorf("%q", b.keys())
	}
}

// TestOlderEventTellsTheNewestVerdict: events that wait for another attempt
// come after newer ones. What stands in the end is the newest verdict, also
// when it was stored while an older one was on its way.
func TestOlderEventTellsTheNewestVerdict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b, address := newPhoenixStub(t)
	f.verify(t, "act_1", 3, "")
	event := f.events(t)[0]
	b.before = func() { f.verify(t, "act_1", 4, "") }
	f.sent(t, toPhoenix(address))
	if b.calls < 2 {
		t.Fatalf("%d requests", b.calls)
	}
	a := newAnnotator(mustPhoenix(t, f, address), f.store, toPhoenix(address))
	failures := a.deliver(t.Context(), []item{{OutboxEvent: event}})
	if !errors.Is(failures[0], errOvertaken) {
		t.Errorf("an event that was read before the newer verdict: %v", failures)
	}
	f.update(t, func(tx ledger.Tx) error {
		actions, err := tx.Actions(t.Context(), tenant, []string{"act_1"})
		event.Action = actions[0]
		return err
	})
	if failures := a.deliver(t.Context(), []item{{OutboxEvent: event}}); failures[0] != nil {
		t.Error(failures)
	}
	for _, key := range b.keys() {
		if got := b.get(key); got.Label != "pass" {
			t.Errorf("%s says %s in the end", key, got.Label)
		}
	}
}

func mustPhoenix(t *testing.T, f *fixture, address string) annotationAPI {
	t.Helper()
	api, err := newPhoenix(t.Context(), toPhoenix(address), "1", f.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// events are those of the outbox, which stay in it.
func (f *fixture) events(t *testing.T) (events []ledger.OutboxEvent) {
	t.Helper()
	err := f.store.Rehearse(t.Context(), func(tx ledger.Tx) (err error) {
		events, err = tx.LeaseOutbox(t.Context(), ledger.Lease{Owner: "look", Now: f.now(), Until: f.now()}, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestBackEndThatIsAwayHoldsNoOther: OTLP gets everything once while Phoenix is
// away, and Phoenix gets it when it is back.
func TestBackEndThatIsAwayHoldsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 3 {
		f.verify(t, fmt.Sprintf("act_%d", i), 4, "")
	}
	b, address := newPhoenixStub(t)
	b.answer = http.StatusServiceUnavailable
	r := newReceiver()
	c := toPhoenix(address)
	c.Endpoint = "http://" + serveGRPC(t, r, "localhost:0")
	stop := f.emitting(t, c)
	within(t, time.Minute, "OTLP has everything and Phoenix was asked twice", func() bool {
		f.clock.Add(1)
		b.mu.Lock()
		defer b.mu.Unlock()
		logs, _ := r.got()
		return len(logs) == 9 && b.calls > 1
	})
	f.verify(t, "act_3", 4, "") // does not wait behind the others
	within(t, time.Minute, "OTLP has the next one", func() bool {
		f.clock.Add(1)
		logs, _ := r.got()
		return len(logs) == 12
	})
	if n := f.left(t); n != 4 {
		t.Errorf("%d of 4 events wait for Phoenix", n)
	}
	b.mu.Lock()
	b.answer = 0
	b.mu.Unlock()
	within(t, time.Minute, "Phoenix has everything", func() bool {
		f.clock.Add(60)
		return f.left(t) == 0
	})
	stop()
	if keys := b.keys(); len(keys) != 8 {
		t.Errorf("Phoenix keeps %q", keys)
	}
	if logs, spans := r.got(); len(logs) != 12 || len(spans) != 4 {
		t.Errorf("OTLP got %d events and %d spans", len(logs), len(spans))
	}
}

// TestSpanThatPhoenixDoesNotHave holds no other, is waited for, and given up in the end.
func TestSpanThatPhoenixDoesNotHave(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b, address := newPhoenixStub(t)
	f.verify(t, "act_here", 4, "")
	const sampledOut = "00000000000000aa"
	f.spanID = sampledOut
	f.verify(t, "act_gone", 4, "")
	b.spans = map[string]bool{actionSpan: true}
	stop := f.emitting(t, toPhoenix(address))
	within(t, time.Minute, "the one that is there", func() bool { return len(b.keys()) == 2 && f.left(t) == 1 })
	before := b.asked()
	f.clock.Add(int64(missingFor) - 60)
	within(t, time.Minute, "another attempt", func() bool { return b.asked() > before })
	if n := f.left(t); n != 1 {
		t.Errorf("%d events wait", n)
	}
	f.clock.Add(int64(engine.Hour))
	within(t, time.Minute, "it is given up", func() bool { return f.left(t) == 0 })
	stop()
	if keys := b.keys(); len(keys) != 2 {
		t.Errorf("kept %q", keys)
	}
}

// TestActionsWithoutASpanHaveNoAnnotations, nor do events that are no settled verdict.
func TestActionsWithoutASpanHaveNoAnnotations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b, address := newPhoenixStub(t)
	f.spanID = "-"
	f.verify(t, "act_1", 4, "")
	f.spanID = ""
	f.clock.Store(int64(instant(t, "2026-09-28T10:43:00Z")))
	f.verify(t, "act_2", 2, "") // the window is open
	f.sent(t, toPhoenix(address))
	if b.calls != 0 {
		t.Errorf("%d requests, kept %q", b.calls, b.keys())
	}
}

func TestAnnotationSettingsThatAreWrong(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.Phoenix.Endpoint = "localhost:6006"
	c.Langfuse = LangfuseConfig{Endpoint: "https://user@cloud.langfuse.com", PublicKey: "pk", SecretKey: "langfuse-secret", Environment: "Production"}
	err := c.Validate()
	for _, want := range []string{"emit.phoenix.endpoint is \"localhost:6006\"", "emit.langfuse.environment is \"Production\""} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	c.Langfuse.Environment, c.Langfuse.SecretKey = "", ""
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "emit.langfuse.secret_key is empty") {
		t.Error(err)
	}
	c.Langfuse.SecretKey = "langfuse-secret"
	if text := fmt.Sprintf("%v %+v", c, c.Langfuse); strings.Contains(text, "langfuse-secret") {
		t.Errorf("the secret is printed: %s", text)
	}
}

// TestRefusedEventIsNotABackEndThatIsAway: only the latter makes the emitter pause.
func TestRefusedEventIsNotABackEndThatIsAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b, address := newPhoenixStub(t)
	f.verify(t, "act_1", 4, "")
	e, err := New(t.Context(), toPhoenix(address), Options{Ledger: f.store, Contracts: f.contracts, Owner: t.Name(), Now: f.now, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.close() })
	for _, row := range []struct {
		what   string
		spans  map[string]bool
		answer int
		stuck  bool
	}{{"a span that is not there", map[string]bool{}, 0, false}, {"a server that is away", nil, http.StatusServiceUnavailable, true}} {
		b.spans, b.answer = row.spans, row.answer
		failures, stuck := e.tell(t.Context(), f.events(t))
		if len(failures) != 1 || failures[0] == nil || (stuck != nil) != row.stuck {
			t.Errorf("%s: failures %v, stuck %v", row.what, failures, stuck)
		}
	}
}
