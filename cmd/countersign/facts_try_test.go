package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFactsTryShowsWhatAWebhookMakes holds the table and a refusal that names the remedy.
func TestFactsTryShowsWhatAWebhookMakes(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "collector.yaml")
	body := filepath.Join(filepath.Dir(config), "webhook.json")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config, `
processors:
  evidence:
    rules:
      - source: shop
        condition: Body("kind") == "cancelled"
        fact_type: order_cancelled
        subject_id: Body("order")
        occurred_at: Body("at")
        raw_ref: Body("id")
      - {source: shop, condition: 'Body("kind") == "synced"', watermark: Body("at")}
      - {source: shop, condition: 'Body("kind") == "merged"', subject_id: Body("order"), links: [Body("into")]}
`)
	write(body, `{"kind":"cancelled","order":"order_1","at":"2026-09-28T10:42:20Z","id":"evt_1"}`)
	code, stdout, stderr := command(t, "facts", "try", "--input", body, "--config", config, "--source", "shop")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "shop.order_cancelled about order_1 at 2026-09-28T10:42:20Z") || !strings.HasSuffix(stdout, "1 record, 1 fact\n") {
		t.Errorf("printed:\n%s", stdout)
	}
	write(body, `{"kind":"synced","at":"2026-09-28T10:42:20Z"} {"kind":"merged","order":"order_1","into":"order_2"}`)
	_, stdout, _ = command(t, "facts", "try", "--input", body, "--config", config, "--source", "shop")
	for _, want := range []string{"watermark by rules[1]: the source is complete up to 2026-09-28T10:42:20Z\n", "links by rules[2]:\n    links order_1 and order_2\n", "2 records, 0 facts\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("printed:\n%s\nwithout %s", stdout, want)
		}
	}
	if code, _, stderr := command(t, "facts", "try", "--input", body, "--config", config, "--trust", "high"); code != 2 ||
		stderr != "countersign: --trust: invalid trust level \"high\": write self_reported, shared or independent\n" {
		t.Errorf("exit code %d: %q", code, stderr)
	}
}

// TestFactsTryArrivesAsConfigured: by the endpoint of the source, with its trust and its way to send several events.
func TestFactsTryArrivesAsConfigured(t *testing.T) {
	t.Parallel()
	body := filepath.Join(t.TempDir(), "push.json")
	if err := os.WriteFile(body, []byte(`[{"event":"note.created","order_id":"order_1","created_at":"2026-09-28T10:42:20Z","note_id":"n1","author":"jo"},
		{"event":"sync.finished","complete_to":"2026-09-28T10:43:00Z"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	const example = "../../examples/evidence/webhooks.yaml"
	args := func(more ...string) []string {
		return append([]string{"facts", "try", "--input", body, "--config", example}, more...)
	}
	code, stdout, stderr := command(t, args("--source", "CRM")...)
	for _, want := range []string{
		"source crm, trust shared, delivery -\n", "fact by crm note: crm.note_added about order_1", "watermark by crm complete: the source is complete up to 2026-09-28T10:43:00Z\n",
		"  nothing by 5 others, for records of github, shopify, stripe, zendesk\n", `nothing by crm note: the condition does not hold: Body("event") == "note.created"`, "2 records, 1 fact\n",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, without %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	if strings.Contains(stdout, "it is for records of") {
		t.Errorf("a line for each rule of another source:\n%s", stdout)
	}
	if _, stdout, _ := command(t, args("--endpoint", "crm", "--trust", "self_reported")...); !strings.Contains(stdout, "source crm, trust self_reported") {
		t.Error(stdout)
	}
	two := filepath.Join(filepath.Dir(body), "two.yaml")
	if err := os.WriteFile(two, []byte(`
receivers:
  evidence: {endpoints: {eu: {scheme: stripe, source: stripe}, us: {scheme: stripe, source: stripe, trust: shared}}}
processors:
  evidence: {mappings: [stripe]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(filepath.Dir(body), "none.yaml")
	if err := os.WriteFile(none, []byte("processors:\n  evidence: {rules: [{fact_type: x, subject_id: Body(\"x\")}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := command(t, "facts", "try", "--input", body, "--config", none, "--source", "whatever"); code != 0 {
		t.Errorf("a rule for any source: %s", stderr)
	}
	for _, b := range []badInput{
		{args: args("--source", "strpie"), code: 2, stderr: `countersign: --source: "strpie" is none of the sources of ` + example + ": crm, github, shopify, stripe, zendesk\n"},
		{args: args("--source", "crm", "--trust", "independent"), code: 2, stderr: "countersign: --trust: independent is more than the endpoint crm gives, which is shared\n"},
		{args: args("--source", "crm", "--endpoint", "stripe"), code: 2, stderr: `countersign: --endpoint: "stripe" is not there, or not of the source; there are crm, github, shopify, stripe, zendesk` + "\n"},
		{args: []string{"facts", "try", "--input", body, "--config", two, "--source", "stripe"}, code: 2, stderr: "countersign: --endpoint: several may be meant; write one of eu, us\n"},
		{args: []string{"facts", "try", "--input", body, "--config", none, "--endpoint", "x"}, code: 2, stderr: "countersign: --endpoint: " + none + " has no evidence receiver\n"},
	} {
		b.check(t)
	}
}

// TestFactsTryWithoutASource: which mapping is meant is known once one makes something of the record, and not before.
func TestFactsTryWithoutASource(t *testing.T) {
	t.Parallel()
	body := filepath.Join(t.TempDir(), "refund.json")
	try := func(text string) string {
		if err := os.WriteFile(body, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, "facts", "try", "--input", body, "--config", "../../examples/evidence/webhooks.yaml")
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		return stdout
	}
	made := try(`{"id":"evt_1","object":"event","livemode":true,"type":"refund.created","created":1790592120,"data":{"object":{"id":"re_1","object":"refund",
		"amount":18000,"currency":"usd","status":"succeeded","created":1790592120,"charge":"ch_1","metadata":{"order_id":"order_1"}}}}`)
	if !strings.Contains(made, "fact by stripe/") || !strings.Contains(made, "  nothing by 3 others, for records of github, shopify, zendesk\n") {
		t.Errorf("printed:\n%s", made)
	}
	silent := try(`{"type":"nothing.known"}`)
	for _, mapping := range []string{"github", "shopify", "stripe", "zendesk"} {
		if !strings.Contains(silent, "  nothing by "+mapping+": the condition ") {
			t.Errorf("without the reason of %s:\n%s", mapping, silent)
		}
	}
}
