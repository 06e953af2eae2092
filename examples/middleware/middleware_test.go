package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/client"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/serve"
)

// sidecar starts one, and returns its address and a key for the role.
func sidecar(t *testing.T) (address string, key func(role string, sources ...string) string) {
	t.Helper()
	config := serve.Default()
	config.Store = "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	config.Listen = "localhost:0"
	config.Contracts = []string{"../../contracts"}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, config, serve.Options{Ready: func(url string) { ready <- url }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case address = <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return address, func(role string, sources ...string) string {
		store, err := open.Ledger(t.Context(), config.Store)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		_, secret, err := keys.Create(t.Context(), store, keys.Request{Role: role, Sources: sources}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return string(secret)
	}
}

func dial(t *testing.T, address, key string) *client.Client {
	t.Helper()
	c, err := client.New(address, client.WithKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is what the service says to a request.
type answer struct {
	status       int
	action, body string
}

func ask(t *testing.T, request *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header.Get(actionHeader), string(body)}
}

func post(t *testing.T, url, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// TestRefundIsRecordedAndGated goes from an agent's request to "done".
func TestRefundIsRecordedAndGated(t *testing.T) {
	address, key := sidecar(t)
	recorder := dial(t, address, key(ledger.RoleRecorder))
	server := httptest.NewServer(service(recorder))
	defer server.Close()

	request := post(t, server.URL+"/refunds", `{"order_id": "order_1", "amount": 180.10}`)
	request.Header.Set("traceparent", "00-7b1f0c5de2a94d3c8e6f1a2b3c4d5e01-a1b2c3d4e5f60101-01")
	done := ask(t, request)
	id := done.action
	if done.status != http.StatusCreated || done.body != "refunded\n" || id == "" {
		t.Fatalf("got %+v", done)
	}
	shown, err := recorder.Get(t.Context(), id)
	if err != nil || string(shown.Action.Params) != `{"amount":180.10}` || shown.Action.TraceID != "7b1f0c5de2a94d3c8e6f1a2b3c4d5e01" || shown.Action.ReportedOutcome != "success" {
		t.Fatalf("recorded %+v with params %s, %v", shown.Action, shown.Action.Params, err)
	}

	evidence := dial(t, address, key(ledger.RoleEvidence, "stripe", "shopify", "crm", "messaging"))
	if _, err := evidence.Push(t.Context(), effects("order_1", shown.Action.RequestedAt)); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, get(t, server.URL+"/refunds/"+id+"/done")); got.status != http.StatusOK || !strings.HasPrefix(got.body, "PASS — all 4 expected effects") {
		t.Errorf("the gate answers %+v", got)
	}
	if got := ask(t, get(t, server.URL+"/refunds/unknown/done")); got.status != http.StatusNotFound {
		t.Errorf("for an unknown action the gate answers %+v", got)
	}
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func effects(order string, at time.Time) client.Batch {
	fact := func(source, kind string) client.Fact {
		return client.Fact{Source: source, Type: kind, SubjectID: order, SubjectKind: "order", OccurredAt: at}
	}
	eligible, refunded := fact("shopify", "order_status"), fact("stripe", "refund_created")
	eligible.Attributes = map[string]string{"status": "eligible"}
	refunded.Attributes = map[string]any{"amount": json.Number("180.10")}
	return client.Batch{Facts: []client.Fact{eligible, refunded, fact("shopify", "order_cancelled"), fact("crm", "note_added"), fact("messaging", "customer_notified")}}
}

// TestAnswersWithoutASidecar: who does the work is not held up by who checks it.
func TestAnswersWithoutASidecar(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	defer nobody.Close()
	server := httptest.NewServer(service(dial(t, nobody.URL, "")))
	defer server.Close()
	if got := ask(t, post(t, server.URL+"/refunds", `{"order_id": "order_1"}`)); got.status != http.StatusCreated || got.body != "refunded\n" {
		t.Errorf("got %+v", got)
	}
	for name, body := range map[string]string{"no JSON": "order_1", "no order": "{}", "huge": strings.Repeat(" ", maxBody+1)} {
		if got := ask(t, post(t, server.URL+"/refunds", body)); got.status/100 != 4 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestWhatHandlersDoIsRecorded: whatever they answer, or do not.
func TestWhatHandlersDoIsRecorded(t *testing.T) {
	address, key := sidecar(t)
	recorder := dial(t, address, key(ledger.RoleRecorder))
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"answers nothing":     {func(http.ResponseWriter, *http.Request) {}, "success"},
		"writes a body":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }, "success"},
		"says that it failed": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "error"},
		"dies":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "error"},
	} {
		order := "order " + name
		server := httptest.NewServer(recorded(recorder, refundAction, row.handler))
		response, err := http.DefaultClient.Do(post(t, server.URL, `{"order_id": "`+order+`"}`))
		if err == nil {
			_ = response.Body.Close()
		}
		server.Close() // waits for the handler
		found := ""
		for listed, err := range recorder.List(t.Context(), client.Filter{SubjectID: order}) {
			if err != nil {
				t.Fatal(err)
			}
			found = listed.Action.ReportedOutcome
		}
		if found != row.want {
			t.Errorf("a handler that %s: recorded with outcome %q, want %q", name, found, row.want)
		}
	}
}
