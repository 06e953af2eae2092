package evidencereceiver

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
)

// TestRefusalsAreInTheLog: the sender is told nothing, the operator why.
func TestRefusalsAreInTheLog(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	set := receivertest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	s := &running{server: startWith(t, testConfig(), set, &consumertest.LogsSink{})}
	for _, r := range []*request{
		to("/crm", "[]"), to("/crm", "[]").with("X-API-Key", "evidence_key_of_the_crN"),
		to("/stripe", refund).stripe(time.Now().Add(-time.Hour)), to("/stripe", refund).stripe(time.Now()),
		to("/crm", "[]"),
	} {
		if got := s.send(t, r); got.status != http.StatusOK && got.status != http.StatusUnauthorized {
			t.Fatalf("answered %+v", got)
		}
	}
	var got []string
	for _, entry := range logged.All() {
		fields := entry.ContextMap()
		got = append(got, fmt.Sprintf("%s %s: %s", fields["endpoint"], fields["outcome"], entry.Message))
	}
	slices.Sort(got)
	want := []string{
		"crm bad_signature: webhooks were refused: " + remedies[badSignature],
		"crm unsigned: webhooks were refused: " + remedies[unsigned],
		"stripe expired: webhooks were refused: " + remedies[expired],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRefusalsAreCountedBetweenWarnings pins that no flood reaches the log, and that none is forgotten.
func TestRefusalsAreCountedBetweenWarnings(t *testing.T) {
	t.Parallel()
	w := newWarnings(zap.NewNop())
	start := time.Unix(1_000, 0)
	what := refusal{"stripe", badSignature}
	for _, row := range []struct {
		after      time.Duration
		deliveries int
	}{{0, 1}, {time.Second, 0}, {59 * time.Second, 0}, {time.Minute, 3}, {2 * time.Minute, 1}} {
		if n, due := w.due(start.Add(row.after), what); n != row.deliveries || due != (row.deliveries > 0) {
			t.Errorf("after %s: %d, %v", row.after, n, due)
		}
	}
}

// TestRemediesAreComplete: what is no success has one.
func TestRemediesAreComplete(t *testing.T) {
	t.Parallel()
	for _, what := range outcomes {
		if _, has := remedies[what]; has == (what == accepted || what == challenge) {
			t.Errorf("%s: a remedy: %v", what, has)
		}
	}
}
