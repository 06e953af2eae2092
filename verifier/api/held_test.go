package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

const allFacts = eligible + "," + refunded + "," + cancelled + "," + noted + "," + notified

// recorded is act_1, verified and pending, in a world that settles.
func recorded(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.settling(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	return f
}

func (h *Hub) heldCalls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// waitRequest is what a client sends that waits for act_1.
func (f *fixture) waitRequest(timeout string) string {
	return "GET /v1/actions/act_1/wait?timeout=" + timeout + " HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nX-API-Key: " + f.secrets[tenantA][ledger.RoleViewer] + "\r\n\r\n"
}

// connect sends a text to the API.
func (f *fixture) connect(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// readAnswer reads the only answer of a connection, which ends with it.
func readAnswer(t *testing.T, conn net.Conn) answer {
	t.Helper()
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 || !response.Close {
		t.Fatalf("the connection goes on: close %t, %q, %v", response.Close, rest, err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// TestHeldCallsAreAnsweredAsOthersAre: over every way to ask, with the same
// headers and the same bytes as an answer that had not to be waited for.
func TestHeldCallsAreAnsweredAsOthersAre(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		start func(*httptest.Server)
		held  bool
	}{
		{"HTTP/1.1", func(s *httptest.Server) { s.Start() }, true},
		{"HTTP/1.1 over TLS", func(s *httptest.Server) { s.StartTLS() }, true},
		{"HTTP/2 over TLS", func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := recorded(t)
			server := httptest.NewUnstartedServer(f.server.Config.Handler)
			row.start(server)
			t.Cleanup(server.Close)
			ask := func() answer {
				request, err := http.NewRequest("GET", server.URL+"/v1/actions/act_1/wait?timeout=60", nil)
				if err != nil {
					t.Error(err)
				}
				request.Header.Set("X-API-Key", f.secrets[tenantA][ledger.RoleViewer])
				request.Header.Set("X-Request-Id", "mine")
				response, err := server.Client().Do(request)
				if err != nil {
					t.Error(err)
					return answer{}
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				return answer{response.StatusCode, response.Header, string(body)}
			}
			var first answer
			var asking sync.WaitGroup
			asking.Go(func() { first = ask() })
			within(t, 20*time.Second, "it waits", func() bool { return f.hub.Waiters() == 1 })
			within(t, 20*time.Second, "it is held, if it can be", func() bool { return f.hub.heldCalls() == 1 == row.held })
			f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
			asking.Wait()
			second := ask()
			var waited Waited
			if err := json.Unmarshal([]byte(first.body), &waited); err != nil || waited.TimedOut || waited.Policy == nil || waited.Policy.Verdict != "PASS" || waited.WaitedSeconds <= 0 {
				t.Errorf("%v: %s", err, first.body)
			}
			seconds := fmt.Sprintf(`"waited_seconds":%v}`, waited.WaitedSeconds)
			untimed, _, ok := strings.Cut(second.body, `"waited_seconds"`)
			if !ok || first.body != untimed+seconds+"\n" {
				t.Error(cmp.Diff(first.body, second.body))
			}
			for _, a := range []*answer{&first, &second} {
				a.header.Del("Date")
				a.header.Del("Content-Length")
			}
			if diff := cmp.Diff(second.header, first.header); diff != "" || first.status != second.status || first.header.Get("X-Request-Id") != "mine" {
				t.Errorf("%d and %d\n%s", first.status, second.status, diff)
			}
		})
	}
}

// TestAnswerIsWaitedAsJSON: made in two parts, the bytes are those of the whole.
func TestAnswerIsWaitedAsJSON(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
	w, err := f.service.arrive(t.Context(), Caller{ledger.Key{Tenant: tenantA, Role: ledger.RoleViewer}}, "act_1", MaxWait)
	if err != nil {
		t.Fatal(err)
	}
	to, err := w.stay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []float64{0, 0.001, 59.999, 60} {
		var want strings.Builder
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(Waited{to.shown, !to.settled(), seconds}); err != nil {
			t.Fatal(err)
		}
		got, err := to.body(seconds)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), string(got)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestHeldCallTimesOut: it tells what is known, and no success.
func TestHeldCallTimesOut(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	got := readAnswer(t, f.connect(t, f.waitRequest("1.05")))
	if got.status != http.StatusOK || !strings.Contains(got.body, `"timed_out":true,"waited_seconds":1.`) || !strings.Contains(got.body, `"status":"pending"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestHeldCallOfAnOldClient: over HTTP/1.0 the answer is of that version, and ends as it does over HTTP/1.1.
func TestHeldCallOfAnOldClient(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	conn := f.connect(t, strings.Replace(f.waitRequest("60"), "HTTP/1.1\r\n", "HTTP/1.0\r\nConnection: keep-alive\r\n", 1))
	within(t, 20*time.Second, "it is held", func() bool { return f.hub.heldCalls() == 1 })
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
	text, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.0 200 OK\r\n") || !strings.Contains(string(text), "\r\nConnection: close\r\n") ||
		!strings.Contains(string(text), `"timed_out":false`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestLeavingClientsAreLetGo: nothing is kept for them, and their calls are counted as given up.
func TestLeavingClientsAreLetGo(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	const clients = 20
	var connections []net.Conn
	for range clients {
		connections = append(connections, f.connect(t, f.waitRequest("60")))
	}
	within(t, 20*time.Second, "all are held", func() bool { return f.hub.heldCalls() == clients && f.hub.Waiters() == clients })
	for _, i := range []int{7, 0, 19, 3} { // from the middle and both ends of the gate's list
		_ = connections[i].Close()
		connections[i] = nil
	}
	within(t, 20*time.Second, "four are let go", func() bool { return f.hub.heldCalls() == clients-4 && f.hub.Waiters() == clients-4 })
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
	for _, conn := range connections {
		if conn == nil {
			continue
		}
		if got := readAnswer(t, conn); got.status != http.StatusOK || !strings.Contains(got.body, `"timed_out":false`) {
			t.Errorf("%d %s", got.status, got.body)
		}
		_ = conn.Close()
	}
	within(t, 20*time.Second, "nobody is left", func() bool { return f.hub.heldCalls() == 0 && f.hub.Waiters() == 0 })
	if metrics := f.do(t, "", "GET", "/metrics", "").body; !strings.Contains(metrics, `countersign_http_request_duration_seconds_count{method="GET",route="/v1/actions/{ref}/wait",status="200"} 16`) ||
		!strings.Contains(metrics, `countersign_http_request_duration_seconds_count{method="GET",route="/v1/actions/{ref}/wait",status="503"} 4`) {
		t.Error(metrics)
	}
}

// TestWhatComesAfterAHeldCallIsNotAnswered: the client sees that from the end of
// the connection, and the answer to the first call is whole.
func TestWhatComesAfterAHeldCallIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"with it": false, "while it waits": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := recorded(t)
			const second = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
			text := f.waitRequest("60")
			if !late {
				text += second
			}
			conn := f.connect(t, text)
			within(t, 20*time.Second, "it is held", func() bool { return f.hub.heldCalls() == 1 })
			if late {
				if _, err := io.WriteString(conn, second); err != nil {
					t.Fatal(err)
				}
			}
			f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
			if got := readAnswer(t, conn); got.status != http.StatusOK || !strings.Contains(got.body, `"timed_out":false`) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// TestTroubleIsToldToHeldCalls: as a problem under the call's own id.
func TestTroubleIsToldToHeldCalls(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	store := &failing{Ledger: f.store}
	f.service.Ledger = store
	conn := f.connect(t, f.waitRequest("60"))
	within(t, 20*time.Second, "it is held", func() bool { return f.hub.heldCalls() == 1 })
	store.err = ledger.ErrUnavailable
	f.hub.open([]gateKey{{tenantA, claimID(tenantA, "act_1")}})
	got := readAnswer(t, conn)
	const want = `{"type":"about:blank","title":"Service Unavailable","status":503,"code":"unavailable","detail":"the store cannot be reached or is busy; try again","request_id":"mine"}` + "\n"
	if got.status != http.StatusServiceUnavailable || got.body != want || got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
}

// TestGateThatOpensTooEarlyKeepsHeldCalls: what settled was not the action as it stands.
func TestGateThatOpensTooEarlyKeepsHeldCalls(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	conn := f.connect(t, f.waitRequest("60"))
	within(t, 20*time.Second, "it is held", func() bool { return f.hub.heldCalls() == 1 })
	key := gateKey{tenantA, claimID(tenantA, "act_1")}
	gateOf := func() *gate {
		f.hub.mu.Lock()
		defer f.hub.mu.Unlock()
		return f.hub.gates[key]
	}
	before := gateOf()
	f.hub.open([]gateKey{key})
	within(t, 20*time.Second, "it waits at another gate", func() bool { g := gateOf(); return g != nil && g != before })
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
	if got := readAnswer(t, conn); got.status != http.StatusOK || !strings.Contains(got.body, `"timed_out":false`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestUseOfAKeyThatWaitsIsNotedOnce: when it is answered.
func TestUseOfAKeyThatWaitsIsNotedOnce(t *testing.T) {
	t.Parallel()
	f := recorded(t)
	var mu sync.Mutex
	var noted []keys.Use
	registry := prometheus.NewRegistry()
	server := httptest.NewServer(Handler(f.service, Options{Registry: registry, Note: func(use keys.Use) {
		mu.Lock()
		defer mu.Unlock()
		noted = append(noted, use)
	}}))
	t.Cleanup(server.Close)
	other := &fixture{server: server, secrets: f.secrets}
	conn := other.connect(t, other.waitRequest("60"))
	within(t, 20*time.Second, "it is held", func() bool { return f.hub.heldCalls() == 1 })
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(noted)
	}
	if count() != 0 {
		t.Errorf("noted before it was answered: %+v", noted)
	}
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(allFacts))
	readAnswer(t, conn)
	_ = conn.Close()
	within(t, 20*time.Second, "it is let go", func() bool { return f.hub.heldCalls() == 0 })
	if count() != 1 || noted[0].Status != http.StatusOK || noted[0].Route != "/v1/actions/{ref}/wait" || noted[0].Key.Role != ledger.RoleViewer || noted[0].Remote() != "127.0.0.1" {
		t.Errorf("%+v", noted)
	}
	if n, err := testutil.GatherAndCount(registry, "countersign_http_request_duration_seconds"); err != nil || n != 1 {
		t.Errorf("%d %v", n, err)
	}
}
