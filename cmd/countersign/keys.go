package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

func newKeys(t *terminal) *cobra.Command {
	return group("keys", "API keys of a store", newKeysCreate(t), newKeysList(t), newKeysRotate(t), newKeysRevoke(t), newKeysAudit(t))
}

// keyView is a key as it may be shown: never with its secret or its hash.
type keyView struct {
	ID         string          `json:"id"`
	Tenant     string          `json:"tenant"`
	Role       string          `json:"role"`
	Prefix     string          `json:"prefix"`
	Sources    []string        `json:"sources"`
	CreatedAt  engine.Instant  `json:"created_at"`
	ExpiresAt  *engine.Instant `json:"expires_at"`
	RevokedAt  *engine.Instant `json:"revoked_at"`
	LastUsedAt *engine.Instant `json:"last_used_at"`
}

func showKey(k ledger.Key) keyView {
	sources := k.Sources
	if sources == nil {
		sources = []string{}
	}
	return keyView{k.ID, k.Tenant, k.Role, k.Prefix, sources, k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt}
}

func newKeysCreate(t *terminal) *cobra.Command {
	var flags storeFlags
	var request keys.Request
	var expiresIn string
	cmd := &cobra.Command{
		Use:   "create --role ROLE [--source NAME...]",
		Short: "Make a key and show its secret, once",
		Long: `Makes a key and shows its secret, once: the store keeps a hash.

  recorder  records actions and reads their verdicts; for the agent's runtime
  evidence  pushes facts of the sources it is bound to (--source); for the pipeline that
            relays a system of record
  analyst   records, pushes, verifies and reads; for people
  viewer    reads`,
		Example: "  countersign keys create --role evidence --source stripe --source shopify --store sqlite:countersign.db",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request.Tenant = flags.tenant
			at := now()
			if expiresIn != "" {
				d, err := engine.ParseDuration(expiresIn)
				if err != nil {
					return usagef("--expires-in: %w", err)
				}
				end := at.Add(d)
				request.ExpiresAt = &end
			}
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				key, secret, err := keys.Create(cmd.Context(), store, request, at)
				if err != nil {
					return err
				}
				return printNewKey(t, key, string(secret))
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&request.Role, "role", "", strings.Join(keys.Roles(), ", "))
	cmd.Flags().StringSliceVar(&request.Sources, "source", nil, "a source that an evidence key pushes for; repeat it")
	cmd.Flags().StringVar(&expiresIn, "expires-in", "", "lifetime, like 90d; without it the key does not expire")
	return required(cmd, "role")
}

// required marks flags without which a command means nothing.
func required(cmd *cobra.Command, names ...string) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range names {
			if !cmd.Flags().Changed(name) {
				return usagef("%s needs --%s\nsee: %s --help", cmd.CommandPath(), name, cmd.CommandPath())
			}
		}
		return run(cmd, args)
	}
	return cmd
}

func printNewKey(t *terminal, key ledger.Key, secret string) error {
	if t.json() {
		return t.printJSON(struct {
			keyView
			Secret string `json:"secret"`
		}{showKey(key), secret})
	}
	t.printf("%s\n", secret)
	fmt.Fprintf(t.stderr, "key %s with the role %s; this is the only time that the secret is shown\n", key.ID, key.Role)
	return nil
}

func newKeysList(t *terminal) *cobra.Command {
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List keys, without their secrets",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				var found []ledger.Key
				err := store.View(cmd.Context(), func(tx ledger.Tx) (err error) {
					found, err = tx.ListKeys(cmd.Context(), flags.tenant)
					return err
				})
				if err != nil {
					return err
				}
				return printKeys(t, found)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func printKeys(t *terminal, found []ledger.Key) error {
	if t.json() {
		views := make([]keyView, len(found))
		for i, key := range found {
			views[i] = showKey(key)
		}
		return t.printJSON(map[string]any{"keys": views})
	}
	b := table{head: []string{"ID", "ROLE", "STARTS WITH", "SOURCES", "CREATED", "EXPIRES", "LAST USED", "STATE"}}
	for _, key := range found {
		b.add(key.ID, key.Role, key.Prefix, orDash(strings.Join(key.Sources, ",")), key.CreatedAt.String(),
			instantOrDash(key.ExpiresAt), instantOrDash(key.LastUsedAt), keyState(key, now()))
	}
	t.print(b)
	return nil
}

func keyState(key ledger.Key, at engine.Instant) string {
	switch {
	case key.RevokedAt != nil:
		return "revoked"
	case key.ExpiresAt != nil && *key.ExpiresAt <= at:
		return "expired"
	}
	return "good"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func instantOrDash(at *engine.Instant) string {
	if at == nil {
		return "-"
	}
	return at.String()
}

func newKeysRotate(t *terminal) *cobra.Command {
	var flags storeFlags
	var grace string
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Make a new secret, and let the old one expire after a while",
		Long: `Makes a key that may do what the old one may, and shows its secret, once. The old one stays good
for the time of --grace, so that what uses it can change over; keys list shows when it was used last.`,
		Example: "  countersign keys rotate key_0f3b8a4c2d1e5f60 --grace 7d --store sqlite:countersign.db",
		Args:    exactly(1, "the id of one key, key_..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			length, err := engine.ParseDuration(grace)
			if err != nil {
				return usagef("--grace: %w", err)
			}
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				key, secret, err := keys.Rotate(cmd.Context(), store, flags.tenant, args[0], length, now())
				switch {
				case errors.Is(err, ledger.ErrNotFound):
					return noSuchKey(flags.tenant, args[0])
				case errors.Is(err, keys.ErrRotated):
					return nof("%v", err)
				case errors.Is(err, keys.ErrGone):
					return nof("%v; make one with countersign keys create", err)
				case errors.Is(err, keys.ErrRequest):
					return usagef("--grace: %w", err)
				case err != nil:
					return err
				}
				return printNewKey(t, key, string(secret))
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&grace, "grace", "1d", "how long the old secret stays good, up to 90d")
	return cmd
}

func noSuchKey(tenant, id string) error {
	return nof("tenant %q has no key %q; countersign keys list shows what there is", tenant, id)
}

func newKeysRevoke(t *terminal) *cobra.Command {
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Make a key worthless, at once",
		Args:  exactly(1, "the id of one key, key_..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				err := keys.Revoke(cmd.Context(), store, flags.tenant, args[0], now())
				if errors.Is(err, ledger.ErrNotFound) {
					return noSuchKey(flags.tenant, args[0])
				}
				if err != nil {
					return err
				}
				if t.json() {
					return t.printJSON(map[string]any{"id": args[0], "revoked": true})
				}
				t.printf("revoked %s\n", args[0])
				return nil
			})
		},
	}
	flags.add(cmd)
	return cmd
}
