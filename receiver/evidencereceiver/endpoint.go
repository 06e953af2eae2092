package evidencereceiver

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

// endpoint is a compiled EndpointConfig.
type endpoint struct {
	name, path, events string
	verifier           scheme.Verifier
	// delivery is what every delivery to this endpoint has in common.
	delivery delivery.Delivery
	headers  []keptHeader
}

type keptHeader struct{ name, attribute string }

// trustOf gives the endpoint what its scheme earns, or less.
func (e *endpoint) trustOf(configured string, s *scheme.Scheme) error {
	e.delivery.Trust = s.Trust
	if configured == "" {
		return nil
	}
	trust, err := engine.ParseTrust(configured)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	if trust > s.Trust {
		return fmt.Errorf("trust: %s is more than the scheme %s earns, which is %s; trust can be lowered only", trust, s.Name, s.Trust)
	}
	e.delivery.Trust = trust
	return nil
}
