package settings

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/client"

	"github.com/countersign-otel/countersign/engine"
)

// Tenancy says to whom belongs what a processor makes (decision D37): its
// settings or the authenticated client say so, never the telemetry.
type Tenancy struct {
	// Tenant owns everything; without it, and without TenantFromAuth, the next component's does.
	Tenant string `mapstructure:"tenant"`
	// TenantFromAuth is the attribute of the authenticated client that names the tenant.
	TenantFromAuth string `mapstructure:"tenant_from_auth"`
	// Tenants are those that TenantFromAuth may name.
	Tenants []string `mapstructure:"tenants"`
}

// Check returns everything that is wrong, each starting with the key. It is
// not called Validate, so that a configuration that embeds it stays its own.
func (t *Tenancy) Check() []error {
	var errs []error
	if t.Tenant != "" {
		if err := engine.CheckOpaque("tenant", t.Tenant); err != nil {
			errs = append(errs, fmt.Errorf("tenant: %w", err))
		}
	}
	switch {
	case t.Tenant != "" && t.TenantFromAuth != "":
		errs = append(errs, errors.New("tenant: it is set and so is tenant_from_auth; remove one of them"))
	case t.TenantFromAuth != "" && len(t.Tenants) == 0:
		errs = append(errs, errors.New("tenants: list the tenants that tenant_from_auth may name"))
	case t.TenantFromAuth == "" && len(t.Tenants) > 0:
		errs = append(errs, errors.New("tenants: they restrict tenant_from_auth, which is not set"))
	}
	for i, tenant := range t.Tenants {
		if err := engine.CheckOpaque("tenant", tenant); err != nil {
			errs = append(errs, fmt.Errorf("tenants[%d]: %w", i, err))
		}
	}
	return errs
}

// Of is the tenant of a batch with this context; empty leaves it to the next
// component. An error means that nothing of the batch may be recorded.
func (t *Tenancy) Of(ctx context.Context) (string, error) {
	if t.TenantFromAuth == "" {
		return t.Tenant, nil
	}
	auth := client.FromContext(ctx).Auth
	if auth == nil {
		return "", fmt.Errorf("tenant: the client is not authenticated, so there is no %s", t.TenantFromAuth)
	}
	tenant, ok := auth.GetAttribute(t.TenantFromAuth).(string)
	if !ok || tenant == "" {
		return "", fmt.Errorf("tenant: the client's authentication has no text named %s", t.TenantFromAuth)
	}
	for _, allowed := range t.Tenants {
		if tenant == allowed {
			return tenant, nil
		}
	}
	return "", fmt.Errorf("tenant: %.80q is not one of the tenants of this processor", tenant)
}
