package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is what a sidecar says when it does not do what was asked (RFC 9457
// problem details). Tell problems apart by Code.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	// Code is stable: malformed, unauthorized, forbidden, not_found, conflict, too_large, invalid,
	// unknown_contract, parked, expired, busy, unavailable, ...; empty when somebody else answered.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// RequestID finds the request in the sidecar's log.
	RequestID string `json:"request_id"`
	// Errors are all the places that are wrong.
	Errors []Fault `json:"errors"`

	retryAfter time.Duration
}

// Fault is one thing that is wrong in a request.
type Fault struct {
	// Pointer is a JSON pointer (RFC 6901) into the body that was sent.
	Pointer string `json:"pointer"`
	// Parameter is the name of a path or query parameter.
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
}

// Error prints the detail and every fault.
func (p *Problem) Error() string {
	if len(p.Errors) == 0 {
		return p.Detail
	}
	faults := make([]string, len(p.Errors))
	for i, f := range p.Errors {
		faults[i] = f.Pointer + f.Parameter + " " + f.Detail
	}
	return p.Detail + ": " + strings.Join(faults, "; ")
}

// temporary are the statuses that proxies and sidecars give while they are busy.
func (p *Problem) temporary() bool {
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, p.Status)
}

// problemOf reads an answer that is no success, whoever gave it.
func problemOf(response *http.Response, text []byte) *Problem {
	p := new(Problem)
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "application/problem+json" || json.Unmarshal(text, p) != nil {
		p = &Problem{Detail: fmt.Sprintf("%s answers %s to %s, and not as a sidecar does", response.Request.URL.Host, response.Status, response.Request.URL.Path)}
	}
	p.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && p.temporary() {
		p.retryAfter = min(time.Duration(seconds)*time.Second, patience)
	}
	return p
}
