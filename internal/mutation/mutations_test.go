package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/primitive"
)

// TestMutationsFit: what the list breaks stands once in its file, so that a
// change of a primitive cannot leave the mutation check behind unnoticed.
func TestMutationsFit(t *testing.T) {
	t.Parallel()
	for _, m := range mutations {
		text, err := os.ReadFile(filepath.Join("../..", folder, m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := bytes.Count(text, []byte(m.from)); n != 1 {
			t.Errorf("%s: %q stands %d times, want once; mend the list of mutations", m.file, m.from, n)
		}
		if m.from == m.to {
			t.Errorf("%s: %q breaks nothing", m.file, m.from)
		}
	}
}

// TestEveryPrimitiveIsBroken on both sides.
func TestEveryPrimitiveIsBroken(t *testing.T) {
	t.Parallel()
	for _, d := range primitive.Definitions() {
		for _, side := range []string{"SQL", "Go"} {
			if !broken(d.Name, side) {
				t.Errorf("no mutation breaks the %s of %s", side, d.Name)
			}
		}
	}
}

func broken(primitive, side string) bool {
	for _, m := range mutations {
		if m.side == side && strings.TrimSuffix(m.file, ".go") == primitive {
			return true
		}
	}
	return false
}
