package api

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

// attempt is one request that any tenant may send. Ids are the same for all
// tenants; TENANT stands for the own tenant, CLAIM for the internal id of the
// other tenant's action, and HASH for the hash of a verdict of the own one.
type attempt struct{ role, method, path, body string }

// attempts has requests for every operation of the description.
var attempts = map[string][]attempt{
	"record-action": {
		{ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "support-agent", "agent of TENANT", 1)},
		{ledger.RoleRecorder, "POST", "/v1/actions", strings.NewReplacer("act_1", "act_2", "support-agent", "agent of TENANT", "order_10231", "order_2").Replace(refundAction)},
		{ledger.RoleAnalyst, "POST", "/v1/actions", `{"action_id": "act_3", "contract_id": "refund_workflow", "subject_id": "order_10231", "agent_id": "agent of TENANT", "corrects": "act_1"}`},
	},
	"push-facts": {
		{ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified)},
		{ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, strings.Replace(refunded, "180.0", "999.0", 1))},
		{ledger.RoleEvidence, "POST", "/v1/facts", facts(strings.Replace(refunded, "re_1", "re of TENANT", 2))},
		{ledger.RoleEvidence, "POST", "/v1/facts", `{"links": [{"subject_id": "order_10231", "linked_subject_id": "order_2"}], "watermarks": {"crm": "2026-09-28T10:49:00Z"}}`},
		{ledger.RoleEvidence, "POST", "/v1/facts", facts(strings.Replace(early, `"raw_ref": "re_1"`, `"raw_ref": "early of TENANT"`, 1), strings.Replace(upper, "msg_1", "upper of TENANT", 1))},
		{ledger.RoleAnalyst, "POST", "/v1/facts", facts(strings.Replace(noted, `"crm"`, `"crm of TENANT"`, 1))},
		{ledger.RoleEvidence, "POST", "/v1/facts", facts(strings.NewReplacer("order_10231", "order_of_nobody", `"raw_ref": "re_1"`, `"raw_ref": "re_2"`, "180.0", "7.5").Replace(refunded))},
	},
	"verify-action": {
		{ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`},
		{ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_2"}`},
		{ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "CLAIM"}`},
		{ledger.RoleEvidence, "POST", "/v1/actions/verify", `{"action_id": "act_1", "facts": [` + refunded + `]}`},
	},
	"list-actions": {
		{ledger.RoleViewer, "GET", "/v1/actions", ""}, {ledger.RoleViewer, "GET", "/v1/actions?verdict=PASS", ""}, {ledger.RoleViewer, "GET", "/v1/actions?limit=1", ""},
	},
	"summarize-actions":   {{ledger.RoleViewer, "GET", "/v1/actions/summary", ""}},
	"get-action":          {{ledger.RoleViewer, "GET", "/v1/actions/act_1", ""}, {ledger.RoleViewer, "GET", "/v1/actions/CLAIM", ""}},
	"list-runs":           {{ledger.RoleViewer, "GET", "/v1/actions/act_1/runs", ""}, {ledger.RoleViewer, "GET", "/v1/actions/CLAIM/runs", ""}},
	"wait-for-settlement": {{ledger.RoleViewer, "GET", "/v1/actions/act_1/wait?timeout=0", ""}, {ledger.RoleViewer, "GET", "/v1/actions/CLAIM/wait?timeout=0", ""}},
	"stream-events": {
		{ledger.RoleViewer, "GET", "/v1/events", ""}, {ledger.RoleViewer, "GET", "/v1/events?type=action.verified&contract_id=refund_workflow", ""},
		{ledger.RoleViewer, "GET", "/v1/events?type=none", ""},
	},
	"list-orphans":        {{ledger.RoleViewer, "GET", "/v1/reports/orphans", ""}},
	"list-rejected-facts": {{ledger.RoleViewer, "GET", "/v1/facts/rejected", ""}},
	"list-key-events":     {{ledger.RoleViewer, "GET", "/v1/keys/audit?limit=500", ""}, {ledger.RoleViewer, "GET", "/v1/keys/audit?kind=refused", ""}},
	"list-sources":        {{ledger.RoleViewer, "GET", "/v1/sources", ""}},
	"list-contracts":      {{ledger.RoleViewer, "GET", "/v1/contracts", ""}},
	"get-contract":        {{ledger.RoleViewer, "GET", "/v1/contracts/refund_workflow", ""}},
	"list-dead-letters":   {{ledger.RoleViewer, "GET", "/v1/webhooks/dead-letters", ""}},
	"replay-webhook":      {{ledger.RoleAnalyst, "POST", "/v1/webhooks/deliveries/msg_1/replay", ""}},
	"get-definition":      {{"", "GET", "/v1/public/definitions/refund_workflow", ""}},
	"get-public-verdict":  {{"", "GET", "/v1/public/verdicts/HASH", ""}},
}

// common are operations that answer all tenants the same.
var common = []string{"list-contracts", "get-contract", "get-definition"}

// step is an attempt by one of two tenants.
type step struct {
	other bool
	attempt
}

// TestNoTenantNoticesAnother: whatever two tenants do with the same ids, each is
// answered as if it were alone in the store, by every endpoint that ends.
func TestNoTenantNoticesAnother(t *testing.T) {
	t.Parallel()
	shared, alone := newFixture(t), newFixture(t)
	var all []attempt
	for _, operation := range operationsOf(t, shared) {
		if len(attempts[operation]) == 0 {
			t.Errorf("the operation %s is not tried: add it to attempts", operation)
		}
		all = append(all, attempts[operation]...)
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.Bool().Draw(t, "other"), rapid.SampledFrom(all).Draw(t, "attempt")}
	}), 1, 30)
	example := 0
	rapid.Check(t, func(rt *rapid.T) {
		example++
		us, them := fmt.Sprintf("us%d", example), fmt.Sprintf("them%d", example)
		for _, f := range []*fixture{shared, alone} {
			f.admit(t, us)
			f.admit(t, them)
			f.leave(t, us)
		}
		shared.leave(t, them)
		same := func(a attempt) {
			if diff := cmp.Diff(alone.try(t, us, them, a), shared.try(t, us, them, a)); diff != "" {
				rt.Fatalf("%s %s notices the other tenant:\n%s", a.method, a.path, diff)
			}
		}
		for _, s := range steps.Draw(rt, "steps") {
			if s.other {
				shared.try(t, them, us, s.attempt)
				continue
			}
			same(s.attempt)
		}
		for _, a := range all { // and at the end, everything that reads
			if a.method == http.MethodGet {
				same(a)
			}
		}
	})
}

// TestTenantsAreTriedWithData: what TestNoTenantNoticesAnother compares is not
// emptiness. Each operation that writes does so for both tenants, and each that
// reads then shows both more than a tenant without data gets.
func TestTenantsAreTriedWithData(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tenant := range []string{"us", "them", "empty"} {
		f.admit(t, tenant)
	}
	f.leave(t, "us")
	f.leave(t, "them")
	operations := operationsOf(t, f)
	pairs := [][2]string{{"us", "them"}, {"them", "us"}}
	for _, reading := range []bool{false, true} {
		for _, operation := range operations {
			for _, pair := range pairs {
				if slices.Contains(common, operation) {
					continue
				}
				done := false
				for _, a := range attempts[operation] {
					if (a.method == http.MethodGet) != reading {
						continue
					}
					answer := f.try(t, pair[0], pair[1], a)
					done = done || strings.HasPrefix(answer, "20") && (!reading || answer != f.try(t, "empty", pair[1], a))
				}
				if !done && (attempts[operation][0].method == http.MethodGet) == reading {
					t.Errorf("%s is tried by %s without data", operation, pair[0])
				}
			}
		}
	}
}

// try sends an attempt of a tenant beside another one.
func (f *fixture) try(t *testing.T, tenant, other string, a attempt) string {
	t.Helper()
	hash := strings.Repeat("0", 64)
	if strings.Contains(a.path, "HASH") {
		answer := f.as(t, f.secrets[tenant][ledger.RoleViewer], "GET", "/v1/actions/act_1", "")
		if found := regexp.MustCompile(`"hash":"([0-9a-f]{64})"`).FindStringSubmatch(answer.body); found != nil {
			hash = found[1]
		}
	}
	fill := strings.NewReplacer("TENANT", tenant, "CLAIM", claimID(other, "act_1"), "HASH", hash)
	path, secret := fill.Replace(a.path), f.secrets[tenant][a.role]
	if strings.HasPrefix(path, "/v1/events") && !strings.Contains(path, "type=none") {
		return f.heard(t, tenant, secret, path)
	}
	return f.told(t, secret, a.method, path, fill.Replace(a.body))
}

// heard is all that a stream tells from the beginning up to the tenant's last event.
func (f *fixture) heard(t *testing.T, tenant, secret, path string) string {
	t.Helper()
	head, err := f.head(tenant)
	if err != nil {
		t.Fatal(err)
	}
	l := f.listen(t, secret, strings.TrimPrefix(path, "/v1/events"), "0-0")
	defer l.close()
	text := []string{"200"}
	l.id = ""
	for l.id != head.String() {
		line, ok := l.line()
		if !ok {
			t.Fatalf("%s ended before %s", path, head)
		}
		if strings.HasPrefix(line, "data: ") || strings.HasPrefix(line, "event: ") {
			text = append(text, line)
		}
	}
	for line := "id"; line != ""; { // the rest of the last event
		if line, _ = l.line(); line != "" {
			text = append(text, line)
		}
	}
	return strings.Join(text, "\n")
}

// leave puts into the store what no endpoint writes: rejected evidence, and
// webhooks that were given up. Their ids are the same for all tenants, what they
// hold is not.
func (f *fixture) leave(t *testing.T, tenant string) {
	t.Helper()
	const sender = "sender"
	ctx, now := t.Context(), engine.Instant(f.clock.Load())
	deliveries := make([]ledger.NewDelivery, 2)
	for i := range deliveries {
		deliveries[i] = ledger.NewDelivery{
			ID: fmt.Sprintf("msg_%d", i+1), Event: ledger.Position{Seq: int64(i + 1)}, Kind: view.EventVerified, Payload: `{"of":"` + tenant + `"}`,
		}
	}
	err := f.store.Update(ctx, func(tx ledger.Tx) error {
		rejected := ledger.RejectedFact{Kind: "fact", Source: "crm", Connection: "facts API", Reason: "invalid", Error: "is bad", RawRef: "bad_1", Item: `{"of":"` + tenant + `"}`}
		if err := tx.RejectFacts(ctx, tenant, []ledger.RejectedFact{rejected}, now); err != nil {
			return err
		}
		if _, err := tx.LockWebhook(ctx, tenant, "crm"); err != nil {
			return err
		}
		if err := tx.EnqueueDeliveries(ctx, tenant, "crm", ledger.Position{}, deliveries, now); err != nil {
			return err
		}
		leased, err := tx.LeaseDeliveries(ctx, tenant, "crm", ledger.Lease{Owner: sender, Now: now, Until: now.Add(engine.Minute)}, len(deliveries))
		if err != nil {
			return err
		}
		results := make([]ledger.DeliveryResult, len(leased))
		for i, d := range leased {
			results[i] = ledger.DeliveryResult{ID: d.ID, State: ledger.DeliveryDead, Status: 500, Error: "refused by " + tenant}
		}
		return tx.CompleteDeliveries(ctx, tenant, sender, results, now)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// operationsOf are the ids in the description, in order.
func operationsOf(t *testing.T, f *fixture) []string {
	t.Helper()
	var description struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	f.must(t, http.StatusOK, "", "GET", "/openapi.json", "").decode(t, &description)
	found := map[string]bool{}
	for _, methods := range description.Paths {
		for _, operation := range methods {
			found[operation.OperationID] = true
		}
	}
	if len(found) == 0 {
		t.Fatal("the description has no operations")
	}
	return slices.Sorted(maps.Keys(found))
}

// admit makes keys for another tenant.
func (f *fixture) admit(t *testing.T, tenant string) {
	t.Helper()
	f.secrets[tenant] = map[string]string{}
	for _, role := range keys.Roles() {
		request := keys.Request{Role: role, Tenant: tenant}
		if role == ledger.RoleEvidence {
			request.Sources = evidenceSources
		}
		f.secrets[tenant][role] = f.key(t, request)
	}
}

// varying are times that were measured, and what is random.
var varying = regexp.MustCompile(`"waited_seconds":[0-9.e-]+|key_[0-9a-f]{16}|cs_[a-z]+_[A-Za-z0-9_-]{8}|"next_cursor":"[^"]*"`)

// keyEvent is an event of the audit log; those of one second are in no fixed order.
var keyEvent = regexp.MustCompile(`\{"kind".*?"times":\d+\}`)

// told is an answer without what varies.
func (f *fixture) told(t *testing.T, secret, method, path, body string) string {
	t.Helper()
	if strings.HasPrefix(path, "/v1/keys/audit") {
		f.uses.flush(t.Context()) // what was noted before is in it
	}
	got := f.as(t, secret, method, path, body)
	text := varying.ReplaceAllString(got.body, "")
	if strings.HasPrefix(path, "/v1/keys/audit") {
		events := keyEvent.FindAllString(text, -1)
		slices.Sort(events)
		text = keyEvent.ReplaceAllString(text, "") + strings.Join(events, "\n")
	}
	return fmt.Sprint(got.status, " ", text)
}
