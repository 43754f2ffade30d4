package server

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"remit/server/conn"
)

// credentials are a certificate and its key.
type credentials struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// selfSigned returns a certificate for 127.0.0.1 that can sign others.
func selfSigned(t *testing.T, serial int64) credentials {
	t.Helper()
	return certify(t, serial, newECDSAKey(t), nil)
}

// certify returns a certificate for 127.0.0.1 and its key, signed by the issuer or, without one, by itself.
func certify(t *testing.T, serial int64, key crypto.Signer, issuer *credentials) credentials {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "remit test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        issuer == nil, BasicConstraintsValid: true,
	}
	if issuer == nil {
		issuer = &credentials{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return credentials{certificate, key}
}

func newECDSAKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSAKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (c credentials) certificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.certificate.Raw})
}

func (c credentials) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// asClient returns the certificate as a TLS client presents it.
func (c credentials) asClient() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.certificate.Raw}, PrivateKey: c.key}
}

// tlsFiles are the files of a server, which the test writes anew.
type tlsFiles struct {
	conn.TLSFiles
	writes int
}

func newTLSFiles(t *testing.T, first credentials) *tlsFiles {
	t.Helper()
	dir := t.TempDir()
	files := &tlsFiles{TLSFiles: conn.TLSFiles{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}}
	files.write(t, files.Certificate, first.certificatePEM())
	files.write(t, files.Key, first.keyPEM(t))
	return files
}

// withClientCA adds authorities for the certificates of clients.
func (f *tlsFiles) withClientCA(t *testing.T, authorities ...credentials) *tlsFiles {
	t.Helper()
	f.ClientCA = filepath.Join(filepath.Dir(f.Key), "clients.pem")
	var text []byte
	for _, authority := range authorities {
		text = append(text, authority.certificatePEM()...)
	}
	f.write(t, f.ClientCA, text)
	return f
}

// write gives every version a time of its own: a test writes faster than a file system's clock goes.
func (f *tlsFiles) write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f.writes++
	written := time.Unix(1_800_000_000+int64(f.writes), 0)
	if err := os.Chtimes(file, written, written); err != nil {
		t.Fatal(err)
	}
}

// secureServer is a running server that speaks TLS.
type secureServer struct {
	runningServer
	trusted *x509.CertPool // has the certificate that the server started with
	log     *writtenLog
}

func runSecureServer(t *testing.T, files *tlsFiles, first credentials) secureServer {
	t.Helper()
	clock, log := &stoppedClock{at: time.Unix(1_800_000_000, 0)}, &writtenLog{}
	config, err := files.ConfigAt(slog.New(slog.NewTextHandler(log, nil)), clock.now)
	if err != nil {
		t.Fatal(err)
	}
	s := secureServer{runServer(t, "", Config{TLS: config}), x509.NewCertPool(), log}
	s.clock = clock
	s.trusted.AddCert(first.certificate)
	return s
}

// asClient returns a configuration for a client of the server.
func (s secureServer) asClient(presented ...credentials) *tls.Config {
	config := &tls.Config{RootCAs: s.trusted}
	for _, c := range presented {
		config.Certificates = append(config.Certificates, c.asClient())
	}
	return config
}

// serial makes a connection, speaks over it, and returns the serial number of the server's certificate.
func (s secureServer) serial(t *testing.T, config *tls.Config) (int64, error) {
	t.Helper()
	state, err := s.ask(config)
	if err != nil {
		return 0, err
	}
	return state.PeerCertificates[0].SerialNumber.Int64(), nil
}

// ask makes a connection and gets an answer over it: in TLS 1.3 a client learns by reading that it was refused.
func (s secureServer) ask(config *tls.Config) (tls.ConnectionState, error) {
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: remit\r\n\r\n")); err != nil {
		return tls.ConnectionState{}, err
	}
	_, err = conn.Read(make([]byte, 1))
	return conn.ConnectionState(), err
}

// writtenLog is a log that the test reads while others write it.
type writtenLog struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (l *writtenLog) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(p)
}

// count returns how many times the text was logged.
func (l *writtenLog) count(text string) int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}
