package serve

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"

	"golang.org/x/net/netutil"

	"github.com/countersign-otel/countersign/verifier/api"
)

// crowd counts connections. Those above most are told to come again; what comes
// while even many of these are connected waits in the system's queue.
type crowd struct {
	most int64
	open atomic.Int64
}

type crowded struct{}

// hold bounds what a server accepts from a listener.
func (c *crowd) hold(server *http.Server, listener net.Listener) net.Listener {
	server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		if c.open.Add(1) > c.most {
			return context.WithValue(ctx, crowded{}, true)
		}
		return ctx
	}
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.open.Add(-1)
		}
	}
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(crowded{}) == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		api.WriteProblem(w, api.Busy("too many clients are connected; try again"))
	})
	return netutil.LimitListener(listener, int(c.most+c.most/8)+16)
}
