package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/countersign-otel/countersign/verifier/keys"
)

// Bounds of calls that are held.
const (
	// keepConnection is how long a call may wait at most to be answered by the
	// server itself, on a connection that stays open for the next one.
	keepConnection = time.Second
	// lingerTime and lingerBytes are for what a client still sends when it has its
	// answer: a connection that is closed with something unread could lose the answer.
	lingerTime, lingerBytes = 500 * time.Millisecond, 64 << 10
)

// held is a call that waits with little more than its connection. It has gone
// through all that a request goes through; then it took its connection from the
// server, which gave back what a request in progress holds: buffers, a goroutine
// whose stack has grown, headers. That is 60 KB, and this a tenth of it. The
// connection ends with the answer. Over HTTP/2 a call is a stream of a
// connection, and waits in the server.
type held struct {
	*wait
	handler *handler
	conn    net.Conn
	// place is the call's own in its gate's list; the hub's.
	place int
	// more is that the client has sent something already that comes after this
	// call; it is not answered.
	more bool
	next [1]byte

	header    http.Header
	minor     int
	requestID string
	use       keys.Use
}

// holdOnly takes a call from the server when it has to wait for long; false
// leaves it where it is.
func (h *handler) holdOnly(w *wait, e Exchange, timeout time.Duration) bool {
	r := e.request
	if w.gate == nil || timeout <= keepConnection || r.Method != http.MethodGet || r.ProtoMajor != 1 || r.Body != http.NoBody {
		return false
	}
	d := &held{
		wait: w, handler: h, header: e.response.Header().Clone(), minor: r.ProtoMinor, requestID: requestID(r.Context()),
		use: keys.Use{Key: w.caller.Key, Route: routeOf(r), From: h.Guard.Address(r)},
	}
	if !h.Hub.take() {
		return false
	}
	conn, buffered, err := http.NewResponseController(e.response).Hijack()
	if err != nil {
		h.Hub.drop()
		return false
	}
	d.more = buffered.Reader.Buffered() > 0
	d.conn = conn
	go d.run()
	return true
}

// run waits, and answers unless the client leaves.
func (d *held) run() {
	defer d.Hub.drop()
	defer d.conn.Close()
	defer d.leave()
	defer func() {
		if cause := recover(); cause != nil {
			d.Logger.Error("handler failed", "path", d.use.Route, "request_id", d.requestID, "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	for d.watch() {
		if d.answer() {
			d.linger()
			return
		}
	}
	d.observe(http.StatusServiceUnavailable)
}

// wake ends the reading of watch.
func (d *held) wake() { _ = d.conn.SetReadDeadline(time.Unix(1, 0)) }

// watch waits until the gate's answer is ready or the time has passed; false when the client has left.
func (d *held) watch() bool {
	if d.gate == nil {
		return true
	}
	_ = d.conn.SetReadDeadline(d.deadline)
	if !d.Hub.enlist(d) {
		return true
	}
	defer d.Hub.delist(d)
	if !d.more {
		n, err := d.conn.Read(d.next[:])
		if n == 0 {
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
		d.more = true
	}
	return d.hold(context.Background()) == nil // it cannot be seen any more whether the client is there
}

// answer tells what is known, or joins the gate again because that is not
// enough: false then.
func (d *held) answer() bool {
	ctx := context.WithValue(context.Background(), requestIDContext, d.requestID)
	ctx, cancel := context.WithTimeout(ctx, d.handler.RequestTimeout)
	defer cancel()
	to, err := d.look(ctx)
	if err == nil && !d.enough(to) {
		if err = d.join(ctx); err == nil {
			return false
		}
	}
	var text []byte
	if err == nil {
		text, err = to.body(d.waited())
	}
	if err != nil {
		p := d.handler.answer(ctx, err)
		d.write(p.Status, p.write(d.header))
		return true
	}
	d.header.Set("Content-Type", "application/json")
	d.write(http.StatusOK, text)
	return true
}

func (d *held) write(status int, body []byte) {
	d.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	response := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: d.minor, Header: d.header, Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	text := bytes.NewBuffer(make([]byte, 0, len(body)+512))
	_ = response.Write(text) // into memory
	_ = d.conn.SetWriteDeadline(time.Now().Add(d.handler.RequestTimeout))
	_, _ = d.conn.Write(text.Bytes()) // the client may be gone
	d.observe(status)
}

// observe counts the call and notes the use of its key.
func (d *held) observe(status int) {
	d.use.Status = status
	d.handler.Note(d.use)
	d.handler.seconds.WithLabelValues(d.use.Route, http.MethodGet, strconv.Itoa(status)).Observe(time.Since(d.started).Seconds())
}

// linger says that nothing comes any more, and lets the client be the first to close.
func (d *held) linger() {
	half, ok := d.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = d.conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.Copy(io.Discard, io.LimitReader(d.conn, lingerBytes))
}
