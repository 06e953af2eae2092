package evidencereceiver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

// Way is what all records of one endpoint have in common, for tools.
type Way struct {
	Endpoint, Source, Connection, Tenant string
	Trust                                engine.Trust
	// Array says that a body which is a JSON array holds several events.
	Array bool
}

// Ways are the endpoints of all evidence receivers of a whole collector
// configuration, by name. Secrets are not looked at: a tool needs none.
// Errors name the place.
func Ways(collector *confmap.Conf) ([]Way, error) {
	receivers, err := collector.Sub("receivers")
	if err != nil {
		return nil, fmt.Errorf("receivers: %w", err)
	}
	var all []Way
	for _, key := range slices.Sorted(maps.Keys(receivers.ToStringMap())) {
		if kind, _, _ := strings.Cut(key, "/"); kind != metadata.Type.String() {
			continue
		}
		section, err := receivers.Sub(key)
		config := NewDefaultConfig()
		if err == nil {
			err = section.Unmarshal(config)
		}
		if err != nil {
			return nil, fmt.Errorf("receivers::%s: %w", key, err)
		}
		for _, name := range sortedNames(config.Endpoints) {
			way, err := config.Endpoints[name].way(name)
			if err != nil {
				return nil, fmt.Errorf("receivers::%s::endpoints::%s::%w", key, name, err)
			}
			all = append(all, way)
		}
	}
	return all, nil
}

func (c EndpointConfig) way(name string) (Way, error) {
	e := c.unsigned(name)
	if errs := c.checkNames(e); len(errs) > 0 {
		return Way{}, errs[0]
	}
	found, ok := scheme.Find(c.Scheme)
	if !ok {
		return Way{}, fmt.Errorf("scheme: %.40q: write one of %s", c.Scheme, scheme.Names())
	}
	if err := e.trustOf(c.Trust, &found); err != nil {
		return Way{}, err
	}
	return Way{e.name, e.delivery.Source, e.delivery.Connection, e.delivery.Tenant, e.delivery.Trust, e.events == arrayOf}, nil
}
