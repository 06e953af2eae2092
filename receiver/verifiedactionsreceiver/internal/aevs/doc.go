// Package aevs reads the AEVS protocol: keys, request signatures, and receipts
// in their canonical form.
//
// A receipt is judged by its canonical bytes and nothing else: they are made
// from what arrived, the signature is checked over them, and every field is
// read from them. What a signature does not cover can so never be read.
//
// What comes in is hostile: the caller bounds the size, this package the
// nesting ([MaxDepth]), keys that stand twice, and names and ids (512 bytes
// without control characters, decision D6).
package aevs
