package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
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
	der := must(x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key))(t)
	return credentials{must(x509.ParseCertificate(der))(t), key}
}

func newECDSAKey(t *testing.T) crypto.Signer {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func newRSAKey(t *testing.T) crypto.Signer {
	t.Helper()
	return must(rsa.GenerateKey(rand.Reader, 2048))(t)
}

func (c credentials) certificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.certificate.Raw})
}

func (c credentials) keyPEM(t *testing.T) []byte {
	t.Helper()
	der := must(x509.MarshalPKCS8PrivateKey(c.key))(t)
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
	files.hold(t, first)
	return files
}

// hold writes a certificate and its key.
func (f *tlsFiles) hold(t *testing.T, c credentials) {
	t.Helper()
	f.write(t, f.Certificate, c.certificatePEM())
	f.write(t, f.Key, c.keyPEM(t))
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
	must(0, os.WriteFile(file, text, 0o600))(t)
	f.writes++
	written := time.Unix(1_800_000_000+int64(f.writes), 0)
	must(0, os.Chtimes(file, written, written))(t)
}

// secureServer is a running server that speaks TLS.
type secureServer struct {
	runningServer
	trusted *x509.CertPool // has the certificate that the server started with
	log     *lockedBuffer
}

func runSecureServer(t *testing.T, files *tlsFiles, first credentials) secureServer {
	t.Helper()
	clock, log := &stoppedClock{at: time.Unix(1_800_000_000, 0)}, &lockedBuffer{}
	config := must(files.ConfigAt(slog.New(slog.NewTextHandler(log, nil)), clock.now))(t)
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

// wantSerial makes a connection, speaks over it, and fails the test unless the server's certificate has this serial number.
func (s secureServer) wantSerial(t *testing.T, want int64, when string) {
	t.Helper()
	state, err := s.ask(s.asClient())
	if err != nil || state.PeerCertificates[0].SerialNumber.Int64() != want {
		t.Errorf("%s: %v, %v; want the serial number %d", when, state.PeerCertificates, err, want)
	}
}

// ask makes a connection and gets an answer over it: in TLS 1.3 a client learns by reading that it was refused.
func (s secureServer) ask(config *tls.Config) (tls.ConnectionState, error) {
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, plainRequest); err != nil {
		return tls.ConnectionState{}, err
	}
	_, err = conn.Read(make([]byte, 1))
	return conn.ConnectionState(), err
}
