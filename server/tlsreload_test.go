package server

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"remit/server/conn"
)

func TestNewCertificatesAreServedWithoutARestart(t *testing.T) {
	t.Parallel()
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	files := newTLSFiles(t, first)
	s := runSecureServer(t, files, first)
	s.trusted.AddCert(second.certificate)
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: s.asClient()}, Timeout: 10 * time.Second}
	defer old.CloseIdleConnections()
	overOldConnection := func() {
		t.Helper()
		response, err := old.Get("https://" + s.address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body) // a body left unread would end the connection
		_ = response.Body.Close()
		if serial := response.TLS.PeerCertificates[0].SerialNumber.Int64(); serial != 1 {
			t.Errorf("the old connection was left: serial %d", serial)
		}
	}
	overOldConnection()

	files.write(t, files.Certificate, second.certificatePEM())
	files.write(t, files.Key, second.keyPEM(t))
	s.clock.advance(conn.TLSCheckInterval - time.Millisecond)
	if serial, err := s.serial(t, s.asClient()); serial != 1 || err != nil {
		t.Errorf("within a second: serial %d, %v; want still 1", serial, err)
	}
	s.clock.advance(time.Millisecond)
	if serial, err := s.serial(t, s.asClient()); serial != 2 || err != nil {
		t.Errorf("after a second: serial %d, %v; want 2", serial, err)
	}
	overOldConnection()
}

func TestFilesThatCannotBeUsedLeaveTheOldOnesInUseAndAreLoggedOnce(t *testing.T) {
	t.Parallel()
	const complaint = "changed files cannot be used"
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	files := newTLSFiles(t, first)
	s := runSecureServer(t, files, first)
	s.trusted.AddCert(second.certificate)
	for _, step := range []struct {
		name       string
		write      func()
		serial     int64
		complaints int
	}{
		{"the certificate, but not yet its key", func() { files.write(t, files.Certificate, second.certificatePEM()) }, 1, 1},
		{"nothing new", func() {}, 1, 1},
		{"the same once more", func() { files.write(t, files.Certificate, second.certificatePEM()) }, 1, 1},
		{"half of the key", func() { files.write(t, files.Key, second.keyPEM(t)[:40]) }, 1, 2},
		{"the whole key", func() { files.write(t, files.Key, second.keyPEM(t)) }, 2, 2},
		{"nothing new after that", func() {}, 2, 2},
		{"half of the key again", func() { files.write(t, files.Key, second.keyPEM(t)[:40]) }, 2, 3},
	} {
		step.write()
		for range 3 {
			s.clock.advance(conn.TLSCheckInterval)
			if serial, err := s.serial(t, s.asClient()); serial != step.serial || err != nil {
				t.Errorf("%s: serial %d, %v; want %d", step.name, serial, err, step.serial)
			}
		}
		if got := s.log.count(complaint); got != step.complaints {
			t.Errorf("%s: %d complaints, want %d", step.name, got, step.complaints)
		}
	}
}

func TestAClientMustPresentACertificateOfTheClientCA(t *testing.T) {
	t.Parallel()
	own, authority, foreign := selfSigned(t, 1), selfSigned(t, 2), selfSigned(t, 3)
	s := runSecureServer(t, newTLSFiles(t, own).withClientCA(t, authority), own)
	for name, test := range map[string]struct {
		presented []credentials
		accepted  bool
	}{
		"one of the client CA":      {[]credentials{certify(t, 10, newECDSAKey(t), &authority)}, true},
		"none":                      {nil, false},
		"a self-signed one":         {[]credentials{foreign}, false},
		"one of another authority":  {[]credentials{certify(t, 11, newECDSAKey(t), &foreign)}, false},
		"the server's own":          {[]credentials{own}, false},
		"a public one, no such key": {[]credentials{{authority.certificate, foreign.key}}, false},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+"/"+tls.VersionName(version), func(t *testing.T) {
				t.Parallel()
				client := s.asClient()
				client.MaxVersion = version
				client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(test.presented) == 0 {
						return &tls.Certificate{}, nil
					}
					presented := test.presented[0].asClient() // whatever the server asks for
					return &presented, nil
				}
				if _, err := s.ask(client); (err == nil) != test.accepted {
					t.Errorf("accepted %t (%v), want %t", err == nil, err, test.accepted)
				}
			})
		}
	}
}

// A session ticket must not outlive the authority that vouched for its client.
func TestAChangedClientCARefusesCertificatesOfTheRemovedAuthority(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			own, before, after := selfSigned(t, 1), selfSigned(t, 2), selfSigned(t, 3)
			files := newTLSFiles(t, own).withClientCA(t, before)
			s := runSecureServer(t, files, own)
			client := s.asClient(certify(t, 10, newECDSAKey(t), &before))
			client.MaxVersion, client.ClientSessionCache = version, tls.NewLRUClientSessionCache(4)
			newcomer := s.asClient(certify(t, 11, newECDSAKey(t), &after))
			for i, resumed := range []bool{false, true} {
				if state, err := s.ask(client); err != nil || state.DidResume != resumed {
					t.Fatalf("connection %d: %v, resumed %t; want %t", i+1, err, state.DidResume, resumed)
				}
			}
			if _, err := s.ask(newcomer); err == nil {
				t.Fatal("accepted a certificate of an authority yet unknown")
			}
			files.withClientCA(t, after)
			s.clock.advance(conn.TLSCheckInterval)
			if _, err := s.ask(client); err == nil {
				t.Error("accepted a certificate of an authority that is gone")
			}
			if _, err := s.ask(newcomer); err != nil {
				t.Errorf("refused a certificate of the new authority: %v", err)
			}
		})
	}
}

func TestASessionIsResumedAcrossANewCertificate(t *testing.T) {
	t.Parallel()
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	files := newTLSFiles(t, first)
	s := runSecureServer(t, files, first)
	client := s.asClient()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	if _, err := s.ask(client); err != nil {
		t.Fatal(err)
	}
	files.write(t, files.Certificate, second.certificatePEM())
	files.write(t, files.Key, second.keyPEM(t))
	s.clock.advance(conn.TLSCheckInterval)
	if state, err := s.ask(client); err != nil || !state.DidResume {
		t.Errorf("resumed %t, %v", state.DidResume, err)
	}
}
