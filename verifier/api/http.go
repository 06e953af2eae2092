package api

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// Options of Handler.
type Options struct {
	// Version is shown in the OpenAPI description.
	Version string
	// HideMetrics serves no /metrics: they tell of all tenants, and need no key.
	HideMetrics bool
	// Registry takes the metrics of the API and is served at /metrics; nil makes a new one.
	Registry *prometheus.Registry
	// Note takes every use of a key, also refused ones; may be nil.
	Note func(keys.Use)
	// Guard recognises keys and slows who asks too much; nil has no limits. Share it with the page.
	Guard *keys.Guard
	// RequestTimeout bounds a request apart from its waiting; default 30 seconds.
	RequestTimeout time.Duration
	// BodyTimeout is how long a client may take to send a body; default 30 seconds.
	BodyTimeout time.Duration
	// Heartbeat is how often a quiet stream of events says that it is there; default 15 seconds.
	Heartbeat time.Duration
	// SlowClient is how long a client may take to read what a stream sent before it is cut off; default 10 seconds.
	SlowClient time.Duration
}

// handler serves a Service.
type handler struct {
	*Service
	Options
	api       huma.API
	mux       *http.ServeMux
	bodies    *semaphore.Weighted
	parsed    *semaphore.Weighted
	readiness readiness
	// seconds is how long requests took, by route, method and status.
	seconds *prometheus.HistogramVec
}

// Handler serves a Service under /v1, with the OpenAPI description made from
// the code at /openapi.json, and /healthz, /readyz and /metrics.
func Handler(s *Service, o Options) http.Handler {
	useProblems()
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = 30 * time.Second
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = defaultBodyTimeout
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.SlowClient <= 0 {
		o.SlowClient = defaultSlowClient
	}
	if o.Guard == nil {
		o.Guard = keys.Unlimited()
	}
	if o.Note == nil {
		o.Note = func(keys.Use) {}
	}
	h := &handler{Service: s, Options: o, mux: http.NewServeMux(), bodies: semaphore.NewWeighted(maxBodies), parsed: semaphore.NewWeighted(maxParsed)}
	h.api = humago.New(h.mux, apiConfig(o.Version))
	h.actions()
	h.events()
	h.evidence()
	h.reports()
	h.webhooks()
	h.keyAudit()
	h.public()
	h.describe()
	h.operational()
	h.mux.Handle("/", h.forStrangers(http.HandlerFunc(h.nothingHere)))
	return h.identify(h.measure(h.recover(h.conditional(h.mux))))
}

// useProblems makes huma's own errors problems too, and describes lists as
// never null. Huma has one setting for the process.
var useProblems = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return humaProblem(status, message, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		p := humaProblem(status, message, errs)
		p.RequestID = requestID(ctx.Context())
		return p
	}
})

func apiConfig(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[engine.Object](), reflect.TypeFor[map[string]any]())
	registry.RegisterTypeAlias(reflect.TypeFor[engine.Instant](), reflect.TypeFor[time.Time]())
	key := &huma.SecurityScheme{Type: "apiKey", In: "header", Name: "X-API-Key", Description: "cs_<role>_..., made by countersign keys create"}
	bearer := &huma.SecurityScheme{Type: "http", Scheme: "bearer", Description: "the same key as a bearer token"}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Countersign", Version: version,
				Description: "Records what agents say they did, takes what systems of record say happened, and answers whether both agree with the contract.",
			},
			Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{"key": key, "bearer": bearer}},
		},
		OpenAPIPath:                  "/openapi",
		Formats:                      huma.DefaultFormats,
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// operation describes one endpoint; right is what a key needs to reach it,
// empty for public ones.
func operation(id, method, path, summary string, right keys.Right, statuses ...int) huma.Operation {
	o := huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Errors: statuses}
	if right != "" {
		o.Security = []map[string][]string{{"key": {}}, {"bearer": {}}}
		o.Errors = append(o.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
		o.Description = "Roles: " + joined(keys.RolesWith(right)) + "."
	}
	return o
}

// register adds an endpoint that needs a right.
func register[I, O any](h *handler, o huma.Operation, right keys.Right, f func(context.Context, Caller, *I) (*O, error)) {
	o.Middlewares = append(o.Middlewares, h.authenticate(right), anyCase)
	limit := h.RequestTimeout
	if o.OperationID == waitOperation {
		limit += MaxWait
	}
	huma.Register(h.api, o, func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, err := f(ctx, callerOf(ctx), in)
		if err != nil {
			return nil, h.answer(ctx, err)
		}
		return out, nil
	})
}

// waitOperation is the one that may take longer.
const waitOperation = "wait-for-settlement"

// open adds an endpoint that needs no key.
func open[I, O any](h *handler, o huma.Operation, f func(context.Context, *I) (*O, error)) {
	o.Errors = append(o.Errors, http.StatusTooManyRequests)
	o.Middlewares = append(o.Middlewares, func(hc huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(hc)
		h.forStrangers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { next(hc) })).ServeHTTP(w, r)
	})
	huma.Register(h.api, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, h.answer(ctx, err)
		}
		return out, nil
	})
}

// answer is the problem of an error, under this request's id.
func (h *handler) answer(ctx context.Context, err error) *Problem {
	p := *h.asProblem(ctx, err)
	p.RequestID = requestID(ctx)
	return &p
}

// documentBody puts the schema of a body that is read by hand into the description.
func documentBody[T any](h *handler, path string) {
	schema := h.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	h.api.OpenAPI().Paths[path].Post.RequestBody = &huma.RequestBody{
		Required: true,
		Content:  map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
}

// operational endpoints stand beside /v1 and under it. Probes have no limit: who
// floods from behind the prober's address must not get the sidecar restarted.
func (h *handler) operational() {
	for _, prefix := range []string{"", "/v1"} {
		h.mux.HandleFunc("GET "+prefix+"/healthz", func(w http.ResponseWriter, _ *http.Request) {
			writeText(w, http.StatusOK, "ok\n")
		})
		h.mux.HandleFunc("GET "+prefix+"/readyz", h.ready)
		if !h.HideMetrics {
			h.mux.Handle("GET "+prefix+"/metrics", h.forStrangers(Metrics(h.Registry)))
		}
	}
	h.mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/openapi.json", http.StatusPermanentRedirect)
	})
}

// Metrics shows a registry, with exemplars to who asks for OpenMetrics.
func Metrics(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry, EnableOpenMetrics: true})
}

// readiness remembers an answer for a second: probes need no key, and must not
// be a way to make the store work.
type readiness struct {
	mu    sync.Mutex
	asked bool
	at    engine.Instant
	err   error
}

// ready says whether the store answers and has the schema of this program.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	if err := h.checkReady(r.Context()); err != nil {
		writeText(w, http.StatusServiceUnavailable, "not ready: "+h.asProblem(r.Context(), err).Detail+"\n")
		return
	}
	writeText(w, http.StatusOK, "ready\n")
}

func (h *handler) checkReady(ctx context.Context) error {
	known := &h.readiness
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.asked && known.at == h.Now() {
		return known.err
	}
	// The answer is for others too: whoever asked first may hang up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	known.err = h.Ledger.CheckSchema(ctx)
	known.asked, known.at = true, h.Now()
	return known.err
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client may be gone
}
