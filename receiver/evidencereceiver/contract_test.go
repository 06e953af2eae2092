package evidencereceiver

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
)

// TestConsumeContract: whatever the pipeline says, no delivery is lost and none
// is passed on that the sender was told to keep and then does not send again.
func TestConsumeContract(t *testing.T) {
	t.Parallel()
	config := testConfig()
	address := make(chan string, 1)
	factory := receiver.NewFactory(metadata.Type, createDefaultConfig, receiver.WithLogs(
		func(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
			made, err := createLogs(ctx, set, cfg, labelled{next})
			if err != nil {
				return nil, err
			}
			s, ok := made.(*server)
			if !ok {
				return nil, errConfig
			}
			return announced{s, address}, nil
		}, component.StabilityLevelAlpha))
	receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
		T: t, Factory: factory, Signal: pipeline.SignalLogs, Config: config,
		Generator: &sender{t: t, address: address}, GenerateCount: 100,
	})
}

// labelled gives records the id that the check looks for: what a sender sends never becomes such an attribute.
type labelled struct{ consumer.Logs }

func (l labelled) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	for _, entry := range entries([]plog.Logs{ld}) {
		entry.Attributes().PutStr(receivertest.UniqueIDAttrName, entry.Body().Str())
	}
	return l.Logs.ConsumeLogs(ctx, ld)
}

// announced tells the sender where the receiver listens.
type announced struct {
	*server
	address chan string
}

func (a announced) Start(ctx context.Context, host component.Host) error {
	err := a.server.Start(ctx, host)
	a.address <- a.server.address
	return err
}

// sender sends until it is told that a delivery was taken, or refused for good.
type sender struct {
	t       *testing.T
	address chan string
	to      *server
	last    atomic.Int64
}

func (s *sender) Start() { s.to = &server{address: <-s.address} }
func (s *sender) Stop()  {}

func (s *sender) Generate() []receivertest.UniqueIDAttrVal {
	body := strconv.FormatInt(s.last.Add(1), 10)
	for {
		got := s.to.send(s.t, to("/stripe", body).stripe(time.Now()))
		if got.status == http.StatusOK || got.status == http.StatusInternalServerError {
			return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(body)}
		}
		if got.status != http.StatusServiceUnavailable {
			s.t.Errorf("answered %+v", got)
			return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(body)}
		}
	}
}
