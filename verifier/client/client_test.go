package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/countersign-otel/countersign/verifier/client"
)

// requested is when all actions of these tests were.
var requested = time.Now()

// refund records a refund of an order and pushes its effects.
func refund(t *testing.T, c *client.Client, order string) client.Recorded {
	t.Helper()
	recorded, err := c.Record(t.Context(), client.Action{
		ContractID: "refund_workflow", SubjectID: order, AgentID: "agent of " + order,
		RequestedAt: requested, Params: map[string]any{"amount": json.Number("180.10")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Push(t.Context(), effectsOf(order, requested)); err != nil {
		t.Fatal(err)
	}
	return recorded
}

// TestFromActionToVerdict goes through everything that a caller does, by the
// internal id, because the action was given its own.
func TestFromActionToVerdict(t *testing.T) {
	c := dial(t)
	recorded := refund(t, c, "order_through")
	if !strings.HasPrefix(recorded.ActionID, "act_") || recorded.ContractVersion != 1 || string(recorded.Params) != `{"amount":180.1}` && string(recorded.Params) != `{"amount":180.10}` {
		t.Errorf("recorded %+v with params %s", recorded, recorded.Params)
	}
	settled, err := c.WaitForSettlement(t.Context(), recorded.ID)
	if err != nil || !settled.Passed() || len(settled.Policy.Hash) != 64 || settled.Run.Seq == 0 {
		t.Fatalf("got %+v, %v", settled, err)
	}
	again, err := c.Verify(t.Context(), recorded.ActionID)
	if err != nil || again.Policy.Hash != settled.Policy.Hash {
		t.Errorf("verified again: %+v, %v", again, err)
	}
	if pushed, err := c.Push(t.Context(), effectsOf("order_through", requested)); err != nil || pushed.Duplicates != 5 {
		t.Errorf("pushed again: %+v, %v", pushed, err)
	}
	got, err := c.Get(t.Context(), recorded.ActionID)
	if err != nil {
		t.Fatal(err)
	}
	for listed, err := range c.List(t.Context(), client.Filter{AgentID: "agent of order_through", Since: recorded.RequestedAt, Until: recorded.RequestedAt}) {
		if err != nil || listed.Run == nil || listed.Run.ID != got.Run.ID {
			t.Errorf("listed %+v, %v", listed, err)
		}
	}
}

// TestListPages: more than one page comes whole, each action once.
func TestListPages(t *testing.T) {
	c := dial(t)
	const n = 230
	want := map[string]int{}
	for i := range n {
		id := fmt.Sprintf("listed_%03d", i)
		if _, err := c.Record(t.Context(), client.Action{ActionID: id, ContractID: "close_ticket", SubjectID: id, WorkflowID: "pages", Params: struct{}{}}); err != nil {
			t.Fatal(err)
		}
		want[id] = 1
	}
	got := map[string]int{}
	for listed, err := range c.List(t.Context(), client.Filter{WorkflowID: "pages"}) {
		if err != nil {
			t.Fatal(err)
		}
		got[listed.Action.ActionID]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestNothingIsLostInDecoding: the types have a place for everything that the sidecar answers.
func TestNothingIsLostInDecoding(t *testing.T) {
	c := dial(t)
	recorded := refund(t, c, "order_decoded")
	if _, err := c.WaitForSettlement(t.Context(), recorded.ActionID); err != nil {
		t.Fatal(err)
	}
	missed, err := c.Record(t.Context(), client.Action{ContractID: "refund_workflow", SubjectID: recorded.SubjectID, RequestedAt: requested.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(t.Context(), missed.ActionID); err != nil {
		t.Fatal(err)
	}
	if shown, err := c.Get(t.Context(), missed.ActionID); err != nil || len(shown.NearMisses) != 4 || shown.NearMisses[0].Fact.RawRef == "" {
		t.Errorf("near misses: %+v, %v", shown.NearMisses, err)
	}
	type waited struct {
		client.Verification
		TimedOut      bool    `json:"timed_out"`
		WaitedSeconds float64 `json:"waited_seconds"`
	}
	type page struct {
		Actions []client.Verification `json:"actions"`
		Next    *string               `json:"next_cursor"`
	}
	for path, into := range map[string]any{
		"/v1/actions/" + recorded.ActionID:                    new(client.Verification),
		"/v1/actions/" + missed.ActionID:                      new(client.Verification),
		"/v1/actions/" + recorded.ActionID + "/wait":          new(waited),
		"/v1/actions?agent_id=agent+of+order_decoded&limit=1": new(page),
		"/v1/actions/unknown":                                 new(problem),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-API-Key", secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil || reflect.ValueOf(into).Elem().IsZero() {
			t.Errorf("%s: %v in %s", path, err, text)
		}
	}
}

// problem is client.Problem with the member that is always about:blank.
type problem struct {
	client.Problem
	Type string `json:"type"`
}

// TestProblems: a refusal comes once, with its places, and names the address where nobody answers.
func TestProblems(t *testing.T) {
	c := dial(t)
	_, err := c.Record(t.Context(), client.Action{ContractID: "refund_workflow", SubjectID: ""})
	var refused *client.Problem
	if !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity || len(refused.Errors) == 0 || refused.Errors[0].Pointer != "/subject_id" || refused.RequestID == "" {
		t.Errorf("got %v", err)
	}
	pushed, err := c.Push(t.Context(), client.Batch{Facts: []client.Fact{{Source: "not an identifier"}, effectsOf("order_rejected", requested).Facts[0]}})
	if err != nil || pushed.Ingested != 1 || len(pushed.Rejected) != 1 || *pushed.Rejected[0].Index != 0 {
		t.Errorf("got %+v, %v", pushed, err)
	}
	if _, err := client.New("localhost:8383"); err == nil || !strings.Contains(err.Error(), "http://host:port") {
		t.Errorf("an address without a scheme: %v", err)
	}
}

// TestSettledActionThatIsHeld: under updates: until_settled the same action again
// is fine, and other content is refused once and for all.
func TestSettledActionThatIsHeld(t *testing.T) {
	c := dial(t)
	action := client.Action{ActionID: "held_1", ContractID: "held_refund", SubjectID: "order_held", RequestedAt: requested, Params: map[string]any{"amount": json.Number("400")}}
	if _, err := c.Record(t.Context(), action); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Push(t.Context(), effectsOf("order_held", requested)); err != nil {
		t.Fatal(err)
	}
	settled, err := c.WaitForSettlement(t.Context(), "held_1")
	if err != nil || settled.Policy.Verdict != "FAIL" {
		t.Fatalf("got %+v, %v", settled, err)
	}
	if _, err := c.Record(t.Context(), action); err != nil {
		t.Errorf("the same again: %v", err)
	}
	action.Params = map[string]any{"amount": json.Number("180")}
	_, err = c.Record(t.Context(), action)
	var refused *client.Problem
	if !errors.As(err, &refused) || refused.Status != http.StatusConflict || refused.Code != "conflict" || len(refused.Errors) != 1 || refused.Errors[0].Pointer != "/params" {
		t.Errorf("got %v", err)
	}
	if got, err := c.Get(t.Context(), "held_1"); err != nil || got.Policy.Verdict != "FAIL" || got.ActionChanged {
		t.Errorf("got %+v, %v", got, err)
	}
}

// answers is a server that gives its answers one after the other, and counts.
type answers struct {
	*httptest.Server
	calls  atomic.Int32
	bodies chan string
}

func answering(t *testing.T, handlers ...http.HandlerFunc) *answers {
	t.Helper()
	a := &answers{bodies: make(chan string, 100)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.bodies <- string(body)
		handlers[min(int(a.calls.Add(1)), len(handlers))-1](w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestRepeatsWhileBusy: what is busy or drops the connection is asked again,
// with the same action, so that there is one.
func TestRepeatsWhileBusy(t *testing.T) {
	t.Parallel()
	server := answering(t,
		func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		status(http.StatusServiceUnavailable),
		func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"action": {"action_id": "a"}}`)
		},
	)
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if recorded, err := c.Record(t.Context(), client.Action{ContractID: "c", SubjectID: "s"}); err != nil || recorded.ActionID != "a" {
		t.Fatalf("got %+v, %v", recorded, err)
	}
	first, second, third := <-server.bodies, <-server.bodies, <-server.bodies
	if first != second || second != third || !strings.Contains(first, `"action_id":"act_`) {
		t.Errorf("sent %s, %s and %s", first, second, third)
	}
}

// TestRefusalsAreNotRepeated: what is refused, or is no sidecar, stays so.
func TestRefusalsAreNotRepeated(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"refused":    status(http.StatusForbidden),
		"no sidecar": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
	} {
		server := answering(t, handler)
		c, err := client.New(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "as a sidecar does") || server.calls.Load() != 1 {
			t.Errorf("%s: %d calls, %v", name, server.calls.Load(), err)
		}
	}
}

// TestKeyGoesNowhereElse: a redirect is an answer like another that is no sidecar's.
func TestKeyGoesNowhereElse(t *testing.T) {
	t.Parallel()
	elsewhere := answering(t, status(http.StatusOK))
	server := answering(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	c, err := client.New(server.URL, client.WithKey("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "a"); err == nil || elsewhere.calls.Load() != 0 {
		t.Errorf("%d requests went elsewhere, error %v", elsewhere.calls.Load(), err)
	}
}

// TestWaitingEndsWithItsContext: no verdict is reported before it stands.
func TestWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := dial(t)
	recorded, err := c.Record(t.Context(), client.Action{ActionID: "unfinished", ContractID: "refund_workflow", SubjectID: "order_unfinished", Params: map[string]int{"amount": 1}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	waited, err := c.WaitForSettlement(ctx, recorded.ActionID)
	if !errors.Is(err, context.DeadlineExceeded) || waited.Settled() || waited.Passed() {
		t.Errorf("got %+v, %v", waited, err)
	}
}

// TestReadWebhook: only what was signed with one of the secrets, not long ago.
func TestReadWebhook(t *testing.T) {
	t.Parallel()
	const current, retired = "whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0ISE=", "whsec_cmV0aXJlZCByZXRpcmVkIHJldGlyZWQgcmV0aXJlZA=="
	const body = `{"event":"action.verified"}`
	signed := func(secret string, at time.Time, body string) *http.Request {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := signer.Sign("msg_1", at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("webhook-id", "msg_1")
		r.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
		r.Header.Set("webhook-signature", signature)
		return r
	}
	now := time.Now()
	forged := signed(current, now, body)
	forged.Body = io.NopCloser(strings.NewReader(`{"event":"action.verified","verdict":"PASS"}`))
	for _, c := range []struct {
		name    string
		request *http.Request
		good    bool
	}{
		{"good", signed(current, now, body), true},
		{"signed with the retired secret", signed(retired, now, body), true},
		{"another's secret", signed("whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=", now, body), false},
		{"replayed", signed(current, now.Add(-time.Hour), body), false},
		{"another body", forged, false},
		{"no headers", httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), false},
		{"huge", signed(current, now, strings.Repeat(" ", 2<<20)), false},
	} {
		got, err := client.ReadWebhook(c.request, current, retired)
		if c.good && (err != nil || string(got) != body) || !c.good && (!errors.Is(err, client.ErrWebhook) || got != nil) {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
	}
	if _, err := client.ReadWebhook(signed(current, now, body)); !errors.Is(err, client.ErrWebhook) {
		t.Errorf("without a secret: %v", err)
	}
	if _, err := client.ReadWebhook(signed(current, now, body), "whsec_&"); err == nil || strings.Contains(err.Error(), "&") {
		t.Errorf("a bad secret: %v", err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTooManyRequestsAreSentAgain: after the time that the sidecar asked for.
func TestTooManyRequestsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		sidecar := transport(func(r *http.Request) (*http.Response, error) {
			at = append(at, time.Since(began))
			answer := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"7"}, "Content-Type": {"application/problem+json"}}, Request: r}
			answer.Body = io.NopCloser(strings.NewReader(`{"status": 429, "code": "too_many_requests"}`))
			if len(at) == 3 {
				answer.StatusCode, answer.Body = http.StatusOK, io.NopCloser(strings.NewReader(`{"ingested": 1}`))
			}
			return answer, nil
		})
		c, err := client.New("http://sidecar", client.WithHTTPClient(&http.Client{Transport: sidecar}))
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := c.Push(t.Context(), client.Batch{})
		if err != nil || pushed.Ingested != 1 {
			t.Errorf("%+v %v", pushed, err)
		}
		if diff := cmp.Diff([]time.Duration{0, 7 * time.Second, 14 * time.Second}, at); diff != "" {
			t.Error(diff)
		}
	})
}
