package scheme

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkVerify is what one delivery of 4 KiB costs before anything is read of it.
func BenchmarkVerify(b *testing.B) {
	body := []byte(strings.Repeat("x", 4<<10))
	for _, name := range []string{"stripe", "shopify", "github", "slack", "standard_webhooks", "api_key"} {
		b.Run("scheme="+name, func(b *testing.B) {
			v := vectors[name]
			verifier, header, now := v.verifier(b), v.headers(), time.Unix(v.at, 0)
			b.ReportAllocs()
			for b.Loop() {
				check, err := verifier.Begin(header, now)
				if err != nil {
					b.Fatal(err)
				}
				check(body)
			}
		})
	}
}
