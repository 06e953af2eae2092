package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/view"
)

const (
	// requestTimeout is more than the longest wait of one request.
	requestTimeout = api.MaxWait + 15*time.Second
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 20
)

// remote is the API of a sidecar.
type remote struct {
	base   *url.URL
	key    configopaque.String
	client *http.Client
}

// Close has nothing to give back but connections.
func (r *remote) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

func (r *remote) Record(ctx context.Context, body []byte) (view.Recorded, bool, error) {
	var answer struct {
		Action view.Recorded `json:"action"`
	}
	status, err := r.call(ctx, http.MethodPost, "/v1/actions", nil, body, &answer)
	return answer.Action, status == http.StatusCreated, err
}

func (r *remote) Verify(ctx context.Context, body []byte) (verified api.Verified, err error) {
	_, err = r.call(ctx, http.MethodPost, "/v1/actions/verify", nil, body, &verified)
	return verified, err
}

func (r *remote) Get(ctx context.Context, ref string) (shown view.Verification, err error) {
	_, err = r.call(ctx, http.MethodGet, "/v1/actions/"+url.PathEscape(ref), nil, nil, &shown)
	return shown, err
}

func (r *remote) List(ctx context.Context, filter ledger.ActionFilter) (page api.Page, err error) {
	_, err = r.call(ctx, http.MethodGet, "/v1/actions", query(filter), nil, &page)
	return page, err
}

func (r *remote) Summary(ctx context.Context, filter ledger.ActionFilter) (summary api.Counts, err error) {
	_, err = r.call(ctx, http.MethodGet, "/v1/actions/summary", query(filter), nil, &summary)
	return summary, err
}

func (r *remote) Wait(ctx context.Context, ref string, timeout time.Duration) (waited api.Waited, err error) {
	values := url.Values{"timeout": {strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64)}}
	_, err = r.call(ctx, http.MethodGet, "/v1/actions/"+url.PathEscape(ref)+"/wait", values, nil, &waited)
	return waited, err
}

func (r *remote) Push(ctx context.Context, body []byte) (pushed api.Pushed, err error) {
	_, err = r.call(ctx, http.MethodPost, "/v1/facts", nil, body, &pushed)
	return pushed, err
}

func (r *remote) Contracts(ctx context.Context, id string) (list api.ContractList, err error) {
	path := "/v1/contracts"
	if id != "" {
		path += "/" + url.PathEscape(id)
	}
	_, err = r.call(ctx, http.MethodGet, path, nil, nil, &list)
	return list, err
}

func (r *remote) Sources(ctx context.Context) (list api.SourceList, err error) {
	_, err = r.call(ctx, http.MethodGet, "/v1/sources", nil, nil, &list)
	return list, err
}

func (r *remote) Orphans(ctx context.Context, q api.OrphanQuery) (list api.OrphanList, err error) {
	values := url.Values{}
	set(values, "source", q.Source)
	setInstant(values, "since", q.Since)
	setInstant(values, "until", q.Until)
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	_, err = r.call(ctx, http.MethodGet, "/v1/reports/orphans", values, nil, &list)
	return list, err
}

func (r *remote) Rejected(ctx context.Context, q api.RejectedQuery) (list api.RejectedList, err error) {
	values := url.Values{}
	set(values, "source", q.Source)
	setInstant(values, "since", q.Since)
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	_, err = r.call(ctx, http.MethodGet, "/v1/facts/rejected", values, nil, &list)
	return list, err
}

func (r *remote) DeadLetters(ctx context.Context, f ledger.DeadLetterFilter) (list api.DeadLetterList, err error) {
	values := url.Values{}
	set(values, "endpoint", f.Endpoint)
	set(values, "cursor", f.Cursor)
	if f.Limit > 0 {
		values.Set("limit", strconv.Itoa(f.Limit))
	}
	_, err = r.call(ctx, http.MethodGet, "/v1/webhooks/dead-letters", values, nil, &list)
	return list, err
}

func (r *remote) KeyEvents(ctx context.Context, f ledger.KeyEventFilter) (list api.KeyEventList, err error) {
	values := url.Values{}
	set(values, "key", f.Key)
	set(values, "kind", f.Kind)
	set(values, "cursor", f.Cursor)
	setInstant(values, "since", f.Since)
	setInstant(values, "until", f.Until)
	if f.Limit > 0 {
		values.Set("limit", strconv.Itoa(f.Limit))
	}
	_, err = r.call(ctx, http.MethodGet, "/v1/keys/audit", values, nil, &list)
	return list, err
}

func (r *remote) Replay(ctx context.Context, id string) (replayed api.Replayed, err error) {
	_, err = r.call(ctx, http.MethodPost, "/v1/webhooks/deliveries/"+url.PathEscape(id)+"/replay", nil, nil, &replayed)
	return replayed, err
}

func query(f ledger.ActionFilter) url.Values {
	values := url.Values{}
	set(values, "verdict", f.Verdict)
	set(values, "contract_id", f.ContractID)
	set(values, "agent_id", f.AgentID)
	set(values, "subject_id", f.SubjectID)
	set(values, "trace_id", f.TraceID)
	set(values, "workflow_id", f.WorkflowID)
	set(values, "cursor", f.Cursor)
	setInstant(values, "since", f.Since)
	setInstant(values, "until", f.Until)
	if f.Limit > 0 {
		values.Set("limit", strconv.Itoa(f.Limit))
	}
	return values
}

func set(values url.Values, name, text string) {
	if text != "" {
		values.Set(name, text)
	}
}

func setInstant(values url.Values, name string, at *engine.Instant) {
	if at != nil {
		values.Set(name, at.String())
	}
}

// call sends one request. An answer that is no success becomes the problem
// that the sidecar describes.
func (r *remote) call(ctx context.Context, method, path string, values url.Values, body []byte, answer any) (status int, err error) {
	// The path is escaped already; JoinPath keeps it so.
	target := r.base.JoinPath(path)
	target.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-API-Key", string(r.key))
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("%s cannot be reached: %w; is the sidecar running (countersign serve), and is --server its address?", r.base.Redacted(), withoutURL(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("%s stopped answering: %w", r.base.Redacted(), err)
	}
	if response.StatusCode/100 != 2 {
		return response.StatusCode, r.problem(response, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return response.StatusCode, fmt.Errorf("%s does not answer as a sidecar does: %w", target.Redacted(), err)
	}
	return response.StatusCode, nil
}

// withoutURL leaves out what the message names already.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func (r *remote) problem(response *http.Response, text []byte) error {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var described api.Problem
	if err == nil && kind == "application/problem+json" && json.Unmarshal(text, &described) == nil && described.Status != 0 {
		return &described
	}
	return fmt.Errorf("%s answers %s to %s %s, and not as a sidecar does", r.base.Redacted(), response.Status, response.Request.Method, response.Request.URL.Path)
}
