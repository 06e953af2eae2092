package evidencereceiver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/engine"
)

func collectorOf(t *testing.T, receivers string) *confmap.Conf {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte("receivers:\n" + receivers))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := retrieved.AsConf()
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// TestWays: what tools know of an endpoint without its secrets.
func TestWays(t *testing.T) {
	t.Parallel()
	ways, err := Ways(collectorOf(t, `
  otlp: {protocols: {grpc: {}}}
  evidence/second:
    endpoints:
      crm: {scheme: api_key, secrets: [""], events: array}
  evidence:
    endpoint: localhost:4321
    endpoints:
      stripe-eu: {scheme: stripe, source: Stripe, connection: eu, tenant: acme}
      erp: {scheme: hmac, trust: shared, events: lines}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Way{
		{Endpoint: "erp", Source: "erp", Connection: "erp", Trust: engine.Shared},
		{Endpoint: "stripe-eu", Source: "stripe", Connection: "eu", Tenant: "acme", Trust: engine.Independent},
		{Endpoint: "crm", Source: "crm", Connection: "crm", Trust: engine.Shared, Array: true},
	}
	if diff := cmp.Diff(want, ways); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for receivers, want := range map[string]string{
		"  evidence: {endpoints: {crm: {scheme: telepathy}}}":                   `receivers::evidence::endpoints::crm::scheme: "telepathy": write one of stripe, shopify, github, slack, zendesk, standard_webhooks, hmac, api_key`,
		"  evidence: {endpoints: {crm: {scheme: api_key, trust: independent}}}": "receivers::evidence::endpoints::crm::trust: independent is more than the scheme api_key earns, which is shared; trust can be lowered only",
		"  evidence: {endpoints: {crm: {scheme: api_key, events: many}}}":       `receivers::evidence::endpoints::crm::events: "many": write one, array or lines`,
	} {
		if _, err := Ways(collectorOf(t, receivers)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", receivers, err)
		}
	}
	if _, err := Ways(collectorOf(t, "  evidence: {endpoinst: {}}")); err == nil {
		t.Error("a key that is none is taken")
	}
	if ways, err := Ways(collectorOf(t, "  otlp: {}")); err != nil || ways != nil {
		t.Errorf("%v, %v", ways, err)
	}
}
