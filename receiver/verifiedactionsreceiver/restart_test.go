package verifiedactionsreceiver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

// withFiles is a host with the storage extension that collectors have.
func withFiles(t testing.TB, dir string) host {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = dir
	extension, err := factory.Create(context.Background(), extensiontest.NewNopSettings(factory.Type()), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := extension.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := extension.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return host{component.NewID(factory.Type()): extension}
}

func chainStatus(t testing.TB, s *sender, reference string) string {
	t.Helper()
	got := s.get("/v1/receipts/verify/" + reference)
	var v verification
	if err := json.Unmarshal([]byte(got.body), &v); err != nil {
		t.Fatalf("%s: %v", got.body, err)
	}
	return string(v.Status)
}

// TestRestart_OutOfOrder: a chain is checked over restarts and in any order.
func TestRestart_OutOfOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sink := new(consumertest.TracesSink)
	id := component.MustNewID("file_storage")
	config := testConfig()
	config.Storage = &id

	run := func(body func(*sender)) {
		receiver, base := startIn(t, config, sink, withFiles(t, dir))
		body(newSender(t, base))
		stop(t, receiver)
	}
	var wires [][]byte
	run(func(s *sender) {
		wires = s.chain("a", 6)
		s.batch(wires[0], wires[3])
	})
	run(func(s *sender) {
		if got := chainStatus(t, s, "a-4"); got != "gap" {
			t.Errorf("a-4 is %s", got)
		}
		s.batch(wires[2], wires[4], wires[0]) // the first again
	})
	run(func(s *sender) {
		s.single(wires[1])
		s.single(wires[5])
		for _, reference := range []string{"a-2", "a-3", "a-4", "a-5", "a-6"} {
			if got := chainStatus(t, s, reference); got != "linked" {
				t.Errorf("%s is %s", reference, got)
			}
		}
	})
	want := []string{"a-1 anchor", "a-4 gap", "a-3 gap", "a-5 linked", "a-2 linked", "a-6 linked"}
	if diff := cmp.Diff(want, referencesIn(sink)); diff != "" {
		t.Error(diff)
	}
}

// TestRestart_WithoutStorage: what a new process cannot know it does not call a gap.
func TestRestart_WithoutStorage(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.TracesSink)
	_, first := start(t, testConfig(), sink)
	_, second := start(t, testConfig(), sink)
	s := newSender(t, first)
	wires := s.chain("a", 3)
	s.single(wires[0])
	s = newSender(t, second)
	s.batch(wires[1], wires[2])
	if diff := cmp.Diff([]string{"a-1 anchor", "a-2 unverified", "a-3 linked"}, referencesIn(sink)); diff != "" {
		t.Error(diff)
	}
}

func TestStart_Storage(t *testing.T) {
	t.Parallel()
	missing, other := component.MustNewID("file_storage"), component.MustNewID("health")
	for _, test := range []struct {
		id   *component.ID
		want string
	}{
		{&missing, "storage: there is no extension file_storage; define it and list it under service::extensions"},
		{&other, "storage: the extension health stores nothing; name one like file_storage"},
	} {
		config := testConfig()
		config.Storage = test.id
		s, err := newServer(receivertest.NewNopSettings(metadata.Type), config, consumertest.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(context.Background(), host{other: nil}); err == nil || err.Error() != test.want {
			t.Errorf("got %v", err)
		}
		stop(t, s)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	_, base := start(t, testConfig(), consumertest.NewNop())
	s := newSender(t, base)
	wires := s.chain("a", 2)
	s.batch(wires...)
	_, hash := s.seal(receiptFields("a", 1, s.anchor("a")))
	want := reply{status: 200, body: `{"key_id":"demo","reference_id":"a-1","session_id":"a","agent_id":"` + testAgent + `",` +
		`"tool_name":"send_refund","status":"success","receipt_visibility":"private","seq":1,"receipt_hash":"` + hash + `",` +
		`"prev_hash":"` + s.anchor("a") + `","started_at":"2026-06-15T10:30:01Z","ended_at":"2026-06-15T10:30:02.5Z","duration_ms":1500,` +
		`"received_at":"2026-06-15T10:30:06Z","chain_status":"anchor","receipt_id":"` + hash + `","verified":true,"payload_signature":"valid"}` + "\n"}
	got := s.get("/v1/receipts/verify/a-1")
	if diff := cmp.Diff([]any{want.status, want.body}, []any{got.status, got.body}); diff != "" {
		t.Error(diff)
	}
	got = s.get("/v1/receipts/verify/a-3")
	if got.status != 404 || got.body != `{"error":"no receipt with this reference id is remembered here"}`+"\n" {
		t.Errorf("answered %d %s", got.status, got.body)
	}
}
