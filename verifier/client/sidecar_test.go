package client_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/client"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/serve"
)

// For all tests and examples: a sidecar with the contracts of the library and one of testdata, and an analyst's key to it.
var address, secret string

func TestMain(m *testing.M) {
	os.Exit(withSidecar(m.Run))
}

// withSidecar runs f beside a real sidecar on a store of its own.
func withSidecar(f func() int) int {
	dir, err := os.MkdirTemp("", "countersign-client-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	config := serve.Default()
	config.Store = "sqlite:" + filepath.Join(dir, "test.db")
	config.Listen = "localhost:0"
	config.Contracts = []string{"../../contracts", "testdata/until_settled.yaml"}

	ctx, stop := context.WithCancel(context.Background())
	secret = newKey(ctx, config.Store)
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, config, serve.Options{Version: "test", Ready: func(url string) { ready <- url }})
	}()
	select {
	case address = <-ready:
	case err := <-ended:
		panic(err)
	}
	code := f()
	stop()
	if err := <-ended; err != nil {
		panic(err)
	}
	return code
}

func newKey(ctx context.Context, url string) string {
	store, err := open.Ledger(ctx, url)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	if err := store.Migrate(ctx); err != nil {
		panic(err)
	}
	_, key, err := keys.Create(ctx, store, keys.Request{Role: ledger.RoleAnalyst}, 1)
	if err != nil {
		panic(err)
	}
	return string(key)
}

func dial(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(address, client.WithKey(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
