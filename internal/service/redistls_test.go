package service

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"remit/internal/redisproc"
)

// A remote Redis: over TLS with a verified certificate, a user and a password.
func TestItConnectsToRedisOverTLSWithUserAndPassword(t *testing.T) {
	t.Parallel()
	certificate, port := newTLSPair(t, net.IPv4(127, 0, 0, 1)), freePort(t)
	redis, err := redisproc.Start(t.Context(), redisproc.Config{Args: []string{
		"--tls-port", port, "--bind", "127.0.0.1", "--tls-auth-clients", "no",
		"--tls-cert-file", certificate.certificate, "--tls-key-file", certificate.key, "--tls-ca-cert-file", certificate.certificate,
		"--aclfile", writeFile(t, "user default on nopass +ping\nuser remit on >secret ~remit:* +@all\n"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })

	url := "REMIT_REDIS_URL=rediss://remit:secret@127.0.0.1:" + port
	p := start(t, []string{url, "SSL_CERT_FILE=" + certificate.certificate}).ready(t)
	id, key := p.createOrganization(t)
	if status := p.organizationStatus(t, id, key); status != http.StatusOK {
		t.Errorf("the organization answers %d", status)
	}

	stranger := start(t, []string{url}) // does not know the certificate's authority
	waitFor(t, func() bool { return strings.Contains(stranger.Stderr(), "waiting for Redis") })
	if !strings.Contains(stranger.Stderr(), "certificate") {
		t.Errorf("it does not say why:\n%s", stranger.Stderr())
	}
}
