package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

// statusAndText asks for an address.
func statusAndText(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestWhereMetricsAre: with an API on localhost; of one that others reach only
// where the operator says so, and nothing else is served there.
func TestWhereMetricsAre(t *testing.T) {
	t.Parallel()
	const everywhere = "0.0.0.0:0"
	for _, row := range []struct {
		name, listen, metrics string
		api                   int
		alone                 bool
	}{
		{"API on localhost", "localhost:0", "", http.StatusOK, false},
		{"API everywhere", everywhere, "", http.StatusNotFound, false},
		{"API everywhere, asked for", everywhere, "api", http.StatusOK, false},
		{"API everywhere, metrics alone", everywhere, "127.0.0.1:0", http.StatusNotFound, true},
		{"API on localhost, metrics alone", "localhost:0", "127.0.0.1:0", http.StatusNotFound, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			key(t, c, ledger.RoleViewer)
			c.Listen, c.Metrics.Listen = row.listen, row.metrics
			alone := ""
			s := servingWith(t, c, Options{metricsReady: func(url string) { alone = url }})
			base := strings.Replace(s.url, "0.0.0.0", "127.0.0.1", 1)
			base = strings.Replace(base, "[::]", "127.0.0.1", 1)
			for _, path := range []string{"/metrics", "/v1/metrics"} {
				status, text := statusAndText(t, base+path)
				if shown := strings.Contains(text, "countersign_build_info"); status != row.api || shown != (row.api == http.StatusOK) {
					t.Errorf("the API at %s: %d, metrics %t", path, status, shown)
				}
			}
			if status, _ := statusAndText(t, base+"/healthz"); status != http.StatusOK {
				t.Errorf("health: %d", status)
			}
			if (alone != "") != row.alone {
				t.Fatalf("metrics alone at %q", alone)
			}
			if !row.alone {
				return
			}
			if status, text := statusAndText(t, alone); status != http.StatusOK || !strings.Contains(text, "countersign_build_info") {
				t.Errorf("alone: %d %s", status, text)
			}
			for _, path := range []string{"/", "/v1/actions", "/healthz", "/sign-in"} {
				if status, _ := statusAndText(t, strings.TrimSuffix(alone, "/metrics")+path); status != http.StatusNotFound {
					t.Errorf("%s beside it: %d", path, status)
				}
			}
		})
	}
}
