package contracttest

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Coverage counts how often each check of a contract passed and failed over its tests.
type Coverage struct {
	contract *contract.Contract
	passed   []int
	failed   []int
}

// NewCoverage counts for one contract.
func NewCoverage(c *contract.Contract) *Coverage {
	return &Coverage{contract: c, passed: make([]int, len(c.Checks)), failed: make([]int, len(c.Checks))}
}

// Add counts one evaluation of an action.
func (c *Coverage) Add(e engine.Evaluation) {
	for i, check := range c.contract.Checks {
		if e.Findings[i].Fired == (check.Section == contract.ExpectedEffects) {
			c.passed[i]++
			continue
		}
		c.failed[i]++
	}
}

// Gaps lists the checks that no test makes pass, or none makes fail.
func (c *Coverage) Gaps() []string {
	var gaps []string
	for i, check := range c.contract.Checks {
		what := fmt.Sprintf("%s: %s", check.Section, check.Call.Describe())
		if c.passed[i] == 0 {
			gaps = append(gaps, "no test where this check passes: "+what)
		}
		if c.failed[i] == 0 {
			gaps = append(gaps, "no test where this check fails: "+what)
		}
	}
	return gaps
}
