package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/settle"
)

// events opens the stream of a browser and returns what it says, line by line.
func (b *browser) events(ctx context.Context, lastID string) (answer, <-chan string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/live", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := b.client.Do(request) //nolint:bodyclose // it is closed with the test
	if err != nil {
		b.t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	b.t.Cleanup(func() {
		response.Body.Close()
		for range lines { // until the reader has ended
		}
	})
	return answer{status: response.StatusCode, proto: response.ProtoMajor, header: response.Header}, lines
}

// next waits for a line with a start.
func next(t *testing.T, lines <-chan string, start string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case line, open := <-lines:
			if !open {
				t.Fatalf("the stream ended before %q", start)
			}
			if rest, ok := strings.CutPrefix(line, start); ok {
				return rest
			}
		case <-deadline:
			t.Fatalf("no %q in time", start)
		}
	}
}

func nextEvent(t *testing.T, lines <-chan string) event {
	t.Helper()
	if name := next(t, lines, "event: "); name != "verdicts" {
		t.Fatalf("event %q", name)
	}
	var told event
	if err := json.Unmarshal([]byte(next(t, lines, "data: ")), &told); err != nil {
		t.Fatal(err)
	}
	return told
}

func TestLive(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.live()
	f.record(acme, refund("before", "order_0", start, "1"))
	f.verify(start+1, "before")
	b := f.reader()
	got, lines := b.events(t.Context(), "")
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	next(t, lines, "retry: ")
	if id := next(t, lines, "id: "); id != "2" { // also who is cut off now says where it was
		t.Errorf("the browser is told to come back with %q, want 2", id)
	}
	f.record(acme, refund("a", "order_1", start, "1"))
	f.record(other, refund("foreign", "order_1", start, "1"))
	if _, err := f.verifier.Verify(t.Context(), other, []string{engine.ClaimID(other, "foreign")}, nil, "action"); err != nil {
		t.Fatal(err)
	}
	f.verify(start+1, "a")
	if diff := cmp.Diff(event{Seq: 4, Claims: []string{engine.ClaimID(acme, "a")}}, nextEvent(t, lines)); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}

	// Another process stores verdicts too: nobody nudges the feed then.
	elsewhere := settle.New(settle.Config{Ledger: f.store, Contracts: ledger.NewContractCache(0), Owner: "elsewhere", Now: f.now})
	if _, err := elsewhere.Verify(t.Context(), acme, []string{engine.ClaimID(acme, "before")}, nil, "manual"); err != nil {
		t.Fatal(err)
	}
	if got := nextEvent(t, lines); got.Seq != 6 || got.Claims[0] != engine.ClaimID(acme, "before") {
		t.Errorf("from another process: %+v", got)
	}

	// A browser that comes back does not know what it missed.
	_, again := b.events(t.Context(), "2")
	if got := nextEvent(t, again); got.Seq != 6 || !got.More {
		t.Errorf("after a break: %+v", got)
	}
}

func TestLiveEndsWithThePage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.page.Feed.Run(ctx) }()
	_, lines := f.reader().events(t.Context(), "")
	next(t, lines, "retry: ")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for range lines { // ends, or the test does not
	}
}

// TestQuietPageOverTLSStaysLive: HTTP/2 resets a stream whose write deadline passes.
func TestQuietPageOverTLSStaysLive(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, Config{Heartbeat: time.Second, SlowClient: 300 * time.Millisecond}).library()
	f.live()
	server := httptest.NewUnstartedServer(f.page.Handler(http.NotFoundHandler()))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	b := f.browser()
	b.base, b.client.Transport = server.URL, server.Client().Transport
	if got := b.signIn(f.secrets[ledger.RoleViewer], "/"); got.status != http.StatusSeeOther {
		t.Fatalf("sign-in: %d %s", got.status, got.body)
	}
	got, lines := b.events(t.Context(), "")
	if got.proto != 2 {
		t.Fatalf("over HTTP/%d, want 2", got.proto)
	}
	next(t, lines, ": still here")
	f.record(acme, refund("a", "order_1", start, "1"))
	f.verify(start+1, "a")
	nextEvent(t, lines)
	next(t, lines, ": still here")
}

func TestLiveIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range feed.MostReaders {
		if _, err := f.page.Feed.Join(t.Context(), acme, fmt.Sprint("key_", i/feed.MostOfKey), nil); err != nil {
			t.Fatal(err)
		}
	}
	got, lines := f.reader().events(t.Context(), "")
	if got.status != http.StatusServiceUnavailable {
		t.Errorf("%d, want 503", got.status)
	}
	for range lines {
	}
}
