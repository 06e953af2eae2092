// Command middleware is a service that agents call to refund orders, with a
// plain net/http middleware around it that records each refund as an action,
// and a gate that says "done" only when the systems of record agree.
//
//	countersign keys create --role recorder        # prints the key
//	COUNTERSIGN_API_KEY=... go run ./examples/middleware
//	curl -d '{"order_id": "order_10231", "amount": 180.00}' -H 'Content-Type: application/json' localhost:8080/refunds
//	curl localhost:8080/refunds/ID/done
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-otel/countersign/verifier/client"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	address := os.Getenv("COUNTERSIGN_SERVER")
	if address == "" {
		address = "http://localhost:8383"
	}
	countersign, err := client.New(address, client.WithKey(os.Getenv("COUNTERSIGN_API_KEY")))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: "localhost:8080", Handler: service(countersign), ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// service is the whole: a tool for agents, recorded, and a gate.
func service(countersign *client.Client) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /refunds", recorded(countersign, refundAction, http.HandlerFunc(refund)))
	mux.Handle("GET /refunds/{id}/done", gate(countersign))
	return mux
}

// refund is the handler as it was before: it moves money and says so.
func refund(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintln(w, "refunded")
}

// refundAction says what a request to refund asks for.
func refundAction(body []byte) (client.Action, error) {
	var asked struct {
		OrderID string      `json:"order_id"`
		Amount  json.Number `json:"amount"` // exact, as it was sent
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return client.Action{}, err
	}
	if asked.OrderID == "" {
		return client.Action{}, errors.New("order_id is missing")
	}
	return client.Action{
		ContractID: "refund_workflow", SubjectID: asked.OrderID, Tool: "refunds",
		Params: map[string]any{"amount": asked.Amount},
	}, nil
}

const (
	// actionHeader tells the caller which action was recorded.
	actionHeader = "Countersign-Action"
	// maxBody bounds what the middleware holds of a request, in bytes.
	maxBody = 64 << 10
	// recordTimeout bounds recording, so that a sidecar that is away holds up nobody for long.
	recordTimeout = 5 * time.Second
)

// recorded records what next did, when it says that it did it. The action is
// recorded before the answer is sent: a caller that reads the header finds it.
// A sidecar that cannot be reached changes no answer; the log says what was
// not recorded.
func recorded(countersign *client.Client, actionOf func(body []byte) (client.Action, error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
			return
		}
		action, err := actionOf(body)
		if err != nil {
			http.Error(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		action.ActionID, action.RequestedAt = "refund_"+uuid.NewString(), time.Now()
		action.TraceID, action.SpanID = spanOf(r)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Set(actionHeader, action.ActionID)
		answer := &recorder{ResponseWriter: w, record: func(status int) {
			action.ReportedOutcome = outcome(status)
			record(r.Context(), countersign, action)
		}}
		// A handler that panics may have done half of it: that is recorded too.
		defer answer.finish()
		next.ServeHTTP(answer, r)
	})
}

// outcome is what the service claims; it decides no verdict.
func outcome(status int) string {
	if status/100 == 2 {
		return "success"
	}
	return "error"
}

func record(ctx context.Context, countersign *client.Client, action client.Action) {
	// Whoever asked may be gone; what was done was done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if _, err := countersign.Record(ctx, action); err != nil {
		log.Printf("action %s on %s was not recorded: %v", action.ActionID, action.SubjectID, err)
	}
}

// recorder records before the first byte of the answer.
type recorder struct {
	http.ResponseWriter
	record func(status int)
	done   bool
}

func (r *recorder) WriteHeader(status int) {
	if !r.done {
		r.done = true
		r.record(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

// finish records what a handler did that answered nothing, which is 200, or died.
func (r *recorder) finish() {
	status := http.StatusOK
	died := recover()
	if died != nil {
		status = http.StatusInternalServerError
	}
	if !r.done {
		r.done = true
		r.record(status)
	}
	if died != nil {
		panic(died)
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	if !r.done {
		r.WriteHeader(http.StatusOK)
	}
	return r.ResponseWriter.Write(p)
}

// traceparent is the header of W3C Trace Context.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}`)

// spanOf is the caller's span, where the verdict is to be shown; empty without one.
func spanOf(r *http.Request) (traceID, spanID string) {
	match := traceparent.FindStringSubmatch(r.Header.Get("traceparent"))
	if match == nil {
		return "", ""
	}
	return match[1], match[2]
}

// gateTimeout is how long one request at the gate waits.
const gateTimeout = 30 * time.Second

// gate answers 200 when the action was verified, 409 when it failed or cannot
// be known, 202 while nobody can say, and 502 when the sidecar refuses. It never
// says "done" on the word of the one who did it.
func gate(countersign *client.Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), gateTimeout)
		defer cancel()
		verdict, err := countersign.WaitForSettlement(ctx, r.PathValue("id"))
		var refused *client.Problem
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			http.Error(w, "no such action", http.StatusNotFound)
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError:
			http.Error(w, "cannot be verified: "+refused.Detail, http.StatusBadGateway)
		case err != nil:
			http.Error(w, "not yet: "+verdict.Summary.Headline, http.StatusAccepted)
		case verdict.Passed():
			fmt.Fprintln(w, verdict.Summary.Headline)
		default:
			http.Error(w, verdict.Summary.Headline, http.StatusConflict)
		}
	})
}
