// Package record is the codec between telemetry attributes and the domain.
// Processors write what they found on the span or log record that it was found
// on; the ledger exporter reads it back. It knows no store and no HTTP.
//
// # Attributes
//
// Everything stands under [Prefix], and nothing under it is believed when it
// comes from outside: a processor strips it ([Strip]) before it writes its own.
//
//	countersign.actions       slice of maps, one per recorded action
//	countersign.facts         slice of maps, one per fact
//	countersign.links         slice of maps, one per link between subjects (decision D7)
//	countersign.watermarks    slice of maps, one per report of a connection (decision D12)
//	countersign.failures      slice of maps, one per fact, link or watermark that could not be made
//	countersign.context       map: who acts in this span (decision D31)
//	countersign.record.error  string: why nothing, or less, was recorded (decision D14)
//
// A map of countersign.actions holds, as strings unless said otherwise, the
// fields that were sent: tenant, action_id, contract_id, contract_version
// (int), workflow_id, agent_id, action_type, subject_id, subject_kind,
// requested_at (RFC 3339), started_nanos (int, the start of the call in OTLP
// nanoseconds), params (JSON text with numbers as they were sent; absent when
// not captured, decision D33), channel, compensates, trace_id, span_id,
// session_id, reference_id, tool, reported_outcome.
//
// A map of countersign.facts holds tenant, raw_ref, source, fact_type,
// subject_id, subject_kind, occurred_at (RFC 3339), attributes (JSON text),
// connection and trust (self_reported, shared or independent).
//
// A map of countersign.links holds tenant, source, connection, trust,
// subject_id and linked_subject_id.
//
// A map of countersign.watermarks holds tenant, source, connection, trust,
// watermark (RFC 3339) and received_nanos (int, when the processor had it).
//
// A map of countersign.failures holds tenant, kind (fact, link, watermark or
// record), source, connection, reason, error and item (JSON text, cut).
//
// countersign.context holds tenant, agent and session; ids and interval are
// those of the span itself.
//
// Readers ignore fields that they do not know, so that old readers take new
// records.
package record
