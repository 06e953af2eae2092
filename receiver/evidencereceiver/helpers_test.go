package evidencereceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
)

const (
	stripeSecret = "whsec_0123456789abcdef"
	githubSecret = "github_secret_0123"
	crmKey       = "evidence_key_of_the_crm"
	refund       = `{"id":"evt_1","object":"event","type":"refund.created"}`
)

// testConfig has an endpoint of each kind that differs in the handler.
func testConfig() *Config {
	config := NewDefaultConfig()
	config.ServerConfig.NetAddr.Endpoint = "localhost:0"
	config.ServerConfig.MaxRequestBodySize = 64 << 10
	config.Endpoints = map[string]EndpointConfig{
		"stripe": {Scheme: "stripe", Secrets: []configopaque.String{"whsec_not_made_by_this", stripeSecret}, Tenant: "acme"},
		"github": {
			Scheme: "github", Secrets: []configopaque.String{githubSecret}, Path: "/webhooks/github", Source: "GitHub", Trust: "shared",
			Headers: []string{"x-github-hook-id", "X-Nothing"},
		},
		"slack": {Scheme: "slack", Secrets: []configopaque.String{githubSecret}},
		"crm":   {Scheme: "api_key", Secrets: []configopaque.String{crmKey}, Events: "array", Connection: "crm-poller"},
		"lines": {Scheme: "api_key", Secrets: []configopaque.String{crmKey}, Events: "lines"},
	}
	return config
}

// running is a receiver that listens.
type running struct {
	*server
	telemetry *componenttest.Telemetry
}

func start(t *testing.T, config *Config, next consumer.Logs) *running {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	return &running{startWith(t, config, set, next), telemetry}
}

func startWith(t *testing.T, config *Config, set receiver.Settings, next consumer.Logs) *server {
	t.Helper()
	made, err := NewFactory().CreateLogs(t.Context(), set, config, next)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := made.(*server)
	if !ok {
		t.Fatalf("the factory made a %T", made)
	}
	if err := s.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// request is one delivery to send.
type request struct {
	method, path, body string
	header             http.Header
}

// to makes a request that nobody signed.
func to(path, body string) *request {
	return &request{http.MethodPost, path, body, http.Header{"Content-Type": {"application/json"}}}
}

func (r *request) with(name, value string) *request {
	r.header.Set(name, value)
	return r
}

func (r *request) zipped(t *testing.T) *request {
	r.body = zip(t, r.body)
	return r.with("Content-Encoding", "gzip")
}

func zip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func mac(secret, text string) string {
	m := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(m, text)
	return hex.EncodeToString(m.Sum(nil))
}

// stripe signs what r has as body now.
func (r *request) stripe(at time.Time) *request {
	t := strconv.FormatInt(at.Unix(), 10)
	return r.with("Stripe-Signature", "t="+t+",v1="+mac(stripeSecret, t+"."+r.body))
}

func (r *request) github() *request {
	return r.with("X-Hub-Signature-256", "sha256="+mac(githubSecret, r.body))
}

func (r *request) slack(at time.Time) *request {
	t := strconv.FormatInt(at.Unix(), 10)
	return r.with("X-Slack-Request-Timestamp", t).with("X-Slack-Signature", "v0="+mac(githubSecret, "v0:"+t+":"+r.body))
}

func (r *request) key() *request { return r.with("X-API-Key", crmKey) }

type response struct {
	status     int
	body       string
	retryAfter string
}

func (s *server) send(t testing.TB, r *request) response {
	t.Helper()
	made, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+s.address+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	made.Header = r.header
	transport := &http.Transport{DisableKeepAlives: true}
	got, err := transport.RoundTrip(made)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{got.StatusCode, string(body), got.Header.Get("Retry-After")}
}

// entries are all log records that arrived, in order.
func entries(all []plog.Logs) []plog.LogRecord {
	var found []plog.LogRecord
	for _, ld := range all {
		for _, resource := range ld.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, entry := range scope.LogRecords().All() {
					found = append(found, entry)
				}
			}
		}
	}
	return found
}

// came reads how a record came.
func came(t *testing.T, entry plog.LogRecord) delivery.Delivery {
	t.Helper()
	s, err := delivery.NewSealer("")
	if err != nil {
		t.Fatal(err)
	}
	d, ok := s.Read(entry)
	if !ok {
		t.Fatal("the record has no sealed delivery")
	}
	return d
}
