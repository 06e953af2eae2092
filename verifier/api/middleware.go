package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/verifier/keys"
)

type contextKey int

const (
	callerContext contextKey = iota
	requestIDContext
)

func callerOf(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerContext).(Caller)
	return caller
}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDContext).(string)
	return id
}

// authenticate lets keys in that have a right. The tenant is the key's (decision D37).
func (h *handler) authenticate(right keys.Right) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(hc)
		caller, err := h.caller(r)
		if err == nil {
			if err = caller.need(right); err != nil {
				h.note(r, keys.Use{Key: caller.Key, Status: http.StatusForbidden})
			}
		}
		if err != nil {
			p := h.answer(r.Context(), err)
			if p.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
			}
			WriteProblem(w, p)
			return
		}
		use := keys.Use{Key: caller.Key, Status: http.StatusInternalServerError} // unless it ends well
		if hc.Operation().Path == eventsPath {
			use.Status = http.StatusOK
			h.note(r, use) // now: it may last for days
			next(huma.WithValue(hc, callerContext, caller))
			return
		}
		defer func() {
			if !isHeld(w) { // it is noted when it is answered
				h.note(r, use)
			}
		}()
		next(huma.WithValue(hc, callerContext, caller))
		if use.Status = hc.Status(); use.Status == 0 { // nothing set it
			use.Status = http.StatusOK
		}
	}
}

// note completes a use of a key and passes it on.
func (h *handler) note(r *http.Request, use keys.Use) {
	use.Route, use.From = routeOf(r), h.Guard.Address(r)
	h.Note(use)
}

func (h *handler) caller(r *http.Request) (Caller, error) {
	secret, err := secretOf(r.Header)
	if err != nil {
		if err := h.Guard.AdmitStranger(h.Guard.Address(r)); err != nil {
			return Caller{}, err
		}
		return Caller{}, err
	}
	key, err := h.Guard.Find(r.Context(), h.Ledger, secret, h.Guard.Address(r), h.Now())
	switch {
	case errors.Is(err, keys.ErrInvalid):
		h.note(r, keys.Use{Status: http.StatusUnauthorized})
		return Caller{}, unauthorized("the key is unknown")
	case errors.Is(err, keys.ErrRevoked), errors.Is(err, keys.ErrExpired):
		h.note(r, keys.Use{Key: key, Status: http.StatusUnauthorized, Gone: err})
		return Caller{}, unauthorized("%v; ask for a new one", err)
	}
	return Caller{key}, err
}

// forStrangers bounds what needs no key by the address that asks, whether it sends a key or not.
func (h *handler) forStrangers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.Guard.AdmitStranger(h.Guard.Address(r)); err != nil {
			WriteProblem(w, h.answer(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func unauthorized(format string, args ...any) *Problem {
	return problem(http.StatusUnauthorized, CodeUnauthorized, format, args...)
}

// secretOf is the key of a request: X-API-Key, or a bearer token.
func secretOf(header http.Header) (configopaque.String, error) {
	own := header.Get("X-API-Key")
	scheme, bearer, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		bearer = ""
	}
	bearer = strings.TrimSpace(bearer)
	switch {
	case own == "" && bearer == "":
		return "", unauthorized("a key is needed; send it as X-API-Key or as a bearer token")
	case own != "" && bearer != "" && own != bearer:
		return "", unauthorized("X-API-Key and the bearer token differ; send one key")
	case own != "":
		return configopaque.String(own), nil
	}
	return configopaque.String(bearer), nil
}

// WriteProblem answers a request with a problem.
func WriteProblem(w http.ResponseWriter, p *Problem) {
	text := p.write(w.Header())
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the client may be gone
}

// write completes the header of an answer and returns its body.
func (p *Problem) write(header http.Header) []byte {
	text, err := json.Marshal(p)
	if err != nil { // texts and numbers always encode
		text = []byte(`{"title":"Internal Server Error","status":500}`)
	}
	maps.Copy(header, p.GetHeaders())
	header.Set("Content-Type", p.ContentType(""))
	return append(text, '\n')
}

// humaProblem is one of huma's own errors: a parameter that breaks its schema.
func humaProblem(status int, message string, errs []error) *Problem {
	code := CodeInvalid
	if status >= http.StatusInternalServerError {
		code = CodeInternal
	}
	p := problem(status, code, "%s", message)
	if message == "validation failed" {
		p.Detail = "a parameter of the request is wrong"
	}
	for _, err := range errs {
		var known *Problem
		if errors.As(err, &known) {
			return known
		}
		p.Errors = append(p.Errors, humaFault(err))
	}
	return p
}

func humaFault(err error) Fault {
	var detailer huma.ErrorDetailer
	if !errors.As(err, &detailer) {
		return Fault{Detail: err.Error()}
	}
	detail := detailer.ErrorDetail()
	_, name, _ := strings.Cut(detail.Location, ".")
	return Fault{Parameter: name, Detail: parameterFault(detail.Message)}
}

// parameterFault says what huma says of a parameter in the words of the other errors, with the remedy.
func parameterFault(message string) string {
	switch message {
	case "unknown query parameter":
		return "is not known; /openapi.json names the parameters of each endpoint"
	case "invalid integer", "invalid float":
		return "is no number; write one without a unit, like 30"
	}
	if values, found := strings.CutPrefix(message, `expected value to be one of "`); found {
		return "is not known; write one of " + strings.TrimSuffix(values, `"`)
	}
	return message
}

// anyCase takes a word of a list in any case, as the command line does.
func anyCase(hc huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(hc)
	query, changed := r.URL.Query(), false
	for _, p := range hc.Operation().Parameters {
		if p.In != "query" || p.Schema == nil {
			continue
		}
		for i, text := range query[p.Name] {
			if word := listed(text, p.Schema.Enum); word != text {
				query[p.Name][i], changed = word, true
			}
		}
	}
	if changed {
		r.URL.RawQuery = query.Encode()
	}
	next(hc)
}

// listed is the word as the list has it; what is not in the list stays as it is.
func listed(text string, list []any) string {
	for _, one := range list {
		if word, ok := one.(string); ok && engine.Fold(word) == engine.Fold(text) {
			return word
		}
	}
	return text
}

// nothingHere answers what no endpoint serves: 405 when another method would be.
func (h *handler) nothingHere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "/" && method != r.Method {
			allowed = append(allowed, method)
		}
	}
	p := notFound("nothing is served at %s; the endpoints stand in /openapi.json", clip(r.URL.Path))
	if len(allowed) > 0 {
		w.Header().Set("Allow", joined(allowed))
		p = problem(http.StatusMethodNotAllowed, CodeMethod, "%s is not served at %s; use %s", clip(r.Method), clip(r.URL.Path), joined(allowed))
	}
	p.RequestID = requestID(r.Context())
	WriteProblem(w, p)
}

// identify gives every request an id: the caller's own, when it is short and plain.
func (h *handler) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !plainID(id) {
			id = uuid.NewString()
		}
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDContext, id)))
	})
}

func plainID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// recover turns a defect into a problem, and tells the log where it is.
func (h *handler) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			h.Logger.ErrorContext(r.Context(), "handler failed", "path", r.URL.Path, "request_id", requestID(r.Context()), "cause", cause, "stack", string(debug.Stack()))
			WriteProblem(w, h.answer(r.Context(), problem(http.StatusInternalServerError, CodeInternal, "something went wrong that the sidecar did not expect; its log tells more")))
		}()
		next.ServeHTTP(w, r)
	})
}

// measure counts requests by route, method and status, and how long they took.
func (h *handler) measure(next http.Handler) http.Handler {
	h.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "countersign_http_request_duration_seconds", Help: "Time to answer a request; waiting counts.",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"route", "method", "status"})
	h.Registry.MustRegister(h.seconds)
	if h.Hub != nil {
		h.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_waiters", Help: "Calls that wait for a verdict to settle.",
		}, func() float64 { return float64(h.Hub.Waiters()) }))
	}
	if h.Feed != nil {
		h.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_event_listeners", Help: "Clients and pages that are told of events as they happen.",
		}, func() float64 { return float64(h.Feed.Readers()) }))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r)
		if recorder.held || recorder.status == http.StatusOK && routeOf(r) == eventsPath {
			return // it is not answered yet; and how long somebody listened says nothing about answering
		}
		h.seconds.WithLabelValues(routeOf(r), methodOf(r), strconv.Itoa(recorder.status)).Observe(time.Since(started).Seconds())
	})
}

// routeOf is the pattern that served a request: bounded, whatever the path.
func routeOf(r *http.Request) string {
	if _, path, ok := strings.Cut(r.Pattern, " "); ok {
		return path
	}
	return "none"
}

// methodOf is bounded too.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodHead:
		return r.Method
	}
	return "other"
}

type statusRecorder struct {
	http.ResponseWriter
	status int
	held   bool
}

// Hijack hands the connection over.
func (s *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(s.ResponseWriter).Hijack()
	s.held = err == nil
	return conn, buffered, err
}

// isHeld says that a request is answered later, by who took its connection.
func isHeld(w http.ResponseWriter) bool {
	recorder, ok := w.(*statusRecorder)
	return ok && recorder.held
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the deadlines.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
