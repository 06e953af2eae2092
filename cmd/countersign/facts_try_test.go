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
