package main

import (
	"strings"
	"testing"
)

// TestWaitOnStore: without a sidecar the command settles what it waits for.
func TestWaitOnStore(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	if code, _, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts"); code != exitDone {
		t.Fatal(stderr)
	}
	action := writeFile(t, "action.json", `{"action_id": "a1", "contract_id": "refund_workflow", "subject_id": "order_1", "requested_at": "2026-09-28T10:42:00Z", "verify": "auto"}`)
	if code, stdout, stderr := command(t, "actions", "record", "--store", store, "--file", action); code != exitDone || stdout != "recorded a1 under refund_workflow version 1\n" {
		t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, stderr := command(t, "actions", "wait", "a1", "--store", store, "--timeout", "20s")
	if code != exitNo || stderr != "" || !strings.HasPrefix(stdout, "UNKNOWN — Subject not found in fact sources\n") {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s", code, stderr, stdout)
	}
}

// TestKeys: a key is listed without its secret, and worthless once revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	secret := createKey(t, store, "--role", "evidence", "--source", "Stripe", "--source", "crm", "--expires-in", "90d")
	_, stdout, _ := command(t, "keys", "list", "--store", store, "-o", "json")
	if strings.Contains(stdout, secret) {
		t.Error("the list shows the secret")
	}
	var list struct{ Keys []keyView }
	decode(t, stdout, &list)
	if len(list.Keys) != 1 || list.Keys[0].Role != "evidence" || strings.Join(list.Keys[0].Sources, " ") != "crm stripe" || list.Keys[0].ExpiresAt == nil {
		t.Fatalf("got %+v", list)
	}
	id := list.Keys[0].ID
	code, rotated, stderr := command(t, "keys", "rotate", id, "--grace", "7d", "--store", store)
	if code != exitDone || !strings.HasPrefix(rotated, "cs_evidence_") || strings.TrimSpace(rotated) == secret || !strings.Contains(stderr, "the only time") {
		t.Errorf("rotate: exit code %d, %q %q", code, rotated, stderr)
	}
	_, stdout, _ = command(t, "keys", "list", "--store", store, "-o", "json")
	decode(t, stdout, &list)
	if len(list.Keys) != 2 || strings.Join(list.Keys[1].Sources, " ") != "crm stripe" {
		t.Errorf("after rotation: %+v", list)
	}
	badInput{
		args: []string{"keys", "rotate", "key_none", "--store", store}, code: exitNo,
		stderr: "countersign: tenant \"default\" has no key \"key_none\"; countersign keys list shows what there is\n",
	}.check(t)
	badInput{args: []string{"keys", "revoke", id, "--store", store}, code: exitDone, stdout: "revoked " + id + "\n"}.check(t)
	_, stdout, _ = command(t, "keys", "list", "--store", store)
	if !strings.Contains(stdout, "revoked\n") {
		t.Errorf("the list does not say that the key is revoked:\n%s", stdout)
	}
	badInput{
		args: []string{"keys", "revoke", "key_none", "--store", store}, code: exitNo,
		stderr: "countersign: tenant \"default\" has no key \"key_none\"; countersign keys list shows what there is\n",
	}.check(t)
}

// TestColour: only where it is wanted, around words and never inside columns.
func TestColour(t *testing.T) {
	t.Parallel()
	for on, want := range map[bool]string{
		false: "A     OK\nPASS  x\n",
		true:  "\x1b[1mA\x1b[0m     \x1b[1mOK\x1b[0m\n\x1b[32mPASS\x1b[0m  x\n",
	} {
		var out strings.Builder
		term := newTerminal(nil, &out, &out)
		term.style.on = on
		b := table{head: []string{"A", "OK"}}
		b.add("PASS", "x")
		term.print(b)
		if out.String() != want {
			t.Errorf("colour %t: %q, want %q", on, out.String(), want)
		}
	}
}
