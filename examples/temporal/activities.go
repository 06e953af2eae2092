// Package temporal shows a Temporal workflow that reports a refund as done only
// when the systems of record agree, and takes it back when they do not.
//
// It is an example to copy: Activities fit any workflow, Refund is one.
package temporal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/countersign-otel/countersign/verifier/client"
)

// Activities ask a sidecar. Register them with a worker.
type Activities struct {
	Countersign *client.Client
}

// Verdict is what a workflow decides on.
type Verdict struct {
	// Passed: allowed, within its limits, and every effect is there.
	Passed   bool
	Headline string
	// Hash finds the policy verdict in the chain.
	Hash string
}

// Record records what the workflow is about to do, or did. Give the action an
// ActionID that is the same on every attempt, such as the workflow's id.
func (a *Activities) Record(ctx context.Context, action client.Action) error {
	_, err := a.Countersign.Record(ctx, action)
	return forGood(err)
}

// beat is how long one wait lasts before the activity shows that it lives.
const beat = 20 * time.Second

// AwaitVerdict waits until the verdict on an action is settled, however long
// its contract's window is. Set a HeartbeatTimeout of a minute, and a
// StartToCloseTimeout longer than the window and the lag that the sidecar waits for.
func (a *Activities) AwaitVerdict(ctx context.Context, actionID string) (Verdict, error) {
	for {
		verification, err := a.wait(ctx, actionID)
		switch {
		case err == nil:
			return Verdict{verification.Passed(), verification.Summary.Headline, verification.Policy.Hash}, nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return Verdict{}, forGood(err)
		}
		activity.RecordHeartbeat(ctx, verification.Summary.Headline)
	}
}

func (a *Activities) wait(ctx context.Context, actionID string) (client.Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	return a.Countersign.WaitForSettlement(ctx, actionID)
}

// forGood keeps Temporal from repeating what will be refused every time. An
// action that is not there yet may come: telemetry takes its time.
func forGood(err error) error {
	var refused *client.Problem
	if errors.As(err, &refused) && refused.Status/100 == 4 && refused.Status != http.StatusNotFound && refused.Status != http.StatusTooManyRequests {
		return sdk.NewNonRetryableApplicationError(refused.Error(), refused.Code, err)
	}
	return err
}
