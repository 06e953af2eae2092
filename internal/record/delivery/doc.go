// Package delivery says of a log record how it came: of which system of
// record, over which connection, and how far that can be believed (decision
// D10). The evidence receiver writes it, the evidence processor reads it.
//
// It stands in the attribute countersign.delivery, which anybody who can send
// log records can write too. So it is sealed: an HMAC-SHA256 over all that it
// says and over the record's body and event name, under a key that never
// leaves the collector's process, or that both sides were given. A record
// whose seal does not fit, because it was written outside or changed on the
// way, has no delivery.
//
// Attributes of the record beside this one are not sealed.
package delivery
