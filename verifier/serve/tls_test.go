package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// authority signs the certificates of one test.
type authority struct {
	t           *testing.T
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, folder: t.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := a.template(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key, a.certificate = key, template
	der := a.sign(template, key)
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a certificate for localhost and returns its files.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (certificate, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := a.template(name)
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", a.sign(template, private)), a.write(name+"-key.pem", "PRIVATE KEY", der)
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// withTLS are settings as a file has them.
func withTLS(t *testing.T, lines ...string) Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "verifier.yaml")
	if err := os.WriteFile(path, []byte("tls:\n  "+strings.Join(lines, "\n  ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(t.Context(), path, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := settings(t)
	c.TLS = loaded.TLS
	return c
}

// ask sends a request with TLS settings of a client.
func ask(t *testing.T, url, secret string, settings *tls.Config) (int, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: settings}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", secret)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode, err
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	certificate, private := ours.issue("server", x509.ExtKeyUsageServerAuth)
	c := withTLS(t, "cert_file: "+certificate, "key_file: "+private)
	secret := key(t, c, ledger.RoleViewer)
	url := serving(t, c).url
	if !strings.HasPrefix(url, "https://") {
		t.Fatal(url)
	}
	if status, err := ask(t, url+"/v1/actions", secret, &tls.Config{RootCAs: ours.pool()}); status != http.StatusOK || err != nil {
		t.Errorf("https: %d %v", status, err)
	}
	if status, err := ask(t, url+"/v1/actions", secret, &tls.Config{RootCAs: newAuthority(t, "others").pool()}); err == nil {
		t.Errorf("a client that does not trust the server's authority: %d", status)
	}
	old := &tls.Config{RootCAs: ours.pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if status, err := ask(t, url+"/v1/actions", secret, old); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1: %d %v", status, err)
	}
	if status, err := ask(t, url+"/v1/actions", secret, &tls.Config{RootCAs: ours.pool(), MaxVersion: tls.VersionTLS12}); status != http.StatusOK || err != nil {
		t.Errorf("TLS 1.2: %d %v", status, err)
	}
	if status, err := ask(t, "http"+strings.TrimPrefix(url, "https")+"/v1/actions", secret, nil); status != http.StatusBadRequest || err != nil {
		t.Errorf("plain HTTP: %d %v", status, err)
	}
}

// TestMutualTLS: a key alone is not enough then, and a certificate alone is not either.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	certificate, private := ours.issue("server", x509.ExtKeyUsageServerAuth)
	c := withTLS(t, "cert_file: "+certificate, "key_file: "+private, "client_ca_file: "+filepath.Join(ours.folder, "ca.pem"), `min_version: "1.3"`)
	secret := key(t, c, ledger.RoleViewer)
	url := serving(t, c).url
	of := func(a *authority, usage x509.ExtKeyUsage) *tls.Config {
		pair, err := tls.LoadX509KeyPair(a.issue("client", usage))
		if err != nil {
			t.Fatal(err)
		}
		// The client sends it whatever authorities the server names.
		return &tls.Config{RootCAs: ours.pool(), GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
	}
	for _, row := range []struct {
		name, secret string
		client       *tls.Config
		status       int
		refusal      string
	}{
		{"certificate and key", secret, of(ours, x509.ExtKeyUsageClientAuth), http.StatusOK, ""},
		{"certificate without key", "", of(ours, x509.ExtKeyUsageClientAuth), http.StatusUnauthorized, ""},
		{"no certificate", secret, &tls.Config{RootCAs: ours.pool()}, 0, "certificate required"},
		{"of another authority", secret, of(others, x509.ExtKeyUsageClientAuth), 0, "unknown certificate authority"},
		{"made for servers", secret, of(ours, x509.ExtKeyUsageServerAuth), 0, "bad certificate"},
		{"TLS 1.2", secret, &tls.Config{RootCAs: ours.pool(), MaxVersion: tls.VersionTLS12}, 0, "protocol version"},
	} {
		status, err := ask(t, url+"/v1/actions", row.secret, row.client)
		if status != row.status || row.refusal == "" && err != nil || row.refusal != "" && !strings.Contains(fmt.Sprint(err), row.refusal) {
			t.Errorf("%s: %d %v, want %d %q", row.name, status, err, row.status, row.refusal)
		}
	}
}

func TestTLSSettingsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ lines, want string }{
		{"  cert_file: /nowhere/server.pem\n", "invalid settings: tls: TLS configuration must include both certificate and key"},
		{"  min_version: \"1.9\"\n", "unsupported TLS version"},
	} {
		path := filepath.Join(t.TempDir(), "verifier.yaml")
		if err := os.WriteFile(path, []byte("tls:\n"+row.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(t.Context(), path, func(string) (string, bool) { return "", false }, nil); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v\nwant %s", err, row.want)
		}
	}
}
