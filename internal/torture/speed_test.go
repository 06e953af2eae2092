//go:build speed

package torture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/countersign-otel/countersign/internal/pgserver"
)

const (
	// speedItems are enough for what a collector and a pool of connections cost at the start, and a queue
	// at the end, not to count.
	speedItems  = 600_000
	speedBatch  = 1000
	speedRounds = 3
	copiers     = 4
)

// speedConfiguration has everything but the exporter.
const speedConfiguration = `
receivers:
  otlp: {protocols: {http: {endpoint: "${env:TORTURE_LISTEN}"}}}
processors:
  evidence:
    trust: shared
    rules:
      - {name: note, source: crm, fact_type: note_added, subject_id: Body("order"), subject_kind: order,
         occurred_at: Body("at"), raw_ref: 'Concat(["crm", Body("id")], ":")', attributes: {n: Body("n")}}
%s
extensions:
  file_storage: {directory: "${env:TORTURE_DIR}/queue", create_directory: true, fsync: true}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    logs: {receivers: [otlp], processors: [evidence], exporters: [%s]}
`

const (
	debugOnly = "exporters: {debug: {verbosity: basic}}"
	ledger    = `exporters:
  ledger:
    store: ${env:TORTURE_STORE}
    role: evidence
    sources: [crm]
    sending_queue: {queue_size: 30000, sizer: items, block_on_overflow: true, num_consumers: 4%s}`
)

// variant is one way that is measured.
type variant struct {
	name, exporter, id string
	gogc               string // the collector's environment variable of that name
}

var variants = []variant{
	{"collector, `debug` exporter", debugOnly, "debug", "100"},
	{"collector, `ledger` exporter, queue in memory", fmt.Sprintf(ledger, ""), "ledger", "100"},
	{"the same, `GOGC=400`", fmt.Sprintf(ledger, ""), "ledger", "400"},
	{"collector, `ledger` exporter, queue on disk with fsync", fmt.Sprintf(ledger, ", storage: file_storage"), "ledger", "100"},
	{"the same on disk, `GOGC=400`", fmt.Sprintf(ledger, ", storage: file_storage"), "ledger", "400"},
}

// measured is what one run took.
type measured struct {
	seconds, cpu float64
	rss          int64 // bytes, the most that was seen
}

func TestSpeed(t *testing.T) {
	server := pgserver.Start(t, pgserver.WithFsync())
	requests := speedRequests(t)
	all := map[string][]measured{}
	for range speedRounds {
		for _, v := range variants {
			all[v.name] = append(all[v.name], measureCollector(t, server, v, requests))
		}
		all["plain `CopyFrom`"] = append(all["plain `CopyFrom`"], measureCopy(t, server))
	}
	fmt.Println("| Way | Items/s | Times `CopyFrom`'s time | Collector CPU per 1,000 items | Peak RSS |")
	fmt.Println("|---|---|---|---|---|")
	plain := median(all["plain `CopyFrom`"])
	for _, name := range append(namesOf(variants), "plain `CopyFrom`") {
		m := median(all[name])
		cpu, rss := "", ""
		if m.cpu > 0 {
			cpu, rss = fmt.Sprintf("%.1f ms", m.cpu/speedItems*1e6), fmt.Sprintf("%d MiB", m.rss>>20)
		}
		fmt.Printf("| %s | %.0f | %.2f | %s | %s |\n", name, speedItems/m.seconds, m.seconds/plain.seconds, cpu, rss)
	}
}

func namesOf(variants []variant) (names []string) {
	for _, v := range variants {
		names = append(names, v.name)
	}
	return names
}

// median by time.
func median(all []measured) measured {
	slices.SortFunc(all, func(a, b measured) int { return int((a.seconds - b.seconds) * 1e6) })
	return all[len(all)/2]
}

// speedRequests are OTLP requests of log records as the CRM's relay writes them.
func speedRequests(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	for from := 0; from < speedItems; from += speedBatch {
		ld := plog.NewLogs()
		records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for n := from; n < from+speedBatch; n++ {
			body, err := json.Marshal(speedItem(n))
			if err != nil {
				t.Fatal(err)
			}
			entry := records.AppendEmpty()
			entry.SetObservedTimestamp(pcommon.NewTimestampFromTime(noon))
			entry.Body().SetStr(string(body))
		}
		request, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, request)
	}
	return all
}

func speedItem(n int) item {
	i := itemOf(n, noon)
	i.ID = fmt.Sprintf("note_%06d", n)
	return i
}

func measureCollector(t *testing.T, server *pgserver.Server, v variant, requests [][]byte) measured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	address := server.Database(t)
	s := &store{name: "PostgreSQL", url: address, t: t, db: openDB(t, "pgx", address), server: server}
	s.migrate(ctx)
	t.Setenv("GOGC", v.gogc)
	c := newCollectorWith(t, address, "0", fmt.Sprintf(speedConfiguration, v.exporter, v.id))
	defer c.end(syscall.SIGKILL)
	began, cpu := time.Now(), c.cpu()
	var peak int64
	sendAll(ctx, t, c.address, requests)
	for ctx.Err() == nil {
		peak = max(peak, c.rss())
		if v.id != "ledger" || s.stored(ctx) {
			m := measured{time.Since(began).Seconds(), c.cpu() - cpu, peak}
			if v.id != "ledger" || s.count(ctx, "true") == speedItems {
				return m
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: %v", v.name, ctx.Err())
	return measured{}
}

// stored says whether the last item of each request has been committed, by one
// look-up each: counting all costs the server, and is done once that is so.
func (s *store) stored(ctx context.Context) bool {
	var last []string
	for n := speedBatch - 1; n < speedItems; n += speedBatch {
		last = append(last, "crm:"+speedItem(n).ID)
	}
	var found int
	err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM unnest(string_to_array($1, ' ')) AS l(ref), LATERAL (
		SELECT FROM facts WHERE tenant_id = 'default' AND raw_ref = l.ref LIMIT 1) AS f`, strings.Join(last, " ")).Scan(&found)
	return err == nil && found == len(last)
}

// sendAll posts requests, again and again until they are taken.
func sendAll(ctx context.Context, t *testing.T, address string, requests [][]byte) {
	t.Helper()
	client := http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	queue := make(chan []byte)
	var workers sync.WaitGroup
	for range copiers {
		workers.Go(func() {
			for body := range queue {
				for ctx.Err() == nil && postOTLP(ctx, &client, address, body) != http.StatusOK {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	for _, body := range requests {
		queue <- body
	}
	close(queue)
	workers.Wait()
}

func postOTLP(ctx context.Context, client *http.Client, address string, body []byte) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/logs", bytes.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// measureCopy writes the same rows into a table with the same keys and indexes,
// with nothing that makes a repeat harmless.
func measureCopy(t *testing.T, server *pgserver.Server) measured {
	t.Helper()
	ctx := t.Context()
	address := server.Database(t)
	s := &store{url: address, t: t, db: openDB(t, "pgx", address)}
	s.migrate(ctx)
	s.exec(ctx, "CREATE TABLE plain (LIKE facts INCLUDING ALL)")
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	columns := []string{"tenant_id", "raw_ref", "source", "fact_type", "subject_id", "subject_kind", "occurred_at", "attributes", "content_hash", "connection", "ingested_at"}
	var batches [][][]any
	for from := 0; from < speedItems; from += 5 * speedBatch {
		var rows [][]any
		for n := from; n < from+5*speedBatch; n++ {
			i := speedItem(n)
			hash := sha256.Sum256([]byte(i.ID))
			rows = append(rows, []any{"default", "crm:" + i.ID, "crm", "note_added", i.Order, "order", noon.Unix(), fmt.Sprintf(`{"n":%d}`, n), hash[:], "", noon.Unix()})
		}
		batches = append(batches, rows)
	}
	began := time.Now()
	queue := make(chan [][]any)
	var workers sync.WaitGroup
	for range copiers {
		workers.Go(func() {
			for rows := range queue {
				if _, err := pool.CopyFrom(ctx, pgx.Identifier{"plain"}, columns, pgx.CopyFromRows(rows)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, rows := range batches {
		queue <- rows
	}
	close(queue)
	workers.Wait()
	return measured{seconds: time.Since(began).Seconds()}
}

// TestMemoryUnderOverload: with the database away and the queue full, senders
// that do not let up cost no memory.
func TestMemoryUnderOverload(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	full := strings.Replace(fmt.Sprintf(ledger, ", storage: file_storage"), "30000, sizer: items, block_on_overflow: true", "20000, sizer: items", 1)
	c := newCollectorWith(t, "postgres://nobody@127.0.0.1:1/nowhere", "0", fmt.Sprintf(speedConfiguration, full, "ledger"))
	var sending sync.WaitGroup
	requests := speedRequests(t)
	sending.Go(func() { sendAll(ctx, t, c.address, requests) })
	var samples []string
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
			samples = append(samples, fmt.Sprintf("%d", c.rss()>>20))
		}
	}
	sending.Wait()
	fmt.Println("RSS in MiB, every five seconds of overload:", strings.Join(samples, " "))
}

// cpu is the collector's CPU time in seconds so far.
func (c *collector) cpu() float64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "stat"))
	if err != nil {
		c.t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ
}

// rss is the collector's resident memory in bytes.
func (c *collector) rss() int64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), "statm"))
	if err != nil {
		c.t.Fatal(err)
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
