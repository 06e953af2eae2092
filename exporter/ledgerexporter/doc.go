//go:generate mdatagen metadata.yaml

// Package ledgerexporter writes what processors found in telemetry into a
// ledger: recorded actions, trace contexts and facts. It reads the attributes
// of package internal/record and nothing else.
//
// One batch is one transaction. Writing is idempotent, so that a queue may
// deliver a batch again. A bad item is counted with the reason and takes no
// other one with it. A store that cannot be reached, or not yet be used, is no
// reason to fail the start or to lose anything: such errors are retryable.
//
// An exporter has one role. A recorder writes actions and the agents' own
// facts; evidence writes facts of the sources that it was given. Neither can
// do the other's work, whatever the telemetry says.
//
// Known limits: the traces and the logs pipeline open the store once each.
package ledgerexporter // import "github.com/countersign-otel/countersign/exporter/ledgerexporter"
