package settings

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/confmap"
)

type someone map[string]any

func (s someone) GetAttribute(name string) any { return s[name] }
func (s someone) GetAttributeNames() []string  { return nil }

// TestD37_TheTenantIsTheSettingsOrTheClients pins decision D37.
func TestD37_TheTenantIsTheSettingsOrTheClients(t *testing.T) {
	t.Parallel()
	fromAuth := Tenancy{TenantFromAuth: "organization", Tenants: []string{"acme", "globex"}}
	for name, c := range map[string]struct {
		tenancy Tenancy
		client  client.AuthData
		want    string
	}{
		"nobody says":      {Tenancy{}, nil, ""},
		"the settings say": {Tenancy{Tenant: "acme"}, someone{"organization": "globex"}, "acme"},
		"the client says":  {fromAuth, someone{"organization": "globex"}, "globex"},
		"no client":        {fromAuth, nil, "tenant: the client is not authenticated, so there is no organization"},
		"not allowed":      {fromAuth, someone{"organization": "victim"}, `tenant: "victim" is not one of the tenants of this processor`},
		"no such word":     {fromAuth, someone{}, "tenant: the client's authentication has no text named organization"},
		"no text":          {fromAuth, someone{"organization": 7}, "tenant: the client's authentication has no text named organization"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := client.NewContext(context.Background(), client.Info{Auth: c.client})
			got, err := c.tenancy.Of(ctx)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestTenancyIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tenancy Tenancy
		want    string
	}{
		{Tenancy{Tenant: "a\n", Tenants: []string{"b", ""}}, `tenant: invalid id: tenant has the control character U+000A
tenants: they restrict tenant_from_auth, which is not set
tenants[1]: invalid id: tenant is empty; 1 to 512 bytes are needed`},
		{Tenancy{Tenant: "a", TenantFromAuth: "b"}, "tenant: it is set and so is tenant_from_auth; remove one of them"},
		{Tenancy{TenantFromAuth: "b"}, "tenants: list the tenants that tenant_from_auth may name"},
	} {
		if diff := cmp.Diff(c.want, errors.Join(c.tenancy.Check()...).Error()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

type sample struct {
	Word    string `mapstructure:"word"`
	Tenancy `mapstructure:",squash"`
	Parts   []struct {
		Sizes int `mapstructure:"sizes"`
	} `mapstructure:"parts"`
}

func (s *sample) Validate() error {
	if s.Word == "bad" {
		return errors.New("word: it is bad")
	}
	return nil
}

func TestFindProcessor(t *testing.T) {
	t.Parallel()
	collector := confmap.NewFromStringMap(map[string]any{"processors": map[string]any{
		"one": map[string]any{"word": "a"}, "two/x": nil, "two/y": map[string]any{"word": "b"}, "three": map[string]any{"word": "bad"},
		"four": map[string]any{"wrod": "a"}, "one_more": nil,
		"six":   map[string]any{"other": 1, "parts": []any{map[string]any{"sizes": 1}, map[string]any{"size": 1}}},
		"seven": map[string]any{"word": map[string]any{"a": 1}},
	}})
	for _, c := range []struct{ kind, name, want string }{
		{"one", "", "a"},
		{"two", "x", "default"},
		{"two", "y", "b"},
		{"two", "", "processors: there are two/x and two/y; say which"},
		{"two", "z", "processors: there is no two/z"},
		{"five", "", "processors: there is no five"},
		{"three", "", "processors::three: word: it is bad"},
		{"four", "", "processors::four: wrod is no setting; did you mean \"word\"?"},
		{"six", "", "processors::six: parts[1].size is no setting; did you mean \"sizes\"?\nother is no setting"},
		{"seven", "", "processors::seven: word: expected type 'string', got unconvertible type 'map[string]interface {}'"},
	} {
		found := sample{Word: "default"}
		err := FindProcessor(collector, c.kind, c.name, &found)
		got := found.Word
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s/%s: got %s, want %s", c.kind, c.name, got, c.want)
		}
	}
}
