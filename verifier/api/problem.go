package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Problem is an error as RFC 9457 problem details. It is also the error of
// Service, for callers without HTTP.
type Problem struct {
	// Type is always about:blank; Code tells problems apart.
	Type   string `json:"type" example:"about:blank"`
	Title  string `json:"title" example:"Unprocessable Entity" doc:"the status in words"`
	Status int    `json:"status" example:"422"`
	Code   Code   `json:"code" example:"invalid" doc:"stable name of the problem, for programs"`
	Detail string `json:"detail" example:"the action cannot be recorded"`
	// RequestID is that of the X-Request-Id header.
	RequestID string  `json:"request_id,omitempty"`
	Errors    []Fault `json:"errors,omitempty" doc:"every place that is wrong"`
	// RetryAfter is when to come again, in seconds; sent as a header.
	RetryAfter int `json:"-"`
}

// Fault is one thing that is wrong in a request.
type Fault struct {
	// Pointer is a JSON pointer (RFC 6901) into the body; Parameter the name of a path or query parameter.
	Pointer   string `json:"pointer,omitempty" example:"/params/amount"`
	Parameter string `json:"parameter,omitempty" example:"limit"`
	Detail    string `json:"detail" example:"is a number; send a text"`
}

// Code names a kind of problem. Codes are stable.
type Code string

// Codes.
const (
	CodeMalformed       Code = "malformed"         // 400: no JSON
	CodeUnauthorized    Code = "unauthorized"      // 401: no key, or one that is not good
	CodeForbidden       Code = "forbidden"         // 403: the key may not
	CodeNotFound        Code = "not_found"         // 404
	CodeMethod          Code = "method"            // 405
	CodeTimeout         Code = "timeout"           // 408
	CodeConflict        Code = "conflict"          // 409
	CodeTooLarge        Code = "too_large"         // 413
	CodeMediaType       Code = "media_type"        // 415
	CodeInvalid         Code = "invalid"           // 422
	CodeUnknownContract Code = "unknown_contract"  // 422
	CodeParked          Code = "parked"            // 409: somebody must look at the action first
	CodeExpired         Code = "expired"           // 409: retention has dropped its facts; the last verdict stands
	CodeTooMany         Code = "too_many_requests" // 429: come again after Retry-After
	CodeBusy            Code = "busy"              // 503: try again
	CodeUnavailable     Code = "unavailable"       // 503: the store cannot be reached or written
	CodeInternal        Code = "internal"          // 500
)

// Error prints the detail and every fault, for logs and terminals.
func (p *Problem) Error() string {
	if len(p.Errors) == 0 {
		return p.Detail
	}
	faults := make([]string, len(p.Errors))
	for i, f := range p.Errors {
		faults[i] = f.String()
	}
	return p.Detail + ": " + strings.Join(faults, "; ")
}

// String is the place and what is wrong with it.
func (f Fault) String() string {
	switch {
	case f.Pointer != "":
		return f.Pointer + " " + f.Detail
	case f.Parameter != "":
		return f.Parameter + " " + f.Detail
	}
	return f.Detail
}

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders tells clients to come back when that may help.
func (p *Problem) GetHeaders() http.Header {
	switch {
	case p.RetryAfter > 0:
		return http.Header{"Retry-After": {strconv.Itoa(p.RetryAfter)}}
	case p.Status == http.StatusServiceUnavailable:
		return http.Header{"Retry-After": {"1"}}
	}
	return nil
}

// ContentType is that of RFC 9457.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// Busy tells a client to come again.
func Busy(detail string) *Problem {
	return problem(http.StatusServiceUnavailable, CodeBusy, "%s", detail)
}

func problem(status int, code Code, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// invalid is a problem of a body that was understood and is wrong.
func invalid(detail string, faults ...Fault) *Problem {
	p := problem(http.StatusUnprocessableEntity, CodeInvalid, "%s", detail)
	p.Errors = faults
	return p
}

func at(pointer, format string, args ...any) Fault {
	return Fault{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}

func badParameter(name, format string, args ...any) *Problem {
	p := problem(http.StatusUnprocessableEntity, CodeInvalid, "a parameter of the request is wrong")
	p.Errors = []Fault{{Parameter: name, Detail: fmt.Sprintf(format, args...)}}
	return p
}

func notFound(format string, args ...any) *Problem {
	return problem(http.StatusNotFound, CodeNotFound, format, args...)
}

func forbidden(format string, args ...any) *Problem {
	return problem(http.StatusForbidden, CodeForbidden, format, args...)
}
