package server

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTLSIsNewAndForwardSecretOrRefused(t *testing.T) {
	t.Parallel()
	keys := map[string]func(*testing.T) crypto.Signer{"ECDSA": newECDSAKey, "RSA": newRSAKey}
	suites := map[string]map[string]uint16{
		"GCM":                 {"ECDSA": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "RSA": tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		"GCM, 256 bits":       {"ECDSA": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "RSA": tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384},
		"ChaCha20":            {"ECDSA": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305, "RSA": tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305},
		"CBC":                 {"ECDSA": tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, "RSA": tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256},
		"no forward secrecy":  {"ECDSA": tls.TLS_RSA_WITH_AES_128_GCM_SHA256, "RSA": tls.TLS_RSA_WITH_AES_128_GCM_SHA256},
		"RC4, if one insists": {"ECDSA": tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, "RSA": tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA},
	}
	for kind, newKey := range keys {
		own := certify(t, 1, newKey(t), nil)
		s := runSecureServer(t, newTLSFiles(t, own), own)
		for name, test := range map[string]struct {
			oldest, newest uint16
			suite          string
			accepted       bool
		}{
			"TLS 1.0":                   {tls.VersionTLS10, tls.VersionTLS10, "", false},
			"TLS 1.1":                   {tls.VersionTLS10, tls.VersionTLS11, "", false},
			"TLS 1.2":                   {tls.VersionTLS10, tls.VersionTLS12, "", true},
			"TLS 1.3":                   {tls.VersionTLS13, tls.VersionTLS13, "", true},
			"TLS 1.2, GCM":              {tls.VersionTLS12, tls.VersionTLS12, "GCM", true},
			"TLS 1.2, GCM with 256":     {tls.VersionTLS12, tls.VersionTLS12, "GCM, 256 bits", true},
			"TLS 1.2, ChaCha20":         {tls.VersionTLS12, tls.VersionTLS12, "ChaCha20", true},
			"TLS 1.2, CBC":              {tls.VersionTLS12, tls.VersionTLS12, "CBC", false},
			"TLS 1.2, RSA key exchange": {tls.VersionTLS12, tls.VersionTLS12, "no forward secrecy", false},
			"TLS 1.2, RC4":              {tls.VersionTLS12, tls.VersionTLS12, "RC4, if one insists", false},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				client := s.asClient()
				client.MinVersion, client.MaxVersion = test.oldest, test.newest
				if test.suite != "" {
					client.CipherSuites = []uint16{suites[test.suite][kind]}
				}
				state, err := s.ask(client)
				if (err == nil) != test.accepted {
					t.Errorf("accepted %t (%v), want %t", err == nil, err, test.accepted)
				}
				if err == nil && state.Version < tls.VersionTLS12 {
					t.Errorf("agreed on %s", tls.VersionName(state.Version))
				}
			})
		}
	}
}

func TestTLSAgreesOnHTTP11Alone(t *testing.T) {
	t.Parallel()
	own := selfSigned(t, 1)
	s := runSecureServer(t, newTLSFiles(t, own), own)
	for name, test := range map[string]struct {
		offered  []string
		agreed   string
		accepted bool
	}{
		"nothing offered":  {nil, "", true},
		"HTTP/1.1":         {[]string{"http/1.1"}, "http/1.1", true},
		"HTTP/2 or 1.1":    {[]string{"h2", "http/1.1"}, "http/1.1", true},
		"HTTP/2 alone":     {[]string{"h2"}, "", false},
		"something unlike": {[]string{"smtp"}, "", false},
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
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(8 * time.Second)) // shorter than the server waits for a request
			go func() { _, _ = io.WriteString(conn, sent) }()
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != 400 || !response.Close || !bytes.Contains(body, []byte("speaks TLS")) {
				t.Errorf("answered %d %s (close %t, %v)", response.StatusCode, body, response.Close, err)
			}
			if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil {
				t.Errorf("not closed in order: %q, %v", rest, err)
			}
		})
	}
}

// A server that closes with the body unread resets the connection, and the reset can overtake the answer: over TLS it
// also hides that the connection ended in order.
func TestTheAnswerToABodyThatIsTooLargeIsReadableOverTLS(t *testing.T) {
	t.Parallel()
	own := selfSigned(t, 1)
	s := runSecureServer(t, newTLSFiles(t, own), own)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			for range 20 {
				config := s.asClient()
				config.MaxVersion = version
				conn, err := tls.Dial("tcp", s.address, config)
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				request := "POST /v1/organizations HTTP/1.1\r\nHost: remit\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n"
				if _, err := io.WriteString(conn, request+strings.Repeat("x", 2_000_000)); err != nil {
					t.Fatalf("the body cannot be sent: %v", err)
				}
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				body, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != 413 || !bytes.Contains(body, []byte("body_too_large")) {
					t.Fatalf("answered %d %s (%v)", response.StatusCode, body, err)
				}
				if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
					t.Fatalf("the connection ended with %v, want EOF after a close_notify", err)
				}
				_ = conn.Close()
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
