package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
)

func TestD11_ASourceIsPresent(t *testing.T) {
	t.Parallel()
	api := func(delivered bool) engine.Connection {
		return engine.Connection{Source: "stripe", Name: engine.FactsAPI, Delivered: delivered}
	}
	connector := func(health engine.Health, delivered bool) engine.Connection {
		return engine.Connection{Source: "stripe", Name: "connector", Health: health, Delivered: delivered}
	}
	// operators is what is kept of a source's trust or clock skew where no fact was ever pushed.
	operators := engine.Connection{Source: "stripe", Override: engine.Shared, ClockSkew: 30}
	watermark := engine.Instant(10)
	for _, row := range []struct {
		name        string
		connections []engine.Connection
		unavailable []string
		want        bool
	}{
		{"NeverReported", nil, nil, false},
		{"DeclaredOnly", []engine.Connection{api(false)}, nil, false},
		{"PushedOnce", []engine.Connection{api(true)}, nil, true},
		{"Healthy", []engine.Connection{connector(engine.Healthy, false)}, nil, true},
		{"Syncing", []engine.Connection{connector(engine.Syncing, false)}, nil, true},
		{"InErrorAndTheOnlyProvider", []engine.Connection{connector(engine.Failing, true)}, nil, false},
		{"InErrorBesideOneThatDelivered", []engine.Connection{connector(engine.Failing, false), api(true)}, nil, true},
		{"InErrorBesideOneThatNeverDelivered", []engine.Connection{connector(engine.Failing, false), api(false)}, nil, false},
		{"TheOperatorsWordAlone", []engine.Connection{operators}, nil, false},
		{"InErrorBesideTheOperatorsWord", []engine.Connection{operators, connector(engine.Failing, true)}, nil, false},
		{"InErrorBesideAWatermark", []engine.Connection{{Source: "stripe", Watermark: &watermark}, connector(engine.Failing, true)}, nil, true},
		{"HealthyBesideTheOperatorsWord", []engine.Connection{operators, connector(engine.Healthy, false)}, nil, true},
		{"TwoInError", []engine.Connection{connector(engine.Failing, true), connector(engine.Failing, false)}, nil, true},
		{"Unavailable", []engine.Connection{connector(engine.Healthy, true)}, []string{"stripe"}, false},
		{"AnotherIsUnavailable", []engine.Connection{connector(engine.Healthy, true)}, []string{"shopify"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := engine.Sources(row.connections, row.unavailable)["stripe"].Present; got != row.want {
				t.Errorf("present is %t, want %t", got, row.want)
			}
		})
	}
}

func TestD10_TrustOfASource(t *testing.T) {
	t.Parallel()
	early, late := engine.Instant(10), engine.Instant(20)
	connections := []engine.Connection{
		{Source: "stripe", Name: "webhook", Trust: engine.Independent, Watermark: &late, ClockSkew: 5},
		{Source: "stripe", Name: engine.FactsAPI, Trust: engine.Shared, Watermark: &early},
		{Source: "crm", Trust: engine.Shared, Override: engine.Independent},
		{Source: "bank", Name: "poll", Trust: engine.Shared, Watermark: &late, Delivered: true},
		{Source: "bank", ClockSkew: 30},
		{Source: engine.AgentSource, Trust: engine.Independent, Override: engine.Independent},
	}
	want := map[string]engine.Source{
		"stripe": {Name: "stripe", Trust: engine.Shared, Watermark: &early, ClockSkew: 5},
		"crm":    {Name: "crm", Trust: engine.Independent, Override: engine.Independent},
		// A clock skew alone says nothing of trust, watermark and presence.
		"bank": {Name: "bank", Trust: engine.Shared, Watermark: &late, Present: true, ClockSkew: 30},
		// Facts made from agent spans stay self-reported, whatever a setting says.
		"otel": {Name: "otel", Trust: engine.SelfReported},
	}
	if diff := cmp.Diff(want, engine.Sources(connections, nil)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}
