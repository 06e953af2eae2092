package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/view"
)

// firstEvent is the first event of a kind that a tenant's stream tells.
func (r *running) firstEvent(t *testing.T, secret, kind string) (event view.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/v1/events?last_event_id=0-0&type="+kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", secret)
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				t.Fatal(err)
			}
			return event
		}
	}
	t.Fatalf("no %s was told", kind)
	return event
}

// logged keeps what is logged as errors.
type logged struct {
	slog.Handler
	mu     sync.Mutex
	errors []string
}

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	if r.Level >= slog.LevelError {
		l.errors = append(l.errors, text)
	}
	return nil
}

// TestD23_DisagreementShowsEverywhere: with a fault injected into the second
// evaluator of a whole sidecar, the action is parked in the API, in the metrics,
// in the stream of events and in the log, with what each evaluator said; nothing
// is stored of it, and the action beside it settles.
func TestD23_DisagreementShowsEverywhere(t *testing.T) {
	t.Parallel()
	c := settings(t)
	analyst := key(t, c, ledger.RoleAnalyst)
	log := &logged{Handler: slog.DiscardHandler}
	s := servingWith(t, c, Options{Logger: slog.New(always{log}), derive: func(c *contract.Contract, snapshot *engine.Snapshot) []engine.Evaluation {
		evaluations := goeval.Evaluate(c, snapshot)
		for i := range evaluations {
			if evaluations[i].ActionID == "act_1" {
				evaluations[i].Policy.Raw = engine.Unverifiable
			}
		}
		return evaluations
	}})
	for _, order := range []string{"order_1", "order_2"} {
		if status, body := s.do(t, analyst, "POST", "/v1/facts", strings.ReplaceAll(factsNow(time.Now()), "order_1", order)); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		recorded := strings.NewReplacer("act_1", strings.Replace(order, "order", "act", 1), "order_1", order).Replace(action)
		if status, body := s.do(t, analyst, "POST", "/v1/actions", recorded); status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
	}
	var waited api.Waited
	_, good := s.do(t, analyst, "GET", "/v1/actions/act_2/wait?timeout=60", "")
	if err := json.Unmarshal([]byte(good), &waited); err != nil || waited.Policy.Verdict != "PASS" {
		t.Errorf("the action beside it: %v %s", err, good)
	}
	both := []string{"evaluators disagree", "SQL says", "Go says {Raw:UNVERIFIABLE"}
	told := func(where, text string) {
		t.Helper()
		for _, part := range both {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not say %q: %s", where, part, text)
			}
		}
	}
	status, body := s.do(t, analyst, "GET", "/v1/actions/act_1/wait?timeout=60", "")
	if status != http.StatusConflict {
		t.Errorf("wait: %d", status)
	}
	told("the API", body)
	event := s.firstEvent(t, analyst, view.EventParked)
	if event.ActionID != "act_1" || !event.Disagreement {
		t.Errorf("the event is %+v", event)
	}
	told("the event", event.Error)
	for _, want := range []string{"countersign_disagreements_total", "countersign_parked_total"} {
		if !s.shows(t, func(metrics string) bool {
			found := seriesOf(metrics, want+" ")
			return len(found) == 1 && found[0] != want+" 0"
		}) {
			t.Errorf("%s counts nothing", want)
		}
	}
	if _, runs := s.do(t, analyst, "GET", "/v1/actions/act_1/runs", ""); !strings.Contains(runs, `"runs":[]`) {
		t.Errorf("something was stored: %s", runs)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	told("the log", strings.Join(log.errors, "\n"))
}

// always handles every level.
type always struct{ *logged }

func (always) Enabled(context.Context, slog.Level) bool { return true }
func (a always) WithAttrs([]slog.Attr) slog.Handler     { return a }
func (a always) WithGroup(string) slog.Handler          { return a }
