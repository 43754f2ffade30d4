package service

import (
	"net"
	"net/http"
	"regexp"
	"testing"
)

// A remote Redis: over TLS with a verified certificate, a user and a password.
func TestItConnectsToRedisOverTLSWithUserAndPassword(t *testing.T) {
	t.Parallel()
	certificate, port := newTLSPair(t, net.IPv4(127, 0, 0, 1)), freePort(t)
	startRedis(t, "--tls-port", port, "--bind", "127.0.0.1", "--tls-auth-clients", "no",
		"--tls-cert-file", certificate.certificate, "--tls-key-file", certificate.key, "--tls-ca-cert-file", certificate.certificate,
		"--aclfile", writeFile(t, "user default on nopass +ping\nuser remit on >secret ~remit:* +@all\n"))
	url := "REMIT_REDIS_URL=rediss://remit:secret@127.0.0.1:" + port
	p := start(t, []string{url, "SSL_CERT_FILE=" + certificate.certificate}).ready(t)
	id, key := p.createOrganization(t)
	is(t, "the organization", p.organizationStatus(t, id, key), http.StatusOK)

	stranger := start(t, []string{url}) // does not know the certificate's authority
	becomes(t, "it waits for Redis, and says why", func() bool {
		return regexp.MustCompile("waiting for Redis.*certificate").MatchString(stranger.Stderr())
	})
}
