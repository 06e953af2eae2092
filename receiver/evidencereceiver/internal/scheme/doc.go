// Package scheme holds the ways in which senders of webhooks show who they
// are. One scheme, one file; list.go names them all.
//
// A scheme checks the bytes that were sent, never what a parser made of them,
// and compares in constant time. Every scheme takes several secrets, so that
// one can follow another without a delivery being refused in between.
//
// Known limit: github and shopify sign neither a time nor their headers. A
// delivery that somebody recorded can be sent again, under another event name
// or delivery id, as long as its body stays the same. What is made of a
// delivery must therefore stand in its body.
package scheme
