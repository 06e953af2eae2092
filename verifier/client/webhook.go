package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxWebhook bounds the body of a webhook, in bytes.
const maxWebhook = 1 << 20

// ErrWebhook: the request is not a webhook that the sidecar signed, or is older
// than five minutes. Answer 401.
var ErrWebhook = errors.New("not a webhook of the sidecar")

// ReadWebhook reads the body of a webhook request and checks that the sidecar
// signed it with one of the secrets (whsec_...; several while one is being
// replaced) within the last five minutes (Standard Webhooks). It returns the
// body as it was signed. The header webhook-id is the same for every attempt
// at one event: remember those that were handled.
func ReadWebhook(r *http.Request, secrets ...string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxWebhook+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxWebhook {
		return nil, fmt.Errorf("%w: its body is over %d bytes", ErrWebhook, maxWebhook)
	}
	err = errors.New("no secret was given")
	for i, secret := range secrets {
		var webhook *standardwebhooks.Webhook
		if webhook, err = standardwebhooks.NewWebhook(secret); err != nil {
			return nil, fmt.Errorf("secret %d is not of the form whsec_ and base64", i+1)
		}
		if err = webhook.Verify(body, r.Header); err == nil {
			return body, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrWebhook, err)
}
