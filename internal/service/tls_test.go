package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tlsPair is a self-signed certificate and its key in files.
type tlsPair struct{ certificate, key string }

func (p tlsPair) env() []string {
	return []string{"REMIT_TLS_CERT=" + p.certificate, "REMIT_TLS_KEY=" + p.key}
}

// withClientCA requires client certificates. Only those of the pair are accepted.
func (p tlsPair) withClientCA(other tlsPair) []string {
	return append(p.env(), "REMIT_TLS_CLIENT_CA="+other.certificate)
}

// newTLSPair makes a certificate for the addresses, and for a name that is not where the tests ask.
func newTLSPair(t *testing.T, addresses ...net.IP) tlsPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"remit.example"}, IPAddresses: addresses, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := tlsPair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{
		p.certificate: {Type: "CERTIFICATE", Bytes: certificate}, p.key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestACertificateEnablesHTTPS(t *testing.T) {
	t.Parallel()
	own := newTLSPair(t)
	p := start(t, append(own.env(), "PATH="+t.TempDir())).ready(t)
	if !strings.HasPrefix(p.url, "https://127.0.0.1:") {
		t.Errorf("it says that it listens at %s", p.url)
	}
	certificate, err := os.ReadFile(own.certificate)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "remit.example"},
	}}
	defer client.CloseIdleConnections()
	response, err := client.Get(p.url + "/.well-known/oauth-authorization-server")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("answered %s", response.Status)
	}
	if err := p.stop(t); err != nil {
		t.Errorf("told to stop, it ended with %v:\n%s", err, p.Stderr())
	}
	if !strings.Contains(p.Stdout(), "URL=https://") {
		t.Errorf("the quickstart goes elsewhere:\n%s", p.Stdout())
	}
}

func TestHealthcheckOverTLS(t *testing.T) {
	t.Parallel()
	own, other := newTLSPair(t), newTLSPair(t)
	for name, test := range map[string]struct {
		service, check []string
		healthy        bool
	}{
		"with the service's files":              {own.env(), own.env(), true},
		"with another certificate":              {own.env(), other.env(), false},
		"without TLS":                           {own.env(), nil, false},
		"of a service without TLS":              {nil, own.env(), false},
		"where clients present the service's":   {own.withClientCA(own), own.withClientCA(own), true},
		"where clients present others' alone":   {own.withClientCA(other), own.withClientCA(other), false},
		"that does not know of the client's CA": {own.withClientCA(own), own.env(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(test.service, "PATH="+t.TempDir())).ready(t)
			_, address, _ := strings.Cut(p.url, "://")
			checked := start(t, append(test.check, "REMIT_LISTEN="+address), "healthcheck")
			if err := checked.Wait(); (err == nil) != test.healthy {
				t.Errorf("ended with %v, want healthy %t:\n%s", err, test.healthy, checked.Stderr())
			}
		})
	}
}

func TestBadSettingsOfTLSEndTheStartWithAReason(t *testing.T) {
	t.Parallel()
	own, other := newTLSPair(t), newTLSPair(t)
	for name, test := range map[string]struct {
		env    []string
		reason string
	}{
		"a certificate without its key":   {own.env()[:1], "must be set together"},
		"a key without its certificate":   {own.env()[1:], "must be set together"},
		"a client CA alone":               {own.withClientCA(other)[2:], "needs --tls-cert"},
		"a key of another certificate":    {tlsPair{own.certificate, other.key}.env(), "does not match"},
		"a file that is not there":        {[]string{"REMIT_TLS_CERT=no-such-file", "REMIT_TLS_KEY=" + own.key}, "no-such-file"},
		"a client CA that is only a key":  {append(own.env(), "REMIT_TLS_CLIENT_CA="+own.key), "no certificate in it"},
		"a certificate that is only text": {tlsPair{writeFile(t, "x"), own.key}.env(), "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(test.env, "PATH="+t.TempDir()))
			if err := p.Wait(); err == nil || !strings.Contains(p.Stderr(), test.reason) {
				t.Errorf("it ended with %v and does not speak of %q:\n%s", err, test.reason, p.Stderr())
			}
		})
	}
}
