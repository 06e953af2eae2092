//go:generate mdatagen metadata.yaml

// Package evidenceprocessor makes facts of log records that come from systems
// of record: webhooks of the evidence receiver, and whatever any other receiver
// delivers. Rules in OTTL say which records become which facts; ready mappings
// hold the rules for well-known senders. Facts are written on the record that
// they were made of, as countersign.* attributes (package internal/record).
//
// Telemetry is never dropped and never delayed: what does not become a fact
// passes with countersign.record.error on it, and is counted. Whatever arrives
// under countersign. is removed first, except a delivery that is sealed
// (package internal/record/delivery), from which source and trust are taken.
//
// Known limits: a record is judged by itself, so a rule cannot look at an
// earlier one; what needs the order of events is decided by the ledger.
package evidenceprocessor // import "github.com/countersign-otel/countersign/processor/evidenceprocessor"
