package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/view"
)

// backend answers what the HTTP API answers: a sidecar somewhere (remote), or
// a store that this process opens itself (local).
type backend interface {
	Record(ctx context.Context, body []byte) (view.Recorded, bool, error)
	Verify(ctx context.Context, body []byte) (api.Verified, error)
	Get(ctx context.Context, ref string) (view.Verification, error)
	List(ctx context.Context, filter ledger.ActionFilter) (api.Page, error)
	Wait(ctx context.Context, ref string, timeout time.Duration) (api.Waited, error)
	Summary(ctx context.Context, filter ledger.ActionFilter) (api.Counts, error)
	Push(ctx context.Context, body []byte) (api.Pushed, error)
	// Contracts are the latest version of each, or all versions of one id.
	Contracts(ctx context.Context, id string) (api.ContractList, error)
	Sources(ctx context.Context) (api.SourceList, error)
	Orphans(ctx context.Context, query api.OrphanQuery) (api.OrphanList, error)
	Rejected(ctx context.Context, query api.RejectedQuery) (api.RejectedList, error)
	DeadLetters(ctx context.Context, filter ledger.DeadLetterFilter) (api.DeadLetterList, error)
	Replay(ctx context.Context, id string) (api.Replayed, error)
	KeyEvents(ctx context.Context, filter ledger.KeyEventFilter) (api.KeyEventList, error)
	Close() error
}

// backendFlags say which: a server, or a store.
type backendFlags struct {
	cmd     *cobra.Command
	server  string
	keyFile string
	store   storeFlags
}

func (f *backendFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().StringVar(&f.server, "server", os.Getenv("COUNTERSIGN_SERVER"), "URL of a sidecar, like http://localhost:8383; COUNTERSIGN_SERVER. Without one, work on --store directly")
	cmd.Flags().StringVar(&f.keyFile, "api-key-file", os.Getenv("COUNTERSIGN_API_KEY_FILE"), "file that holds the API key for --server; without it COUNTERSIGN_API_KEY")
	f.store.add(cmd)
}

// explicit is true of a flag that stands on the command line.
func (f *backendFlags) explicit(name string) bool { return f.cmd.Flags().Changed(name) }

func (f *backendFlags) remote() bool {
	return f.server != "" && (!f.explicit("store") || f.explicit("server"))
}

func (f *backendFlags) open(ctx context.Context) (backend, error) {
	if f.explicit("server") && f.explicit("store") {
		return nil, usagef("--server and --store are two ways to the same; give one of them")
	}
	if f.remote() {
		return f.dial()
	}
	return openLocal(ctx, f.store.url(), f.store.tenant, now)
}

// with opens, works and closes.
func (f *backendFlags) with(ctx context.Context, work func(backend) error) error {
	b, err := f.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(b), b.Close())
}

func (f *backendFlags) dial() (backend, error) {
	base, err := url.Parse(f.server)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, usagef("--server: %q is not a URL like http://localhost:8383", f.server)
	}
	key := os.Getenv("COUNTERSIGN_API_KEY")
	if f.keyFile != "" {
		text, err := readBounded(f.keyFile, 4096)
		if err != nil {
			return nil, err
		}
		key = strings.TrimSpace(string(text))
	}
	if key == "" {
		return nil, usagef("--server needs an API key; set COUNTERSIGN_API_KEY or give --api-key-file. countersign keys create makes one")
	}
	return &remote{base: base, key: configopaque.String(key), client: &http.Client{Timeout: requestTimeout}}, nil
}

// filterFlags select actions.
type filterFlags struct {
	filter       ledger.ActionFilter
	since, until string
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.filter.ContractID, "contract", "", "actions under this contract")
	flags.StringVar(&f.filter.AgentID, "agent", "", "actions of this agent")
	flags.StringVar(&f.filter.SubjectID, "subject", "", "actions on this record")
	flags.StringVar(&f.filter.TraceID, "trace", "", "actions of this trace")
	flags.StringVar(&f.filter.WorkflowID, "workflow", "", "actions of this workflow")
	flags.StringVar(&f.since, "since", "", "requested at or after: RFC 3339, or how long ago, like 24h")
	flags.StringVar(&f.until, "until", "", "requested before: RFC 3339, or how long ago")
}

func (f *filterFlags) resolve(at engine.Instant) (filter ledger.ActionFilter, err error) {
	filter = f.filter
	if filter.Since, err = moment("--since", f.since, at); err != nil {
		return filter, err
	}
	filter.Until, err = moment("--until", f.until, at)
	return filter, err
}

// moment reads RFC 3339, or a duration back from now; nil for an empty text.
func moment(flag, text string, at engine.Instant) (*engine.Instant, error) {
	if text == "" {
		return nil, nil
	}
	if d, err := engine.ParseDuration(text); err == nil {
		ago := at.Sub(d)
		return &ago, nil
	}
	instant, err := engine.ParseInstant(text)
	if err != nil {
		return nil, usagef("%s: %w, nor a duration like 24h", flag, err)
	}
	return &instant, nil
}
