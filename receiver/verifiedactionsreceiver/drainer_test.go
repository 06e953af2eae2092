package verifiedactionsreceiver

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// drainer does with answers what the drainer of the SDK was measured to do:
// see sdk_drainer_behaviour in testdata/aevs-vectors.json.
type drainer struct {
	pending   []queued
	noBatches bool
	batch     func([][]byte) (status int, body string)
	single    func([]byte) (status int)

	batchCalls, singleCalls int
}

type queued struct {
	seq  int
	wire []byte
}

const drainerAttempts = 3

// drain sends everything once and says whether the drainer calls that a success.
func (d *drainer) drain() bool {
	if d.noBatches {
		return d.oneByOne()
	}
	for range drainerAttempts {
		d.batchCalls++
		wires := make([][]byte, len(d.pending))
		for i := range d.pending {
			wires[i] = d.pending[i].wire
		}
		status, body := d.batch(wires)
		switch {
		case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
			d.noBatches = true
			return d.oneByOne()
		case status == http.StatusRequestEntityTooLarge:
			return d.oneByOne()
		case status >= http.StatusBadRequest:
		default:
			if done, success := d.take(body); done {
				return success
			}
		}
	}
	return false
}

// take reads the answer to a batch; done is false where it does not read.
func (d *drainer) take(body string) (done, success bool) {
	var reply batchReply
	if json.Unmarshal([]byte(body), &reply) != nil {
		return false, false
	}
	if len(reply.Results) != len(d.pending) {
		return true, d.oneByOne()
	}
	var flushed []int
	for i, result := range reply.Results {
		if result.Status == "error" {
			break
		}
		if result.Status == "created" || result.Status == "duplicate" {
			flushed = append(flushed, d.pending[i].seq)
		}
	}
	d.flush(flushed)
	return true, reply.FailedAtIndex == nil
}

func (d *drainer) oneByOne() bool {
	var flushed []int
	defer func() { d.flush(flushed) }()
	for _, p := range d.pending {
		sent := false
		for range drainerAttempts {
			d.singleCalls++
			if sent = d.single(p.wire) < http.StatusBadRequest; sent {
				break
			}
		}
		if !sent {
			return false
		}
		flushed = append(flushed, p.seq)
	}
	return true
}

func (d *drainer) flush(seqs []int) {
	d.pending = slices.DeleteFunc(d.pending, func(p queued) bool { return slices.Contains(seqs, p.seq) })
}

func (d *drainer) left() []int {
	left := []int{}
	for _, p := range d.pending {
		left = append(left, p.seq)
	}
	return left
}

func waiting(wires [][]byte) []queued {
	list := make([]queued, len(wires))
	for i, wire := range wires {
		list[i] = queued{i + 1, wire}
	}
	return list
}

type measured struct {
	Case         string `json:"case"`
	Returned     bool   `json:"drain_returned"`
	BatchCalls   int    `json:"batch_calls"`
	SingleCalls  int    `json:"single_calls"`
	Left         []int  `json:"left_pending"`
	BatchEnabled bool   `json:"batch_still_enabled"`
}

// bodies are the answers of the cases that do not only name a status.
var bodies = map[string]string{
	"200 all created":                                     `{"results":[{"status":"created"},{"status":"created"},{"status":"created"}],"failed_at_index":null}`,
	"batch 201 all created":                               `{"results":[{"status":"created"},{"status":"created"},{"status":"created"}],"failed_at_index":null}`,
	"batch 200 duplicate+created":                         `{"results":[{"status":"duplicate"},{"status":"created"},{"status":"created"}],"failed_at_index":null}`,
	"batch 200 partial: index 1 error, failed_at_index 1": `{"results":[{"status":"created"},{"status":"error"},{"status":"created"}],"failed_at_index":1}`,
	"batch 200 error in results but failed_at_index null": `{"results":[{"status":"created"},{"status":"error"},{"status":"created"}],"failed_at_index":null}`,
	"batch 200 unknown status string":                     `{"results":[{"status":"created"},{"status":"rejected"},{"status":"created"}],"failed_at_index":null}`,
	"batch 200 results too short":                         `{"results":[{"status":"created"}],"failed_at_index":null}`,
	"batch 200 body not JSON":                             "ok",
	"batch HTTP 302 (httpx follows no redirects; not an error; body not JSON-results)": `{}`,
}

var (
	onlyStatus   = regexp.MustCompile(`^batch HTTP (\d+)`)
	thenSingle   = regexp.MustCompile(`^batch 404 then single HTTP (\d+)$`)
	blockedInSeq = "batch 404 then single 409 only for seq 2 (head-of-line block)"
)

// scripted makes a drainer whose server answers as in the case.
func scripted(t *testing.T, name string) *drainer {
	t.Helper()
	d := &drainer{pending: []queued{{1, nil}, {2, nil}, {3, nil}}}
	d.single = func([]byte) int { return http.StatusCreated }
	answer := func(status int, body string) { d.batch = func([][]byte) (int, string) { return status, body } }
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if body, ok := bodies[name]; ok {
		answer(http.StatusOK, body)
		return d
	}
	if name == blockedInSeq {
		answer(http.StatusNotFound, "")
		d.single = func([]byte) int {
			if d.singleCalls == 1 {
				return http.StatusCreated
			}
			return http.StatusConflict
		}
		return d
	}
	if match := thenSingle.FindStringSubmatch(name); match != nil {
		answer(http.StatusNotFound, "")
		d.single = func([]byte) int { return number(match[1]) }
		return d
	}
	match := onlyStatus.FindStringSubmatch(name)
	if match == nil {
		t.Fatalf("the case %q is new", name)
	}
	answer(number(match[1]), "")
	return d
}

// TestDrainer_IsTheSDKs holds this file's drainer to what was measured.
func TestDrainer_IsTheSDKs(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/aevs-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Cases []measured `json:"sdk_drainer_behaviour"`
	}
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Cases) != 31 {
		t.Fatalf("%d cases", len(v.Cases))
	}
	for _, want := range v.Cases {
		t.Run(want.Case, func(t *testing.T) {
			t.Parallel()
			d := scripted(t, want.Case)
			returned := d.drain()
			got := measured{want.Case, returned, d.batchCalls, d.singleCalls, d.left(), !d.noBatches}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// against makes a drainer that sends to a receiver.
func against(s *sender, wires [][]byte) *drainer {
	d := &drainer{pending: waiting(wires)}
	d.batch = func(wires [][]byte) (int, string) {
		got := s.batch(wires...)
		return got.status, got.body
	}
	d.single = func(wire []byte) int { return s.single(wire).status }
	return d
}

// TestDrainer_Flows: whatever the answer, the drainer is through after two
// cycles, and every good receipt came on the first.
func TestDrainer_Flows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		change   func(*Config)
		wires    func(*sender) [][]byte
		first    []int // pending after the first cycle
		noBatch  bool
		spans    int
		singles  bool
		returned bool
	}{
		{"all good", nil, func(s *sender) [][]byte { return s.chain("a", 3) }, []int{}, false, 3, false, true},
		{"a poison in the middle", nil, func(s *sender) [][]byte {
			wires := s.chain("a", 3)
			wires[1] = tampered(wires[1])
			return wires
		}, []int{2}, false, 2, false, true},
		{"only poison", nil, func(s *sender) [][]byte { return [][]byte{[]byte("x"), []byte("{}"), []byte("")} }, []int{1, 2, 3}, false, 0, false, true},
		{"every receipt twice", nil, func(s *sender) [][]byte {
			wires := s.chain("a", 2)
			return append(wires, wires...)
		}, []int{}, false, 2, false, true},
		{"no batches", func(c *Config) { c.AEVS.MaxBatchReceipts = 0 }, func(s *sender) [][]byte {
			wires := s.chain("a", 3)
			wires[1] = tampered(wires[1])
			return append(wires, wires[0])
		}, []int{}, true, 2, true, true},
		{"too many at once", func(c *Config) { c.AEVS.MaxBatchReceipts = 2 }, func(s *sender) [][]byte { return s.chain("a", 3) }, []int{}, false, 3, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, sink := testConfig(), new(consumertest.TracesSink)
			if test.change != nil {
				test.change(config)
			}
			_, base := start(t, config, sink)
			s := newSender(t, base)
			d := against(s, test.wires(s))
			returned := d.drain()
			got := []any{returned, d.left(), d.noBatches, sink.SpanCount(), d.singleCalls > 0}
			if diff := cmp.Diff([]any{test.returned, test.first, test.noBatch, test.spans, test.singles}, got); diff != "" {
				t.Error(diff)
			}
			if len(d.pending) > 0 {
				d.drain()
			}
			if diff := cmp.Diff([]int{}, d.left()); diff != "" {
				t.Error("after the second cycle:", diff)
			}
			if sink.SpanCount() != test.spans {
				t.Errorf("%d spans after the second cycle", sink.SpanCount())
			}
		})
	}
}

// TestDrainer_KeepsWhileThePipelineIsDown: nothing is lost, and all goes
// through when the pipeline is back.
func TestDrainer_KeepsWhileThePipelineIsDown(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.TracesSink)
	next := newSwitched(consumertest.NewErr(errors.New("down")))
	_, base := start(t, testConfig(), next)
	s := newSender(t, base)
	d := against(s, s.chain("a", 3))
	if d.drain() {
		t.Error("the drainer calls it a success")
	}
	if diff := cmp.Diff([]int{1, 2, 3}, d.left()); diff != "" {
		t.Error(diff)
	}
	next.to(sink)
	if !d.drain() || len(d.pending) > 0 {
		t.Error("the drainer is not through")
	}
	if diff := cmp.Diff([]string{"a-1 anchor", "a-2 linked", "a-3 linked"}, referencesIn(sink)); diff != "" {
		t.Error(diff)
	}
}
