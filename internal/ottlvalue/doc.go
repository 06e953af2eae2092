// Package ottlvalue turns what OTTL expressions give, and what telemetry holds,
// into values of the domain: texts, moments, lists and JSON objects.
//
// OTTL computes with Go values and with those of pdata. A number keeps its
// exact text wherever it has one; an OTLP double is its shortest decimal text
// (decision D2), so that binary floating point decides nothing.
package ottlvalue
