package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Verification is what the story looks at in a verification.
type Verification struct {
	Action struct {
		ActionID    string `json:"action_id"`
		ContractID  string `json:"contract_id"`
		SubjectID   string `json:"subject_id"`
		TraceID     string `json:"trace_id"`
		SpanID      string `json:"span_id"`
		AgentID     string `json:"agent_id"`
		Tool        string `json:"tool"`
		RequestedAt string `json:"requested_at"`
	} `json:"action"`
	Status  string `json:"status"`
	Outcome *Lens  `json:"outcome"`
	Policy  *Lens  `json:"policy"`
	Summary struct {
		Headline string `json:"headline"`
	} `json:"summary"`
	Changed bool `json:"changed"`
	Run     *Run `json:"run"`
	// TimedOut is set by waiting alone.
	TimedOut bool `json:"timed_out"`
}

// Lens is one verdict.
type Lens struct {
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons"`
	Hash    string   `json:"hash"`
}

// Run is where a verification stands in the chain.
type Run struct {
	ID  string `json:"id"`
	Seq int64  `json:"seq"`
}

// SendTraces sends an OTLP/JSON request to the collector, as an agent's SDK does.
func (s *Stack) SendTraces(ctx context.Context, request []byte) error {
	return post(ctx, "http://"+s.Addresses.OTLPHTTP+"/v1/traces", "", request, nil)
}

// PushFacts pushes a body of POST /v1/facts with the evidence key and fails
// when anything of it was rejected.
func (s *Stack) PushFacts(ctx context.Context, body []byte) error {
	var answer struct {
		Ingested int `json:"ingested"`
		Rejected []struct {
			Index int    `json:"index"`
			Error string `json:"error"`
		} `json:"rejected"`
	}
	if err := post(ctx, s.API("/v1/facts"), s.Keys["evidence"], body, &answer); err != nil {
		return err
	}
	if len(answer.Rejected) > 0 {
		return fmt.Errorf("facts rejected: %+v", answer.Rejected)
	}
	return nil
}

// Verify verifies a recorded action again.
func (s *Stack) Verify(ctx context.Context, actionID string) (v Verification, err error) {
	body, err := json.Marshal(map[string]string{"action_id": actionID})
	if err != nil {
		return v, err
	}
	return v, post(ctx, s.API("/v1/actions/verify"), s.Keys["analyst"], body, &v)
}

// Wait waits for the verdict of an action to settle, at most about timeout.
func (s *Stack) Wait(ctx context.Context, actionID string, timeout time.Duration) (v Verification, err error) {
	path := fmt.Sprintf("/v1/actions/%s/wait?timeout=%g", url.PathEscape(actionID), timeout.Seconds())
	return v, get(ctx, s.API(path), s.Keys["recorder"], &v)
}

// Actions lists recorded actions; query is that of GET /v1/actions.
func (s *Stack) Actions(ctx context.Context, query url.Values) ([]Verification, error) {
	var page struct {
		Actions []Verification `json:"actions"`
	}
	err := get(ctx, s.API("/v1/actions?"+query.Encode()), s.Keys["viewer"], &page)
	return page.Actions, err
}

// Runs are all verifications of an action, oldest first.
func (s *Stack) Runs(ctx context.Context, actionID string) ([]Verification, error) {
	var history struct {
		Runs []Verification `json:"runs"`
	}
	err := get(ctx, s.API("/v1/actions/"+url.PathEscape(actionID)+"/runs"), s.Keys["viewer"], &history)
	return history.Runs, err
}

// Await polls until the answer is done, or ctx ends; then it returns the last
// answer and an error.
func Await[T any](ctx context.Context, what string, ask func(context.Context) (answer T, done bool, err error)) (last T, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, done, err := ask(ctx)
		switch {
		case ctx.Err() != nil:
			return last, fmt.Errorf("waited in vain for %s: %w", what, ctx.Err())
		case err != nil || done:
			return answer, err
		}
		last = answer
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, url, key string, answer any) error {
	return do(ctx, http.MethodGet, url, key, nil, answer)
}

func post(ctx context.Context, url, key string, body []byte, answer any) error {
	return do(ctx, http.MethodPost, url, key, body, answer)
}

func do(ctx context.Context, method, url, key string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("X-API-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %s: %w in %.200s", method, url, err, text)
	}
	return nil
}
