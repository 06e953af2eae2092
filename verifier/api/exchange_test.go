package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

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
