package floors

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// settledDecisions is how many decisions the project has settled, numbered from 1.
const settledDecisions = 37

// pin is how a test names the decision it holds: TestD08_FirstStands, t.Run("D08_FirstStands", ...),
// or, among the tests of contracts, name: D08 a second fact under one raw_ref is not stored.
var pin = regexp.MustCompile(`(?:func TestD|t\.Run\("D|[nN]ame: "?D|\{"D)(\d\d)[_ ]`)

// TestDecisionsArePinned: behind every decision stands a test that says its number.
func TestDecisionsArePinned(t *testing.T) {
	pinned := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !holdsTests(path) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range pin.FindAllStringSubmatch(string(text), -1) {
			pinned[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for number := range settledDecisions {
		if name := fmt.Sprintf("%02d", number+1); !pinned[name] {
			t.Errorf("no test names decision D%d: write one called TestD%s_WhatItSays", number+1, name)
		}
	}
}

func holdsTests(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_test.yaml") ||
		strings.HasSuffix(path, ".go") && strings.Contains(path, "ledger/ledgertest/")
}
