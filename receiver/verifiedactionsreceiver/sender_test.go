package verifiedactionsreceiver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/aevs"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

// Made up; the vectors were made with it.
const (
	testSecret  = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	testKey     = "aevs_sk_demo_" + testSecret
	testKeyV2   = "aevs_sk2_demo_" + testSecret
	testAgent   = "550e8400-e29b-41d4-a716-446655440000"
	testSession = "11111111-2222-4333-8444-555555555555"
	testToken   = "not-a-secret-of-anybody"
)

// testNow is shortly after the times of the vectors.
var testNow = time.Date(2026, 6, 15, 10, 30, 6, 0, time.UTC)

// sender signs as an SDK does.
type sender struct {
	t       testing.TB
	base    string
	keyID   string
	request []byte
	payload []byte
	private *ecdsa.PrivateKey // of version 2
	now     func() time.Time
	client  *http.Client
}

func newSender(t testing.TB, base string) *sender {
	t.Helper()
	s := &sender{t: t, base: base, keyID: "demo", now: func() time.Time { return testNow }}
	s.request, s.payload = derived(t, "aevs-request-v1"), derived(t, "aevs-payload-v1")
	s.client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

func newSenderV2(t testing.TB, base string) *sender {
	t.Helper()
	s := newSender(t, base)
	secret, err := hex.DecodeString(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	if s.private, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), secret); err != nil {
		t.Fatal(err)
	}
	return s
}

func derived(t testing.TB, salt string) []byte {
	t.Helper()
	secret, err := hex.DecodeString(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	key, err := hkdf.Key(sha256.New, secret, []byte(salt), "", 32)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *sender) sign(key, message []byte) string {
	if s.private == nil {
		mac := hmac.New(sha256.New, key)
		mac.Write(message)
		return hex.EncodeToString(mac.Sum(nil))
	}
	sum := sha256.Sum256(message)
	r, v, err := ecdsa.Sign(rand.Reader, s.private, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	raw := append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...)
	return hex.EncodeToString(raw)
}

type fields = map[string]any

// seal makes the wire bytes of a receipt, and its hash.
func (s *sender) seal(receipt fields) (wire []byte, hash string) {
	s.t.Helper()
	receipt = maps.Clone(receipt)
	delete(receipt, "payload_hmac")
	receipt["payload_hmac"] = s.sign(s.payload, s.canonical(receipt))
	wire = s.canonical(receipt)
	sum := sha256.Sum256(wire)
	return wire, hex.EncodeToString(sum[:])
}

func (s *sender) canonical(receipt fields) []byte {
	s.t.Helper()
	text, err := json.Marshal(receipt)
	if err != nil {
		s.t.Fatal(err)
	}
	wire, err := aevs.Canonical(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return wire
}

func (s *sender) anchor(session string) string {
	sum := sha256.Sum256(derived(s.t, "aevs-chain-v1|"+session))
	return hex.EncodeToString(sum[:])
}

// chain makes n receipts of a session, linked as an SDK links them.
func (s *sender) chain(session string, n int) [][]byte {
	s.t.Helper()
	prev := s.anchor(session)
	wires := make([][]byte, n)
	for i := range wires {
		wires[i], prev = s.seal(receiptFields(session, i+1, prev))
	}
	return wires
}

func receiptFields(session string, seq int, prev string) fields {
	return fields{
		"agent_id": testAgent, "session_id": session, "seq": seq, "prev_hash": prev,
		"reference_id": fmt.Sprintf("%s-%d", session, seq),
		"tool_name":    "send_refund", "inputs": fields{"order_id": "A-1001", "amount": "12.500000"}, "output": "done",
		"status": "success", "error": nil,
		"started_at": "2026-06-15T10:30:01+00:00", "ended_at": "2026-06-15T10:30:02.5+00:00", "duration_ms": 1500,
		"run_id": "run-1", "parent_run_id": nil, "invocation_id": nil,
		"sdk_version": "0.2.2", "framework": "langchain", "framework_version": "1.0.0", "receipt_visibility": "private",
	}
}

// reply is an HTTP answer.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) batch(t testing.TB) batchReply {
	t.Helper()
	var got batchReply
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return got
}

// send posts a signed request.
func (s *sender) send(path string, body []byte) reply {
	s.t.Helper()
	stamp := s.now().UTC().Format("2006-01-02T15:04:05.000000+00:00")
	sum := sha256.Sum256(body)
	return s.post(path, body, http.Header{
		keyIDHeader:     {s.keyID},
		timestampHeader: {stamp},
		signatureHeader: {s.sign(s.request, []byte(stamp+"\n"+hex.EncodeToString(sum[:])))},
	})
}

func (s *sender) single(wire []byte) reply {
	s.t.Helper()
	return s.send(receiptPath, wire)
}

func (s *sender) batch(wires ...[]byte) reply {
	s.t.Helper()
	texts := make([]string, len(wires))
	for i, wire := range wires {
		texts[i] = string(wire)
	}
	body, err := json.Marshal(fields{"receipts": texts})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(batchPath, body)
}

func (s *sender) post(path string, body []byte, header http.Header) reply {
	s.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, values := range header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	return s.do(request)
}

func (s *sender) get(path string) reply {
	s.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.do(request)
}

func (s *sender) do(request *http.Request) reply {
	s.t.Helper()
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// testConfig has the key of the vectors.
func testConfig() *Config {
	config := NewDefaultConfig()
	config.ServerConfig.NetAddr.Endpoint = "localhost:0"
	config.AEVS.Keys = []KeyConfig{{APIKey: testKey}}
	config.VerifiedActions.Tokens = []TokenConfig{{Token: configopaque.String(testToken)}}
	return config
}

// host has the extensions of a test.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// start runs a receiver at the time of the vectors.
func start(t testing.TB, config *Config, next consumer.Traces) (*server, string) {
	t.Helper()
	return startIn(t, config, next, componenttest.NewNopHost())
}

func startIn(t testing.TB, config *Config, next consumer.Traces, host component.Host) (*server, string) {
	t.Helper()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type) // the same after a restart
	s, err := newServer(settings, config, next)
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return testNow }
	if err := s.Start(context.Background(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s, "http://" + s.listener.Addr().String()
}

func stop(t testing.TB, s *server) {
	t.Helper()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// switched is a pipeline that is another one from some time on.
type switched struct{ next atomic.Value }

type pipeline struct{ consumer.Traces }

func newSwitched(next consumer.Traces) *switched {
	s := new(switched)
	s.to(next)
	return s
}

func (s *switched) to(next consumer.Traces) { s.next.Store(pipeline{next}) }

func (*switched) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *switched) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return s.next.Load().(pipeline).ConsumeTraces(ctx, td)
}
