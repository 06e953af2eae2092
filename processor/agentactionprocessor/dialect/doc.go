// Package dialect recognises tool calls in OTLP spans and log records.
//
// Every agent runtime writes its tool calls in its own words. One word list is
// a dialect; it lives in one file and is listed once, in order of precedence,
// in list.go. The first dialect that matches a span supplies the fields and
// the outcome; later matches fill only fields that are still empty, because
// real spans often speak several dialects at once.
//
// What comes in is hostile: texts longer than [MaxTextBytes], with control
// characters or broken UTF-8 are left out and named in [ToolCall.Problems];
// arguments and results larger than [MaxValueBytes] are not parsed. Nothing
// here panics, whatever the input.
//
// Known limits: a call and the spans that complete it (an MCP client span
// inside it, Claude Code's child spans) are seen together only when they
// arrive in one batch. A LangChain ToolMessage is read from the tool's own
// answer; the dialects use it only where the span itself is silent.
package dialect
