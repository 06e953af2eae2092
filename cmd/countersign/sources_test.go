package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/verifier/api"
)

const payoutOfBank = `
id: %s
version: 1
kind: action
vendor: internal
vendor_display: Internal
description: The bank pays.
source_citation: {url: "internal://test", retrieved: "2026-09-28", title: Test}
action:
  window: 1h
  expected_effects: [{effect_observed: {source: bank, type: paid%s}}]
`

// A setting reaches verdicts: what waits for it settles by itself, on both stores.
func TestSourcesSetReachesVerdicts(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		store := migrated(t)
		checkSettings(t, store, store)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		store := pgserver.Start(t).Database(t)
		if code, _, stderr := command(t, "migrate", "--store", store); code != exitDone {
			t.Fatal(stderr)
		}
		checkSettings(t, store, memberOf(t, store, "countersign_evidence"))
		reader := memberOf(t, store, "countersign_read")
		if code, list, stderr := command(t, "sources", "list", "--store", reader); code != exitDone || !strings.Contains(list, "bank") {
			t.Errorf("list as a member of countersign_read: exit code %d\n%s%s", code, list, stderr)
		}
		for _, login := range []string{reader, memberOf(t, store, "countersign_record")} {
			if code, _, stderr := command(t, "sources", "set", "bank", "--trust", "independent", "--store", login); code != exitCouldNot || !strings.Contains(stderr, "permission denied") {
				t.Errorf("set without the role: exit code %d: %s", code, stderr)
			}
		}
	})
}

// memberOf is the URL of a login that is a member of one group role alone.
func memberOf(t *testing.T, store, group string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	login := "login_of_" + group
	if _, err := conn.Exec(t.Context(), fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'x' IN ROLE %s", login, group)); err != nil {
		t.Fatal(err)
	}
	config := conn.Config()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(login, "x"), Host: fmt.Sprintf("%s:%d", config.Host, config.Port), Path: config.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

// checkSettings works on a store as its owner, and sets as an operator.
func checkSettings(t *testing.T, store, operator string) {
	t.Helper()
	run := func(want int, args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, args...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, stdout, stderr)
		}
		return stdout
	}
	set := func(args ...string) string {
		t.Helper()
		return run(exitDone, append([]string{"sources", "set", "bank", "--store", operator}, args...)...)
	}
	run(exitDone, "contracts", "publish", "--store", store, writeFile(t, "payout.yaml", fmt.Sprintf(payoutOfBank, "payout_of_bank", "")),
		writeFile(t, "trusted.yaml", fmt.Sprintf(payoutOfBank, "trusted_payout", ", min_trust: independent")))
	requested := now().Sub(engine.Minute)
	act := func(id, contract string, paid engine.Instant) {
		t.Helper()
		run(exitDone, "actions", "record", "--store", store, "--file", writeFile(t, "action.json", fmt.Sprintf(
			`{"action_id": %q, "contract_id": %q, "subject_id": %q, "requested_at": %q, "verify": "auto"}`, id, contract, "order of "+id, requested)))
		run(exitDone, "facts", "push", "--store", store, "--file", writeFile(t, "facts.json", fmt.Sprintf(
			`{"facts": [{"source": "bank", "fact_type": "paid", "subject_id": %q, "occurred_at": %q}]}`, "order of "+id, paid)))
	}
	awaited := func(want int, id string) string {
		t.Helper()
		return run(want, "actions", "wait", id, "--timeout", "30s", "--store", store)
	}

	// The bank's clock is 10 seconds slow.
	act("early", "payout_of_bank", requested-10)
	verified := run(exitNo, "actions", "verify", "early", "--store", store, "-o", "json")
	var first api.Verified
	decode(t, verified, &first)
	if first.Status != "pending" || first.Outcome.Verdict != "FAIL" || first.Checks[0].OK {
		t.Errorf("10 seconds early:\n%s", verified)
	}
	if shown := run(exitDone, "actions", "get", "early", "--store", store); !strings.Contains(shown, "occurred 10s before the action was requested (a clock?)") {
		t.Errorf("no hint at the clock:\n%s", shown)
	}
	if said := set("--clock-skew", "9s"); !strings.Contains(said, "\n1 unsettled action judged again now\n") {
		t.Errorf("said:\n%s", said)
	}
	if said := set("--clock-skew", "30s"); !strings.Contains(said, "  30s         facts_api (shared)\n1 unsettled action judged again now\n") {
		t.Errorf("said:\n%s", said)
	}
	awaited(exitDone, "early")

	// A settled verdict stays until somebody asks.
	set("--clock-skew", "0s")
	awaited(exitDone, "early")
	run(exitNo, "actions", "verify", "early", "--store", store)
	run(exitDone, "sources", "set", "bank", "--store", operator, "--clock-skew", "30s")

	set("--trust", "independent")
	act("trusted", "trusted_payout", requested+5)
	awaited(exitDone, "trusted")
	set("--trust", "shared")
	act("untrusted", "trusted_payout", requested+5)
	if shown := run(exitNo, "actions", "verify", "untrusted", "--store", store); !strings.Contains(shown, "effect_below_trust:bank.paid") {
		t.Errorf("min_trust: independent on a shared source:\n%s", shown)
	}
	set("--trust", "independent")
	awaited(exitDone, "untrusted")

	var list api.SourceList
	decode(t, run(exitDone, "sources", "list", "--store", store, "-o", "json"), &list)
	independent, shared := engine.Independent, engine.Shared
	want := []api.SourceState{{
		Source: "bank", Trust: &independent, Override: &independent, Present: true, ClockSkewSeconds: 30,
		Connections: []api.ConnectionState{{Name: "facts_api", Trust: &shared, Override: &independent, Delivered: true}},
	}}
	if diff := cmp.Diff(want, list.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

// TestSourcesInWords: what people read, and what they may have misspelt.
func TestSourcesInWords(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	for _, step := range []badInput{
		{name: "nothing there", args: []string{"sources", "list"}, code: exitDone, stdout: "SOURCE  PRESENT  TRUST  WATERMARK  BEHIND  CLOCK SKEW  CONNECTIONS\n", stderr: "no source has reported, and nothing is set of any\n"},
		{
			name: "a clock skew", args: []string{"sources", "set", "Stripe", "--clock-skew", "1m30s"}, code: exitDone,
			stdout: `SOURCE  PRESENT  TRUST  WATERMARK  BEHIND  CLOCK SKEW  CONNECTIONS
stripe  no       -      -          -       1m30s       facts_api (no fact so far)
settled verdicts stay; countersign actions verify REF judges one again
`, stderr: "nothing was known of stripe so far\n",
		},
		{
			name: "trust and health", args: []string{"sources", "set", "crm", "--trust", "shared", "--connection", "poll", "--health", "healthy"}, code: exitDone,
			stdout: `SOURCE  PRESENT  TRUST         WATERMARK  BEHIND  CLOCK SKEW  CONNECTIONS
crm     yes      shared (set)  -          -       -           facts_api (no fact so far), poll (healthy, no fact so far)
settled verdicts stay; countersign actions verify REF judges one again
`, stderr: `nothing was known of crm so far; known: stripe
poll is a new connection of crm: nothing came over it so far
as long as poll is healthy, facts of crm cannot be pushed with POST /v1/facts
`,
		},
		{
			name: "taken back", args: []string{"sources", "set", "crm", "--trust", "none", "--connection", "poll", "--health", "none"}, code: exitDone,
			stdout: `SOURCE  PRESENT  TRUST  WATERMARK  BEHIND  CLOCK SKEW  CONNECTIONS
crm     no       -      -          -       -           facts_api (no fact so far), poll (no fact so far)
settled verdicts stay; countersign actions verify REF judges one again
`,
		},
		{name: "nothing to set", args: []string{"sources", "set", "crm"}, code: exitUsage, stderr: "countersign: countersign sources set needs --trust, --clock-skew or --health\nsee: countersign sources set --help\n"},
		{name: "no source", args: []string{"sources", "set", "--trust", "shared"}, code: exitUsage, stderr: "countersign: countersign sources set needs the name of one source, got 0 arguments\nsee: countersign sources set --help\n"},
		{name: "a name that no source has", args: []string{"sources", "set", "my bank", "--trust", "shared"}, code: exitUsage, stderr: "countersign: SOURCE: invalid identifier \"my bank\": write a letter, then letters, digits or _ . : -, at most 64 in all\n"},
		{name: "a level that there is not", args: []string{"sources", "set", "crm", "--trust", "full"}, code: exitUsage, stderr: "countersign: --trust: invalid trust level \"full\": write self_reported, shared or independent, or none to take it back\n"},
		{name: "what agents say", args: []string{"sources", "set", "otel", "--trust", "independent"}, code: exitUsage, stderr: "countersign: cannot set the source: otel is what agents tell of themselves, and stays self_reported whatever is set\n"},
		{name: "a time zone", args: []string{"sources", "set", "crm", "--clock-skew", "2h"}, code: exitUsage, stderr: "countersign: cannot set the source: a clock skew is from 0s to 1h, and 7200s is not; what is off by more is in another time zone: have the source send its times with their offset\n"},
		{name: "less than a second", args: []string{"sources", "set", "crm", "--clock-skew", "300ms"}, code: exitUsage, stderr: "countersign: --clock-skew: 300ms is no whole number of seconds\n"},
		{name: "a health of no connection", args: []string{"sources", "set", "crm", "--health", "error"}, code: exitUsage, stderr: "countersign: --health is of one connection: name it with --connection, facts_api for pushed facts; countersign sources list shows them\n"},
		{name: "a trust of one connection", args: []string{"sources", "set", "crm", "--connection", "poll", "--trust", "shared"}, code: exitUsage, stderr: "countersign: --connection says whose --health it is; --trust and --clock-skew are of the whole source, because a fact does not tell how it came\n"},
		{name: "a state that there is not", args: []string{"sources", "set", "crm", "--connection", "poll", "--health", "up"}, code: exitUsage, stderr: "countersign: --health: \"up\" is not known; write healthy, syncing, error, or none to take it back\n"},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.args = append(step.args, "--store", store)
			step.check(t)
		})
	}
}

// TestSourcesOfASidecar: the list is the same over HTTP, for keys that may inspect sources.
func TestSourcesOfASidecar(t *testing.T) {
	t.Parallel()
	s := serving(t)
	if code, _, stderr := command(t, "sources", "set", "crm", "--trust", "shared", "--clock-skew", "5s", "--store", s.store); code != exitDone {
		t.Fatal(stderr)
	}
	code, remote, stderr := s.as(t, "viewer", "sources", "list")
	if code != exitDone || !strings.Contains(remote, "\ncrm ") {
		t.Fatalf("exit code %d\n%s%s", code, remote, stderr)
	}
	if code, here, stderr := command(t, "sources", "list", "--store", s.store); code != exitDone || here != remote {
		t.Errorf("in the store, exit code %d\n%s%s\nover HTTP\n%s", code, here, stderr, remote)
	}
	if code, _, stderr := s.as(t, "recorder", "sources", "list"); code != exitCouldNot || !strings.Contains(stderr, "may not inspect sources") {
		t.Errorf("recorder: exit code %d: %s", code, stderr)
	}
}
