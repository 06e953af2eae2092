package emit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/countersign-otel/countersign/engine"
)

// PhoenixConfig is an Arize Phoenix that takes span annotations.
type PhoenixConfig struct {
	// Endpoint is like http://localhost:6006; empty writes none.
	Endpoint string `mapstructure:"endpoint"`
	// APIKey is sent as bearer token; empty for a Phoenix without authentication.
	APIKey configopaque.String `mapstructure:"api_key"`
	// TLS holds for https://.
	TLS configtls.ClientConfig `mapstructure:"tls"`
}

func (c PhoenixConfig) validate() error {
	if c.Endpoint == "" {
		return nil
	}
	if err := c.TLS.Validate(); err != nil {
		return fmt.Errorf("emit.phoenix.tls: %w", err)
	}
	return checkEndpoint("phoenix", c.Endpoint)
}

// missingFor is how long a span that Phoenix does not have is waited for: it
// may be on its way, or it was never kept.
const missingFor = engine.Hour

// phoenix writes span annotations, which its REST API calls
// POST /v1/span_annotations. Name and identifier tell them apart on a span, so
// that a later one replaces the one before.
type phoenix struct {
	*poster
	now    func() engine.Instant
	logger *slog.Logger
}

func newPhoenix(ctx context.Context, c Config, version string, now func() engine.Instant, logger *slog.Logger) (annotationAPI, error) {
	p, err := newPoster(ctx, "phoenix", c.Phoenix.Endpoint, c.Phoenix.TLS, c, version)
	if err != nil {
		return nil, err
	}
	if c.Phoenix.APIKey != "" {
		p.headers["Authorization"] = "Bearer " + c.Phoenix.APIKey
	}
	return &phoenix{p, now, logger}, nil
}

func (p *phoenix) String() string { return "phoenix " + p.base }

type phoenixAnnotation struct {
	SpanID        string         `json:"span_id"`
	Name          string         `json:"name"`
	AnnotatorKind string         `json:"annotator_kind"`
	Result        phoenixResult  `json:"result"`
	Metadata      map[string]any `json:"metadata"`
	Identifier    string         `json:"identifier"`
}

type phoenixResult struct {
	Label       string   `json:"label"`
	Score       *float64 `json:"score,omitempty"`
	Explanation string   `json:"explanation"`
}

// annotate sends a batch, and when that is refused, one by one: a batch is
// refused as a whole when Phoenix does not have one of its spans.
func (p *phoenix) annotate(ctx context.Context, actions []annotated) []error {
	failures := make([]error, len(actions))
	err := p.put(ctx, actions)
	for i := range failures {
		failures[i] = err
		if refusing(err) && len(actions) > 1 {
			if failures[i] = p.put(ctx, actions[i:i+1]); failures[i] != nil && !refusing(failures[i]) {
				err = failures[i] // it is away: the others need not wait for that, too
			}
		}
		if p.never(failures[i], actions[i]) {
			p.logger.Warn("Phoenix does not have the span of a verdict; its annotation is given up", "endpoint", p.base, "trace_id", actions[i].annotations[0].traceID,
				"span_id", actions[i].annotations[0].spanID, "waited", missingFor.String())
			failures[i] = nil
		}
	}
	return failures
}

// never says whether the span of an action will not come any more.
func (p *phoenix) never(err error, action annotated) bool {
	var answer *statusError
	return errors.As(err, &answer) && answer.status == http.StatusNotFound && p.now() >= action.since.Add(missingFor)
}

// put waits for Phoenix to have stored them (sync): what it only queues, it may lose.
func (p *phoenix) put(ctx context.Context, actions []annotated) error {
	var body struct {
		Data []phoenixAnnotation `json:"data"`
	}
	for _, action := range actions {
		for _, a := range action.annotations {
			body.Data = append(body.Data, phoenixAnnotation{
				SpanID: a.spanID, Name: a.name, AnnotatorKind: "CODE", Identifier: "countersign:" + a.key, Metadata: a.metadata,
				Result: phoenixResult{Label: a.label, Score: a.score, Explanation: a.explanation},
			})
		}
	}
	return p.post(ctx, "/v1/span_annotations?sync=true", body)
}
