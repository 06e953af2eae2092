package verifiedactionsreceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestServer_Compression: signatures are over what was compressed, and so is the limit.
func TestServer_Compression(t *testing.T) {
	t.Parallel()
	config, sink := testConfig(), new(consumertest.TracesSink)
	config.ServerConfig.MaxRequestBodySize = 1 << 16
	_, base := start(t, config, sink)
	s := newSender(t, base)
	signed := func(body, sent []byte) reply {
		const stamp = "2026-06-15T10:30:05+00:00"
		sum := sha256.Sum256(body)
		return s.post(receiptPath, sent, http.Header{
			keyIDHeader: {"demo"}, timestampHeader: {stamp}, "Content-Encoding": {"gzip"},
			signatureHeader: {s.sign(s.request, []byte(stamp+"\n"+hex.EncodeToString(sum[:])))},
		})
	}
	wire := s.chain("a", 1)[0]
	bomb := make([]byte, 1<<22)
	for _, test := range []struct {
		name       string
		body, sent []byte
		want       int
	}{
		{"a receipt", wire, zipped(t, wire), http.StatusCreated},
		{"a bomb", bomb, zipped(t, bomb), http.StatusRequestEntityTooLarge},
		{"no gzip", wire, wire, http.StatusBadRequest},
	} {
		if got := signed(test.body, test.sent); got.status != test.want || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: answered %d %s", test.name, got.status, got.body)
		}
	}
	if sink.SpanCount() != 1 {
		t.Errorf("%d spans", sink.SpanCount())
	}
}

// doorkeeper is an authentication extension that knows one header.
type doorkeeper struct{}

var (
	_ extensionauth.Server = doorkeeper{}
	_ client.AuthData      = doorkeeper{}
)

func (doorkeeper) Start(context.Context, component.Host) error { return nil }
func (doorkeeper) Shutdown(context.Context) error              { return nil }
func (doorkeeper) GetAttribute(string) any                     { return "from the extension" }
func (doorkeeper) GetAttributeNames() []string                 { return []string{"tenant"} }

func (d doorkeeper) Authenticate(ctx context.Context, sources map[string][]string) (context.Context, error) {
	if len(sources["X-Door"]) == 0 {
		return ctx, errors.New("closed")
	}
	info := client.FromContext(ctx)
	info.Auth = d
	return client.NewContext(ctx, info), nil
}

// TestServer_Auth: with the collector's own authentication no token is needed,
// and what it says of the sender is handed on.
func TestServer_Auth(t *testing.T) {
	t.Parallel()
	id := component.MustNewID("door")
	config := testConfig()
	config.AEVS.Keys, config.VerifiedActions.Tokens = nil, nil
	config.ServerConfig.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
	var tenants []any
	_, base := startIn(t, config, consume(t, func(ctx context.Context, _ ptrace.Traces) error {
		tenants = append(tenants, client.FromContext(ctx).Auth.GetAttribute("tenant"))
		return nil
	}), host{id: doorkeeper{}})
	s := newSender(t, base)
	if got := s.post(actionsPath, []byte(bareActions), nil); got.status != http.StatusUnauthorized || got.body != `{"error":"closed"}`+"\n" {
		t.Errorf("answered %d %s", got.status, got.body)
	}
	if got := s.post(actionsPath, []byte(bareActions), http.Header{"X-Door": {"1"}}); got.status != http.StatusOK {
		t.Errorf("answered %d %s", got.status, got.body)
	}
	if diff := cmp.Diff([]any{"from the extension"}, tenants); diff != "" {
		t.Error(diff)
	}
}
