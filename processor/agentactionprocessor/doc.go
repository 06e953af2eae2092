//go:generate mdatagen metadata.yaml

// Package agentactionprocessor recognises the tool calls of AI agents in spans
// and log records of any instrumentation, finds the rules that are for them,
// and writes what a ledger records on the span or log record itself, as
// countersign.* attributes (package internal/record). Spans with
// agent.action.* attributes become self-reported facts, agent-like spans carry
// who acts in them.
//
// Telemetry is never dropped and never delayed: what cannot be recorded passes
// with countersign.record.error on it and is counted. Whatever arrives under
// countersign. is removed first, so that nobody forges a record by sending
// attributes.
//
// Known limits: calls that stand in several spans are merged only inside one
// batch; the tenant from authentication needs the request's context, which a
// batch processor or a queue in front of this processor loses.
package agentactionprocessor // import "github.com/countersign-otel/countersign/processor/agentactionprocessor"
