package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/countersign-otel/countersign/ledger"
)

// TestSlowBodiesHoldUpNobody: who announces large bodies and sends next to
// nothing takes no room from others.
func TestSlowBodiesHoldUpNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const slow = maxBodies/maxActionBody + 8
	deadline := time.Now().Add(20 * time.Second)
	for i := range slow {
		connection, err := net.Dial("tcp", strings.TrimPrefix(f.server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if err := connection.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(connection, "POST /v1/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			f.secrets[tenantA][ledger.RoleRecorder], maxActionBody)
		if err != nil {
			t.Fatal(err)
		}
		// The server says so when it begins to read the body.
		if line, err := bufio.NewReader(connection).ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("slow body %d: %q, %v", i, line, err)
		}
	}
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
}

// TestWhatBodiesBecomeIsBounded: a document takes several times its length once
// it is parsed. The longest are worked on two at a time, and small ones beside them.
func TestWhatBodiesBecomeIsBounded(t *testing.T) {
	t.Parallel()
	dense := []byte(`{"facts": [` + strings.Repeat("1,", maxFactsBody/2-20) + `1]}`)
	third := dense[:freeBody+1] // of any length that is counted
	for name, row := range map[string]struct {
		body []byte
		want int64
	}{
		"small":   {[]byte(refundAction), 0},
		"larger":  {[]byte(`"` + strings.Repeat("a", 1<<20) + `"`), parsedTimes * (1<<20 + 2)},
		"longest": {make([]byte, maxFactsBody), maxParsed / 2},
	} {
		if got := parsedSize(row.body); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
	// Reading 16 MB takes a busy machine long; only who finds no room is to give up soon.
	h := &handler{Service: &Service{}, Options: Options{BodyTimeout: time.Minute}, bodies: semaphore.NewWeighted(maxBodies), parsed: semaphore.NewWeighted(maxParsed)}
	read := func(body []byte) (release func(), err error) {
		request := httptest.NewRequest("POST", "/v1/facts", bytes.NewReader(body))
		_, release, err = h.body(t.Context(), Exchange{request, httptest.NewRecorder()}, maxFactsBody)
		return release, err
	}
	release, err := read(dense)
	if err != nil {
		t.Fatal(err)
	}
	second, err := read(dense)
	if err != nil {
		t.Fatalf("a second one beside it: %v", err)
	}
	h.BodyTimeout = 50 * time.Millisecond
	var busy *Problem
	if _, err := read(third); !errors.As(err, &busy) || busy.Code != CodeBusy {
		t.Errorf("a third one beside them: %v", err)
	}
	h.BodyTimeout = time.Minute
	small, err := read([]byte(refundAction))
	if err != nil {
		t.Errorf("a small one beside them: %v", err)
	} else {
		small()
	}
	release()
	second()
	if release, err = read(dense); err != nil {
		t.Errorf("afterwards: %v", err)
	} else {
		release()
	}
	if !h.bodies.TryAcquire(maxBodies) || !h.parsed.TryAcquire(maxParsed) {
		t.Error("some room was not given back")
	}
}
