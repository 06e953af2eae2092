package evidencereceiver

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
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
	if err != nil {
		t.Fatal(err)
	}
	config := NewDefaultConfig()
	if err := sub.Unmarshal(config); err != nil {
		return nil, err
	}
	return config, confmap.Validate(config)
}

func TestConfigReadsEverySetting(t *testing.T) {
	t.Parallel()
	got, err := loadConfig(t, "all")
	if err != nil {
		t.Fatal(err)
	}
	want := NewDefaultConfig()
	want.ServerConfig.NetAddr.Endpoint = "0.0.0.0:8443"
	want.ServerConfig.ReadTimeout = 3 * time.Second
	want.ServerConfig.MaxRequestBodySize = 65536
	want.ServerConfig.CompressionAlgorithms = []string{""}
	want.MaxConcurrentRequests = 8
	want.RetryAfter = 30 * time.Second
	want.SealKey = "0123456789abcdef0123456789abcdef"
	want.Endpoints = map[string]EndpointConfig{
		"stripe": {
			Scheme: "stripe", Tolerance: 10 * time.Minute,
			Secrets: []configopaque.String{"whsec_0123456789abcdef", "whsec_fedcba9876543210"},
		},
		"shop": {
			Path: "/webhooks/shopify", Source: "Shopify", Connection: "shop-eu", Tenant: "acme", Trust: "shared",
			Scheme: "shopify", Secrets: []configopaque.String{"shpss_0123456789abcdef"}, Headers: []string{"X-Shopify-Shop-Domain"},
		},
		"crm": {Scheme: "api_key", Secrets: []configopaque.String{"evidence_key_of_the_crm"}, Events: "lines"},
		"erp": {
			Scheme: "hmac", Secrets: []configopaque.String{"0123456789abcdef"},
			Header: "X-Signature", Prefix: "sha512=", Encoding: "base64", Algorithm: "sha512", Signed: "{timestamp}.{body}",
			TimestampHeader: "X-Time", DeliveryHeader: "X-Delivery", EventHeader: "X-Event",
		},
	}
	if diff := cmp.Diff(want.Endpoints, got.Endpoints, cmpopts.IgnoreUnexported(EndpointConfig{})); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	want.Endpoints, got.Endpoints = nil, nil
	if !reflect.DeepEqual(want.ServerConfig.CompressionAlgorithms, got.ServerConfig.CompressionAlgorithms) ||
		want.ServerConfig.NetAddr != got.ServerConfig.NetAddr || want.ServerConfig.ReadTimeout != got.ServerConfig.ReadTimeout ||
		want.ServerConfig.MaxRequestBodySize != got.ServerConfig.MaxRequestBodySize ||
		want.MaxConcurrentRequests != got.MaxConcurrentRequests || want.RetryAfter != got.RetryAfter || want.SealKey != got.SealKey {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfigErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "endpoints: there is none, so that nobody could send anything; add one for every sender",
		"wrong": `
endpoint: it is empty; write where to listen, like localhost:4321
max_request_body_size: it has to be 1 or more
compression_algorithms: "zstd": senders of webhooks use gzip or nothing; write "" and gzip
max_concurrent_requests: it has to be 1 or more
retry_after: it has to be 1s or more
seal_key: it has less than 32 characters, so that it could be guessed; write something like what ` + "`openssl rand -hex 32`" + ` prints
endpoints::a::path: "webhooks": write a path like /webhooks/stripe
endpoints::a::source: invalid identifier "9lives": write a letter, then letters, digits or _ . : -, at most 64 in all
endpoints::a::connection: invalid id: connection has the control character U+000A
endpoints::a::tenant: invalid id: tenant has the control character U+0009
endpoints::a::events: "many": write one, array or lines
endpoints::a::headers[0]: it is empty; name a header
endpoints::a::headers[1]: Authorization carries a secret, which telemetry must not
endpoints::a::tolerance: the scheme github signs no time; remove it
endpoints::a::trust: invalid trust level "absolute": write self_reported, shared or independent
endpoints::a::secrets[0]: it has less than 16 characters, so that it could be guessed
endpoints::b::scheme: "paypal": write one of stripe, shopify, github, slack, zendesk, standard_webhooks, hmac, api_key
endpoints::c::source: otel is what agents say of themselves, which is no evidence
endpoints::c::encoding: the scheme api_key does not read it; remove it
endpoints::c::trust: independent is more than the scheme api_key earns, which is shared; trust can be lowered only
endpoints::c::path: /c is the path of b too
endpoints::d::path: "/d/": write a path like /webhooks/stripe
endpoints::d::tolerance: it is negative
endpoints::d::secrets: there is none, so that nobody could send anything; add the one that the sender signs with`,
		"unknown": "decoding failed due to the following error(s):\n\n'endpoints[stripe]' has invalid keys: secret",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadConfig(t, name)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	config, err := loadConfig(t, "all")
	if err != nil {
		t.Fatal(err)
	}
	conf := confmap.New()
	if err := conf.Marshal(config); err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{fmt.Sprintf("%+v", config), fmt.Sprint(conf.ToStringMap())} {
		for _, secret := range []string{"whsec_0123456789abcdef", "evidence_key_of_the_crm", "0123456789abcdef0123"} {
			if strings.Contains(printed, secret) {
				t.Errorf("%s is printed", secret)
			}
		}
	}
}

// TestReadme loads what the README shows, and looks for every setting and scheme in it.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no configuration")
	}
	for _, block := range blocks {
		loadDocument(t, []byte(block[1]))
	}
	var names []string
	for _, of := range []any{Config{}, EndpointConfig{}} {
		for i := range reflect.TypeOf(of).NumField() {
			name := reflect.TypeOf(of).Field(i).Tag.Get("mapstructure")
			if name != "" && !strings.HasPrefix(name, ",") {
				names = append(names, name)
			}
		}
	}
	for _, s := range scheme.All() {
		names = append(names, s.Name)
		if row := "| `" + s.Name + "` | `" + s.Trust.String() + "` | " + s.Sentence + " |"; !strings.Contains(string(readme), row) {
			t.Errorf("the README lacks\n%s", row)
		}
	}
	for _, name := range names {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("the README does not explain %s", name)
		}
	}
}

// TestExamples loads our part of the examples.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/evidence/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found += loadDocument(t, text)
	}
	if found == 0 {
		t.Error("no example has an evidence receiver")
	}
}

// loadDocument loads every evidence receiver of a collector configuration, and says how many there were.
func loadDocument(t *testing.T, text []byte) int {
	t.Helper()
	// Secrets stand in the environment.
	filled := regexp.MustCompile(`\$\{env:[A-Z_]+\}`).ReplaceAll(text, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	retrieved, err := confmap.NewRetrievedFromYAML(filled)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	conf, err := retrieved.AsConf()
	if err != nil {
		t.Fatal(err)
	}
	receivers, err := conf.Sub("receivers")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name := range receivers.ToStringMap() {
		if kind, _, _ := strings.Cut(name, "/"); kind != metadata.Type.String() {
			continue
		}
		found++
		sub, err := receivers.Sub(name)
		if err != nil {
			t.Fatal(err)
		}
		config := NewDefaultConfig()
		if err := sub.Unmarshal(config); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if err := confmap.Validate(config); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	return found
}
