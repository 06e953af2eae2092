package serve

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-otel/countersign/verifier/api"
)

// Bounds of connections that are new.
const (
	// mostNew is how many connections at most are at their first request.
	mostNew = 256
	// silentFor and busyFor are how long one counts as such that has sent no
	// request, and one whose request is not answered: whoever is slow does not keep
	// others out.
	silentFor, busyFor = 250 * time.Millisecond, 2 * time.Second
)

// crowd is a listener that bounds connections. Those above most are told to
// come again; what comes while even many of these are connected waits in the
// system's queue. So does what comes while many are at their first request: a
// request in progress takes ten times the memory of one that waits for a verdict,
// and ten thousand at once are done no sooner than some hundreds at a time. A
// connection counts until it is closed, whoever has it then.
type crowd struct {
	net.Listener
	most   int
	places chan struct{}
	fresh  chan struct{}
	once   sync.Once
	closed chan struct{}
}

// hold bounds what a server accepts from a listener.
func hold(server *http.Server, listener net.Listener, most int) net.Listener {
	c := &crowd{
		Listener: listener, most: most, closed: make(chan struct{}),
		places: make(chan struct{}, most+most/8+16), fresh: make(chan struct{}, mostNew),
	}
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if one := memberOf(conn); one != nil && one.tooMany {
			return context.WithValue(ctx, crowded{}, true)
		}
		return ctx
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if one := memberOf(conn); one != nil {
			one.is(state)
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
	return c
}

type crowded struct{}

// Accept waits until a connection may come in, and then for one.
func (c *crowd) Accept() (net.Conn, error) {
	for _, bound := range []chan struct{}{c.places, c.fresh} {
		select {
		case bound <- struct{}{}:
		case <-c.closed:
			return nil, net.ErrClosed // what was taken does not matter any more
		}
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.places
		<-c.fresh
		return nil, err
	}
	m := &member{Conn: conn, crowd: c, tooMany: len(c.places) > c.most}
	m.timer = time.AfterFunc(math.MaxInt64, m.settle) // settle needs to know it before it runs
	m.timer.Reset(silentFor)
	return m, nil
}

// Close ends also an Accept that waits.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Listener.Close()
}

// member is one connection of a crowd.
type member struct {
	net.Conn
	crowd   *crowd
	tooMany bool
	closing sync.Once
	timer   *time.Timer
	settled atomic.Bool
}

func memberOf(conn net.Conn) *member {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	m, _ := conn.(*member)
	return m
}

// is follows what the server does with the connection, up to the end of its first request.
func (m *member) is(state http.ConnState) {
	switch {
	case m.settled.Load():
	case state == http.StateActive:
		m.timer.Reset(busyFor)
	case state != http.StateNew:
		m.settle()
	}
}

// settle lets another one in.
func (m *member) settle() {
	if m.settled.CompareAndSwap(false, true) {
		m.timer.Stop()
		<-m.crowd.fresh
	}
}

// Close gives the places back.
func (m *member) Close() error {
	err := m.Conn.Close()
	m.closing.Do(func() {
		m.settle()
		<-m.crowd.places
	})
	return err
}

// CloseWrite tells the other end that nothing comes any more; without it a
// server would cut off answers that are still under way when it closes.
func (m *member) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
