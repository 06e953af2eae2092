//go:generate mdatagen metadata.yaml

// Package evidencereceiver takes the webhooks of systems of record over HTTP:
// any number of named endpoints, each bound to one source and one way to show
// who sends (package internal/scheme). What a sender proved becomes a log
// record with the body as it was signed, and with a sealed note of how it came
// (package internal/record/delivery), from which the evidence processor makes
// facts.
//
// A delivery is acknowledged when the pipeline took it, and not before: until
// then the sender keeps it. A delivery that comes twice is the same record,
// and the same facts.
//
// Known limits: nothing is remembered between requests, so a delivery that is
// repeated within the tolerance of its signature is passed on again; it is the
// ledger that keeps a fact once.
package evidencereceiver // import "github.com/countersign-otel/countersign/receiver/evidencereceiver"
