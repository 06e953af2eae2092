package emit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// annotation is one lens of an action's verdict, as tracing back ends show it
// beside the action's span. There is one for each lens and contract of an
// action: telling another verdict replaces it.
type annotation struct {
	traceID, spanID string
	// name is action.outcome or action.policy, as in evaluation events.
	name string
	// key tells apart the verdicts on one span: a span of a model may hold
	// several actions, each under a contract.
	key string
	// id is that of the annotation in the whole back end.
	id    string
	label string
	// score is 1 or 0, nil for UNKNOWN.
	score       *float64
	explanation string
	metadata    map[string]any
}

// annotated is an action with its annotations, one for each lens.
type annotated struct {
	annotations []annotation
	// since is when the oldest event about it was stored.
	since engine.Instant
}

// annotationAPI is a back end that takes annotations.
type annotationAPI interface {
	String() string
	// annotate says for each action what went wrong.
	annotate(ctx context.Context, actions []annotated) []error
	close() error
}

// annotator tells settled verdicts of actions with a span to a back end that
// keeps the last one. Events may arrive in any order, so what is told is
// always the newest verdict of the action, whichever event it was that asked.
type annotator struct {
	annotationAPI
	store     ledger.Ledger
	publicURL string
	// patience bounds a batch, which is more than one request.
	patience time.Duration
}

// mostPatience is less than a lease.
const mostPatience = 40 * time.Second

// patience bounds a batch that may take more than one request.
func patience(c Config) time.Duration { return min(3*c.Timeout, mostPatience) }

func newAnnotator(api annotationAPI, store ledger.Ledger, c Config) *annotator {
	return &annotator{api, store, c.PublicURL, patience(c)}
}

func (a *annotator) wants(i *item) bool {
	return i.Kind == Verified && !traceID(i.Action.Action.TraceID).IsEmpty() && !spanID(i.Action.Action.SpanID).IsEmpty()
}

// errOvertaken: a newer verdict was stored while an older one was told. Another
// process may have told the newer one before, so that it has to be told again.
var errOvertaken = errors.New("a newer verdict was stored meanwhile")

func (a *annotator) deliver(ctx context.Context, items []item) []error {
	actions := make([]annotated, len(items))
	for n := range items {
		actions[n] = a.annotated(&items[n])
	}
	bounded, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	failures := a.annotate(bounded, actions)
	if err := a.overtaken(ctx, items, failures); err != nil {
		for n := range failures {
			failures[n] = errors.Join(failures[n], err)
		}
	}
	return failures
}

// newest is the latest settled run of an event's action.
func newest(i *item) *ledger.Run {
	if latest := i.Action.Latest; latest != nil && latest.Seq > i.Run.Seq && latest.Status == ledger.Settled {
		return latest
	}
	return &i.Run
}

// overtaken fails the items whose action has a newer verdict now than was told.
func (a *annotator) overtaken(ctx context.Context, items []item, failures []error) error {
	byTenant := map[string][]string{}
	for n := range items {
		if failures[n] == nil {
			byTenant[items[n].Tenant] = append(byTenant[items[n].Tenant], items[n].Action.ClaimID)
		}
	}
	now := map[actionKey]int64{}
	err := a.store.View(ctx, func(tx ledger.Tx) error {
		for tenant, claims := range byTenant {
			actions, err := tx.Actions(ctx, tenant, claims)
			if err != nil {
				return err
			}
			for _, stored := range actions {
				if stored.Latest != nil && stored.Latest.Status == ledger.Settled {
					now[actionKey{tenant, stored.ClaimID}] = stored.Latest.Seq
				}
			}
		}
		return nil
	})
	for n := range items {
		if failures[n] == nil && now[actionKey{items[n].Tenant, items[n].Action.ClaimID}] > newest(&items[n]).Seq {
			failures[n] = errOvertaken
		}
	}
	return err
}

func (a *annotator) annotated(i *item) annotated {
	run := newest(i)
	one := annotated{since: i.CreatedAt}
	for _, lens := range []struct {
		name    engine.Lens
		verdict ledger.StoredVerdict
	}{{engine.Outcome, run.Outcome}, {engine.Policy, run.Policy}} {
		action := i.Action.Action
		sum := digest("countersign.annotation.v1", i.Tenant, i.Action.ClaimID, run.Contract.ID, string(lens.name))
		one.annotations = append(one.annotations, annotation{
			traceID: strings.ToLower(action.TraceID), spanID: strings.ToLower(action.SpanID), name: "action." + string(lens.name), key: run.Contract.ID + ":" + i.Action.ClaimID,
			id: "countersign-" + hex.EncodeToString(sum[:16]), label: label(lens.verdict.Raw), score: score(lens.verdict.Raw),
			explanation: run.Headline, metadata: a.metadata(i, run, lens.verdict),
		})
	}
	return one
}

func score(raw engine.RawVerdict) *float64 {
	var value float64
	switch raw {
	case engine.Verified:
		value = 1
	case engine.NotVerified:
	default:
		return nil
	}
	return &value
}

// metadata leads back to the verdict and its evidence; the names are those of the events.
func (a *annotator) metadata(i *item, run *ledger.Run, verdict ledger.StoredVerdict) map[string]any {
	found := map[string]any{
		"countersign.tenant": i.Tenant, "countersign.action.id": i.Action.Action.ActionID, "countersign.subject.id": i.Action.Action.SubjectID,
		"countersign.contract.id": run.Contract.ID, "countersign.contract.version": run.Contract.Version,
		"countersign.verdict": verdict.Raw.Label(), "countersign.reasons": verdict.Reasons,
		"countersign.verdict.hash": hex.EncodeToString(verdict.Hash[:]), "countersign.verdict.seq": verdict.Seq, "countersign.run.seq": run.Seq,
	}
	if a.publicURL != "" {
		// The address was checked when the settings were read.
		found["countersign.url"], _ = url.JoinPath(a.publicURL, "v1/actions", url.PathEscape(i.Action.Action.ActionID))
	}
	return found
}

// poster posts JSON to one server.
type poster struct {
	base      string
	headers   map[string]configopaque.String
	timeout   time.Duration
	userAgent string
	client    *http.Client
}

func newPoster(ctx context.Context, setting, endpoint string, settings configtls.ClientConfig, c Config, version string) (*poster, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if strings.HasPrefix(endpoint, "https://") {
		loaded, err := settings.LoadTLSConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("emit.%s.tls: %w", setting, err)
		}
		if loaded == nil {
			loaded = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		transport.TLSClientConfig = loaded
	}
	return &poster{
		base: strings.TrimSuffix(endpoint, "/"), headers: map[string]configopaque.String{}, timeout: c.Timeout, userAgent: userAgent(version),
		client: &http.Client{
			Transport: transport,
			// Keys go to the server that was named and no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// statusError is an answer that is no success. It quotes what the server said.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// refusing says whether the server understood and will not take what was sent,
// so that one part of a batch may be why.
func refusing(err error) bool {
	var answer *statusError
	return errors.As(err, &answer) && (answer.status == http.StatusBadRequest || answer.status == http.StatusNotFound ||
		answer.status == http.StatusUnprocessableEntity || answer.status == http.StatusRequestEntityTooLarge)
}

// mostQuoted bounds what an error quotes of an answer.
const mostQuoted = 200

func (p *poster) post(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	for name, secret := range p.headers {
		request.Header.Set(name, string(secret))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", p.userAgent)
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 == 2 {
		return err
	}
	return &statusError{response.StatusCode, fmt.Sprintf("%s answers %s: %s", p.base+path, response.Status, quote(said))}
}

// quote is the beginning of an answer in words, which may be part of a binary message.
func quote(said []byte) string {
	text := strings.ToValidUTF8(string(said[:min(len(said), mostQuoted)]), "\uFFFD")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text))
}

func (p *poster) close() error {
	p.client.CloseIdleConnections()
	return nil
}

func checkEndpoint(setting, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("emit.%s.endpoint is %q; write an address like https://host:port", setting, endpoint)
	}
	return nil
}
