package ledgertest

import (
	"testing"
	"time"
)

// deadline bounds a wait for what must happen.
func deadline(t *testing.T) <-chan time.Time {
	t.Helper()
	return time.After(20 * time.Second)
}
