package web

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/countersign-otel/countersign/engine"
)

// Refusal is a push of facts that did not get in whole. Facts that are
// rejected are not stored, so the page remembers the last ones of this process.
type Refusal struct {
	At engine.Instant
	// Key is the visible start of the key that pushed.
	Key string
	// Rejected were wrong; Conflicting stand in the store with other content (decision D8).
	Rejected, Conflicting int
	// Errors are the first few, with the place in the body.
	Errors []string
}

const (
	// errorsKept of one push, refusalsKept of one tenant and tenantsKept bound what is remembered.
	errorsKept   = 5
	refusalsKept = 50
	tenantsKept  = 200
	// mostError is how long an error may be: it may quote what was sent.
	mostError = 400
)

// Add remembers one error, if it is one of the first.
func (r *Refusal) Add(place, text string) {
	if len(r.Errors) == errorsKept {
		return
	}
	if place != "" {
		text = place + ": " + text
	}
	r.Errors = append(r.Errors, clip(mostError, text))
}

type refusals struct {
	since engine.Instant

	mu      sync.Mutex
	tenants *lru.Cache[string, []Refusal]
}

func newRefusals(since engine.Instant) *refusals {
	tenants, err := lru.New[string, []Refusal](tenantsKept)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &refusals{since: since, tenants: tenants}
}

// Refused tells the page of a push that did not get in whole.
func (p *Page) Refused(tenant string, refusal Refusal) {
	r := p.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.tenants.Get(tenant)
	kept := append([]Refusal{refusal}, known...)
	r.tenants.Add(tenant, kept[:min(len(kept), refusalsKept)])
}

// of are the last refusals of a tenant, the newest first.
func (r *refusals) of(tenant string) []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.tenants.Get(tenant)
	return known
}
