package ledgerexporter

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

// diskHost has the storage extension of collectors.
type diskHost map[component.ID]component.Component

func (h diskHost) GetExtensions() map[component.ID]component.Component { return h }

// queueOnDisk starts the extension over a folder; what it returns ends it.
func queueOnDisk(t *testing.T, dir string) (diskHost, func()) {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory, config.FSync = dir, true
	extension, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := extension.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	return diskHost{component.NewID(factory.Type()): extension}, func() {
		if err := extension.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// queued is a configuration with this many batches of room on disk, and a
// store in a folder that is not there.
func queued(t *testing.T, room int64) (config *Config, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "volume")
	config = NewDefaultConfig()
	config.Store = opaque("sqlite:" + filepath.Join(folder, "ledger.db"))
	storage := component.NewID(filestorage.NewFactory().Type())
	queue := config.QueueConfig.Get()
	queue.StorageID, queue.QueueSize, queue.NumConsumers = &storage, room, 1
	config.RetryConfig.InitialInterval, config.RetryConfig.MaxInterval = 10*time.Millisecond, 50*time.Millisecond
	return config, folder
}

// run starts an exporter; the id is the same every time, because the queue is known by it.
func run(t *testing.T, config *Config, host component.Host) exporter.Traces {
	t.Helper()
	settings := exportertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type)
	e, err := NewFactory().CreateTraces(t.Context(), settings, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestQueueOutlivesAShutdownDuringAnOutage: what was taken while the store was
// away, also what was being tried when the collector ended, is written by the
// next one. The data is shared with other exporters, so that it may not be touched.
func TestQueueOutlivesAShutdownDuringAnOutage(t *testing.T) {
	t.Parallel()
	config, folder := queued(t, 1000)
	disk := t.TempDir()
	var want []string

	host, end := queueOnDisk(t, disk)
	e := run(t, config, host)
	for i := range 20 {
		td := spans(withAction(refund(i)))
		td.MarkReadOnly()
		if err := e.ConsumeTraces(t.Context(), given(td)); err != nil {
			t.Fatal(err)
		}
		want = append(want, refund(i).Action.ActionID)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()

	store := mount(t, folder)
	host, end = queueOnDisk(t, disk)
	defer end()
	e = run(t, config, host)
	waitForActions(t, store, len(want))
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := actionIDs(t, store, engine.DefaultTenant)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-taken +written):\n%s", diff)
	}
}

// TestDefaultsGiveNothingUp: retries for ever, time enough for a large batch
// behind a busy database, and senders that are told rather than held.
func TestDefaultsGiveNothingUp(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	if retry := config.RetryConfig; !retry.Enabled || retry.MaxElapsedTime != 0 {
		t.Errorf("retries: %+v", retry)
	}
	if config.TimeoutConfig.Timeout != 30*time.Second {
		t.Errorf("timeout %s", config.TimeoutConfig.Timeout)
	}
	if batch := config.QueueConfig.Get().Batch; !batch.HasValue() || batch.Get().FlushTimeout > 100*time.Millisecond {
		t.Errorf("many small requests make as many transactions, or what comes seldom waits: %+v", batch)
	}
	if !config.QueueConfig.HasValue() || config.QueueConfig.Get().BlockOnOverflow {
		t.Error("there is no queue, or it holds senders when it is full")
	}
}

// TestFullQueueTellsTheSender: what there is no room for is refused while the
// sender still has it, and everything that was not refused is written.
func TestFullQueueTellsTheSender(t *testing.T) {
	t.Parallel()
	config, folder := queued(t, 5)
	host, end := queueOnDisk(t, t.TempDir())
	defer end()
	e := run(t, config, host)
	var taken []string
	var refusal error
	for i := range 50 {
		err := e.ConsumeTraces(t.Context(), given(spans(withAction(refund(i)))))
		if err == nil {
			taken = append(taken, refund(i).Action.ActionID)
			continue
		}
		refusal = err
	}
	if refusal == nil || !strings.Contains(refusal.Error(), "queue is full") {
		t.Fatalf("%d of 50 were taken, and the last refusal is %v", len(taken), refusal)
	}
	store := mount(t, folder)
	waitForActions(t, store, len(taken))
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := actionIDs(t, store, engine.DefaultTenant)
	slices.Sort(got)
	if diff := cmp.Diff(taken, got); diff != "" {
		t.Errorf("(-taken +written):\n%s", diff)
	}
}

// mount makes a store with its contract elsewhere and puts it where the
// exporter looks, as a volume comes: all at once.
func mount(t *testing.T, folder string) ledger.Ledger {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := open.Ledger(t.Context(), "sqlite:"+filepath.Join(made, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, folder); err != nil {
		t.Fatal(err)
	}
	return openStore(t, "sqlite:"+filepath.Join(folder, "ledger.db"))
}
