//go:build aevs_sdk

package verifiedactionsreceiver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// sdkStep is what testdata/sdk.py says of a step.
type sdkStep struct {
	Session    string   `json:"session"`
	References []string `json:"references"`
	Pending    int      `json:"pending"`
}

// TestSDK runs the real SDK against the receiver: what it makes is taken over
// an outage of the pipeline, in order, with chains that hold. It is behind a
// build tag, because it needs Python and the SDK, which are not ours to ship:
//
//	AEVS_SDK=<folder that holds the package aevs> go test -tags aevs_sdk -run TestSDK ./receiver/verifiedactionsreceiver
func TestSDK(t *testing.T) {
	sdk := os.Getenv("AEVS_SDK")
	if _, err := os.Stat(filepath.Join(sdk, "aevs", "__init__.py")); sdk == "" || err != nil {
		t.Fatalf("set AEVS_SDK to the folder that holds the package aevs, as pip install --target makes it; python3 needs httpx and cryptography: %v", err)
	}
	for _, tc := range []struct {
		name, key, visibility string
		calls, batch, batches int
	}{
		{"version 1, in batches", testKey, "private", 7, 3, 100},
		{"version 1, one by one", testKey, "private", 5, 3, 0},
		{"version 1, proofs only", testKey, "proof_only", 3, 50, 100},
		{"version 2", testKeyV2, "public", 5, 50, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config := testConfig()
			config.AEVS.Keys = []KeyConfig{{APIKey: configopaque.String(tc.key)}}
			config.AEVS.MaxBatchReceipts = tc.batches
			down, sink := consumertest.NewErr(errors.New("down")), new(consumertest.TracesSink)
			next := newSwitched(down)
			s, base := start(t, config, next)
			s.now = time.Now

			script := exec.Command("python3", "testdata/sdk.py")
			script.Env = append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1",
				"AEVS_TEST_KEY="+tc.key, "AEVS_TEST_AGENT="+testAgent, "AEVS_TEST_URL="+base,
				"AEVS_TEST_BUFFER="+filepath.Join(t.TempDir(), "buffer.db"), fmt.Sprint("AEVS_TEST_CALLS=", tc.calls),
				fmt.Sprint("AEVS_TEST_BATCH=", tc.batch), "AEVS_TEST_VISIBILITY="+tc.visibility)
			script.Stderr = os.Stderr
			tell, err := script.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := script.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := script.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(out)
			made, kept := readStep(t, said), readStep(t, said)
			if made.Pending != tc.calls || kept.Pending != tc.calls {
				t.Errorf("%d receipts were made, and %d kept while the pipeline was down, of %d", made.Pending, kept.Pending, tc.calls)
			}
			next.to(sink)
			if _, err := io.WriteString(tell, "go on\n"); err != nil {
				t.Fatal(err)
			}
			if left := readStep(t, said); left.Pending != 0 {
				t.Errorf("%d receipts are left", left.Pending)
			}
			if err := script.Wait(); err != nil {
				t.Fatal(err)
			}
			checkSDKSpans(t, newSender(t, base), sink, made, tc.visibility)
		})
	}
}

func readStep(t *testing.T, said *bufio.Scanner) sdkStep {
	t.Helper()
	if !said.Scan() {
		t.Fatalf("the SDK said nothing more: %v", said.Err())
	}
	var step sdkStep
	if err := json.Unmarshal(said.Bytes(), &step); err != nil {
		t.Fatalf("%s: %v", said.Text(), err)
	}
	return step
}

func checkSDKSpans(t *testing.T, s *sender, sink *consumertest.TracesSink, made sdkStep, visibility string) {
	t.Helper()
	var want []string
	for i, reference := range made.References {
		status := "linked"
		if i == 0 {
			status = "anchor"
		}
		want = append(want, reference+" "+status)
		if got := chainStatus(t, s, reference); got != status {
			t.Errorf("receipt %d is %s, not %s", i+1, got, status)
		}
	}
	if diff := cmp.Diff(want, referencesIn(sink)); diff != "" {
		t.Errorf("(-made +delivered):\n%s", diff)
	}
	for i, td := range sink.AllTraces() {
		for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			arguments := text(span, "gen_ai.tool.call.arguments")
			hidden := visibility == "proof_only"
			if hidden != (arguments == "-") {
				t.Errorf("batch %d: arguments %s of %s", i, arguments, visibility)
			}
			if session := text(span, "gen_ai.conversation.id"); session != made.Session {
				t.Errorf("session %s, not %s", session, made.Session)
			}
		}
	}
}
