package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// feeding runs the feed; stop ends it, as the end of the sidecar does, and the test does at the latest.
func (f *fixture) feeding(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.feed.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// listener is a client of /v1/events.
type listener struct {
	t     *testing.T
	lines chan string
	// id is what a browser would send as Last-Event-ID.
	id    string
	close func()
}

func (f *fixture) listen(t *testing.T, secret, query, lastID string) *listener {
	t.Helper()
	return listenTo(t, f.server.URL, http.DefaultClient, secret, query, lastID)
}

func listenTo(t *testing.T, base string, client *http.Client, secret, query, lastID string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", secret)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := client.Do(request) //nolint:bodyclose // it is closed with the listener
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(base, "https:") && response.ProtoMajor != 2 {
		t.Fatalf("over %s, want HTTP/2", response.Proto)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	l := &listener{t: t, lines: make(chan string, 1000), id: lastID}
	go func() {
		defer close(l.lines)
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			l.lines <- scanner.Text()
		}
	}()
	l.close = sync.OnceFunc(func() {
		cancel()
		response.Body.Close()
		for range l.lines { // until the reader has ended
		}
	})
	t.Cleanup(l.close)
	return l
}

// line waits for the next one; ok is false at the end of the stream.
func (l *listener) line() (text string, ok bool) {
	l.t.Helper()
	select {
	case text, ok = <-l.lines:
		if id, is := strings.CutPrefix(text, "id: "); is {
			l.id = id
		}
		return text, ok
	case <-time.After(time.Minute):
		l.t.Fatal("nothing came within a minute")
		return "", false
	}
}

// next is the next event, as a browser takes it.
func (l *listener) next() view.Event {
	l.t.Helper()
	kind := ""
	for {
		text, ok := l.line()
		if !ok {
			l.t.Fatal("the stream ended")
		}
		if name, is := strings.CutPrefix(text, "event: "); is {
			kind = name
		}
		data, is := strings.CutPrefix(text, "data: ")
		if !is {
			continue
		}
		var told view.Event
		if err := json.Unmarshal([]byte(data), &told); err != nil {
			l.t.Fatal(err)
		}
		if told.Type != kind || told.ID != l.id {
			l.t.Errorf("event %s %s under %s %s", told.ID, told.Type, l.id, kind)
		}
		return told
	}
}

// want checks the kinds and actions of the next events.
func (l *listener) want(events ...string) {
	l.t.Helper()
	for _, want := range events {
		told := l.next()
		if got := told.Type + " " + told.ActionID; got != want {
			l.t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// beat waits until a heartbeat has told the place.
func (l *listener) beat() {
	l.t.Helper()
	for text := ""; text != ": still here"; {
		next, ok := l.line()
		if !ok {
			l.t.Fatal("the stream ended")
		}
		text = next
	}
	for text, ok := ":", true; ok && text != ""; {
		text, ok = l.line()
	}
}

// tell records and verifies an action on an order that has no facts: it is settled UNKNOWN.
func (f *fixture) tell(t *testing.T, tenant string, actions ...string) {
	t.Helper()
	secret := f.secrets[tenant][ledger.RoleRecorder]
	for _, id := range actions {
		body := strings.NewReplacer("act_1", id, "order_10231", "order_of_"+id, "2026-09-28T10:42:00Z", "2026-09-01T10:42:00Z").Replace(refundAction)
		if got := f.as(t, secret, "POST", "/v1/actions/verify", body); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
}

func TestEventsAreToldAsTheyHappenAndAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.feeding(t)
	viewer := f.secrets[tenantA][ledger.RoleViewer]
	f.tell(t, tenantA, "before")
	l := f.listen(t, viewer, "", "")
	l.beat() // it is there
	f.tell(t, tenantB, "foreign")
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	pending := l.next()
	var shown view.Verification
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1", "").decode(t, &shown)
	status := ledger.Pending
	want := view.Event{
		ID: "4-0", Type: "action.pending", At: instant(t, "2026-09-28T10:50:00Z"), ActionID: "act_1", ClaimID: claimID(tenantA, "act_1"),
		ContractID: "refund_workflow", ContractVersion: 1, SubjectID: "order_10231", AgentID: shown.Action.AgentID, WorkflowID: shown.Action.WorkflowID,
		Status: &status, Outcome: shown.Outcome, Policy: shown.Policy, Headline: shown.Summary.Headline,
	}
	if diff := cmp.Diff(want, pending); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	place := l.id
	l.close()
	// What happens while nobody listens is told to who comes back, with the same ids.
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(cancelled, noted, notified))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	f.tell(t, tenantA, "after")
	first, second := f.listen(t, viewer, "", place), f.listen(t, viewer, "?last_event_id="+place, "")
	for _, l := range []*listener{first, second} {
		if told := l.next(); told.ID != "6-0" || told.Type != "action.verified" || told.Policy.Verdict != "PASS" {
			t.Errorf("got %+v", told)
		}
		l.want("action.verified after")
	}
	f.tell(t, tenantA, "at_last")
	first.want("action.verified at_last")
	all := f.listen(t, viewer, "", "0-0")
	all.want("action.verified before", "action.pending act_1", "action.verified act_1", "action.verified after", "action.verified at_last")
}

func TestEventFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.feeding(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(cancelled, noted, notified))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	f.tell(t, tenantA, "unknown")
	f.verifier.Derive = func(c *contract.Contract, s *engine.Snapshot) []engine.Evaluation { return nil }
	got := f.must(t, http.StatusConflict, ledger.RoleRecorder, "POST", "/v1/actions/verify", strings.Replace(refundAction, "act_1", "parked", 1))
	if !strings.Contains(got.body, "evaluators disagree") {
		t.Fatal(got.body)
	}
	const last = "action.parked parked"
	for query, want := range map[string][]string{
		"":                             {"action.pending act_1", "action.verified act_1", "action.verified unknown", last},
		"?contract_id=Refund_Workflow": {"action.pending act_1", "action.verified act_1", "action.verified unknown", last},
		"?contract_id=payout":          nil,
		"?agent_id=support-agent":      {"action.pending act_1", "action.verified act_1", "action.verified unknown", last},
		"?agent_id=nobody":             nil,
		"?verdict=PASS":                {"action.verified act_1"},
		"?verdict=UNKNOWN":             {"action.verified unknown"},
		"?verdict=fail":                nil,
		"?verdict=Pass":                {"action.verified act_1"},
		"?type=Action.PARKED":          {last},
		"?verdict=PENDING":             {"action.pending act_1"},
		"?type=action.parked":          {last},
		"?type=action.parked,action.pending&agent_id=support-agent": {"action.pending act_1", last},
	} {
		l := f.listen(t, f.secrets[tenantA][ledger.RoleRecorder], query, "0-0")
		l.want(want...)
		l.beat()
		// Also where a filter leaves all out, the client remembers how far it is.
		head, err := f.head(tenantA)
		if err != nil {
			t.Fatal(err)
		}
		if l.id != head.String() {
			t.Errorf("%s: the client would resume at %s, not at %s", query, l.id, head)
		}
	}
	told := f.listen(t, f.secrets[tenantA][ledger.RoleViewer], "?type=action.parked", "0-0").next()
	if !told.Disagreement || told.Status != nil || told.Policy != nil || !strings.HasPrefix(told.Error, "evaluators disagree") {
		t.Errorf("got %+v", told)
	}
	for query, parameter := range map[string]string{
		"?last_event_id=x": "last_event_id", "?last_event_id=99-0": "Last-Event-ID", "?type=nothing": "type", "?verdict=MAYBE": "verdict", "?what=x": "what",
	} {
		got := f.must(t, http.StatusUnprocessableEntity, ledger.RoleViewer, "GET", "/v1/events"+query, "")
		if !strings.Contains(got.body, `"parameter":"`+parameter+`"`) {
			t.Errorf("%s: %s", query, got.body)
		}
	}
}

func (f *fixture) head(tenant string) (head ledger.Position, err error) {
	err = f.store.View(context.Background(), func(tx ledger.Tx) (err error) {
		head, err = tx.EventHead(context.Background(), tenant)
		return err
	})
	return head, err
}

// TestManyListenersAskTheStoreOnce: a batch of events is read once for all that listen.
func TestManyListenersAskTheStoreOnce(t *testing.T) {
	t.Parallel()
	const listeners, events = 200, 20
	f := newFixture(t)
	f.feeding(t)
	f.tell(t, tenantA, "before")
	var all []*listener
	for range listeners {
		all = append(all, f.listen(t, f.secrets[tenantA][ledger.RoleViewer], "", ""))
	}
	within(t, time.Minute, "all listen", func() bool { return f.feed.Readers() == listeners })
	var names, want []string
	for i := range events {
		names = append(names, fmt.Sprintf("act_x%d", i))
		want = append(want, "action.verified "+names[i])
	}
	reads := f.feed.Reads()
	f.tell(t, tenantA, names...)
	for _, l := range all {
		l.want(want...)
	}
	// The feed looks when it is woken, and once a second.
	if asked := f.feed.Reads() - reads; asked > 10*events {
		t.Errorf("%d queries for %d events and %d listeners", asked, events, listeners)
	}
}

// TestStreamsEndWithTheSidecar, and when the key is revoked.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stop := f.feeding(t)
	viewer := f.listen(t, f.secrets[tenantA][ledger.RoleViewer], "", "")
	recorder := f.listen(t, f.secrets[tenantA][ledger.RoleRecorder], "", "")
	viewer.beat()
	recorder.beat()
	err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
		keys, err := tx.ListKeys(t.Context(), tenantA)
		for _, key := range keys {
			if key.Role == ledger.RoleRecorder {
				err = tx.RevokeKey(t.Context(), tenantA, key.ID, engine.Instant(f.clock.Load()))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range recorder.lines { // ends, or the test does not
	}
	viewer.beat()
	stop()
	for range viewer.lines {
	}
	within(t, time.Minute, "nobody listens", func() bool { return f.feed.Readers() == 0 })
}

// TestFirstEventsOfATenantAreNotLost: who is cut off before anything ever
// happened resumes at the beginning, and not at whatever is the end by then.
func TestFirstEventsOfATenantAreNotLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.feeding(t)
	viewer := f.secrets[tenantA][ledger.RoleViewer]
	l := f.listen(t, viewer, "", "")
	l.beat()
	l.close()
	if l.id == "" {
		t.Fatal("the client has no id to resume with")
	}
	f.tell(t, tenantA, "first")
	f.listen(t, viewer, "", l.id).want("action.verified first")
}

// TestQuietStreamOverTLSLasts: HTTP/2 resets a stream whose write deadline
// passes, so that none may stand while nothing happens.
func TestQuietStreamOverTLSLasts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.feeding(t)
	server := httptest.NewUnstartedServer(Handler(f.service, Options{Heartbeat: time.Second, SlowClient: 300 * time.Millisecond}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	viewer := f.secrets[tenantA][ledger.RoleViewer]
	l := listenTo(t, server.URL, server.Client(), viewer, "", "")
	defer l.close()
	l.beat()
	f.tell(t, tenantA, "after_a_while")
	l.want("action.verified after_a_while")
	l.beat()
}

// TestSlowClientIsCutOff: it does not read, and is let go; what it holds is its connection.
func TestSlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.feeding(t)
	server := httptest.NewUnstartedServer(Handler(f.service, Options{SlowClient: 100 * time.Millisecond}))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10) // so that little fills it
		}
	}
	server.Start()
	defer server.Close()
	slow, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if err := slow.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(slow, "GET /v1/events HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n\r\n", f.secrets[tenantA][ledger.RoleViewer])
	within(t, time.Minute, "it listens", func() bool { return f.feed.Readers() == 1 })
	for i := 0; f.feed.Readers() == 1; i++ { // until the buffers between are full and the time is up
		if i == 20_000 {
			t.Fatal("a client that reads nothing is still served")
		}
		f.tell(t, tenantA, fmt.Sprintf("act_y%d", i))
	}
}
