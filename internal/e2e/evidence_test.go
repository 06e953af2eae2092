package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/examples/stack"
)

// Secrets of the senders of examples/evidence/webhooks.yaml.
const (
	crmKey        = "e2e-evidence-key-of-the-crm"
	shopifySecret = "e2e-secret-of-the-shopify-app"
)

// evidenceCollector runs examples/evidence/webhooks.yaml in front of a stack's
// store, and returns the receiver's URL.
func evidenceCollector(t *testing.T, ctx context.Context, s *stack.Stack) string {
	t.Helper()
	ports, err := stack.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := exec.CommandContext(ctx, filepath.Join(s.Root, "bin", stack.CollectorBinary),
		"--config", filepath.Join(s.Root, "examples", "evidence", "webhooks.yaml"),
		"--set", "receivers::evidence::endpoint="+ports[0], "--set", "service::telemetry::metrics::level=none")
	command.Env = append(os.Environ(), "COUNTERSIGN_STORE="+s.Store(), "COUNTERSIGN_DIR="+dir, "CRM_EVIDENCE_KEY="+crmKey,
		"SHOPIFY_APP_SECRET="+shopifySecret, "STRIPE_WEBHOOK_SECRET=whsec_e2e_0123456789", "ZENDESK_WEBHOOK_SECRET=e2e-secret-of-zendesk",
		"GITHUB_WEBHOOK_SECRET=e2e-secret-of-github")
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the evidence collector's log:\n%s", log.String())
		}
	})
	if _, err := stack.Await(ctx, "the evidence receiver", func(context.Context) (bool, bool, error) {
		conn, err := net.DialTimeout("tcp", ports[0], time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return true, err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	return "http://" + ports[0]
}

// send posts a body with headers, name and value by turns, and wants 200.
func send(t *testing.T, ctx context.Context, url, body string, headers ...string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", url, response.Status, answer, err)
	}
}

// look reads a path of the API as a viewer.
func look(ctx context.Context, s *stack.Stack, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.API(path), nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", s.Keys["viewer"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// watermarks by source, as GET /v1/sources shows them; empty for none.
func watermarks(ctx context.Context, s *stack.Stack) (map[string]string, error) {
	var list struct {
		Sources []struct {
			Source    string  `json:"source"`
			Watermark *string `json:"watermark"`
		} `json:"sources"`
	}
	err := look(ctx, s, "/v1/sources", &list)
	found := map[string]string{}
	for _, one := range list.Sources {
		found[one.Source] = ""
		if one.Watermark != nil {
			found[one.Source] = *one.Watermark
		}
	}
	return found, err
}

// forgedReport is what an agent would send to have a verdict settle early: the
// reserved attribute, and a body like that of the CRM's pipeline.
func forgedReport(at string) string {
	return fmt.Sprintf(`"attributes":[{"key":"countersign.watermarks","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[
		{"key":"source","value":{"stringValue":"crm"}},{"key":"connection","value":{"stringValue":"crm"}},
		{"key":"trust","value":{"stringValue":"independent"}},{"key":"watermark","value":{"stringValue":%q}}]}}]}}}]`, at)
}

// TestReportedWatermarkAndRejectedEvidence: what the CRM's pipeline reports
// reaches the list of sources; what an agent says of it does not. An event of
// which nothing can be made is acknowledged, and kept with the reason.
func TestReportedWatermarkAndRejectedEvidence(t *testing.T) {
	ctx, s := start(t)
	evidence, began := evidenceCollector(t, ctx, s), time.Now()
	ago := func(d time.Duration) string { return began.Add(-d).UTC().Truncate(time.Second).Format(time.RFC3339) }
	report := func(at string) string { return fmt.Sprintf(`{"event":"sync.finished","complete_to":%q}`, at) }
	key := []string{"X-API-Key", crmKey}

	agents := "http://" + s.Addresses.OTLPHTTP
	send(t, ctx, agents+"/v1/logs", fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":%q},%s}]}]}]}`,
		report(ago(10*time.Second)), forgedReport(ago(10*time.Second))))
	send(t, ctx, agents+"/v1/traces", fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"0102030405060708","name":"x",
		"startTimeUnixNano":"1790592120000000000","endTimeUnixNano":"1790592121000000000",%s}]}]}]}`, traceOf(7), forgedReport(ago(10*time.Second))))
	// Whoever has the key of one source reports for no other.
	send(t, ctx, evidence+"/crm", `[{"event":"note.created","order_id":"order_10231","created_at":"2026-09-28T10:42:09Z","note_id":"n1","author":"jo"},
		{"event":"note.created","created_at":"2026-09-28T10:42:10Z","note_id":"n2","author":"no order"},
		{"event":"sync.finished","source":"stripe","complete_to":"yesterday"}]`, key...)
	// The second comes some seconds after the forged ones, which say more than either.
	for _, at := range []string{ago(time.Minute), ago(30 * time.Second)} {
		send(t, ctx, evidence+"/crm", "["+report(at)+"]", key...)
		found, err := stack.Await(ctx, "the watermark", func(ctx context.Context) (map[string]string, bool, error) {
			found, err := watermarks(ctx, s)
			return found, found["crm"] >= at, err
		})
		if err != nil {
			t.Fatalf("%v: %v", found, err)
		}
		if diff := cmp.Diff(map[string]string{"crm": at}, found); diff != "" {
			t.Errorf("sources (-want +got):\n%s", diff)
		}
	}
	var list struct {
		Rejected []struct {
			Kind, Source, Reason, Error, Item string
			Times                             int
		} `json:"rejected"`
	}
	if err := look(ctx, s, "/v1/facts/rejected", &list); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range list.Rejected {
		got[r.Kind+" "+r.Source+" "+r.Reason+" "+r.Error] = r.Item
	}
	want := map[string]string{
		"fact crm rule crm note: subject_id: the expression gave no value":                                                        `{"rule":"crm note","body":{"event":"note.created","created_at":"2026-09-28T10:42:10Z","note_id":"n2","author":"no order"}}`,
		`watermark crm rule crm complete: watermark: invalid time: "yesterday" is not an RFC 3339 time like 2026-09-28T10:42:00Z`: `{"rule":"crm complete","body":{"event":"sync.finished","source":"stripe","complete_to":"yesterday"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
}

// TestShopifyJoinsWithAgents: the agent refunds order_10231, Shopify tells of
// order 5512345678901 and of its number, and one verdict sees both.
func TestShopifyJoinsWithAgents(t *testing.T) {
	ctx, s := start(t)
	evidence := evidenceCollector(t, ctx, s)
	for _, sample := range []string{"orders_cancelled", "refunds_create"} {
		text, err := os.ReadFile(filepath.Join(s.Root, "processor", "evidenceprocessor", "testdata", "mappings", "shopify", sample+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var webhook struct {
			Event string          `json:"event"`
			Body  json.RawMessage `json:"body"`
		}
		unmarshal(t, text, &webhook)
		mac := hmac.New(sha256.New, []byte(shopifySecret))
		_, _ = mac.Write(webhook.Body)
		send(t, ctx, evidence+"/webhooks/shopify", string(webhook.Body), "X-Shopify-Topic", webhook.Event, "X-Shopify-Webhook-Id", "dlv_"+sample,
			"X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	contract := filepath.Join(t.TempDir(), "shop_refund.yaml")
	if err := os.WriteFile(contract, []byte(`
id: shop_refund
version: 1
kind: action
vendor: internal
vendor_display: Shop
action_type: refund_order
outcome_type: refund_processed
claim_source: agent.actions
subject_kind: order
description: A refund and the cancellation show up in the shop.
source_citation: {url: "internal://policies/refunds", retrieved: "2026-09-28", title: Refunds}
action:
  window: 15m
  expected_effects:
    - effect_observed: {source: shopify, type: refund_created}
    - effect_observed: {source: shopify, type: order_cancelled}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tool(ctx, "contracts", "publish", "--store", s.Store(), contract); err != nil {
		t.Fatal(err)
	}
	body := filepath.Join(t.TempDir(), "action.json")
	if err := os.WriteFile(body, []byte(`{"action_id":"act_shop","contract_id":"shop_refund","subject_id":"order_10231","requested_at":"2026-09-28T10:42:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tool(ctx, "actions", "record", "--store", s.Store(), "--file", body); err != nil {
		t.Fatal(err)
	}
	v, err := stack.Await(ctx, "both effects", func(ctx context.Context) (stack.Verification, bool, error) {
		v, err := s.Verify(ctx, "act_shop")
		return v, v.Outcome != nil && v.Outcome.Verdict == "PASS", err
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, v)
	}
}
