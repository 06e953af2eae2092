package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

// verify checks a signature as a receiver does.
func verify(t *testing.T, secret string, got request) {
	t.Helper()
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := webhook.VerifyIgnoringTimestamp([]byte(got.body), got.header); err != nil {
		t.Errorf("%v: %v", err, got.header)
	}
}

func TestEventsAreToldAndSigned(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	all, some, none := receive(t, nil), receive(t, nil), receive(t, nil)
	changing := to("all", all.URL)
	changing.PreviousSecret = otherSecret
	picky, foreign := to("some", some.URL), to("none", none.URL)
	picky.Events, picky.Contracts = []string{"action.verified"}, []string{"Refund_Workflow"}
	foreign.Contracts = []string{"payout"}
	f.tell(t, "action.verified") // before anybody was there to be told
	f.known(t, "all", "some", "none")
	f.tell(t, "action.pending", "", "action.verified")
	f.running(t, "one", config(changing, picky, foreign))
	got := all.wait(t, 2)
	slices.SortFunc(got, func(a, b request) int { return strings.Compare(a.body, b.body) })
	for _, r := range got {
		verify(t, secret, r)
		verify(t, otherSecret, r)
	}
	h := got[1].header
	want := [4]string{strconv.Itoa(int(noon)), "application/json", "countersign/test", idOf(tenant, "all", ledger.Position{Seq: 8})}
	if diff := cmp.Diff(want, [4]string{h.Get("webhook-timestamp"), h.Get("Content-Type"), h.Get("User-Agent"), h.Get("webhook-id")}); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	var message Message
	if err := json.Unmarshal([]byte(got[1].body), &message); err != nil {
		t.Fatal(err)
	}
	if message.Type != "action.verified" || message.Timestamp != noon || message.Data.ID != "8-0" || message.Data.ActionID != "a" || message.Data.Policy.Verdict != "PASS" {
		t.Errorf("got %+v", message)
	}
	if got := some.wait(t, 1); !strings.Contains(got[0].body, `"type":"action.verified"`) {
		t.Errorf("got %s", got[0].body)
	}
	f.tell(t, "action.pending", "action.verified")
	all.wait(t, 4)
	some.wait(t, 2)
	if n, m := len(some.got()), len(none.got()); n != 2 || m != 0 {
		t.Errorf("%d and %d requests, want 2 and 0", n, m)
	}
}

func TestRetriesThenDeadLetterThenReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known(t, "crm")
	f.tell(t, "action.verified")
	r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	c := config(to("crm", r.URL))
	stop := f.running(t, "one", c)
	r.wait(t, 1)
	f.due(t, noon+5)  // after the first failure
	f.due(t, noon+15) // twice as long after the second
	r.wait(t, 3)
	within(t, "it was given up", func() bool { return len(f.deadLetters(t)) == 1 })
	stop()
	dead := f.deadLetters(t)[0]
	if dead.Attempts != 3 || dead.Status != 500 || dead.Error != "answered 500 Internal Server Error" || dead.Endpoint != "crm" {
		t.Errorf("dead letter %+v", dead)
	}
	f.running(t, "two", c)
	if err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.ReplayDeliveries(t.Context(), tenant, []string{dead.ID}, f.now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	got := r.wait(t, 4)
	for i := range got {
		verify(t, secret, got[i])
		if got[i].header.Get("webhook-id") != dead.ID || got[i].body != got[0].body {
			t.Errorf("attempt %d: %v %s", i, got[i].header, got[i].body)
		}
	}
	if first, last := got[0].header.Get("webhook-timestamp"), got[3].header.Get("webhook-timestamp"); first == last {
		t.Error("the time of an attempt is the first one's: a receiver would take a late one for a repetition")
	}
	within(t, "nothing is dead", func() bool { return len(f.deadLetters(t)) == 0 })
}

// due sets the clock to when the one delivery that waits is due, and checks when that is.
func (f *fixture) due(t *testing.T, want engine.Instant) {
	t.Helper()
	var at engine.Instant
	within(t, "a delivery waits", func() bool {
		at = f.dueAt(t)
		return at > f.now()
	})
	if at != want {
		t.Errorf("due at %s, want %s", at, want)
	}
	f.clock.Store(int64(at))
}

// dueAt looks at what waits, in a transaction that is rolled back.
func (f *fixture) dueAt(t *testing.T) (at engine.Instant) {
	t.Helper()
	if err := f.store.Rehearse(t.Context(), func(tx ledger.Tx) error {
		far := noon.Add(365 * engine.Day)
		leased, err := tx.LeaseDeliveries(t.Context(), tenant, "crm", ledger.Lease{Owner: "test", Now: far, Until: far}, 1)
		if len(leased) > 0 {
			at = leased[0].DueAt
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, nil)
	for name, row := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		dead   bool
		due    engine.Instant
		want   string
	}{
		"gone": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, true, 0, "answered 410 Gone: it wants to hear no more"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, false, noon + 5,
			"answered 307: redirects are not followed; set the url where it leads"},
		"not now": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}, false, noon + 120, "answered 429 Too Many Requests"},
		"silent":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false, noon + 5, "no answer within 100ms"},
		"rude":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, noon + 5, "EOF"},
		"endless": {func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 10<<20)) }, false, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.known(t, "crm")
			f.tell(t, "action.verified")
			r := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) { row.answer(w, r) })
			c := config(to("crm", r.URL))
			c.Timeout = 100 * time.Millisecond
			if name == "endless" {
				c.Timeout = 10 * time.Second
			}
			stop := f.running(t, "one", c)
			r.wait(t, 1)
			switch {
			case row.dead:
				within(t, "it is dead", func() bool { return len(f.deadLetters(t)) == 1 })
				if got := f.deadLetters(t)[0].Error; got != row.want {
					t.Errorf("got %q, want %q", got, row.want)
				}
			case row.due > 0:
				f.due(t, row.due)
			default:
				within(t, "it was delivered", func() bool { return f.dueAt(t) == 0 })
				if n := len(r.got()); n != 1 {
					t.Errorf("%d attempts, want 1", n)
				}
			}
			stop()
			if n := len(elsewhere.got()); n > 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

func TestSlowEndpointHoldsUpNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known(t, "slow", "quick")
	release := make(chan struct{})
	slow := receive(t, func(int, http.ResponseWriter, *http.Request) { <-release })
	quick := receive(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n%10 == 0 {
			<-release // some hang here too
		}
	})
	c := config(to("slow", slow.URL), to("quick", quick.URL))
	c.Timeout, c.Concurrency = time.Minute, 4
	f.running(t, "one", c)
	for range 30 {
		f.tell(t, "action.verified")
	}
	quick.wait(t, 30)
	if n := len(slow.got()); n > 4 {
		t.Errorf("%d attempts at once at the slow one, want at most 4", n)
	}
	close(release)
	slow.wait(t, 30)
}

func TestTwoSidecarsTellEachEventOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known(t, "crm")
	r := receive(t, nil)
	stop := f.running(t, "one", config(to("crm", r.URL)))
	stopTwo := f.running(t, "two", config(to("crm", r.URL)))
	for range 50 {
		f.tell(t, "action.verified")
	}
	r.wait(t, 50)
	stop()
	stopTwo()
	ids := r.ids()
	if n := len(r.got()); n != 50 || len(ids) != 50 {
		t.Errorf("%d requests with %d ids, want 50 and 50", n, len(ids))
	}
}

// TestEndpointComesBack: its place outlasts its absence from the settings, whoever runs meanwhile.
func TestEndpointComesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	crm, other := receive(t, nil), receive(t, nil)
	f.known(t, "crm", "other")
	f.tell(t, "action.verified")
	stop := f.running(t, "one", config(to("crm", crm.URL)))
	crm.wait(t, 1)
	stop()
	stop = f.running(t, "one", config(to("other", other.URL)))
	f.tell(t, "action.verified", "action.verified")
	other.wait(t, 3)
	stop()
	f.running(t, "one", config(to("crm", crm.URL), to("other", other.URL)))
	crm.wait(t, 3)
	if n := len(crm.ids()); n != 3 {
		t.Errorf("told of %d events, want 3", n)
	}
}

// runSender is a sidecar of its own, until it is killed.
func runSender(storeURL, url string) {
	ctx := context.Background()
	store, err := open.Ledger(ctx, storeURL)
	if err != nil {
		panic(err)
	}
	s, err := New(config(to("crm", url)), Options{Ledger: store, Owner: "killed", Now: func() engine.Instant { return noon }, PollInterval: 5 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	panic(s.Run(ctx))
}

// TestKilledInTheMiddle: what a sidecar was telling when it was killed is told
// again by another one, under the same ids, once the leases have ended.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		killedInTheMiddle(t, newFixture(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		killedInTheMiddle(t, newFixtureOn(t, pgserver.Start(t).Database(t)))
	})
}

func killedInTheMiddle(t *testing.T, f *fixture) {
	t.Helper()
	f.known(t, "crm")
	release := make(chan struct{})
	r := receive(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
		if n > 12 {
			<-release
		}
	})
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const events = 30
	f.tell(t, slices.Repeat([]string{"action.verified"}, events)...)
	sidecar := exec.CommandContext(t.Context(), executable)
	sidecar.Env = append(os.Environ(), "COUNTERSIGN_TEST_SENDER="+f.url, "COUNTERSIGN_TEST_URL="+r.URL)
	if err := sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	r.wait(t, 13)
	if err := sidecar.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = sidecar.Wait() // it was killed
	close(release)
	f.clock.Store(int64(noon.Add(engine.Hour)))
	f.running(t, "other", config(to("crm", r.URL)))
	within(t, "all were told", func() bool { return len(r.ids()) == events })
	within(t, "nothing waits", func() bool { return f.dueAt(t) == 0 })
	for i := range events {
		if id := idOf(tenant, "crm", ledger.Position{Seq: int64(2*i + 2)}); r.ids()[id] == 0 {
			t.Errorf("event %d was never told as %s", i, id)
		}
	}
	if again := len(r.got()) - events; again < 1 || again > DefaultConfig().Concurrency*2 {
		t.Errorf("%d were told again, want those that were under way", again)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	good := to("crm", "https://hooks.example/x?token=hunter2")
	change := func(f func(*Endpoint)) Config {
		e := good
		f(&e)
		return config(e)
	}
	const word = `is not "whsec_" and the base64 of 24 to 64 random bytes; one is made by: echo "whsec_$(openssl rand -base64 32)"`
	for want, c := range map[string]Config{
		"": config(good),
		"name is \"\"; write a lowercase name like crm":                                                           change(func(e *Endpoint) { e.Name = "" }),
		"name is \"CRM\"; write a lowercase name like crm":                                                        change(func(e *Endpoint) { e.Name = "CRM" }),
		`events: "action.exploded" is none of action.pending, action.verified, action.compensated, action.parked`: change(func(e *Endpoint) { e.Events = []string{"action.exploded"} }),
		"secret " + word:          change(func(e *Endpoint) { e.Secret = "whsec_aHVudGVyMg==" }),
		"previous_secret " + word: change(func(e *Endpoint) { e.PreviousSecret = "hunter2" }),
		"previous_secret is the secret itself; write the new one as secret and the one before it as previous_secret, or leave it out":  change(func(e *Endpoint) { e.PreviousSecret = e.Secret }),
		"url is no address like https://hooks.example/countersign":                                                                     change(func(e *Endpoint) { e.URL = "ftp://hunter2" }),
		"url has a user name or password; the signature tells the receiver who sends":                                                  change(func(e *Endpoint) { e.URL = "https://a:hunter2@hooks.example" }),
		"url is http to hooks.example, where others could read it; use https, or set allow_http: true":                                 change(func(e *Endpoint) { e.URL = "http://hooks.example/hunter2" }),
		`invalid webhook settings: webhooks.endpoints[1]: the name "crm" stands twice; each endpoint of a tenant needs one of its own`: config(good, good),
	} {
		if want != "" && !strings.HasPrefix(want, "invalid") {
			want = "invalid webhook settings: webhooks.endpoints[0]: " + want
		}
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for _, e := range []Endpoint{to("a", "http://localhost:1/x"), to("a", "http://[::1]:1"), to("a", "http://127.0.0.9"), {Name: "a", URL: "http://other.example", Secret: secret, AllowHTTP: true}} {
		if err := config(e).Validate(); err != nil {
			t.Errorf("%s: %v", e.URL, err)
		}
	}
	if text := fmt.Sprintf("%v %+v", config(good), config(good)); strings.Contains(text, "MfKQ") {
		t.Error("a secret is printed")
	}
	c := DefaultConfig()
	c.Timeout, c.MaxAttempts, c.Concurrency, c.FirstBackOff, c.MaxBackOff, c.KeepDelivered, c.KeepDead = 0, 0, 0, 0, 0, 0, 1500*time.Millisecond
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 6 {
		t.Errorf("got %v", err)
	}
}

// TestPlainTextStaysHere: a name that means this machine in the settings may not lead to another one.
func TestPlainTextStaysHere(t *testing.T) {
	t.Parallel()
	for address, here := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "10.0.0.1:80": false, "[2001:db8::1]:80": false} {
		if err := onlyLoopback("tcp", address, nil); (err == nil) != here {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"http://localhost:1", "HTTP://localhost:1"} {
		p, err := newPoster(to("a", address), DefaultConfig(), "test")
		if err != nil {
			t.Fatal(err)
		}
		transport := p.client.Transport.(*http.Transport)
		if connection, err := transport.DialContext(t.Context(), "tcp", net.JoinHostPort("192.0.2.1", "80")); err == nil || !strings.Contains(err.Error(), "another machine") {
			t.Errorf("%s: got %v %v", address, connection, err)
		}
	}
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	for _, chance := range []func(time.Duration) time.Duration{
		func(time.Duration) time.Duration { return 0 },
		func(below time.Duration) time.Duration { return below - 1 },
	} {
		e := &endpoint{Sender: &Sender{config: DefaultConfig(), Options: Options{Chance: chance}}}
		for attempts, most := range map[int]engine.Duration{1: 5, 2: 10, 3: 20, 13: 20480, 14: 6 * engine.Hour, 100: 6 * engine.Hour} {
			if got := e.backOff(attempts, 0); got > most || got < most/2 {
				t.Errorf("after %d attempts: %d seconds, want %d to %d", attempts, got, most/2, most)
			}
		}
		if got := e.backOff(1, 48*time.Hour); got != 6*engine.Hour {
			t.Errorf("when asked to wait for days: %d seconds", got)
		}
	}
}

// TestExpiryKeepsUp: more than a batch is old, and goes without waiting for the next minute.
func TestExpiryKeepsUp(t *testing.T) {
	t.Parallel()
	const old = 2*expireBatch + 10
	f := newFixture(t)
	f.known(t, "x")
	made := make([]ledger.NewDelivery, old)
	ids := make([]string, old)
	results := make([]ledger.DeliveryResult, old)
	for i := range made {
		ids[i] = fmt.Sprintf("msg_%d", i)
		made[i] = ledger.NewDelivery{ID: ids[i], Event: ledger.Position{Seq: int64(i + 1)}, Kind: "action.verified", Payload: "{}"}
		results[i] = ledger.DeliveryResult{ID: ids[i], State: ledger.DeliveryDelivered, Status: http.StatusOK, DueAt: noon}
	}
	if err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
		lease := ledger.Lease{Owner: "before", Now: noon, Until: noon.Add(engine.Minute)}
		at, err := tx.LockWebhook(t.Context(), tenant, "x")
		if err != nil {
			return err
		}
		if err := tx.EnqueueDeliveries(t.Context(), tenant, "x", at, made, noon); err != nil {
			return err
		}
		if _, err := tx.LeaseDeliveries(t.Context(), tenant, "x", lease, old); err != nil {
			return err
		}
		return tx.CompleteDeliveries(t.Context(), tenant, "before", results, noon)
	}); err != nil {
		t.Fatal(err)
	}
	kept := func() (known []string) {
		if err := f.store.Rehearse(t.Context(), func(tx ledger.Tx) (err error) {
			known, err = tx.ReplayDeliveries(t.Context(), tenant, ids, noon)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return known
	}
	if got := len(kept()); got != old {
		t.Fatalf("%d deliveries are kept, want %d", got, old)
	}
	c := config(to("x", receive(t, nil).URL))
	f.clock.Add(int64(c.KeepDelivered/time.Second) + 1) // and no further: the next minute never comes
	f.running(t, "a", c)
	within(t, "all that is old is gone", func() bool { return len(kept()) == 0 })
}
