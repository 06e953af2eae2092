package verifiedactionsreceiver

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

func TestShutdown_AnswersWhatIsBeingServed(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	s, base := start(t, testConfig(), consume(t, func(context.Context, ptrace.Traces) error {
		close(inside)
		<-leave
		return nil
	}))
	a := newSender(t, base)
	wire := a.chain("a", 1)[0]
	answered, down := make(chan reply, 1), make(chan error, 1)
	go func() { answered <- a.single(wire) }()
	<-inside
	go func() { down <- s.Shutdown(context.Background()) }()
	select {
	case err := <-down:
		t.Errorf("the receiver was down before the request was answered: %v", err)
	default:
	}
	close(leave)
	if got := <-answered; got.status != http.StatusCreated {
		t.Errorf("answered %d", got.status)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// TestShutdown_HonoursItsDeadline: a pipeline that hangs does not keep the collector up.
func TestShutdown_HonoursItsDeadline(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}), make(chan struct{})
	s, base := start(t, testConfig(), consume(t, func(context.Context, ptrace.Traces) error {
		close(inside)
		<-leave
		return nil
	}))
	a := newSender(t, base)
	var sending sync.WaitGroup
	sending.Go(func() {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, a.base+actionsPath, strings.NewReader(bareActions))
		if err != nil {
			return
		}
		request.Header = bearer(testToken)
		if response, err := a.client.Do(request); err == nil { // it is cut off
			_ = response.Body.Close()
		}
	})
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("nothing was said of the request that was cut off")
	}
	close(leave)
	sending.Wait()
}

func TestStart_AddressInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := testConfig()
	config.ServerConfig.NetAddr.Endpoint = listener.Addr().String()
	s, err := newServer(receivertest.NewNopSettings(metadata.Type), config, consumertest.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(context.Background(), componenttest.NewNopHost()); err == nil {
		t.Error("two listen on one address")
	}
	stop(t, s)
}

// reporting is a host that hears of a component's status.
type reporting struct {
	host
	events chan *componentstatus.Event
}

func (r reporting) Report(event *componentstatus.Event) { r.events <- event }

func TestServe_FailureIsFatal(t *testing.T) {
	t.Parallel()
	r := reporting{host{}, make(chan *componentstatus.Event, 1)}
	s, _ := startIn(t, testConfig(), consumertest.NewNop(), r)
	if err := s.listener.Close(); err != nil { // as if the network were gone
		t.Fatal(err)
	}
	select {
	case event := <-r.events:
		if event.Status() != componentstatus.StatusFatalError {
			t.Errorf("reported %s", event.Status())
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody heard that nothing is served any more")
	}
}

var _ component.Host = reporting{}
