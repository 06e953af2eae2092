// Package client speaks to a Countersign sidecar: it records what an agent did,
// pushes what systems of record know, asks for verdicts and waits for them, and
// checks the webhooks that tell of them.
//
// It needs nothing of Countersign but its HTTP API, so that a program that
// imports it compiles no collector and no database.
//
// A request is repeated for up to a minute while the sidecar cannot be reached
// or is busy, and never after its context ended. That is safe: an action has
// its ActionID (AC "Idempotency"), a fact its RawRef or its content (decision
// D8), and verifying once more changes no verdict without new facts.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v7"
)

const (
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 20
	// patience is how long one request is repeated.
	patience = time.Minute
)

// Client is safe for concurrent use. Make one with New.
type Client struct {
	base *url.URL
	key  string
	http *http.Client
}

// Option is a setting of New.
type Option func(*Client)

// WithKey sends an API key with every request (countersign keys create). A
// recorder key records, verifies and waits; an evidence key pushes facts.
func WithKey(secret string) Option { return func(c *Client) { c.key = secret } }

// WithHTTPClient replaces http.DefaultClient, for TLS, proxies or tracing. Its
// Timeout must be zero or longer than MaxWait. Redirects are not followed,
// whatever it says.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// New speaks to the sidecar at address, such as http://localhost:8383. It fails
// on an address that is no http or https URL; it sends nothing yet.
func New(address string, options ...Option) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("the sidecar's address %q is not of the form http://host:port or https://host:port", address)
	}
	c := &Client{base: base, http: http.DefaultClient}
	for _, option := range options {
		option(c)
	}
	// A redirect would carry the key to whoever it names.
	own := *c.http
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	return c, nil
}

// request is one call of the API.
type request struct {
	method string
	// path is escaped.
	path  string
	query url.Values
	// body is JSON; nil for none.
	body []byte
}

func (c *Client) get(ctx context.Context, path string, query url.Values, answer any) error {
	return c.call(ctx, request{method: http.MethodGet, path: path, query: query}, answer)
}

func (c *Client) post(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("the request cannot be written as JSON: %w", err)
	}
	return c.call(ctx, request{method: http.MethodPost, path: path, body: text}, answer)
}

// call repeats a request until it is answered, and decodes the answer.
func (c *Client) call(ctx context.Context, r request, answer any) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		return struct{}{}, again(c.once(ctx, r, answer))
	}, backoff.WithMaxElapsedTime(patience))
	retried := backoff.AsRetryError(err)
	switch {
	case retried == nil:
		return err
	case ctx.Err() != nil && !errors.Is(retried.LastErr, ctx.Err()):
		return fmt.Errorf("%w (%w)", retried.LastErr, context.Cause(ctx))
	}
	return retried.LastErr
}

// again says which errors may go away by themselves.
func again(err error) error {
	var problem *Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &problem) && problem.retryAfter > 0:
		return backoff.RetryAfter(problem.retryAfter, err)
	case errors.As(err, &problem) && !problem.temporary(), errors.Is(err, errAnswer):
		return backoff.Permanent(err)
	}
	return err
}

// errAnswer: whoever answers at the address is no sidecar.
var errAnswer = errors.New("does not answer as a sidecar does")

// once sends a request. An answer that is no success is a *Problem.
func (c *Client) once(ctx context.Context, r request, answer any) error {
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	sent, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	sent.Header.Set("Accept", "application/json")
	if c.key != "" {
		sent.Header.Set("X-API-Key", c.key)
	}
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(sent)
	if err != nil {
		return fmt.Errorf("the sidecar at %s cannot be reached: %w", c.base.Redacted(), withoutURL(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the sidecar at %s stopped answering: %w", c.base.Redacted(), err)
	}
	if response.StatusCode/100 != 2 {
		return problemOf(response, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %w: %w", target.Redacted(), errAnswer, err)
	}
	return nil
}

// withoutURL leaves out what the message names already.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
