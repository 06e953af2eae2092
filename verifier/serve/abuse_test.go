package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// patience is how long these tests wait for what must happen.
const patience = 30 * time.Second

// connect opens a connection and sends text.
func (r *running) connect(t *testing.T, text string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	return connection
}

func wantAnswer(t *testing.T, what string, connection net.Conn, status int, text string) told {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status || !strings.Contains(string(body), text) {
		t.Fatalf("%s: %d %s %v, want %d %s", what, response.StatusCode, body, err, status, text)
	}
	return told{response.Header, response.Close}
}

// told is what an answer says beside its body.
type told struct {
	header http.Header
	close  bool
}

// statusOf reads the next answer of a connection.
func statusOf(connection net.Conn) (int, error) {
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// TestSlowHeadersAreCutOff: and hold up nobody until then.
func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	c := settings(t)
	secret := key(t, c, ledger.RoleViewer)
	s := servingWith(t, c, Options{headerTimeout: time.Second})
	slow := make([]net.Conn, 200)
	for i := range slow {
		slow[i] = s.connect(t, "GET /v1/actions HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	}
	if status, body := s.do(t, secret, "GET", "/v1/actions", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	for i, connection := range slow {
		rest, err := io.ReadAll(connection)
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), " 200 ") {
			t.Fatalf("connection %d: %q %v", i, rest, err)
		}
	}
}

// TestSlowBodiesAreAnswered: with what was wrong.
func TestSlowBodiesAreAnswered(t *testing.T) {
	t.Parallel()
	c := settings(t)
	secret := key(t, c, ledger.RoleRecorder)
	s := servingWith(t, c, Options{bodyTimeout: time.Second})
	slow := make([]net.Conn, 50)
	for i := range slow {
		slow[i] = s.connect(t, "POST /v1/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: "+secret+"\r\nContent-Length: 1000\r\n\r\n{")
	}
	if status, body := s.do(t, secret, "POST", "/v1/actions", action); status != http.StatusCreated {
		t.Errorf("%d %s", status, body)
	}
	for i, connection := range slow {
		wantAnswer(t, fmt.Sprint("connection ", i), connection, http.StatusRequestTimeout, "the body did not arrive within 1s")
	}
}

// endless is a body without an end that counts what was taken of it.
type endless struct {
	start string
	taken atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	at := e.taken.Load()
	n := 0
	if at < int64(len(e.start)) {
		n = copy(p, e.start[at:])
	}
	for i := n; i < len(p); i++ {
		p[i] = 'a'
	}
	e.taken.Add(int64(len(p)))
	return len(p), nil
}

// TestHugeBodiesAreNotSwallowed: no more is taken than the limit and what lies
// in the buffers of both ends of the connection.
func TestHugeBodiesAreNotSwallowed(t *testing.T) {
	t.Parallel()
	c := settings(t)
	recorder, evidence := key(t, c, ledger.RoleRecorder), key(t, c, ledger.RoleEvidence, "stripe")
	s := serving(t, c)
	const buffers = 64 << 20
	for _, row := range []struct {
		name, secret, path, start string
		limit                     int64
		status                    int
		says                      string
	}{
		{"action", recorder, "/v1/actions", `{"params": {"a": "`, 1 << 20, http.StatusRequestEntityTooLarge, `"pointer":"/params"`},
		{"inline", recorder, "/v1/actions/verify", `{"params": {"a": "`, 1 << 20, http.StatusRequestEntityTooLarge, "the body has more than 1048576 bytes"},
		{"facts", evidence, "/v1/facts", `{"facts": [{"source": "`, 16 << 20, http.StatusRequestEntityTooLarge, `"pointer":"/facts"`},
		{"no right", recorder, "/v1/facts", `{"facts": [{"source": "`, 0, http.StatusForbidden, "may not push facts"},
		{"no key", "", "/v1/facts", `{"facts": [{"source": "`, 0, http.StatusUnauthorized, "a key is needed"},
		{"sign-in", "", "/sign-in", `key=`, 8 << 10, http.StatusBadRequest, "The form cannot be read"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			connection := s.connect(t, "POST "+row.path+" HTTP/1.1\r\nHost: x\r\nX-API-Key: "+row.secret+
				"\r\nContent-Type: "+map[bool]string{true: "application/x-www-form-urlencoded", false: "application/json"}[row.path == "/sign-in"]+
				"\r\nContent-Length: 1099511627776\r\n\r\n")
			body := &endless{start: row.start}
			var sending sync.WaitGroup
			sending.Go(func() { _, _ = io.Copy(connection, body) }) // ends when the server closes
			wantAnswer(t, row.name, connection, row.status, row.says)
			_ = connection.Close()
			sending.Wait()
			if taken := body.taken.Load(); taken > row.limit+buffers {
				t.Errorf("%d bytes were taken", taken)
			}
		})
	}
}

// TestMalformedBodies: each is told so, and none is a defect.
func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	c := settings(t)
	analyst := key(t, c, ledger.RoleAnalyst)
	s := serving(t, c)
	for name, body := range map[string]string{
		"empty": "", "no JSON": "hello", "cut off": `{"action_id": "a`, "a list": `[]`, "null": `null`, "two values": `{} {}`,
		"deep lists": strings.Repeat("[", 500_000), "deep objects": strings.Repeat(`{"a":`, 150_000),
		"deep params": `{"params": ` + strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_001),
		"half a rune": "{\"action_id\": \"\xc3\"}", "a member twice": `{"action_id": "a", "action_id": "b"}`,
		"many members": `{"a":1` + strings.Repeat(`,"a":1`, 100_000) + `}`,
		"huge number":  `{"params": {"amount": 1e999999999}}`, "long number": `{"params": {"amount": ` + strings.Repeat("9", 900_000) + `}}`,
		"NUL": "{\"action_id\": \"a\\u0000\"}", "wrong kinds": `{"action_id": {}, "facts": 1, "links": "x", "watermarks": []}`,
	} {
		for _, path := range []string{"/v1/actions", "/v1/actions/verify", "/v1/facts"} {
			status, text := s.do(t, analyst, "POST", path, body)
			clear := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || status == http.StatusRequestEntityTooLarge
			if !clear || !strings.Contains(text, `"detail":`) || len(text) > 64<<10 {
				t.Errorf("%s to %s: %d %.300s", name, path, status, text)
			}
		}
	}
	if status, body := s.do(t, analyst, "POST", "/v1/actions", action); status != http.StatusCreated {
		t.Errorf("afterwards: %d %s", status, body)
	}
}

func TestHeaderFloods(t *testing.T) {
	t.Parallel()
	c := settings(t)
	s := serving(t, c)
	many := new(strings.Builder)
	for i := range 10_000 {
		fmt.Fprintf(many, "X-%d: 1\r\n", i)
	}
	for name, headers := range map[string]string{
		"one long header": "X-Long: " + strings.Repeat("a", 64<<10) + "\r\n", "many headers": many.String(),
		"a long path": "", "an endless cookie": "Cookie: " + strings.Repeat("a=b; ", 20_000) + "\r\n",
	} {
		path := "/v1/actions"
		if name == "a long path" {
			path += "?cursor=" + strings.Repeat("a", 64<<10)
		}
		connection := s.connect(t, "GET ")
		_, _ = io.WriteString(connection, path+" HTTP/1.1\r\nHost: x\r\n"+headers+"\r\n") // the server may have hung up before it was sent whole
		status, err := statusOf(connection)
		if err != nil || status != http.StatusRequestHeaderFieldsTooLarge {
			t.Fatalf("%s: %d %v", name, status, err)
		}
	}
}

// TestConnectionStorm: those above the limit are told so, and what waits is served when others leave.
func TestConnectionStorm(t *testing.T) {
	t.Parallel()
	c := settings(t)
	const most = 8
	c.Limits.Connections = most
	s := serving(t, c)
	const probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	held := make([]net.Conn, most)
	for i := range held {
		held[i] = s.connect(t, probe)
		wantAnswer(t, "held", held[i], http.StatusOK, "ok")
	}
	for range 100 { // one after the other: each leaves its place again
		connection := s.connect(t, probe)
		response := wantAnswer(t, "too many", connection, http.StatusServiceUnavailable, `"code":"busy","detail":"too many clients are connected; try again"`)
		if response.header.Get("Retry-After") != "1" || !response.close {
			t.Fatalf("headers: %v, close %t", response.header, response.close)
		}
		if rest, err := io.ReadAll(connection); err != nil || len(rest) > 0 {
			t.Fatalf("the connection stays open: %q %v", rest, err)
		}
	}
	// At once, and sending nothing: they are not even accepted above a bound.
	silent := make([]net.Conn, 3*(most+16))
	for i := range silent {
		silent[i] = s.connect(t, "")
	}
	wantAnswer(t, "one that was there before", func() net.Conn {
		if _, err := io.WriteString(held[0], probe); err != nil {
			t.Fatal(err)
		}
		return held[0]
	}(), http.StatusOK, "ok")
	for _, connection := range append(held, silent...) {
		_ = connection.Close()
	}
	deadline := time.Now().Add(patience)
	for {
		status, err := statusOf(s.connect(t, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
		if err == nil && status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody is served after the storm: %v", err)
		}
	}
}

// TestHeldCallsTakePlaces: who waits for a verdict is connected, though the server has given the connection away.
func TestHeldCallsTakePlaces(t *testing.T) {
	t.Parallel()
	c := settings(t)
	const most = 2
	c.Limits.Connections = most
	recorder := key(t, c, ledger.RoleRecorder)
	s := serving(t, c)
	post := s.connect(t, fmt.Sprintf("POST /v1/actions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n%s", recorder, len(action), action))
	wantAnswer(t, "record", post, http.StatusCreated, "act_1")
	_ = post.Close()
	held := make([]net.Conn, most)
	for i := range held {
		held[i] = s.connect(t, "GET /v1/actions/act_1/wait?timeout=60 HTTP/1.1\r\nHost: x\r\nX-API-Key: "+recorder+"\r\n\r\n")
	}
	const probe = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	ask := func(status int) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for {
			connection := s.connect(t, probe)
			got, err := statusOf(connection)
			_ = connection.Close()
			if err == nil && got == status {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d %v, want %d", got, err, status)
			}
		}
	}
	ask(http.StatusServiceUnavailable)
	for _, connection := range held {
		_ = connection.Close()
	}
	ask(http.StatusOK)
}

// TestSilentConnectionsHoldUpNobody: more of them than may be new at once.
func TestSilentConnectionsHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := servingWith(t, settings(t), Options{headerTimeout: time.Hour}) // nobody is cut off for being silent
	for range 2*mostNew + 10 {
		s.connect(t, "")
	}
	wantAnswer(t, "one that asks", s.connect(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), http.StatusOK, "ok")
}
