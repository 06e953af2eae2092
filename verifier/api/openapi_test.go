package api

import (
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// TestDescriptionIsCurrent: openapi.json is made from the code by
// go test ./verifier/api -run TestDescriptionIsCurrent -update
func TestDescriptionIsCurrent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	got := indentedJSON(t, f.must(t, http.StatusOK, "", "GET", "/openapi.json", "").body) + "\n"
	if *update {
		if err := os.WriteFile("openapi.json", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
