package emit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"
)

// LangfuseConfig is a Langfuse project that takes scores.
type LangfuseConfig struct {
	// Endpoint is like https://cloud.langfuse.com; empty writes none.
	Endpoint string `mapstructure:"endpoint"`
	// PublicKey and SecretKey are the project's.
	PublicKey string              `mapstructure:"public_key"`
	SecretKey configopaque.String `mapstructure:"secret_key"`
	// Environment of the scores; empty takes Langfuse's default.
	Environment string `mapstructure:"environment"`
	// TLS holds for https://.
	TLS configtls.ClientConfig `mapstructure:"tls"`
}

var langfuseEnvironment = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

func (c LangfuseConfig) validate() error {
	if c.Endpoint == "" {
		return nil
	}
	if c.PublicKey == "" || c.SecretKey == "" {
		return errors.New("emit.langfuse.public_key or emit.langfuse.secret_key is empty; write both keys of the project")
	}
	if c.Environment != "" && (!langfuseEnvironment.MatchString(c.Environment) || strings.HasPrefix(c.Environment, "langfuse")) {
		return fmt.Errorf("emit.langfuse.environment is %q; write lower-case letters, digits, - and _, at most 40, not beginning with langfuse", c.Environment)
	}
	if err := c.TLS.Validate(); err != nil {
		return fmt.Errorf("emit.langfuse.tls: %w", err)
	}
	return checkEndpoint("langfuse", c.Endpoint)
}

// langfuse writes scores of observations, by POST /api/public/scores. A score
// with an id that is known replaces it. Langfuse takes scores before their trace.
type langfuse struct {
	*poster
	environment string
}

func newLangfuse(ctx context.Context, c Config, version string) (annotationAPI, error) {
	p, err := newPoster(ctx, "langfuse", c.Langfuse.Endpoint, c.Langfuse.TLS, c, version)
	if err != nil {
		return nil, err
	}
	keys := base64.StdEncoding.EncodeToString([]byte(c.Langfuse.PublicKey + ":" + string(c.Langfuse.SecretKey)))
	p.headers["Authorization"] = configopaque.String("Basic " + keys)
	return &langfuse{p, c.Langfuse.Environment}, nil
}

func (l *langfuse) String() string { return "langfuse " + l.base }

type langfuseScore struct {
	ID            string         `json:"id"`
	TraceID       string         `json:"traceId"`
	ObservationID string         `json:"observationId"`
	Name          string         `json:"name"`
	Value         string         `json:"value"`
	DataType      string         `json:"dataType"`
	Comment       string         `json:"comment"`
	Metadata      map[string]any `json:"metadata"`
	Environment   string         `json:"environment,omitempty"`
}

// scoresAtOnce is how many requests run side by side: the API takes one score a request.
const scoresAtOnce = 8

func (l *langfuse) annotate(ctx context.Context, actions []annotated) []error {
	failures := make([]error, len(actions))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slots := make(chan struct{}, scoresAtOnce)
	var sending sync.WaitGroup
	for i, action := range actions {
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			for _, a := range action.annotations {
				if failures[i] = l.put(ctx, a); failures[i] != nil {
					if !refusing(failures[i]) {
						stop() // it is away: the others need not wait for that, too
					}
					return
				}
			}
		})
	}
	sending.Wait()
	return failures
}

func (l *langfuse) put(ctx context.Context, a annotation) error {
	return l.post(ctx, "/api/public/scores", langfuseScore{
		ID: a.id, TraceID: a.traceID, ObservationID: a.spanID, Name: a.name, Value: a.label, DataType: "CATEGORICAL",
		Comment: a.explanation, Metadata: a.metadata, Environment: l.environment,
	})
}
