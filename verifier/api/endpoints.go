package api

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

type bodyInput struct{ HTTP Exchange }

type RefInput struct {
	Ref string `path:"ref" doc:"the action id, or the internal id (clm_...)"`
}

type output[T any] struct{ Body T }

type recordedBody struct {
	Action view.Recorded `json:"action"`
}

type recordOutput struct {
	Status int
	Body   recordedBody
}

// FilterInput are the filters of lists and summaries.
type FilterInput struct {
	Verdict    string `query:"verdict" enum:"PASS,FAIL,UNKNOWN,PENDING,COMPENSATED" doc:"policy verdict of the latest verification; in any case"`
	ContractID string `query:"contract_id"`
	AgentID    string `query:"agent_id"`
	SubjectID  string `query:"subject_id"`
	TraceID    string `query:"trace_id"`
	WorkflowID string `query:"workflow_id"`
	Since      string `query:"since" doc:"RFC 3339: requested at or after"`
	Until      string `query:"until" doc:"RFC 3339: requested before"`
}

func (in FilterInput) filter() (ledger.ActionFilter, error) {
	filter := ledger.ActionFilter{
		Verdict: in.Verdict, ContractID: engine.Fold(in.ContractID), AgentID: in.AgentID,
		SubjectID: in.SubjectID, TraceID: engine.Fold(in.TraceID), WorkflowID: in.WorkflowID,
	}
	var err error
	if filter.Since, err = instantParameter("since", in.Since); err != nil {
		return ledger.ActionFilter{}, err
	}
	filter.Until, err = instantParameter("until", in.Until)
	return filter, err
}

func instantParameter(name, text string) (*engine.Instant, error) {
	if text == "" {
		return nil, nil
	}
	instant, err := engine.ParseInstant(text)
	if err != nil {
		return nil, badParameter(name, "is an %v (a + of an offset must be written as %%2B)", err)
	}
	return &instant, nil
}

type listInput struct {
	FilterInput
	Cursor string `query:"cursor" maxLength:"1000" doc:"next_cursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type waitInput struct {
	RefInput
	HTTP    Exchange
	Timeout float64 `query:"timeout" minimum:"0" default:"30" doc:"seconds; one call waits 60 at most, whatever is asked for"`
}

// actions are the endpoints of actions and verdicts.
func (h *handler) actions() {
	const actions, ref = "/v1/actions", "/v1/actions/{ref}"
	record := operation("record-action", http.MethodPost, actions, "Record an action", keys.Record, 400, 409, 413, 415, 422)
	record.DefaultStatus = http.StatusCreated
	register(h, record, keys.Record, h.postAction)
	documentBody[ActionBody](h, actions)
	register(h, operation("verify-action", http.MethodPost, actions+"/verify", "Ask for a verdict, by reference or inline", keys.Verify, 400, 404, 409, 413, 415, 422), keys.Verify, h.postVerify)
	documentBody[VerifyBody](h, actions+"/verify")
	register(h, operation("list-actions", http.MethodGet, actions, "List actions, newest first", keys.Read, 422), keys.Read,
		func(ctx context.Context, caller Caller, in *listInput) (*output[Page], error) {
			filter, err := in.filter()
			if err != nil {
				return nil, err
			}
			filter.Cursor, filter.Limit = in.Cursor, in.Limit
			return body(h.List(ctx, caller, filter))
		})
	register(h, operation("summarize-actions", http.MethodGet, actions+"/summary", "Count actions by verdict", keys.Read, 422), keys.Read,
		func(ctx context.Context, caller Caller, in *FilterInput) (*output[Counts], error) {
			filter, err := in.filter()
			if err != nil {
				return nil, err
			}
			return body(h.Summary(ctx, caller, filter))
		})
	register(h, operation("get-action", http.MethodGet, ref, "Get an action with its latest verification", keys.Read, 404), keys.Read,
		func(ctx context.Context, caller Caller, in *RefInput) (*output[view.Verification], error) {
			return body(h.Get(ctx, caller, in.Ref))
		})
	register(h, operation("list-runs", http.MethodGet, ref+"/runs", "List all verifications of an action", keys.Read, 404), keys.Read,
		func(ctx context.Context, caller Caller, in *RefInput) (*output[History], error) {
			return body(h.Runs(ctx, caller, in.Ref))
		})
	wait := operation(waitOperation, http.MethodGet, ref+"/wait", "Wait until the verdict is settled", keys.Read, 404, 409, 422)
	schema := h.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Waited](), true, "")
	wait.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}}
	register(h, wait, keys.Read, h.getWait)
}

func body[T any](value T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{value}, nil
}

func (h *handler) postAction(ctx context.Context, caller Caller, in *bodyInput) (*recordOutput, error) {
	text, release, err := h.body(ctx, in.HTTP, maxActionBody)
	if err != nil {
		return nil, err
	}
	defer release()
	recorded, created, err := h.Record(ctx, caller, text)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &recordOutput{status, recordedBody{recorded}}, nil
}

func (h *handler) postVerify(ctx context.Context, caller Caller, in *bodyInput) (*output[Verified], error) {
	limit := int64(maxActionBody)
	if keys.May(caller.Role, keys.Push) {
		limit = maxFactsBody
	}
	text, release, err := h.body(ctx, in.HTTP, limit)
	if err != nil {
		return nil, err
	}
	defer release()
	return body(h.Verify(ctx, caller, text))
}

func (h *handler) getWait(ctx context.Context, caller Caller, in *waitInput) (*huma.StreamResponse, error) {
	timeout := MaxWait
	if in.Timeout < MaxWait.Seconds() {
		timeout = time.Duration(in.Timeout * float64(time.Second))
	}
	// Waiting is no slow client: the server's deadlines start again.
	control := http.NewResponseController(in.HTTP.response)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Now().Add(timeout + h.RequestTimeout))
	w, err := h.arrive(ctx, caller, in.Ref, timeout)
	if err != nil {
		return nil, err
	}
	if h.holdOnly(w, in.HTTP, timeout) {
		return &huma.StreamResponse{Body: func(huma.Context) {}}, nil
	}
	to, err := w.stay(ctx)
	if err != nil {
		return nil, err
	}
	text, err := to.body(w.waited())
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		_, _ = hc.BodyWriter().Write(text) // the client may be gone
	}}, nil
}

// evidence is the endpoint of facts.
func (h *handler) evidence() {
	register(h, operation("push-facts", http.MethodPost, "/v1/facts", "Push facts, links and watermarks", keys.Push, 400, 413, 415, 422), keys.Push,
		func(ctx context.Context, caller Caller, in *bodyInput) (*output[Pushed], error) {
			text, release, err := h.body(ctx, in.HTTP, maxFactsBody)
			if err != nil {
				return nil, err
			}
			defer release()
			return body(h.Push(ctx, caller, text))
		})
	documentBody[FactsBody](h, "/v1/facts")
}

type orphansInput struct {
	Source string `query:"source"`
	Since  string `query:"since" doc:"RFC 3339: occurred at or after"`
	Until  string `query:"until" doc:"RFC 3339: occurred before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type idInput struct {
	ID string `path:"id"`
}

type rejectedInput struct {
	Source string `query:"source"`
	Since  string `query:"since" doc:"RFC 3339: came at or after, for the last time"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// reports are the endpoints for people who look after a tenant.
func (h *handler) reports() {
	register(h, operation("list-orphans", http.MethodGet, "/v1/reports/orphans", "List effects that no recorded action explains", keys.Inspect, 422), keys.Inspect,
		func(ctx context.Context, caller Caller, in *orphansInput) (*output[OrphanList], error) {
			query := OrphanQuery{Source: engine.Fold(in.Source), Limit: in.Limit}
			var err error
			if query.Since, err = instantParameter("since", in.Since); err != nil {
				return nil, err
			}
			if query.Until, err = instantParameter("until", in.Until); err != nil {
				return nil, err
			}
			return body(h.Orphans(ctx, caller, query))
		})
	register(h, operation("list-rejected-facts", http.MethodGet, "/v1/facts/rejected", "List evidence that was sent and not taken", keys.Inspect, 422), keys.Inspect,
		func(ctx context.Context, caller Caller, in *rejectedInput) (*output[RejectedList], error) {
			query := RejectedQuery{Source: engine.Fold(in.Source), Limit: in.Limit}
			var err error
			if query.Since, err = instantParameter("since", in.Since); err != nil {
				return nil, err
			}
			return body(h.Rejected(ctx, caller, query))
		})
	register(h, operation("list-sources", http.MethodGet, "/v1/sources", "List sources of facts", keys.Inspect), keys.Inspect,
		func(ctx context.Context, caller Caller, _ *struct{}) (*output[SourceList], error) {
			return body(h.Sources(ctx, caller))
		})
	register(h, operation("list-contracts", http.MethodGet, "/v1/contracts", "List the latest version of every contract", keys.Inspect), keys.Inspect,
		func(ctx context.Context, caller Caller, _ *struct{}) (*output[ContractList], error) {
			return body(h.ListContracts(ctx, caller))
		})
	register(h, operation("get-contract", http.MethodGet, "/v1/contracts/{id}", "Get all versions of a contract", keys.Inspect, 404), keys.Inspect,
		func(ctx context.Context, caller Caller, in *idInput) (*output[ContractList], error) {
			return body(h.Contract(ctx, caller, in.ID))
		})
}

type hashInput struct {
	Hash string `path:"hash" doc:"verdict hash, 64 hex digits"`
}

// public endpoints need no key and show no tenant's data.
func (h *handler) public() {
	open(h, operation("get-definition", http.MethodGet, "/v1/public/definitions/{id}", "Get a contract in words", "", 404),
		func(ctx context.Context, in *idInput) (*output[Definition], error) {
			return body(h.Definition(ctx, in.ID))
		})
	open(h, operation("get-public-verdict", http.MethodGet, "/v1/public/verdicts/{hash}", "Look a verdict up by its hash", "", 404, 422),
		func(ctx context.Context, in *hashInput) (*output[PublicVerdict], error) {
			return body(h.PublicVerdict(ctx, in.Hash))
		})
}
