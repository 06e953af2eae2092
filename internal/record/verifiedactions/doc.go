// Package verifiedactions reads VerifiedActions, the metadata in which a host
// says what tool calls an agent made while it worked on one request (VA).
//
// Reading is forward compatible: fields that are not known are ignored, and
// the version has to be there but may be any. One raw action that does not
// read is reported and never raises, and does not concern those beside it.
//
// What comes in is hostile: payloads over [MaxPayloadBytes] and lists over
// [MaxActions] are refused, texts over [MaxTextBytes] make their action
// invalid.
package verifiedactions
