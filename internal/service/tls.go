package service

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"remit/server"
)

// tlsFlags name the files for TLS. Without them the service speaks plain HTTP.
type tlsFlags struct {
	TLSCert     string `help:"PEM file with the certificate chain, leaf first. Enables HTTPS. Reloaded when it changes." type:"existingfile"`
	TLSKey      string `help:"PEM file with the private key for --tls-cert." type:"existingfile"`
	TLSClientCA string `help:"PEM file with the certificate authorities for client certificates. Enables mutual TLS." type:"existingfile"`
}

func (f tlsFlags) check() error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key must be set together")
	case f.TLSClientCA != "" && f.TLSCert == "":
		return errors.New("--tls-client-ca needs --tls-cert and --tls-key")
	}
	return nil
}

func (f tlsFlags) scheme() string {
	if f.TLSCert == "" {
		return "http"
	}
	return "https"
}

// config returns nil for plain HTTP.
func (f tlsFlags) config(log *slog.Logger) (*tls.Config, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	return server.TLSFiles{Certificate: f.TLSCert, Key: f.TLSKey, ClientCA: f.TLSClientCA}.Config(log)
}

// clientConfig returns the configuration of a client on this machine, or nil for plain HTTP. It ignores the names in the
// certificates of --tls-cert, because the client connects by address.
func (f tlsFlags) clientConfig() (*tls.Config, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.TLSCert)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate", f.TLSCert)
	}
	config := &tls.Config{
		InsecureSkipVerify: true, // skips the name; descends verifies the chain
		VerifyConnection:   func(state tls.ConnectionState) error { return descends(state, trusted) },
	}
	if f.TLSClientCA == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate and its key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// descends verifies that the service's certificate is a trusted one, or signed by one.
func descends(state tls.ConnectionState, trusted *x509.CertPool) error {
	others := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		others.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trusted, Intermediates: others})
	return err
}
