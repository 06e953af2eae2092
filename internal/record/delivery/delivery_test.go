package delivery

import (
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
)

func sealer(t *testing.T, key string) *Sealer {
	t.Helper()
	s, err := NewSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sealed(s *Sealer) plog.LogRecord {
	entry := plog.NewLogRecord()
	entry.SetEventName("orders/cancelled")
	entry.Body().SetStr(`{"id":1}`)
	s.Put(entry, sample)
	return entry
}

var sample = Delivery{Tenant: "acme", Source: "shopify", Connection: "shop-eu", Trust: engine.Independent, ID: "b54557e4"}

func TestDeliveryComesBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]Delivery{
		"all fields":   sample,
		"only what is": {Source: "crm", Trust: engine.Shared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := plog.NewLogRecord()
			entry.Body().SetEmptyBytes().FromRaw([]byte{0xff, 0})
			sealer(t, "").Put(entry, tc)
			got, ok := sealer(t, "").Read(entry)
			if !ok || got != tc {
				t.Errorf("got %+v, %t; want %+v", got, ok, tc)
			}
		})
	}
}

// TestD10_TrustIsNotForged: whoever can send log records can write any
// attribute, and can see sealed records where they are exported.
func TestD10_TrustIsNotForged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(entry plog.LogRecord){
		"other trust":      func(e plog.LogRecord) { said(e).PutStr("trust", "shared") },
		"other source":     func(e plog.LogRecord) { said(e).PutStr("source", "stripe") },
		"other tenant":     func(e plog.LogRecord) { said(e).PutStr("tenant", "globex") },
		"other id":         func(e plog.LogRecord) { said(e).PutStr("id", "b54557e5") },
		"other connection": func(e plog.LogRecord) { said(e).PutStr("connection", "shop-us") },
		"no tenant":        func(e plog.LogRecord) { said(e).Remove("tenant") },
		"no trust":         func(e plog.LogRecord) { said(e).Remove("trust") },
		"no seal":          func(e plog.LogRecord) { said(e).Remove("seal") },
		"seal as text":     func(e plog.LogRecord) { said(e).PutStr("seal", "00") },
		"empty seal":       func(e plog.LogRecord) { said(e).PutEmptyBytes("seal") },
		"other body":       func(e plog.LogRecord) { e.Body().SetStr(`{"id":2}`) },
		"body as bytes":    func(e plog.LogRecord) { e.Body().SetEmptyBytes().FromRaw([]byte(`{"id":1}`)) },
		"other event":      func(e plog.LogRecord) { e.SetEventName("orders/fulfilled") },
		"fields run over": func(e plog.LogRecord) {
			said(e).PutStr("tenant", "acmes")
			said(e).PutStr("source", "hopify")
		},
		"no map":     func(e plog.LogRecord) { e.Attributes().PutStr(Key, "independent") },
		"no mention": func(e plog.LogRecord) { e.Attributes().Remove(Key) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := sealed(sealer(t, ""))
			change(entry)
			if d, ok := sealer(t, "").Read(entry); ok {
				t.Errorf("believed: %+v", d)
			}
		})
	}
}

func said(entry plog.LogRecord) pcommon.Map {
	value, _ := entry.Attributes().Get(Key)
	return value.Map()
}

func TestKeyIsSharedByThoseWhoWereGivenIt(t *testing.T) {
	t.Parallel()
	const key = "0123456789abcdef0123456789abcdef"
	entry := sealed(sealer(t, key))
	if _, ok := sealer(t, key).Read(entry); !ok {
		t.Error("the same key does not read it")
	}
	for name, other := range map[string]string{"another key": strings.ToUpper(key), "the process's key": ""} {
		if _, ok := sealer(t, other).Read(entry); ok {
			t.Errorf("%s reads it", name)
		}
	}
}

func TestShortKeyIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := NewSealer("0123456789abcdef0123456789abcde"); !errors.Is(err, ErrKey) {
		t.Errorf("got %v, want %v", err, ErrKey)
	}
}

func BenchmarkRead(b *testing.B) {
	s, err := NewSealer("")
	if err != nil {
		b.Fatal(err)
	}
	entry := plog.NewLogRecord()
	entry.Body().SetStr(strings.Repeat("x", 2048))
	s.Put(entry, sample)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Read(entry); !ok {
			b.Fatal("not read")
		}
	}
}
