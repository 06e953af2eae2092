package evidenceprocessor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/client"
)

// tenancy says to whom facts belong (decision D37): never the telemetry does.
type tenancy struct {
	name      string
	attribute string
	allowed   map[string]bool
}

func newTenancy(config *Config) tenancy {
	t := tenancy{name: config.Tenant, attribute: config.TenantFromAuth, allowed: map[string]bool{}}
	for _, tenant := range config.Tenants {
		t.allowed[tenant] = true
	}
	return t
}

// of is the tenant of a batch; empty leaves it to the receiver or the exporter.
func (t *tenancy) of(ctx context.Context) (string, error) {
	if t.attribute == "" {
		return t.name, nil
	}
	auth := client.FromContext(ctx).Auth
	if auth == nil {
		return "", fmt.Errorf("tenant: the client is not authenticated, so there is no %s", t.attribute)
	}
	tenant, ok := auth.GetAttribute(t.attribute).(string)
	if !ok || tenant == "" {
		return "", fmt.Errorf("tenant: the client's authentication has no text named %s", t.attribute)
	}
	if !t.allowed[tenant] {
		return "", fmt.Errorf("tenant: %.80q is not one of the tenants of this processor", tenant)
	}
	return tenant, nil
}
