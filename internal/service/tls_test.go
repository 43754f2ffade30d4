package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
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
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"remit.example"}, IPAddresses: addresses, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	file := func(kind string, bytes []byte) string {
		return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})))
	}
	certificate := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return tlsPair{file("CERTIFICATE", certificate), file("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))(t))}
}

func TestHealthcheckReportsReadinessAlsoOverHTTPSWithACertificate(t *testing.T) {
	t.Parallel()
	if err := start(t, []string{"REMIT_LISTEN=127.0.0.1:" + freePort(t)}, "healthcheck").Wait(); err == nil {
		t.Error("of a service that is not there: no error")
	}
	own, other := newTLSPair(t), newTLSPair(t)
	for name, test := range map[string]struct {
		service, check []string
		healthy        bool
	}{
		"with the service's files":              {own.env(), own.env(), true},
		"without TLS on either side":            {nil, nil, true},
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
			p.stopWell(t)
			if strings.HasPrefix(p.url, "https://") != (test.service != nil) || !strings.Contains(p.Stdout(), "URL="+p.url+" ") {
				t.Errorf("it listens at %s, and the quickstart goes to\n%s", p.url, p.Stdout())
			}
		})
	}
}
