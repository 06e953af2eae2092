package verifiedactionsreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"gopkg.in/yaml.v3"
)

func load(t testing.TB, name string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return unmarshal(t, conf, name)
}

func unmarshal(t testing.TB, conf *confmap.Conf, name string) *Config {
	t.Helper()
	settings, err := conf.Sub(name)
	if err != nil {
		t.Fatal(err)
	}
	config := NewDefaultConfig()
	if err := settings.Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestConfig_Everything(t *testing.T) {
	t.Parallel()
	got := load(t, "verified_actions")
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	want := NewDefaultConfig()
	storage := component.MustNewID("file_storage")
	want.AEVS = AEVSConfig{
		Keys: []KeyConfig{
			{APIKey: testKey, Tenant: "acme", Agents: []AgentConfig{{ID: testAgent, Name: "refund-bot"}, {ID: "660e8400-e29b-41d4-a716-446655440000"}}},
			{ID: "audit", PublicKey: got.AEVS.Keys[1].PublicKey},
		},
		ReplayWindow: 10 * time.Minute, ClockSkew: 30 * time.Second, MaxBatchReceipts: 50, MaxReceipts: 1000,
	}
	want.VerifiedActions = VerifiedActionsConfig{
		Tokens: []TokenConfig{{Token: testToken, Tenant: "acme"}}, VersionKey: "va_version", PayloadKey: "va_payload",
	}
	want.Storage, want.MaxConcurrentRequests, want.RetryAfter = &storage, 8, 10*time.Second
	got.ServerConfig, want.ServerConfig = NewDefaultConfig().ServerConfig, NewDefaultConfig().ServerConfig
	if diff := cmp.Diff(fmt.Sprintf("%#v", want.AEVS), fmt.Sprintf("%#v", got.AEVS)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(fmt.Sprintf("%#v", want.VerifiedActions), fmt.Sprintf("%#v", got.VerifiedActions)); diff != "" {
		t.Error(diff)
	}
	if *got.Storage != storage || got.MaxConcurrentRequests != 8 || got.RetryAfter != 10*time.Second {
		t.Errorf("got %v", got)
	}
}

func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	if host := config.ServerConfig.NetAddr.Endpoint; !strings.HasPrefix(host, "localhost:") {
		t.Errorf("by default it listens on %s", host)
	}
	if config.ServerConfig.ReadTimeout <= 0 || config.ServerConfig.MaxRequestBodySize <= 0 {
		t.Error("by default a sender may take as long, or send as much, as it likes")
	}
}

func TestConfig_Refused(t *testing.T) {
	t.Parallel()
	const nobody = "aevs.keys: there is none, and neither a token under verified_actions.tokens nor auth, so nobody could send anything; add one of them"
	for _, test := range []struct {
		name string
		want []string
	}{
		{"verified_actions/nobody", []string{nobody}},
		{"verified_actions/keys", []string{
			"verified_actions.version_key: it is empty; name the metadata entry that holds the version",
			"verified_actions.payload_key: it is empty; name the metadata entry that holds the payload",
		}},
		{"verified_actions/wrong", []string{
			"aevs.keys[0].api_key: invalid AEVS key: write aevs_sk_<id>_<hex> or aevs_sk2_<id>_<hex>, as the SDK has it",
			"aevs.keys[1].api_key: it is set and so is id or public_key; an API key has both in it",
			"invalid id: aevs.keys[2].agents[0].id is empty; 1 to 512 bytes are needed",
			"invalid id: aevs.keys[2].agents[1].name has the control character U+0009",
			"invalid id: aevs.keys[2].tenant has the control character U+0009",
			"aevs.keys[3]: an earlier key has the id demo too",
			"aevs.keys[4].public_key: invalid AEVS key: one PEM block PUBLIC KEY was expected",
			"aevs.keys[5].api_key: it is empty; write the key that the SDK has, or id and public_key of version 2",
			"aevs.replay_window: it has to be more than 0",
			"aevs.clock_skew: it is negative",
			"aevs.max_batch_receipts: it is negative; write 0 to have receipts sent one by one",
			"aevs.max_receipts: it has to be 1 or more",
			"verified_actions.tokens[0].token: it has less than 16 characters, so that it could be guessed",
			"invalid id: verified_actions.tokens[0].tenant has the control character U+0009",
			"verified_actions.payload_key: it is the same as version_key",
			"endpoint: it is empty; write where to listen, like localhost:4320",
			"max_request_body_size: it is negative",
			"max_concurrent_requests: it has to be 1 or more",
			"retry_after: it has to be 1s or more",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := load(t, test.name).Validate()
			if err == nil {
				t.Fatal("nothing is wrong with it")
			}
			if diff := cmp.Diff(strings.Join(test.want, "\n"), err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestConfig_SecretsStayInside: however a configuration is printed.
func TestConfig_SecretsStayInside(t *testing.T) {
	t.Parallel()
	config := testConfig()
	conf := confmap.New()
	if err := conf.Marshal(config); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(conf.ToStringMap())
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{string(text), fmt.Sprintf("%v %+v", *config, *config)} {
		if strings.Contains(printed, testSecret) || strings.Contains(printed, testToken) {
			t.Errorf("a secret stands in %s", printed)
		}
	}
}

// TestREADME_Example: the configuration in the README is one.
func TestREADME_Example(t *testing.T) {
	t.Setenv("AEVS_API_KEY", testKey)
	t.Setenv("VERIFIED_ACTIONS_TOKEN", testToken)
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the README has no example")
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(os.Expand(example, func(name string) string {
		return os.Getenv(strings.TrimPrefix(name, "env:"))
	})), &values); err != nil {
		t.Fatal(err)
	}
	conf := confmap.NewFromStringMap(values)
	if err := unmarshal(t, conf, "receivers::verified_actions").Validate(); err != nil {
		t.Error(err)
	}
}
