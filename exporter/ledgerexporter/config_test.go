package ledgerexporter

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	key := "ledger"
	if name != "" {
		key += "/" + name
	}
	sub, err := conf.Sub(key)
	if err != nil {
		t.Fatal(err)
	}
	config := NewDefaultConfig()
	if err := sub.Unmarshal(config); err != nil {
		return nil, err
	}
	return config, confmap.Validate(config)
}

func TestConfigReads(t *testing.T) {
	t.Parallel()
	yes := true
	for name, change := range map[string]func(*Config){
		"": func(c *Config) { c.Store = "sqlite:countersign.db" },
		"recorder": func(c *Config) {
			c.Store = "postgres://collector:secret@db.example:5432/countersign?sslmode=require"
			c.Tenant, c.Tenants, c.CreateSchema = "acme", []string{"globex", "*"}, &yes
			c.TimeoutConfig.Timeout = 10 * time.Second
			c.RetryConfig.MaxElapsedTime = time.Hour
		},
		"evidence": func(c *Config) {
			c.Store, c.Role, c.Sources = "memory:", Evidence, []string{"stripe", "Shopify"}
			c.Trust, c.Connection = "independent", "webhooks"
			c.Watermarks = map[string]WatermarkConfig{
				"stripe": {Lateness: 10 * time.Minute}, "shopify": {Lateness: time.Hour, IdleTimeout: 2 * time.Hour},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := NewDefaultConfig()
			change(want)
			got, err := loadConfig(t, name)
			if err != nil {
				t.Fatal(err)
			}
			// The queue's own settings are tested where they are made.
			got.QueueConfig = want.QueueConfig
			if !reflect.DeepEqual(want, got) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestConfigErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"nothing":    "store: it is empty; write sqlite:PATH or postgres://HOST/DATABASE",
		"no_scheme":  "store: it has no scheme; write sqlite:PATH or postgres://HOST/DATABASE",
		"bad_scheme": `store: "mysql" is no kind of store; write sqlite:PATH or postgres://HOST/DATABASE`,
		"no_file":    "store: sqlite: names no file; write sqlite:PATH",
		"bad_url":    "store: it is no URL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password percent-encoded",
		"bad_evidence": `sources: list the sources that this exporter may write facts of
trust: "self_reported": write shared or independent
tenant: invalid id: tenant is empty; 1 to 512 bytes are needed
tenants[0]: invalid id: tenant has the control character U+000A
connection: invalid id: connection has the control character U+000A`,
		"bad_sources": `sources[1]: otel is what agents say of themselves, which is no evidence
sources[2]: invalid identifier "9x": write a letter, then letters, digits or _ . : -, at most 64 in all`,
		"recorder_with_sources": "sources: a recorder writes no facts of systems of record; remove them, or use an exporter of role evidence",
		"bad_watermarks": "watermarks::crm: it is none of the sources that this exporter writes\n" +
			"watermarks::stripe::lateness: write how late a fact may come, 1s or more\n" +
			"watermarks::stripe::idle_timeout: it has to be 1s or more, or 0 for never",
		"bad_role":    `role: "admin": write recorder or evidence`,
		"unknown_key": "decoding failed due to the following error(s):\n\n'ledgerexporter.Config' has invalid keys: dsn",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadConfig(t, name)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoreKeepsItsSecret(t *testing.T) {
	t.Parallel()
	config, err := loadConfig(t, "recorder")
	if err != nil {
		t.Fatal(err)
	}
	conf := confmap.New()
	if err := conf.Marshal(config); err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprintf("%v %+v %#v", config.Store, config, config), fmt.Sprint(conf.ToStringMap())} {
		if strings.Contains(printed, "secret") {
			t.Errorf("the password is printed: %s", printed)
		}
	}
}

func TestPoolIsAsLargeAsTheConsumers(t *testing.T) {
	t.Parallel()
	config, err := loadConfig(t, "recorder")
	if err != nil {
		t.Fatal(err)
	}
	want := "postgres://collector:secret@db.example:5432/countersign?pool_max_conns=7&sslmode=require"
	if got := config.storeURL(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	config.Store = "postgres://db/countersign?pool_max_conns=3"
	if got := config.storeURL(); got != string(config.Store) {
		t.Errorf("got %s, want what the URL says", got)
	}
}

func TestSchemaIsMadeInSQLiteOnly(t *testing.T) {
	t.Parallel()
	no, yes := false, true
	for _, tc := range []struct {
		store string
		set   *bool
		want  bool
	}{
		{"sqlite:x", nil, true}, {"sqlite:x", &no, false}, {"memory:", nil, true},
		{"postgres://db/x", nil, false}, {"postgresql://db/x", nil, false}, {"postgres://db/x", &yes, true},
	} {
		config := NewDefaultConfig()
		config.Store, config.CreateSchema = opaque(tc.store), tc.set
		if got := config.createsSchema(); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.store, got, tc.want)
		}
	}
}

// TestReadmeExamples loads what the README shows.
func TestReadmeExamples(t *testing.T) {
	t.Setenv("COUNTERSIGN_STORE", "sqlite:x")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, block := range blocks {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(os.ExpandEnv(strings.ReplaceAll(block[1], "${env:", "${"))))
		if err != nil {
			t.Fatal(err)
		}
		conf, err := retrieved.AsConf()
		if err != nil {
			t.Fatal(err)
		}
		sub, err := conf.Sub("exporters::ledger")
		if err != nil {
			t.Fatal(err)
		}
		config := NewDefaultConfig()
		if err := sub.Unmarshal(config); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
		if err := confmap.Validate(config); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
	typ := reflect.TypeOf(Config{})
	for i := range typ.NumField() {
		option, _, squashed := strings.Cut(typ.Field(i).Tag.Get("mapstructure"), ",")
		if !squashed && !strings.Contains(string(readme), "`"+option+"`") {
			t.Errorf("the README does not explain %s", option)
		}
	}
}
