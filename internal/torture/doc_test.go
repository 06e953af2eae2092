// Package torture breaks what stands around the built collector while evidence
// flows through it: the collector itself, its database, its senders. Whatever
// was acknowledged has to be in the ledger, once.
//
// The test runs the shortest of it with the others. `make torture` runs all,
// an outage that is longer than the collector's default retry included, and
// prints the table of docs/reliability.md.
package torture
