// Checks examples/grafana against Grafana's own types. A module of its own: what Grafana needs is no dependency
// of ours.
module github.com/countersign-otel/countersign/internal/e2e/grafana

go 1.26

require (
	github.com/grafana/grafana-foundation-sdk/go v0.0.22
	gopkg.in/yaml.v3 v3.0.1
)
