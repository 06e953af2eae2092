package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// FactsBody documents the body of POST /facts.
type FactsBody struct {
	Facts      []FactBody                `json:"facts,omitempty" maxItems:"10000"`
	Links      []engine.Link             `json:"links,omitempty" maxItems:"10000" doc:"subjects that are one case, in both directions"`
	Watermarks map[string]engine.Instant `json:"watermarks,omitempty" maxProperties:"10000" doc:"by source: everything up to then has been sent; only moves forward"`
}

// FactBody documents one fact.
type FactBody struct {
	Source      string         `json:"source" pattern:"^[a-zA-Z][a-zA-Z0-9_.:-]{0,63}$"`
	SubjectID   string         `json:"subject_id" maxLength:"512"`
	SubjectKind string         `json:"subject_kind,omitempty" doc:"default: record"`
	FactType    string         `json:"fact_type" pattern:"^[a-zA-Z][a-zA-Z0-9_.:-]{0,63}$"`
	OccurredAt  engine.Instant `json:"occurred_at" doc:"RFC 3339; a fraction of a second is cut off"`
	Attributes  engine.Object  `json:"attributes,omitempty" doc:"at most 64 KiB, depth 16 and 256 keys"`
	RawRef      string         `json:"raw_ref,omitempty" maxLength:"512" doc:"the source system's own event id; default: derived from the content"`
}

// Pushed is the answer to pushed facts (decision D8).
type Pushed struct {
	Ingested    int        `json:"ingested"`
	Duplicates  int        `json:"duplicates" doc:"known with the same content"`
	Conflicting int        `json:"conflicting" doc:"known under the same raw_ref with other content; the first one stands"`
	Rejected    []Rejected `json:"rejected" doc:"what was not taken; the rest was"`
}

// Rejected is one item that was not taken.
type Rejected struct {
	// Index is the position in facts; null for a link or a watermark, which Pointer names.
	Index   *int   `json:"index"`
	Pointer string `json:"pointer" example:"/facts/3/occurred_at"`
	Error   string `json:"error"`
}

const maxItems = 10_000

var (
	factsMembers = []string{"facts", "links", "watermarks"}
	factMembers  = []string{"source", "subject_id", "subject_kind", "fact_type", "occurred_at", "attributes", "raw_ref"}
	linkMembers  = []string{"subject_id", "linked_subject_id"}
)

// batch is what a body brings as evidence.
type batch struct {
	facts      []engine.Fact
	links      []engine.Link
	watermarks map[string]engine.Instant
	rejected   []Rejected
	// kept is what stands in rejected, as the store keeps it.
	kept []ledger.RejectedFact
}

// evidence reads facts, links and watermarks. A bad one never sinks the good
// ones beside it: it is rejected with its place. So is a watermark after latest.
func (o object) evidence(mayPush func(source string) error, latest engine.Instant) batch {
	b := batch{watermarks: map[string]engine.Instant{}, rejected: []Rejected{}}
	reason := ledger.RejectedInvalid
	mayPush = noting(mayPush, &reason)
	o.list("facts", maxItems, func(i int, raw json.RawMessage) {
		reason = ledger.RejectedInvalid
		fact, fault := parseFact(raw, fmt.Sprintf("%s/%d", o.at("facts"), i), mayPush)
		if fault != nil {
			b.refuse(&i, "fact", reason, fault, raw)
			return
		}
		b.facts = append(b.facts, fact)
	})
	o.list("links", maxItems, func(i int, raw json.RawMessage) {
		link, fault := parseLink(raw, fmt.Sprintf("%s/%d", o.at("links"), i))
		if fault != nil {
			b.refuse(nil, "link", ledger.RejectedInvalid, fault, raw)
			return
		}
		b.links = append(b.links, link)
	})
	o.watermarks(&b, mayPush, latest, &reason)
	return b
}

// noting remembers that a source may not be pushed.
func noting(mayPush func(string) error, reason *string) func(string) error {
	return func(source string) error {
		err := mayPush(source)
		if err != nil {
			*reason = ledger.RejectedSource
		}
		return err
	}
}

// itemObject is one item of a list, with faults of its own.
func itemObject(raw json.RawMessage, pointer string, known []string) (object, *[]Fault) {
	faults := new([]Fault)
	if kind := kindOf(raw); kind != "an object" {
		*faults = append(*faults, at(pointer, "is %s; send an object {...}", kind))
		return object{}, faults
	}
	return parseObject(raw, pointer, known, faults), faults
}

// parseFact reads one fact; fault is the first thing that is wrong with it.
func parseFact(raw json.RawMessage, pointer string, mayPush func(string) error) (engine.Fact, *Fault) {
	o, faults := itemObject(raw, pointer, factMembers)
	if len(*faults) > 0 {
		return engine.Fact{}, &(*faults)[0]
	}
	fact := engine.Fact{
		RawRef:      o.opaque("raw_ref", false),
		Source:      o.identifier("source", true),
		Type:        o.identifier("fact_type", true),
		SubjectID:   o.opaque("subject_id", true),
		SubjectKind: o.identifier("subject_kind", false),
		Attributes:  o.data("attributes"),
	}
	occurredAt, ok := o.instant("occurred_at")
	if !ok && !o.sent("occurred_at") {
		o.fail("occurred_at", "is missing")
	}
	fact.OccurredAt = occurredAt
	if len(*faults) > 0 {
		return engine.Fact{}, &(*faults)[0]
	}
	if err := mayPush(fact.Source); err != nil {
		return engine.Fact{}, &Fault{Pointer: o.at("source"), Detail: err.Error()}
	}
	fact, err := fact.Normalize()
	if err != nil {
		return engine.Fact{}, &Fault{Pointer: pointer, Detail: "is an " + err.Error()}
	}
	return fact, nil
}

func parseLink(raw json.RawMessage, pointer string) (engine.Link, *Fault) {
	o, faults := itemObject(raw, pointer, linkMembers)
	if len(*faults) > 0 {
		return engine.Link{}, &(*faults)[0]
	}
	link := engine.Link{SubjectID: o.opaque("subject_id", true), LinkedSubjectID: o.opaque("linked_subject_id", true)}
	if len(*faults) > 0 {
		return engine.Link{}, &(*faults)[0]
	}
	return link, nil
}

func (o object) watermarks(b *batch, mayPush func(string) error, latest engine.Instant, reason *string) {
	marks, ok := o.mapping("watermarks", maxItems)
	if !ok {
		return
	}
	own := object{marks.pointer, marks.members, new([]Fault)}
	for _, name := range sortedKeys(marks.members) {
		*own.faults, *reason = nil, ledger.RejectedInvalid
		source, err := engine.Identifier(name)
		if err == nil {
			err = mayPush(source)
		}
		if err != nil {
			own.fail(name, "%s", err)
		}
		mark, ok := own.instant(name)
		if !ok && !own.sent(name) {
			own.fail(name, "is null; send an RFC 3339 time")
		}
		if ok && mark > latest {
			own.fail(name, "lies ahead of now, and could never be taken back; send the time up to which everything has been sent")
		}
		if len(*own.faults) > 0 {
			b.refuse(nil, "watermark", *reason, &(*own.faults)[0], sentWatermark(name, marks.members[name]))
			continue
		}
		b.watermarks[source] = mark
	}
}

func sentWatermark(source string, at json.RawMessage) json.RawMessage {
	text := append(engine.AppendString([]byte(`{"source":`), source), `,"watermark":`...)
	return append(append(text, at...), '}')
}

// watermarkSkew is how far a sender's clock may be ahead of ours. A watermark
// only moves forward (decision D12): one that names a time to come would end
// the waiting for its source until then, and settle verdicts without its facts.
const watermarkSkew = 5 * engine.Minute

func sortedKeys(members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// pushing says for which sources a key may push: those that it is bound to,
// and none that a live connection serves (AC "Recording actions and pushing facts").
func pushing(key ledger.Key, live map[string]string) func(source string) error {
	return func(source string) error {
		if !keys.Provides(key, source) {
			return errors.New(foreignSource(key, source))
		}
		if name, ok := live[source]; ok {
			return fmt.Errorf("source %q is served by the connection %q and cannot be pushed", source, name)
		}
		return nil
	}
}

func foreignSource(key ledger.Key, source string) string {
	return fmt.Sprintf("source %q is none of this key's sources: %s", source, joined(key.Sources))
}

// liveConnections maps each source that a live connection serves to that connection's name.
func liveConnections(connections []engine.Connection) map[string]string {
	live := map[string]string{}
	for _, c := range connections {
		if c.Name != engine.FactsAPI && (c.Health == engine.Healthy || c.Health == engine.Syncing) {
			live[c.Source] = c.Name
		}
	}
	return live
}
