package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/server/conn"
)

func TestTLSAgreesOnHTTP11Alone(t *testing.T) {
	t.Parallel()
	own := selfSigned(t, 1)
	s := runSecureServer(t, newTLSFiles(t, own), own)
	for name, test := range map[string]struct {
		offered  []string
		agreed   string
		accepted bool
	}{
		"nothing offered": {nil, "", true},
		"HTTP/1.1":        {[]string{"http/1.1"}, "http/1.1", true},
		"HTTP/2 or 1.1":   {[]string{"h2", "http/1.1"}, "http/1.1", true},
		"HTTP/2 alone":    {[]string{"h2"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := s.asClient()
			client.NextProtos = test.offered
			state, err := s.ask(client)
			if (err == nil) != test.accepted || state.NegotiatedProtocol != test.agreed {
				t.Errorf("agreed on %q (%v), want %q", state.NegotiatedProtocol, err, test.agreed)
			}
		})
	}
}

func TestPlainHTTPToATLSPortIsAnsweredAndClosed(t *testing.T) {
	t.Parallel()
	own := selfSigned(t, 1)
	s := runSecureServer(t, newTLSFiles(t, own), own)
	for name, sent := range map[string]string{
		"a request":              "GET /healthz HTTP/1.1\r\nHost: remit\r\n\r\n",
		"a request with a body":  "POST /v1/organizations HTTP/1.1\r\nHost: remit\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2_000_000),
		"what is no HTTP either": "HELO remit.example\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, s.address)
			_ = conn.SetDeadline(time.Now().Add(8 * time.Second)) // shorter than the server waits for a request
			go func() { _, _ = io.WriteString(conn, sent) }()
			response := must(http.ReadResponse(conn.Reader, nil))(t)
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != 400 || !response.Close || !bytes.Contains(body, []byte("speaks TLS")) {
				t.Errorf("answered %d %s (close %t, %v)", response.StatusCode, body, response.Close, err)
			}
			if rest, err := io.ReadAll(conn.Reader); len(rest) > 0 || err != nil {
				t.Errorf("not closed in order: %q, %v", rest, err)
			}
		})
	}
}

func TestTLSFilesThatCannotBeUsedEndTheStart(t *testing.T) {
	t.Parallel()
	own, other := selfSigned(t, 1), selfSigned(t, 2)
	for name, test := range map[string]struct {
		spoil  func(t *testing.T, files *tlsFiles)
		reason string
	}{
		"no certificate": {func(t *testing.T, f *tlsFiles) { f.write(t, f.Certificate, []byte("x")) }, "cert.pem"},
		"no key":         {func(t *testing.T, f *tlsFiles) { f.write(t, f.Key, nil) }, "key.pem"},
		"another key":    {func(t *testing.T, f *tlsFiles) { f.write(t, f.Key, other.keyPEM(t)) }, "does not match"},
		"no file":        {func(t *testing.T, f *tlsFiles) { _ = os.Remove(f.Key) }, "no such file"},
		"no authority":   {func(t *testing.T, f *tlsFiles) { f.withClientCA(t) }, "no certificate in it"},
		"no such authority": {func(t *testing.T, f *tlsFiles) {
			f.ClientCA = filepath.Join(filepath.Dir(f.Key), "missing.pem")
		}, "client CA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := newTLSFiles(t, own)
			test.spoil(t, files)
			_, err := files.Config(slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("%v does not speak of %q", err, test.reason)
			}
		})
	}
}

func TestNewCertificatesAreServedWithoutARestart(t *testing.T) {
	t.Parallel()
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	files := newTLSFiles(t, first)
	s := runSecureServer(t, files, first)
	s.trusted.AddCert(second.certificate)
	old := must(tls.Dial("tcp", s.address, s.asClient()))(t)
	defer old.Close()
	answers := bufio.NewReader(old)
	overOldConnection := func() {
		t.Helper()
		must(io.WriteString(old, plainRequest))(t)
		_, err := io.Copy(io.Discard, must(http.ReadResponse(answers, nil))(t).Body)
		if serial := old.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); serial != 1 || err != nil {
			t.Errorf("the old connection was left: serial %d, %v", serial, err)
		}
	}
	overOldConnection()
	files.hold(t, second)
	s.clock.advance(conn.TLSCheckInterval - time.Millisecond)
	s.wantSerial(t, 1, "within a second")
	s.clock.advance(time.Millisecond)
	s.wantSerial(t, 2, "after a second")
	overOldConnection()
}

func TestFilesThatCannotBeUsedLeaveTheOldOnesInUseAndAreLoggedOnce(t *testing.T) {
	t.Parallel()
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
			s.wantSerial(t, step.serial, step.name)
		}
		wantEqual(t, step.name+": complaints", s.log.count("changed files cannot be used"), step.complaints)
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
	first := selfSigned(t, 1)
	files := newTLSFiles(t, first)
	s := runSecureServer(t, files, first)
	client := s.asClient()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	must(s.ask(client))(t)
	files.hold(t, selfSigned(t, 2))
	s.clock.advance(conn.TLSCheckInterval)
	if state, err := s.ask(client); err != nil || !state.DidResume {
		t.Errorf("resumed %t, %v", state.DidResume, err)
	}
}
