package diagnostic

import "testing"

// TestNearest: what somebody most likely meant, or nothing.
func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"state_before_action", "precondition_unmet", "param_max", "param_in", "param_not_in", "window", "fact_type"}
	for word, want := range map[string]string{
		"windw":        "window",
		"Window":       "window",
		"param_maxx":   "param_max",
		"state_before": "state_before_action",
		"state":        "state_before_action",
		"stat":         "", // too little to tell
		"param":        "", // begins more than one
		"refund":       "",
		"type":         "fact_type",
		"max_window":   "window",
		"in":           "", // the last part of more than one
		"":             "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) is %q, want %q", word, got, want)
		}
	}
}
