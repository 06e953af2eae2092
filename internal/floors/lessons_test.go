package floors

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLessonsAreShown: every complaint that docs/lessons.md answers names
// tests, and those are there.
func TestLessonsAreShown(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "lessons.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) != 12 {
		t.Errorf("%d complaints are answered, not 12", len(sections))
	}
	named := regexp.MustCompile("(?m)^- `([a-z0-9/]+)\\.(Test\\w+)`$")
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		tests := named.FindAllStringSubmatch(section, -1)
		if len(tests) == 0 || len(tests) != strings.Count(section, "\n- ") {
			t.Errorf("%s: name the tests that show it, each as - `folder.TestName`", title)
		}
		for _, test := range tests {
			if !hasTest(t, filepath.Join(root, test[1]), test[2]) {
				t.Errorf("%s: there is no %s in %s", title, test[2], test[1])
			}
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}
