package verifiedactionsreceiver

import (
	"context"
	"errors"
	"net/http"
)

// The routes, and what the formats are called in the collector's metrics.
const (
	receiptPath = "/v1/receipts"
	batchPath   = "/v1/receipts/batch"
	verifyPath  = "/v1/receipts/verify/{reference_id}"
	actionsPath = "/v1/verified-actions"

	aevsFormat    = "aevs"
	actionsFormat = "verified_actions"
)

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	if len(s.keys) > 0 {
		mux.Handle("POST "+receiptPath, s.serve(receiptPath, aevsFormat, s.receipt))
		if s.config.AEVS.MaxBatchReceipts > 0 { // without the route, 404: SDKs send one by one then
			mux.Handle("POST "+batchPath, s.serve(batchPath, aevsFormat, s.batch))
		}
		mux.HandleFunc("GET "+verifyPath, s.verify)
	}
	if s.config.servesActions() {
		mux.Handle("POST "+actionsPath, s.serve(actionsPath, actionsFormat, s.actions))
	}
	return mux
}

// serve reports and counts every request, however it ends.
func (s *server) serve(route, format string, handle func(context.Context, *http.Request) answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := s.obsreport.StartTracesOp(r.Context())
		a := s.inSlot(func() answer { return handle(ctx, r) })
		s.obsreport.EndTracesOp(ctx, format, a.spans, a.err)
		s.counters.request(ctx, route, a.outcome)
		s.write(w, &a)
	})
}

func (s *server) inSlot(handle func() answer) answer {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return handle()
	default:
		return refuse(http.StatusServiceUnavailable, busy, errBusy)
	}
}

// refuseBeforeRoute answers what does not get as far as a route: wrong
// compression, or no authentication.
func (s *server) refuseBeforeRoute(w http.ResponseWriter, r *http.Request, text string, status int) {
	what := malformed
	switch status {
	case http.StatusUnauthorized:
		what = unauthorized
	case http.StatusRequestEntityTooLarge:
		what = tooLarge
	}
	a := refuse(status, what, errors.New(text))
	ctx := s.obsreport.StartTracesOp(r.Context())
	s.obsreport.EndTracesOp(ctx, "http", 0, a.err)
	s.counters.request(ctx, "", what)
	s.write(w, &a)
}
