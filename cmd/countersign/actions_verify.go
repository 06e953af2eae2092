package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// verifyFlags of actions verify.
type verifyFlags struct {
	backendFlags
	file, ref, at string
	contracts     []string
	dryRun        bool
}

func newActionsVerify(t *terminal) *cobra.Command {
	var flags verifyFlags
	cmd := &cobra.Command{
		Use:   "verify (REF | --file body.json)",
		Short: "Verify an action now, as POST /v1/actions/verify does",
		Long: `Verifies an action: a recorded one by reference, or one that comes with the body, with facts,
links and watermarks beside it. Nothing need be running for

  countersign actions verify --contracts contracts --file body.json --dry-run --at TIME

which works on a store in memory that is gone at exit.

Exit code 0 when the verdict is settled and PASS under both lenses, 1 when it is anything else.`,
		Args: cobra.ArbitraryArgs, // body says what is wrong with them
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := flags.body(t, args)
			if err != nil {
				return err
			}
			return flags.with(cmd.Context(), t, func(b backend) error {
				verified, err := b.Verify(cmd.Context(), body)
				if err != nil {
					return err
				}
				if err := printVerification(t, verified.Verification, verified); err != nil {
					return err
				}
				printRejected(t, verified.Facts)
				return answer(verified.Verification)
			})
		},
	}
	flags.add(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.file, "file", "", "the body of POST /v1/actions/verify; - reads standard input")
	f.StringVar(&flags.ref, "action", "", "the same as REF")
	f.BoolVar(&flags.dryRun, "dry-run", false, "store nothing; without --store and --server, in memory")
	f.StringVar(&flags.at, "at", "", "evaluate as of this time (RFC 3339); for dry runs and memory:")
	f.StringSliceVar(&flags.contracts, "contracts", nil, "files or folders with contracts, for a store in memory")
	return cmd
}

// body is what is sent, with dry_run as the flag says.
func (f *verifyFlags) body(t *terminal, args []string) ([]byte, error) {
	if f.ref != "" {
		args = append(args, f.ref)
	}
	switch {
	case f.file == "" && len(args) == 0:
		return nil, usagef("give the id of a recorded action, or --file with the body")
	case len(args) > 1 || (f.file != "" && len(args) > 0):
		return nil, usagef("give one action: its id, or --file with the body")
	case len(args) == 1:
		return json.Marshal(map[string]any{"action_id": args[0], "dry_run": f.dryRun})
	}
	body, err := readBody(t, f.file)
	if err != nil || !f.dryRun {
		return body, err
	}
	return withDryRun(body), nil
}

// withDryRun says dry_run: true in place of what the body says. A body that is
// no object stays as it is: whoever reads it says what is wrong, and where.
func withDryRun(body []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return body
	}
	var b bytes.Buffer
	b.WriteString(`{"dry_run":true`)
	for decoder.More() {
		token, err := decoder.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || decoder.Decode(&value) != nil {
			return body
		}
		if key == "dry_run" {
			continue
		}
		name, err := json.Marshal(key)
		if err != nil {
			return body
		}
		b.WriteByte(',')
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	if _, err := decoder.Token(); err != nil {
		return body
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return body
	}
	b.WriteByte('}')
	return b.Bytes()
}

// memory is true when the verification happens on a store in memory.
func (f *verifyFlags) memory() bool {
	if f.explicit("store") {
		return f.store.url() == memoryStore
	}
	return f.dryRun && !f.explicit("server")
}

func (f *verifyFlags) with(ctx context.Context, t *terminal, work func(backend) error) error {
	clock := now
	if f.at != "" {
		at, err := engine.ParseInstant(f.at)
		if err != nil {
			return usagef("--at: %w", err)
		}
		clock = func() engine.Instant { return at }
	}
	switch {
	case f.memory():
		return f.inMemory(ctx, t, clock, work)
	case len(f.contracts) > 0:
		return usagef("--contracts is for a store in memory; publish them instead: countersign contracts publish")
	case f.at == "":
		return f.backendFlags.with(ctx, work)
	case f.remote():
		return usagef("--at is for a store: a server verifies at its own time")
	case !f.dryRun:
		return usagef("--at would store a verdict at a time that is not now; add --dry-run, or use --store memory:")
	}
	b, err := openLocal(ctx, f.store.url(), f.store.tenant, clock)
	if err != nil {
		return err
	}
	return errors.Join(work(b), b.Close())
}

func (f *verifyFlags) inMemory(ctx context.Context, t *terminal, clock func() engine.Instant, work func(backend) error) error {
	if len(f.contracts) == 0 {
		return usagef("a store in memory knows no contract; name files or folders with --contracts, or a store that does with --store")
	}
	contracts, err := loadContracts(t, f.contracts)
	if err != nil {
		return err
	}
	b, err := openLocal(ctx, memoryStore, f.store.tenant, clock)
	if err != nil {
		return err
	}
	err = b.store.Update(ctx, func(tx ledger.Tx) error { return tx.PublishContracts(ctx, contracts, clock()) })
	if err == nil {
		err = work(b)
	}
	return errors.Join(err, b.Close())
}
