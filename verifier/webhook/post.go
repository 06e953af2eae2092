package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// maxAnswer is how much of an answer is read, so that its connection can be used again.
const maxAnswer = 64 << 10

// poster sends to one endpoint, over connections of its own.
type poster struct {
	url     string
	agent   string
	timeout time.Duration
	signers []*standardwebhooks.Webhook
	client  *http.Client
}

func newPoster(e Endpoint, c Config, version string) (*poster, error) {
	p := &poster{url: e.URL, agent: "countersign/" + version, timeout: c.Timeout}
	for _, secret := range []configopaque.String{e.Secret, e.PreviousSecret} {
		if secret == "" {
			continue
		}
		key, err := secretOf(secret)
		if err != nil {
			return nil, err
		}
		signer, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, err
		}
		p.signers = append(p.signers, signer)
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: c.Concurrency, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
	}
	// Parsed as check did: a scheme is the same in capitals.
	if u, err := url.Parse(e.URL); err != nil || u.Scheme != "https" && !e.AllowHTTP {
		transport.Proxy, dialer.Control = nil, onlyLoopback
	}
	p.client = &http.Client{
		Transport: transport,
		// An endpoint that moved is the operator's to look at: nothing follows it to somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

// onlyLoopback refuses an address that a name like localhost should not have.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err == nil && loopback(host) {
		return nil
	}
	return fmt.Errorf("%s is another machine, where http is not allowed", address)
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// posted is what came of one attempt; err is nil when the endpoint took it.
type posted struct {
	status     int
	err        error
	gone       bool
	retryAfter time.Duration
}

func (p *poster) post(ctx context.Context, d ledger.Delivery, now engine.Instant) posted {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	request, err := p.request(ctx, d, now)
	if err != nil {
		return posted{err: err}
	}
	response, err := p.client.Do(request)
	if err != nil {
		var wrapped *url.Error // it names the address, which may hold a secret
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", p.timeout)
		}
		return posted{err: err}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // what it says is not heeded
	return judge(response)
}

func (p *poster) request(ctx context.Context, d ledger.Delivery, now engine.Instant) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(d.Payload))
	if err != nil {
		return nil, errors.New("the request cannot be made; is the url an address?")
	}
	at := time.Unix(int64(now), 0)
	signatures := make([]string, len(p.signers))
	for i, signer := range p.signers {
		if signatures[i], err = signer.Sign(d.ID, at, []byte(d.Payload)); err != nil {
			return nil, err
		}
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", p.agent)
	h.Set(standardwebhooks.HeaderWebhookID, d.ID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(int64(now), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return request, nil
}

func judge(response *http.Response) posted {
	p := posted{status: response.StatusCode}
	switch {
	case p.status >= 200 && p.status <= 299:
	case p.status == http.StatusGone:
		p.gone, p.err = true, errors.New("answered 410 Gone: it wants to hear no more")
	case p.status >= 300 && p.status <= 399:
		p.err = fmt.Errorf("answered %d: redirects are not followed; set the url where it leads", p.status)
	default:
		p.err = fmt.Errorf("answered %d %s", p.status, http.StatusText(p.status))
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			p.retryAfter = time.Duration(min(seconds, 7*24*3600)) * time.Second
		}
	}
	return p
}
