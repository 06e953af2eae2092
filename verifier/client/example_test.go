package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/countersign-otel/countersign/verifier/client"
)

// An agent refunded an order. Say so, and tell the customer only once it is true.
func Example() {
	c, err := client.New(address, client.WithKey(secret)) // such as http://localhost:8383
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	requested := time.Now()
	action, err := c.Record(ctx, client.Action{
		ActionID:    "refund_2041",
		ContractID:  "refund_workflow",
		SubjectID:   "order_2041",
		AgentID:     "support_bot",
		RequestedAt: requested,
		Params:      map[string]any{"amount": json.Number("180.00")},
	})
	if err != nil {
		log.Fatal(err)
	}

	// What systems of record say comes from them: webhooks, polls, a pipeline. Here it is pushed by hand.
	pushed, err := c.Push(ctx, effectsOf("order_2041", requested))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pushed.Ingested, "facts")

	verdict, err := c.WaitForSettlement(ctx, action.ActionID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verdict.Status, verdict.Passed())
	fmt.Println(verdict.Summary.Headline)
	// Output:
	// 5 facts
	// settled true
	// PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected
}

// effectsOf is what four systems know of a refund that went well.
func effectsOf(order string, requested time.Time) client.Batch {
	fact := func(source, kind string, attributes any) client.Fact {
		return client.Fact{Source: source, Type: kind, SubjectID: order, SubjectKind: "order", OccurredAt: requested, Attributes: attributes}
	}
	eligible := fact("shopify", "order_status", map[string]string{"status": "eligible"})
	eligible.OccurredAt = requested.Add(-time.Minute)
	return client.Batch{Facts: []client.Fact{
		eligible,
		fact("stripe", "refund_created", map[string]any{"amount": json.Number("180.00"), "currency": "USD"}),
		fact("shopify", "order_cancelled", nil),
		fact("crm", "note_added", nil),
		fact("messaging", "customer_notified", nil),
	}}
}

// What is wrong with a request is told place by place.
func ExampleProblem() {
	c, err := client.New(address, client.WithKey(secret))
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Record(context.Background(), client.Action{ContractID: "no_such_contract", SubjectID: "order_1"})
	var problem *client.Problem
	if errors.As(err, &problem) {
		fmt.Println(problem.Status, problem.Code)
	}
	// Output: 422 unknown_contract
}

// The newest failures of one agent.
func ExampleClient_List() {
	c, err := client.New(address, client.WithKey(secret))
	if err != nil {
		log.Fatal(err)
	}
	failed := 0
	for _, err := range c.List(context.Background(), client.Filter{Verdict: client.Fail, AgentID: "nobody"}) {
		if err != nil {
			log.Fatal(err)
		}
		failed++
	}
	fmt.Println(failed)
	// Output: 0
}

// A handler of the sidecar's webhooks.
func ExampleReadWebhook() {
	const signing = "whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0ISE="
	http.HandleFunc("POST /countersign", func(w http.ResponseWriter, r *http.Request) {
		event, err := client.ReadWebhook(r, signing)
		if err != nil {
			http.Error(w, "not for me", http.StatusUnauthorized)
			return
		}
		log.Printf("event %s: %s", r.Header.Get("webhook-id"), event)
	})
}
