package torture

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// items of one run, in deliveries of perDelivery, by senders at a time.
	items       = 10_000
	perDelivery = 20
	senders     = 8
)

// item is one event as the CRM sends it. Every second one has no id of its own,
// so that its reference is made of its content (decision D36).
type item struct {
	ID    string `json:"id,omitempty"`
	Order string `json:"order"`
	At    string `json:"at"`
	N     int    `json:"n"`
}

func itemOf(n int, at time.Time) item {
	i := item{Order: fmt.Sprintf("order_%05d", n), At: at.UTC().Format(time.RFC3339), N: n}
	if n%2 == 0 {
		i.ID = fmt.Sprintf("note_%05d", n)
	}
	return i
}

// noon is when everything happened.
var noon = time.Date(2026, 9, 28, 12, 0, 0, 0, time.UTC)

// deliveries are all items in their order.
func deliveries(at time.Time) [][]item {
	var all [][]item
	for n := 0; n < items; n += perDelivery {
		var one []item
		for i := n; i < n+perDelivery; i++ {
			one = append(one, itemOf(i, at))
		}
		all = append(all, one)
	}
	return all
}

// sender delivers as a provider does: again and again, until it is acknowledged.
type sender struct {
	t       *testing.T
	url     string
	client  http.Client
	acked   atomic.Int64
	refused atomic.Int64 // answers that it shall come again
	broken  atomic.Int64 // no answer
}

func newSender(t *testing.T, address string) *sender {
	t.Helper()
	s := &sender{t: t, url: "http://" + address, client: http.Client{Timeout: 20 * time.Second}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// deliver sends everything and returns when the last item is acknowledged, or ctx ends.
func (s *sender) deliver(ctx context.Context, all [][]item) {
	queue := make(chan []item)
	var workers sync.WaitGroup
	for range senders {
		workers.Go(func() {
			for one := range queue {
				s.one(ctx, one)
			}
		})
	}
	for _, one := range all {
		queue <- one
	}
	close(queue)
	workers.Wait()
}

func (s *sender) one(ctx context.Context, one []item) {
	body, err := json.Marshal(one)
	if err != nil {
		s.t.Error(err)
		return
	}
	for ctx.Err() == nil {
		switch status := s.post(ctx, "/crm", body, http.Header{"X-Api-Key": {evidenceKey}}); status {
		case http.StatusOK:
			s.acked.Add(int64(len(one)))
			return
		case http.StatusServiceUnavailable:
			s.refused.Add(1)
		case 0:
			s.broken.Add(1)
		default:
			s.t.Errorf("answer %d", status)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // a provider waits longer
		}
	}
}

// post returns 0 for no answer.
func (s *sender) post(ctx context.Context, path string, body []byte, header http.Header) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

// signed is a webhook as Stripe signs it, by a clock of its own.
func (s *sender) signed(ctx context.Context, one item, clock time.Time) int {
	body, err := json.Marshal(one)
	if err != nil {
		s.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(stripeSecret))
	fmt.Fprintf(mac, "%d.%s", clock.Unix(), body)
	return s.post(ctx, "/stripe", body, http.Header{
		"Stripe-Signature": {fmt.Sprintf("t=%d,v1=%s", clock.Unix(), hex.EncodeToString(mac.Sum(nil)))},
	})
}

// reaches waits until so many items are acknowledged.
func (s *sender) reaches(ctx context.Context, n int64) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.acked.Load() < n {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
