package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/verifier/api"
)

// TestKeysAudit: what the command line does to keys is in their audit log, and in no other tenant's.
func TestKeysAudit(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, append(args, "--store", store, "--tenant", "acme")...)
		if code != exitDone {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout
	}
	var first, second struct{ ID, Secret string }
	decode(t, run("keys", "create", "--role", "viewer", "-o", "json"), &first)
	decode(t, run("keys", "rotate", first.ID, "-o", "json"), &second)
	run("keys", "revoke", second.ID)
	badInput{
		args: []string{"keys", "rotate", first.ID, "--store", store, "--tenant", "acme"}, code: exitNo,
		stderr: "countersign: cannot rotate the key: it was rotated already, and is only good until its users have changed over to " + second.ID +
			"; rotate that one\n",
	}.check(t)

	var list api.KeyEventList
	text := run("keys", "audit", "-o", "json")
	decode(t, text, &list)
	got := map[string]string{}
	for _, e := range list.Events {
		got[e.Kind+" "+e.KeyID] = e.Detail
	}
	want := map[string]string{
		"created " + first.ID: "viewer", "created " + second.ID: "viewer", "rotated " + first.ID: second.ID, "revoked " + second.ID: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{first.Secret, second.Secret} {
		if strings.Contains(text, secret[len(secret)-30:]) {
			t.Error("the log shows a secret")
		}
	}
	if table := run("keys", "audit", "--key", second.ID, "--kind", "Revoked"); strings.Count(table, "\n") != 2 || !strings.Contains(table, second.ID) {
		t.Errorf("narrowed:\n%s", table)
	}
	for _, bad := range []badInput{
		{name: "another tenant", args: []string{"keys", "audit", "--store", store}, code: exitDone, stdout: "nothing happened\n"},
		{
			name: "a kind that there is not", args: []string{"keys", "audit", "--kind", "stolen", "--store", store}, code: exitUsage,
			stderr: "countersign: --kind: \"stolen\" is none of created, rotated, revoked, used, refused, expired_use\n",
		},
		{
			name: "a cursor of something else", args: []string{"keys", "audit", "--cursor", "x", "--store", store}, code: exitUsage,
			stderr: "countersign: a parameter of the request is wrong: cursor is not one that a page gave as next_cursor\n",
		},
	} {
		t.Run(bad.name, bad.check)
	}
}
