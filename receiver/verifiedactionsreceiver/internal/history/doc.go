// Package history remembers receipts: which came already, and how each stands
// in the chain of its session, whatever the order they come in and whether or
// not the collector was restarted between them.
//
// It keeps everything in a [storage.Client]: a storage extension's, or
// [NewMemory]. What it keeps is bounded by a number of receipts; the oldest is
// forgotten first, and a session with the last of its receipts.
//
// Known limits: a link that turns out wrong is passed on to at most
// [MaxBroken] receipts behind it that came before it did.
package history
