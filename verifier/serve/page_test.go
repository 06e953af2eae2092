package serve

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// reader is somebody who signed in to the page of a running sidecar.
func (r *running) reader(t *testing.T, secret string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Transport: r.client.Transport}
	form := get(t, client, r.url+"/sign-in")
	token := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(form)
	if token == nil {
		t.Fatalf("no form in %s", form)
	}
	response, err := client.PostForm(r.url+"/sign-in", url.Values{"token": {token[1]}, "key": {secret}, "next": {"/"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Request.URL.Path != "/" || response.StatusCode != http.StatusOK {
		t.Fatalf("sign-in leads to %s: %d", response.Request.URL, response.StatusCode)
	}
	return client
}

func get(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	response, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", address, response.StatusCode, err, text)
	}
	return string(text)
}

// TestPage: the page is served beside the API, hears of verdicts, links to
// traces, shows what was rejected, and does not keep the sidecar from ending.
func TestPage(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Page.TraceURL = "https://traces.example/{trace_id}"
	viewer, recorder, evidence := key(t, c, ledger.RoleViewer), key(t, c, ledger.RoleRecorder), key(t, c, ledger.RoleEvidence, "stripe")
	r := serving(t, c)
	client := r.reader(t, viewer)

	live, err := client.Get(r.url + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	events := bufio.NewReader(live.Body)
	if first, err := events.ReadString('\n'); first != "retry: 2000\n" {
		t.Fatalf("%q %v", first, err)
	}
	status, text := r.do(t, recorder, "POST", "/v1/actions", `{"action_id": "act_1", "contract_id": "refund_workflow", "subject_id": "order_1", "trace_id": "0af7651916cd43dd8448eb211c80319c", "verify": "auto"}`)
	if status != http.StatusCreated {
		t.Fatalf("recording: %d %s", status, text)
	}
	for line := ""; !strings.HasPrefix(line, "data: "); {
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	page := get(t, client, r.url+"/actions/act_1")
	for _, want := range []string{"https://traces.example/0af7651916cd43dd8448eb211c80319c", "--store sqlite:", r.url + "/v1/public/verdicts/"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on %s", want, page)
		}
	}
	if status, text := r.do(t, evidence, "POST", "/v1/facts", `{"facts": [{"source": "crm", "subject_id": "order_1", "fact_type": "note_added", "occurred_at": "2026-09-28T10:42:00Z"}]}`); status != http.StatusOK {
		t.Fatalf("pushing: %d %s", status, text)
	}
	if page := get(t, client, r.url+"/sources"); !strings.Contains(page, "/facts/0/source: ") {
		t.Errorf("what was rejected is not on %s", page)
	}
	if status, _ := r.do(t, "", "GET", "/v1/nothing", ""); status != http.StatusNotFound {
		t.Errorf("the API answers %d to what it does not serve", status)
	}

	stopped := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(stopped); took > c.ShutdownTimeout/2 {
		t.Errorf("an open page kept the sidecar for %s", took)
	}
	if _, err := io.Copy(io.Discard, events); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestPageWithBadTraceURL(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Page.TraceURL = "traces.example"
	err := Run(t.Context(), c, Options{})
	if want := `invalid settings: page.trace_url is "traces.example"; write an address like https://grafana.example/trace/{trace_id}?span={span_id}`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
