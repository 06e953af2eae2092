package ledgerexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/ledger"
)

// Outcomes of items that the ledger took.
const (
	outcomeCreated     = "created"
	outcomeUpdated     = "updated"
	outcomeUnchanged   = "unchanged"
	outcomeIngested    = "ingested"
	outcomeDuplicate   = "duplicate"
	outcomeConflicting = "conflicting"
	outcomeStored      = "stored"
	outcomeReported    = "reported"
	outcomeCapped      = "capped"
)

// Reasons why items were not written.
const (
	reasonUnreadable      = ledger.RejectedUnreadable
	reasonRole            = ledger.RejectedRole
	reasonSource          = ledger.RejectedSource
	reasonTenant          = ledger.RejectedTenant
	reasonUnknownContract = "unknown_contract"
	reasonCycle           = "cycle"
	reasonInvalid         = ledger.RejectedInvalid
	reasonConflicting     = ledger.RejectedConflicting
	reasonStore           = ledger.RejectedStore
	// Of the processor: a rule failed; nobody says that the record can be believed.
	reasonRule    = ledger.RejectedRule
	reasonNoTrust = ledger.RejectedNoTrust
)

// count names what is counted: what is an outcome or a reason.
type count struct {
	kind kind
	what string
}

// tally counts one batch.
type tally struct {
	taken, rejected  map[count]int64
	unknownContracts map[string]int
	// held counts actions that came again with other content after they had
	// settled; firstHeld is one of them.
	held      int
	firstHeld heldAction
	// kept is evidence that was not written, by tenant.
	kept map[string][]ledger.RejectedFact
}

// heldAction is an action that stands as it was recorded, and the fields in which it came again differently.
type heldAction struct {
	tenant, id string
	fields     []string
}

func (t *tally) hold(n int, first heldAction) {
	if n > 0 && t.held == 0 {
		t.firstHeld = first
	}
	t.held += n
}

func (t *tally) keep(tenant string, r ledger.RejectedFact) {
	if t.kept == nil {
		t.kept = map[string][]ledger.RejectedFact{}
	}
	t.kept[tenant] = append(t.kept[tenant], r)
}

func (t *tally) take(k kind, outcome string, n int) {
	if n == 0 {
		return
	}
	if t.taken == nil {
		t.taken = map[count]int64{}
	}
	t.taken[count{k, outcome}] += int64(n)
}

func (t *tally) reject(k kind, reason string) {
	if t.rejected == nil {
		t.rejected = map[count]int64{}
	}
	t.rejected[count{k, reason}]++
}

func (t *tally) unknown(contract string) {
	if t.unknownContracts == nil {
		t.unknownContracts = map[string]int{}
	}
	t.unknownContracts[contract]++
}

func (t *tally) merge(other *tally) {
	for c, n := range other.taken {
		t.take(c.kind, c.what, int(n))
	}
	for c, n := range other.rejected {
		if t.rejected == nil {
			t.rejected = map[count]int64{}
		}
		t.rejected[c] += n
	}
	for tenant, kept := range other.kept {
		for _, r := range kept {
			t.keep(tenant, r)
		}
	}
	t.hold(other.held, other.firstHeld)
	for contract, n := range other.unknownContracts {
		t.unknown(contract)
		t.unknownContracts[contract] += n - 1
	}
}

// counters are the exporter's own metrics.
type counters struct{ telemetry *metadata.TelemetryBuilder }

func newCounters(telemetry *metadata.TelemetryBuilder) counters { return counters{telemetry} }

func (c counters) add(ctx context.Context, t *tally) {
	for one, n := range t.taken {
		c.telemetry.ExporterLedgerItems.Add(ctx, n, attributes(one.kind, "outcome", one.what))
	}
	for one, n := range t.rejected {
		c.telemetry.ExporterLedgerRejectedItems.Add(ctx, n, attributes(one.kind, "reason", one.what))
	}
}

func (c counters) duration(ctx context.Context, took time.Duration) {
	c.telemetry.ExporterLedgerWriteDuration.Record(ctx, took.Seconds())
}

func attributes(k kind, name, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("kind", string(k)), attribute.String(name, value)))
}
