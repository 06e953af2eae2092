//go:build jaeger

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

var jaegerBinary = flag.String("jaeger", "../../build/tools/jaeger", "the Jaeger to run; make e2e-jaeger builds it")

// jaegerQuery is where Jaeger answers without any configuration.
const jaegerQuery = "http://localhost:16686"

// TestJaeger: an agent's trace and the verdict on it meet in a real Jaeger. A
// child stands in the action's trace, with its checks below it; a linked span
// leads there, and is found from there by the action's ids.
func TestJaeger(t *testing.T) {
	for _, row := range []struct {
		mode string
		find func(*testing.T, context.Context, stack.Verification) jaegerSpan
	}{
		{"child", verdictInTheTrace},
		{"linked", verdictThatLinksToTheTrace},
	} {
		t.Run(row.mode, func(t *testing.T) {
			startJaeger(t)
			ctx, s := startWith(t, stack.Options{
				Collector:   []string{filepath.Join(mustRoot(t), "examples", "jaeger", "collector.yaml")},
				Environment: []string{"COUNTERSIGN_EMIT_SPAN_MODE=" + row.mode},
			})
			step := refunds.Story(time.Now())[0]
			v, err := refunds.Play(ctx, s, step)
			if err != nil {
				t.Fatal(err)
			}
			verdict := row.find(t, ctx, v)
			for key, want := range map[string]any{
				"countersign.outcome.verdict": "FAIL", "countersign.policy.verdict": "FAIL", "countersign.headline": step.Want.Headline,
				"countersign.action.id": v.Action.ActionID, "error": true,
			} {
				if got := verdict.tag(key); got != want {
					t.Errorf("%s is %v, want %v", key, got, want)
				}
			}
		})
	}
}

// TestJaegerPage runs every command of examples/jaeger/README.md beside a real Jaeger.
func TestJaegerPage(t *testing.T) {
	startJaeger(t)
	text, err := os.ReadFile(filepath.Join(root, "examples", "jaeger", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	play(t, commandsOf(string(text)))
}

// verdictInTheTrace: asked for the agent's trace, Jaeger shows the tool's span
// and the verdict below it.
func verdictInTheTrace(t *testing.T, ctx context.Context, v stack.Verification) jaegerSpan {
	t.Helper()
	spans, err := stack.Await(ctx, "tool span and verdict in one trace", func(ctx context.Context) ([]jaegerSpan, bool, error) {
		spans, err := jaegerTrace(ctx, v.Action.TraceID)
		return spans, verdictOf(spans) >= 0 && toolOf(spans, v) >= 0, err
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, spans)
	}
	verdict := spans[verdictOf(spans)]
	if !verdict.refersTo("CHILD_OF", v.Action.TraceID, v.Action.SpanID) {
		t.Errorf("the verdict is no child of the tool's span: %+v", verdict.References)
	}
	shown := strings.Join(tree(spans, "", "  "), "\n")
	readme, err := os.ReadFile(filepath.Join(root, "examples", "jaeger", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), shown) {
		t.Errorf("examples/jaeger/README.md does not show the trace as Jaeger has it; put it there:\n%s", shown)
	}
	return verdict
}

// tree draws what is below a span, the ones that failed with what they say.
func tree(spans []jaegerSpan, parent, indent string) []string {
	var below []jaegerSpan
	for _, span := range spans {
		if span.parent(spans) == parent {
			below = append(below, span)
		}
	}
	slices.SortStableFunc(below, func(a, b jaegerSpan) int {
		return cmp.Or(cmp.Compare(a.StartTime, b.StartTime), cmp.Compare(a.OperationName, b.OperationName))
	})
	var lines []string
	for _, span := range below {
		line := indent + span.OperationName
		if said, ok := span.tag("otel.status_description").(string); ok {
			line += "   ERROR " + said
		}
		lines = append(append(lines, line), tree(spans, span.SpanID, indent+"  ")...)
	}
	return lines
}

// parent is the span of the same trace that this one stands below; empty for none.
func (s jaegerSpan) parent(spans []jaegerSpan) string {
	for _, r := range s.References {
		known := func(other jaegerSpan) bool { return other.SpanID == r.SpanID }
		if r.RefType == "CHILD_OF" && r.TraceID == s.TraceID && slices.ContainsFunc(spans, known) {
			return r.SpanID
		}
	}
	return ""
}

// verdictThatLinksToTheTrace: found by the action's trace id, the verdict has a
// trace of its own; following its link leads to the tool's span.
func verdictThatLinksToTheTrace(t *testing.T, ctx context.Context, v stack.Verification) jaegerSpan {
	t.Helper()
	query := url.Values{"service": {"countersign"}, "start": {"0"}, "end": {fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())}, "limit": {"20"},
		"tags": {fmt.Sprintf(`{"countersign.action.trace_id":%q}`, v.Action.TraceID)}}
	spans, err := stack.Await(ctx, "the verdict's own trace", func(ctx context.Context) ([]jaegerSpan, bool, error) {
		spans, err := jaegerSpans(ctx, "/api/traces?"+query.Encode())
		return spans, verdictOf(spans) >= 0, err
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, spans)
	}
	verdict := spans[verdictOf(spans)]
	if verdict.TraceID == v.Action.TraceID {
		t.Errorf("the verdict stands in the action's trace")
	}
	for _, reference := range verdict.References {
		agent, err := jaegerTrace(ctx, reference.TraceID)
		if err != nil {
			t.Fatal(err)
		}
		if toolOf(agent, v) >= 0 && reference.SpanID == v.Action.SpanID {
			return verdict
		}
	}
	t.Errorf("no link leads to span %s of trace %s: %+v", v.Action.SpanID, v.Action.TraceID, verdict.References)
	return verdict
}

// jaegerSpan is a span as Jaeger's API shows it.
type jaegerSpan struct {
	TraceID       string `json:"traceID"`
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	// StartTime is in microseconds since 1970.
	StartTime  int64 `json:"startTime"`
	References []struct {
		RefType string `json:"refType"`
		TraceID string `json:"traceID"`
		SpanID  string `json:"spanID"`
	} `json:"references"`
	Tags []struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	} `json:"tags"`
}

func (s jaegerSpan) tag(key string) any {
	for _, tag := range s.Tags {
		if tag.Key == key {
			return tag.Value
		}
	}
	return nil
}

func (s jaegerSpan) refersTo(kind, traceID, spanID string) bool {
	for _, r := range s.References {
		if r.RefType == kind && r.TraceID == traceID && r.SpanID == spanID {
			return true
		}
	}
	return false
}

func verdictOf(spans []jaegerSpan) int {
	return slices.IndexFunc(spans, func(s jaegerSpan) bool { return s.OperationName == "verify_action refund_workflow" })
}

func toolOf(spans []jaegerSpan, v stack.Verification) int {
	return slices.IndexFunc(spans, func(s jaegerSpan) bool { return s.TraceID == v.Action.TraceID && s.SpanID == v.Action.SpanID })
}

func jaegerTrace(ctx context.Context, traceID string) ([]jaegerSpan, error) {
	return jaegerSpans(ctx, "/api/traces/"+traceID)
}

// jaegerSpans asks Jaeger; a trace that it does not have yet has no spans.
func jaegerSpans(ctx context.Context, path string) ([]jaegerSpan, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, jaegerQuery+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Data []struct {
			Spans []jaegerSpan `json:"spans"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	var spans []jaegerSpan
	for _, trace := range answer.Data {
		spans = append(spans, trace.Spans...)
	}
	return spans, nil
}

// startJaeger runs Jaeger as it comes, without any configuration, until the test ends.
func startJaeger(t *testing.T) {
	t.Helper()
	if _, err := jaegerSpans(t.Context(), "/api/traces?service=none"); err == nil {
		t.Fatalf("something answers at %s already; end it first", jaegerQuery)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "jaeger.log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(*jaegerBinary)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatalf("%v; run: make e2e-jaeger", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it holds nothing that is worth the wait
		_ = command.Wait()
		if said, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("Jaeger said:\n%s", said[max(0, len(said)-4000):])
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = stack.Await(ctx, "Jaeger to answer", func(ctx context.Context) (bool, bool, error) {
		_, err := jaegerSpans(ctx, "/api/traces?service=none")
		return err == nil, err == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func mustRoot(t *testing.T) string {
	t.Helper()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}
