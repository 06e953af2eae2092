package temporal

import (
	"encoding/json"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/countersign-otel/countersign/verifier/client"
)

// Order is what is to be refunded.
type Order struct {
	ID     string
	Amount json.Number
}

// Names of the activities that move money. They are yours, and no part of this example.
const (
	RefundActivity   = "Refund"
	TakeBackActivity = "TakeBack"
)

// Result is what the workflow reports.
type Result struct {
	Done     bool
	Headline string
}

// Refund pays, waits for the verdict, and takes back what should not have been.
func Refund(ctx workflow.Context, order Order) (Result, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &sdk.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
	})
	action := client.Action{
		ActionID:    workflow.GetInfo(ctx).WorkflowExecution.ID,
		WorkflowID:  workflow.GetInfo(ctx).WorkflowExecution.ID,
		ContractID:  "refund_workflow",
		SubjectID:   order.ID,
		RequestedAt: workflow.Now(ctx),
		Params:      map[string]any{"amount": order.Amount},
	}
	if err := workflow.ExecuteActivity(ctx, RefundActivity, order).Get(ctx, nil); err != nil {
		return Result{}, err
	}
	var activities *Activities
	if err := workflow.ExecuteActivity(ctx, activities.Record, action).Get(ctx, nil); err != nil {
		return Result{}, err
	}
	verdict, err := await(ctx, action.ActionID)
	if err != nil {
		return Result{}, err
	}
	if verdict.Passed {
		return Result{true, verdict.Headline}, nil
	}
	return Result{false, verdict.Headline}, workflow.ExecuteActivity(ctx, TakeBackActivity, order).Get(ctx, nil)
}

// await outlives the contract's window and a source that lags.
func await(ctx workflow.Context, actionID string) (verdict Verdict, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 72 * time.Hour, HeartbeatTimeout: time.Minute})
	var activities *Activities
	err = workflow.ExecuteActivity(ctx, activities.AwaitVerdict, actionID).Get(ctx, &verdict)
	return verdict, err
}
