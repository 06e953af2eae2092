// Package web is the one page of the sidecar: for people who look at a trace, a
// customer's case or an agent, and want to see what happened. It reads and
// changes nothing.
//
// Everything that an agent or a webhook sent is hostile text: it reaches a
// browser only through html/template, under a content security policy that
// runs no script but the page's own.
//
// Known limits: sessions end with their key, or after SessionFor; facts that
// were rejected are not in the store, so the page shows the last ones that this
// process rejected, and no others.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// Config of a Page. Ledger, Contracts, Feed and Now are required.
type Config struct {
	Ledger    ledger.Ledger
	Contracts *ledger.ContractCache
	// Feed tells of new verdicts, once it runs; its listeners are also those of the API.
	Feed *feed.Feed
	// Now is the time that lag and ages are measured from.
	Now func() engine.Instant
	// TraceURL is where a trace is shown, like
	// https://grafana.example/trace/{trace_id}?span={span_id}; empty for no link.
	TraceURL string
	// PublicURL is where the sidecar is reached from outside, for commands to
	// copy; empty takes the address that the browser used.
	PublicURL string
	// Store names the store in commands to copy, without its password.
	Store string
	// Secure marks cookies for HTTPS alone.
	Secure bool
	// Guard recognises keys and slows who asks too much; nil has no limits. Share it with the API.
	Guard *keys.Guard
	// Note takes every use of a key, also refused ones; may be nil.
	Note func(keys.Use)
	// Patience is how long a page waits for a count before it shows what is known; default 30 milliseconds.
	Patience time.Duration
	// Heartbeat is how often a quiet connection of an open page says that it is there; default 20 seconds.
	Heartbeat time.Duration
	// SlowClient is how long a browser may take to read what it was told before it is cut off; default 10 seconds.
	SlowClient time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

// Page is the web page. It is safe for concurrent use. Close it.
type Page struct {
	Config
	views    views
	figures  *figures
	refusals *refusals
}

// New checks the settings and makes a page.
func New(c Config) (*Page, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.SlowClient <= 0 {
		c.SlowClient = defaultSlowClient
	}
	if c.Guard == nil {
		c.Guard = keys.Unlimited()
	}
	if err := checkTraceURL(c.TraceURL); err != nil {
		return nil, err
	}
	views, err := parseViews()
	if err != nil {
		return nil, err
	}
	return &Page{
		Config: c, views: views, figures: newFigures(c.Patience), refusals: newRefusals(c.Now()),
	}, nil
}

// Close ends counting that is still under way.
func (p *Page) Close() { p.figures.close() }

// Handler serves the page; what is no page goes to next. A person who opens an
// action's address in the API is sent to the action's page.
func (p *Page) Handler(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/{name}", assetHandler())
	mux.HandleFunc("GET /sign-in", p.open(p.strangers(p.signInForm)))
	mux.HandleFunc("POST /sign-in", p.open(p.strangers(p.signIn)))
	mux.HandleFunc("POST /sign-out", p.signed(p.signOut))
	mux.HandleFunc("GET /live", p.live)
	mux.HandleFunc("GET /{$}", p.signed(p.overview))
	mux.HandleFunc("GET /actions", p.signed(p.actions))
	mux.HandleFunc("GET /actions/{ref}", p.signed(p.action))
	mux.HandleFunc("GET /actions/{ref}/documents/{seq}", p.signed(p.document))
	mux.HandleFunc("GET /contracts", p.signed(p.contracts))
	mux.HandleFunc("GET /contracts/{id}", p.signed(p.contract))
	mux.HandleFunc("GET /sources", p.signed(p.sources))
	mux.HandleFunc("GET /orphans", p.signed(p.orphans))
	mux.HandleFunc("GET /parked", p.signed(p.parked))
	mux.HandleFunc("GET /v1/actions/{ref}", func(w http.ResponseWriter, r *http.Request) {
		if person(r) {
			http.Redirect(w, r, actionPath(r.PathValue("ref")), http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r)
	})
	mux.Handle("/", next)
	return mux
}

// person says whether a request is a browser's that shows a page to somebody.
func person(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("X-API-Key") == "" && r.Header.Get("Authorization") == "" &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}

// requestTimeout bounds the making of a page.
const requestTimeout = 20 * time.Second

// handler makes an answer. An error becomes a page that says what is wrong.
type handler func(w http.ResponseWriter, r *http.Request) error

// open serves a page that needs no session.
func (p *Page) open(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			p.Logger.ErrorContext(ctx, "page failed", "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
			p.fail(w, r, errors.New("the page has a defect"))
		}()
		if err := h(w, r); err != nil {
			p.fail(w, r, err)
		}
	}
}

// strangers bounds by remote address what needs no session.
func (p *Page) strangers(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := p.Guard.AdmitStranger(p.Guard.Address(r)); err != nil {
			return err
		}
		return h(w, r)
	}
}

// policy lets the page run its own script and show its own style, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "private, no-store")
}

// failure is an error that a person may read.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func notFound(format string, args ...any) error {
	return &failure{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// explained is what a person is told of an error.
func explained(err error) failure {
	var known *failure
	var limit *keys.LimitError
	switch {
	case errors.As(err, &known):
		return *known
	case errors.As(err, &limit):
		return failure{http.StatusTooManyRequests, fmt.Sprintf("Too many requests came from you or from your network. Try again in %d seconds.", limit.Seconds())}
	case errors.Is(err, ledger.ErrFilter):
		return failure{http.StatusBadRequest, "This address does not name a page of the list. Begin with the newest actions."}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return failure{http.StatusServiceUnavailable, "This took too long. Narrow the time or the filter, and try again."}
	case errors.Is(err, ledger.ErrUnavailable):
		return failure{http.StatusServiceUnavailable, "The store cannot be reached or is busy. Try again in a moment."}
	case errors.Is(err, ledger.ErrNotMigrated), errors.Is(err, ledger.ErrNewerSchema):
		return failure{http.StatusServiceUnavailable, "The store has the schema of another version. Run countersign migrate, or update this program."}
	}
	return failure{http.StatusInternalServerError, "Something went wrong that the sidecar did not expect. Its log tells more."}
}

// fail shows an error as a page.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	told := explained(err)
	if told.status == http.StatusInternalServerError {
		p.Logger.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, "error", err)
	}
	var limit *keys.LimitError
	if errors.As(err, &limit) {
		w.Header().Set("Retry-After", strconv.Itoa(limit.Seconds()))
	}
	v := errorView{frame: frame{Title: http.StatusText(told.status), Session: sessionOf(r.Context()), Now: p.Now()}, Text: told.text, Status: told.status}
	if err := p.write(w, told.status, "error", v); err != nil {
		p.Logger.ErrorContext(r.Context(), "the page of an error failed", "path", r.URL.Path, "error", err)
		http.Error(w, told.text, told.status)
	}
}

type errorView struct {
	frame
	Text   string
	Status int
}
