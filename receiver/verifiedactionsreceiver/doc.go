//go:generate mdatagen metadata.yaml

// Package verifiedactionsreceiver receives what agents say they did from those
// that do not say it in OpenTelemetry: the receipts of AEVS SDKs, which are
// pointed at it in the place of their backend, and VerifiedActions, the
// metadata of chat messages. Each becomes a span of a tool call, with ids that
// make a repeated delivery the same span.
//
// A sender is answered only after the pipeline took what it sent. Receipts are
// checked: the request's signature, the receipt's own, and its place in the
// chain of its session, which stands on the span and decides nothing here.
//
// Known limits: chain_status on a span is what was known when the receipt
// came; GET /v1/receipts/verify/{reference_id} answers what is known since. The
// collector's own clock dates VerifiedActions that carry no timestamp.
package verifiedactionsreceiver // import "github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver"
