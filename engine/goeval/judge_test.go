package goeval_test

import (
	"testing"

	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/internal/speccases"
)

// TestSpecification_Primitives judges the specification's cases in memory. That
// SQL says the same is TestSpecification_Primitives of internal/agreement.
func TestSpecification_Primitives(t *testing.T) {
	t.Parallel()
	for _, row := range speccases.Rows() {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			row.Check(t, goeval.Evaluate(row.Contract(t, "under_test"), row.Snapshot(t))[0])
		})
	}
}
