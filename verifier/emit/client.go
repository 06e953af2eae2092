package emit

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // registers the compressor
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// errRefused is wrapped when the other side understood and will not take the
// batch: one event in it may be why.
var errRefused = errors.New("refused")

// partial says how much of an accepted request the other side dropped. The
// protocol forbids sending it again.
type partial struct {
	rejected int64
	message  string
}

// client sends batches.
type client interface {
	logs(context.Context, plog.Logs) (partial, error)
	traces(context.Context, ptrace.Traces) (partial, error)
	close() error
}

// newClient connects lazily: an endpoint that is away is no error here.
func newClient(ctx context.Context, c Config, version string) (client, error) {
	to, err := c.target()
	if err != nil {
		return nil, err
	}
	var settings *tls.Config
	if !to.plain {
		if settings, err = c.TLS.LoadTLSConfig(ctx); err != nil {
			return nil, fmt.Errorf("emit.tls: %w", err)
		}
		if settings == nil {
			settings = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	if c.Protocol == HTTP {
		return newHTTPClient(c, to, settings, version), nil
	}
	return newGRPCClient(c, to, settings, version)
}

func userAgent(version string) string { return "countersign/" + version }

type grpcClient struct {
	config     Config
	connection *grpc.ClientConn
	toLogs     plogotlp.GRPCClient
	toTraces   ptraceotlp.GRPCClient
}

func newGRPCClient(c Config, to target, settings *tls.Config, version string) (client, error) {
	transport := insecure.NewCredentials()
	if settings != nil {
		transport = credentials.NewTLS(settings)
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(transport), grpc.WithUserAgent(userAgent(version))}
	if c.Compression == "gzip" {
		options = append(options, grpc.WithDefaultCallOptions(grpc.UseCompressor("gzip")))
	}
	connection, err := grpc.NewClient(to.host, options...)
	if err != nil {
		return nil, fmt.Errorf("emit.endpoint %q: %w", c.Endpoint, err)
	}
	return &grpcClient{c, connection, plogotlp.NewGRPCClient(connection), ptraceotlp.NewGRPCClient(connection)}, nil
}

func (g *grpcClient) context(ctx context.Context) context.Context {
	for key, secret := range g.config.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(key), string(secret))
	}
	return ctx
}

func (g *grpcClient) logs(ctx context.Context, logs plog.Logs) (partial, error) {
	answer, err := g.toLogs.Export(g.context(ctx), plogotlp.NewExportRequestFromLogs(logs))
	if err != nil {
		return partial{}, grpcError(err)
	}
	return partial{answer.PartialSuccess().RejectedLogRecords(), answer.PartialSuccess().ErrorMessage()}, nil
}

func (g *grpcClient) traces(ctx context.Context, traces ptrace.Traces) (partial, error) {
	answer, err := g.toTraces.Export(g.context(ctx), ptraceotlp.NewExportRequestFromTraces(traces))
	if err != nil {
		return partial{}, grpcError(err)
	}
	return partial{answer.PartialSuccess().RejectedSpans(), answer.PartialSuccess().ErrorMessage()}, nil
}

func grpcError(err error) error {
	if status.Code(err) == codes.InvalidArgument {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

func (g *grpcClient) close() error { return g.connection.Close() }

type httpClient struct {
	config  Config
	base    string
	version string
	client  *http.Client
}

func newHTTPClient(c Config, to target, settings *tls.Config, version string) client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = settings
	scheme := "https://"
	if to.plain {
		scheme = "http://"
	}
	return &httpClient{c, scheme + to.host + to.path, version, &http.Client{
		Transport: transport,
		// Headers are secrets: they go to the endpoint that was named and no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (h *httpClient) logs(ctx context.Context, logs plog.Logs) (partial, error) {
	message, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		return partial{}, err
	}
	body, err := h.post(ctx, "/v1/logs", message)
	if err != nil {
		return partial{}, err
	}
	answer := plogotlp.NewExportResponse()
	if answer.UnmarshalProto(body) != nil {
		return partial{}, nil // accepted; some receivers answer in their own words
	}
	return partial{answer.PartialSuccess().RejectedLogRecords(), answer.PartialSuccess().ErrorMessage()}, nil
}

func (h *httpClient) traces(ctx context.Context, traces ptrace.Traces) (partial, error) {
	message, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	if err != nil {
		return partial{}, err
	}
	body, err := h.post(ctx, "/v1/traces", message)
	if err != nil {
		return partial{}, err
	}
	answer := ptraceotlp.NewExportResponse()
	if answer.UnmarshalProto(body) != nil {
		return partial{}, nil
	}
	return partial{answer.PartialSuccess().RejectedSpans(), answer.PartialSuccess().ErrorMessage()}, nil
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

func (h *httpClient) post(ctx context.Context, path string, message []byte) ([]byte, error) {
	request, err := h.request(ctx, path, message)
	if err != nil {
		return nil, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case response.StatusCode >= 200 && response.StatusCode < 300:
		return body, err
	case refusal(response.StatusCode):
		return nil, fmt.Errorf("%w: %s answers %s: %s", errRefused, h.base+path, response.Status, quote(body))
	}
	return nil, fmt.Errorf("%s answers %s", h.base+path, response.Status)
}

func (h *httpClient) request(ctx context.Context, path string, message []byte) (*http.Request, error) {
	encoding := ""
	if h.config.Compression == "gzip" {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(message) // a buffer takes everything
		_ = w.Close()
		message, encoding = packed.Bytes(), "gzip"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.base+path, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	for key, secret := range h.config.Headers {
		request.Header.Set(key, string(secret))
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", userAgent(h.version))
	if encoding != "" {
		request.Header.Set("Content-Encoding", encoding)
	}
	return request, nil
}

func (h *httpClient) close() error {
	h.client.CloseIdleConnections()
	return nil
}
