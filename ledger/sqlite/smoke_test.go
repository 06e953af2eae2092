package sqlite

import (
	"context"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	for _, mode := range []string{"file", "memory"} {
		t.Run(mode, func(t *testing.T) {
			var l ledger.Ledger
			var err error
			if mode == "file" {
				l, err = Open(ctx, t.TempDir()+"/a b?c#d%.db")
			} else {
				l, err = OpenMemory(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			t.Log(l.CheckSchema(ctx))
			if err := l.Migrate(ctx); err != nil {
				t.Fatal(err)
			}
			if err := l.CheckSchema(ctx); err != nil {
				t.Fatal(err)
			}
			err = l.(*Store).writer.with(ctx, "x", func(c *connection) error {
				for name, s := range fixed {
					if _, err := c.prepare(ctx, s.Text); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				var v, j string
				c.raw.QueryRowContext(ctx, "select sqlite_version()").Scan(&v)
				c.raw.QueryRowContext(ctx, "pragma journal_mode").Scan(&j)
				t.Log(v, j)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
