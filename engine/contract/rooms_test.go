package contract_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/primitive"
)

// TestNothingNamesPrimitives: a new primitive is a new file in engine/primitive
// and nothing else, so no other part of the language may know one by name.
func TestNothingNamesPrimitives(t *testing.T) {
	t.Parallel()
	names := map[string]*regexp.Regexp{}
	for _, d := range primitive.Definitions() {
		for _, spellings := range d.Spellings {
			for _, spelling := range append([]string{d.Name}, spellings...) {
				names[spelling] = regexp.MustCompile(`\b` + spelling + `\b`)
			}
		}
	}
	for _, folder := range []string{".", "contracttest", "../diagnostic"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for name, pattern := range names {
				if pattern.Match(source) {
					t.Errorf("%s names the primitive %s", file, name)
				}
			}
		}
	}
}
