package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

func TestMigrateFromSeveralProcessesAtOnce(t *testing.T) {
	t.Parallel()
	url := pgserver.Shared(t).Database(t)
	stores := make([]*Store, 4) // as many pools and sessions as processes
	for i := range stores {
		stores[i] = open(t, url)
	}
	errs := make([]error, len(stores))
	var all sync.WaitGroup
	for i, store := range stores {
		all.Go(func() { errs[i] = store.Migrate(t.Context()) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	newest, err := newestMigration()
	if err != nil {
		t.Fatal(err)
	}
	var applied int64
	if err := connect(t, url).QueryRow(t.Context(), "SELECT count(*) FROM countersign_migrations WHERE version_id > 0").Scan(&applied); err != nil {
		t.Fatal(err)
	}
	if applied != newest {
		t.Errorf("%d migrations are noted, want each of %d once", applied, newest)
	}
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	empty := open(t, pgserver.Shared(t).Database(t))
	newest, err := newestMigration()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("the store is not migrated: the database is at version 0, this program needs %d; run countersign migrate", newest)
	if err := empty.CheckSchema(t.Context()); !errors.Is(err, ledger.ErrNotMigrated) || err.Error() != want {
		t.Errorf("empty database: %v, want %s", err, want)
	}

	url := pgserver.Shared(t).Database(t)
	if err := migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	current := open(t, url)
	if err := current.CheckSchema(t.Context()); err != nil {
		t.Errorf("current database: %v", err)
	}
	if _, err := connect(t, url).Exec(t.Context(), "INSERT INTO countersign_migrations (version_id, is_applied) VALUES ($1, true)", newest+1); err != nil {
		t.Fatal(err)
	}
	want = fmt.Sprintf("the store's schema is newer than this program: the database is at version %d, this program knows %d; use a newer program", newest+1, newest)
	for doing, check := range map[string]func() error{
		"CheckSchema": func() error { return current.CheckSchema(t.Context()) },
		"Migrate":     func() error { return current.Migrate(t.Context()) },
	} {
		if err := check(); !errors.Is(err, ledger.ErrNewerSchema) || err.Error() != want {
			t.Errorf("newer database: %s: %v, want %s", doing, err, want)
		}
	}
}

func TestReadingAnUnmigratedStoreSaysSo(t *testing.T) {
	t.Parallel()
	store := open(t, pgserver.Shared(t).Database(t))
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.Tenants(t.Context())
		return err
	})
	want := `the store is not migrated: Tenants: ERROR: relation "tenants" does not exist (SQLSTATE 42P01)`
	if !errors.Is(err, ledger.ErrNotMigrated) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// memberURL is the database's URL for a login that is a member of a group role and nothing else.
func memberURL(t *testing.T, url string, groups ...string) string {
	t.Helper()
	login := "login_" + strings.ToLower(strings.NewReplacer("/", "_", "-", "_", ":", "_").Replace(t.Name())) + "_" + strings.Join(groups, "_")
	login = login[len(login)-min(len(login), 63):]
	conn := connect(t, url)
	for _, sql := range []string{
		fmt.Sprintf("DROP ROLE IF EXISTS %q", login),
		fmt.Sprintf("CREATE ROLE %q LOGIN PASSWORD 'x'", login),
		fmt.Sprintf("GRANT %s TO %q", strings.Join(groups, ", "), login),
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s:x@%s:%d/%s?sslmode=disable", login, config.Host, config.Port, config.Database)
}

// allowed says which of the two sides and the verifier a role may be.
func TestRolesHaveLeastPrivilege(t *testing.T) {
	t.Parallel()
	url := migratedURL(t)
	owner := open(t, url)
	update(t, owner, func(ctx context.Context, tx ledger.Tx) error {
		if err := tx.PublishContracts(ctx, []*contract.Contract{refunds(t, 1)}, noon); err != nil {
			return err
		}
		if _, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("act_seed", "order_1"), Verify: true}}, noon); err != nil {
			return err
		}
		if _, err := tx.StoreRuns(ctx, tenant, []ledger.Run{run("act_seed", nil, "")}); err != nil {
			return err
		}
		if _, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("act_due", "order_2"), Verify: true}}, noon); err != nil {
			return err
		}
		_, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Links: []engine.Link{{SubjectID: "order_2", LinkedSubjectID: "ticket_2"}}}, noon)
		return err
	})
	lease := ledger.Lease{Owner: "v", Now: noon, Until: noon + 60}

	works := []struct {
		name string
		do   func(tx ledger.Tx) error
	}{
		{"record actions", func(tx ledger.Tx) error {
			_, err := tx.RecordActions(t.Context(), tenant, []ledger.NewAction{
				{Action: action("act_new", "order_1"), StartedNanos: 5, Verify: true}, {Action: changed(action("act_seed", "order_1")), Verify: true},
			}, noon)
			if err != nil {
				return err
			}
			if _, err := tx.CompensationChains(t.Context(), tenant, []string{"act_new"}); err != nil {
				return err
			}
			return tx.RecordTraceContexts(t.Context(), tenant, []ledger.TraceContext{{TraceID: "aa", SpanID: "bb", EndNanos: 9, Agent: "a"}}, noon)
		}},
		{"ingest facts", func(tx ledger.Tx) error {
			mark := noon + 3600
			_, err := tx.IngestFacts(t.Context(), tenant, ledger.FactBatch{
				Facts: []engine.Fact{fact("re_new", "order_1")}, Links: []engine.Link{{SubjectID: "order_1", LinkedSubjectID: "ticket_1"}},
				Watermarks: map[string]engine.Instant{"crm": mark}, Trust: engine.Shared,
			}, noon)
			if err != nil {
				return err
			}
			return tx.SetConnection(t.Context(), tenant, ledger.ConnectionSetting{Source: "crm", Name: "c", Watermark: &mark}, noon)
		}},
		{"ingest what agents say", func(tx ledger.Tx) error {
			said := fact("said_1", "order_1")
			said.Source, said.Type = engine.AgentSource, "agent_action"
			got, err := tx.IngestFacts(t.Context(), tenant, ledger.FactBatch{Facts: []engine.Fact{said, said}, Trust: engine.Independent}, noon)
			if err == nil && (got.Ingested != 1 || got.Duplicates != 1) {
				err = fmt.Errorf("counted %+v", got)
			}
			return err
		}},
		{"verify", func(tx ledger.Tx) error {
			due, err := tx.LeaseActions(t.Context(), tenant, ledger.Lease{Owner: "v", Now: noon, Until: noon + 60}, []string{engine.ClaimID(tenant, "act_seed")})
			if err != nil {
				return err
			}
			if _, err := tx.StoreRuns(t.Context(), tenant, []ledger.Run{run("act_seed", &due[0], "v")}); err != nil {
				return err
			}
			events, err := tx.LeaseOutbox(t.Context(), ledger.Lease{Owner: "v", Now: noon, Until: noon + 60}, 10)
			if err != nil {
				return err
			}
			if err := tx.CompleteOutbox(t.Context(), "v", events, nil); err != nil {
				return err
			}
			for range 2 { // the second only counts
				if err := tx.NoteKeyEvents(t.Context(), []ledger.KeyEvent{{Tenant: tenant, Kind: ledger.KeyUsed, KeyID: "k", FirstAt: noon}}); err != nil {
					return err
				}
			}
			return tx.PublishContracts(t.Context(), []*contract.Contract{refunds(t, 2)}, noon)
		}},
		{"lease and park", func(tx ledger.Tx) error { // looks again at the link, and for evidence that is under way
			due, err := tx.LeaseDue(t.Context(), tenant, lease, 10)
			if err != nil {
				return err
			}
			if len(due) == 0 {
				return errors.New("nothing was due")
			}
			return tx.Park(t.Context(), tenant, "v", []ledger.Parked{{Due: due[0], Error: "broken"}}, noon)
		}},
		{"deliver to webhooks", func(tx ledger.Tx) error {
			if _, err := tx.LockWebhook(t.Context(), tenant, "e"); err != nil {
				return err
			}
			if err := tx.EnqueueDeliveries(t.Context(), tenant, "e", ledger.Position{Seq: 9}, []ledger.NewDelivery{{ID: "d", Kind: "k", Payload: "{}"}}, noon); err != nil {
				return err
			}
			if _, err := tx.LeaseDeliveries(t.Context(), tenant, "e", lease, 10); err != nil {
				return err
			}
			if err := tx.CompleteDeliveries(t.Context(), tenant, "v", []ledger.DeliveryResult{{ID: "d", State: ledger.DeliveryDead}}, noon); err != nil {
				return err
			}
			if _, err := tx.ReplayDeliveries(t.Context(), tenant, []string{"d"}, noon); err != nil {
				return err
			}
			_, err := tx.ExpireDeliveries(t.Context(), tenant, "e", ledger.DeliveryDead, noon+1, 10)
			return err
		}},
		{"keep keys", func(tx ledger.Tx) error {
			if err := tx.CreateKey(t.Context(), ledger.Key{Tenant: tenant, ID: "k", Role: "recorder", CreatedAt: noon}); err != nil {
				return err
			}
			if err := tx.ExpireKey(t.Context(), tenant, "k", noon+9); err != nil {
				return err
			}
			if err := tx.TouchKeys(t.Context(), []ledger.KeyUse{{Tenant: tenant, ID: "k", At: noon}}); err != nil {
				return err
			}
			return tx.RevokeKey(t.Context(), tenant, "k", noon)
		}},
		{"reject facts", func(tx ledger.Tx) error {
			for range 2 { // the second only counts
				if err := tx.RejectFacts(t.Context(), tenant, []ledger.RejectedFact{{Kind: "fact", Reason: "invalid", Times: 1}}, noon); err != nil {
					return err
				}
			}
			return nil
		}},
		{"read", func(tx ledger.Tx) error {
			if _, err := tx.ListActions(t.Context(), tenant, ledger.ActionFilter{}); err != nil {
				return err
			}
			for _, read := range []func() error{
				func() error { _, err := tx.ReadChain(t.Context(), tenant, 0, 10); return err },
				func() error { _, err := tx.ChainRuns(t.Context(), tenant, 0, 10); return err },
				func() error { _, err := tx.FactsByRef(t.Context(), tenant, []string{"re_seed"}); return err },
				func() error {
					_, err := tx.NearFacts(t.Context(), tenant, ledger.NearFilter{Subject: "order_1", Types: []string{"refund_created"}, Limit: 1})
					return err
				},
				func() error { _, err := tx.Dropped(t.Context(), tenant); return err },
				func() error { _, err := tx.ReadEvents(t.Context(), tenant, ledger.Position{}, 10); return err },
				func() error { _, err := tx.EventHead(t.Context(), tenant); return err },
				func() error { _, err := tx.Backlog(t.Context(), noon); return err },
				func() error { _, err := tx.DeadLetters(t.Context(), tenant, ledger.DeadLetterFilter{}); return err },
				func() error {
					_, err := tx.RejectedFacts(t.Context(), tenant, ledger.RejectedFilter{Limit: 10})
					return err
				},
				func() error { _, err := tx.CountRejected(t.Context(), tenant, noon); return err },
				func() error { _, err := tx.KeyEvents(t.Context(), tenant, ledger.KeyEventFilter{}); return err },
			} {
				if err := read(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"set a source", func(tx ledger.Tx) error {
			trust, skew, health := engine.Independent, 30*engine.Second, engine.Syncing
			_, err := ledger.SetSource(t.Context(), tx, tenant, ledger.SourceSetting{Source: "stripe", Trust: &trust, ClockSkew: &skew, Connection: "poll", Health: &health}, noon)
			return err
		}},
		{"drop what is old", func(tx ledger.Tx) error {
			page := ledger.ExpiryPage{Horizon: noon.Add(engine.Week), Limit: 10, Now: noon.Add(engine.Week)}
			if _, err := tx.ExpireFacts(t.Context(), tenant, page); err != nil {
				return err
			}
			if _, err := tx.ExpireReports(t.Context(), tenant, page); err != nil {
				return err
			}
			if _, err := tx.ExpireTraceContexts(t.Context(), tenant, page); err != nil {
				return err
			}
			if _, err := tx.ExpireRejected(t.Context(), tenant, page); err != nil {
				return err
			}
			_, err := tx.ExpireKeyEvents(t.Context(), tenant, page)
			return err
		}},
	}
	for role, may := range map[string][]string{
		"countersign_record":                      {"record actions", "ingest what agents say"},
		"countersign_evidence":                    {"ingest facts", "ingest what agents say", "reject facts", "set a source"},
		"countersign_verify":                      {"verify", "read", "lease and park", "deliver to webhooks", "keep keys"},
		"countersign_read":                        {"read"},
		"countersign_read, countersign_retention": {"read", "drop what is old"},
		"countersign_record, countersign_evidence, countersign_verify": {"record actions", "ingest facts", "ingest what agents say", "verify", "read", "lease and park", "deliver to webhooks", "keep keys", "reject facts", "set a source"},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			member := open(t, memberURL(t, url, strings.Split(role, ", ")...))
			if err := member.CheckSchema(t.Context()); err != nil {
				t.Errorf("check the schema: %v", err)
			}
			for _, work := range works {
				allowed := false
				for _, name := range may {
					allowed = allowed || name == work.name
				}
				err := member.Rehearse(t.Context(), work.do)
				switch {
				case allowed && err != nil:
					t.Errorf("may not %s: %v", work.name, err)
				case !allowed && !errors.Is(err, ledger.ErrReadOnly):
					t.Errorf("%s: %v, want %v", work.name, err, ledger.ErrReadOnly)
				}
			}
		})
	}
}

// The agents' side can make no verdict up: lists and counts show what stands with an
// action, and a failed action is compensated by one that is listed as passed. Nor can
// it, or the evidence side, keep work from the verifiers under a lease.
func TestRecordersWriteNoVerdict(t *testing.T) {
	t.Parallel()
	url, _ := migratedByOwner(t)
	update(t, open(t, url), func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("act_1", "order_1"), Verify: true}}, noon)
		return err
	})
	for _, group := range []string{"countersign_record", "countersign_evidence"} {
		conn := connect(t, memberURL(t, url, group))
		for _, sql := range []string{
			`INSERT INTO claims (tenant_id, claim_id, action_id, contract_id, contract_version, subject_id, requested_at, recorded_at, compensates, settled_policy)
				VALUES ('acme', 'clm_made_up', 'act_made_up', 'refund', 1, 'order_1', 0, 0, 'act_1', 'VERIFIED')`,
			`INSERT INTO due (tenant_id, claim_id, due_at, generation, triggered_by, lease_owner, lease_until) VALUES ('acme', 'clm_1', 0, 1, 'action', 'nobody', 9999999999)`,
			`UPDATE due SET lease_owner = 'nobody', lease_until = 9999999999`,
			`DELETE FROM due`,
		} {
			if _, err := conn.Exec(t.Context(), sql); !errors.Is(fail("", err), ledger.ErrReadOnly) {
				t.Errorf("%s as %s: %v, want a refusal for lack of privilege", sql, group, err)
			}
		}
	}
}

// A verifier that may do no more than verify gives the work that it leases the
// agent of a trace context that nobody brought to it (decision D31).
func TestVerifierMayCompleteWhatItLeases(t *testing.T) {
	t.Parallel()
	url, _ := migratedByOwner(t)
	late := action("act_late", "order_1")
	late.TraceID = strings.Repeat("ab", 16)
	update(t, open(t, url), func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: late, StartedNanos: 20, Verify: true}}, noon)
		return err
	})
	execute(t, url, fmt.Sprintf("INSERT INTO trace_contexts VALUES ('%s', '%s', 'aa', 10, 30, 'whatsapp-agent', 'session_1', 0)", tenant, late.TraceID))
	verifier := open(t, memberURL(t, url, "countersign_verify"))
	update(t, verifier, func(ctx context.Context, tx ledger.Tx) error {
		due, err := tx.LeaseDue(ctx, tenant, ledger.Lease{Owner: "v", Now: noon, Until: noon + 60}, 10)
		if len(due) != 1 {
			t.Errorf("%d actions are due, want 1", len(due))
		}
		return err
	})
	view(t, verifier, func(ctx context.Context, tx ledger.Tx) error {
		actions, err := tx.Actions(ctx, tenant, []string{engine.ClaimID(tenant, late.ActionID)})
		if len(actions) != 1 || actions[0].Action.AgentID != "whatsapp-agent" || actions[0].Action.SessionID != "session_1" {
			t.Errorf("%+v, want agent and session of the context", actions)
		}
		return err
	})
}

// migratedByOwner is a database that a login owns that is no superuser and
// migrated, as the superuser and as that login.
func migratedByOwner(t *testing.T) (url, ownerURL string) {
	t.Helper()
	url = pgserver.Shared(t).Database(t)
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	for _, sql := range []string{
		"CREATE ROLE owner_of_" + config.Database + " LOGIN CREATEROLE PASSWORD 'x'",
		"ALTER DATABASE " + config.Database + " OWNER TO owner_of_" + config.Database,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ownerURL = fmt.Sprintf("postgres://owner_of_%s:x@%s:%d/%s?sslmode=disable", config.Database, config.Host, config.Port, config.Database)
	if err := migrate(t.Context(), ownerURL); err != nil {
		t.Fatal(err)
	}
	return url, ownerURL
}

// Nobody but retention changes or removes what was written, not even the owner of the tables.
func TestFactsRunsAndVerdictsAreAppendOnly(t *testing.T) {
	t.Parallel()
	url, ownerURL := migratedByOwner(t)
	for _, group := range []string{"", "countersign_record", "countersign_evidence", "countersign_verify", "countersign_read", "countersign_retention"} {
		conn := connect(t, ownerURL)
		if group != "" {
			conn = connect(t, memberURL(t, url, group))
		}
		for _, table := range []string{"facts", "runs", "verdicts"} {
			for sql, removes := range map[string]bool{
				"UPDATE " + table + " SET claim_id = claim_id":       false,
				"DELETE FROM " + table + " WHERE tenant_id = 'acme'": true,
				"TRUNCATE " + table: false,
			} {
				sql = strings.Replace(sql, "UPDATE facts SET claim_id = claim_id", "UPDATE facts SET source = source", 1)
				_, err := conn.Exec(t.Context(), sql)
				allowed := group == "countersign_retention" && removes && table == "facts"
				if allowed != (err == nil) {
					t.Errorf("%s as %q: %v", sql, group, err)
				}
				if err != nil && !errors.Is(fail("", err), ledger.ErrReadOnly) {
					t.Errorf("%s as %q: %v, want a refusal for lack of privilege", sql, group, err)
				}
			}
		}
	}
}
