package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"remit/server"
)

// tlsFlags say with what the service speaks TLS; without them it speaks plain HTTP.
type tlsFlags struct {
	TLSCert     string `help:"PEM file with the certificate chain, leaf first; makes the service speak HTTPS. Read again when it changes." type:"existingfile"`
	TLSKey      string `help:"PEM file with the key of --tls-cert." type:"existingfile"`
	TLSClientCA string `help:"PEM file with the authorities whose certificates clients must present (mutual TLS)." type:"existingfile"`
}

func (f tlsFlags) check() error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key need each other")
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

// clientConfig is for asking the service on this machine. It trusts the certificates in --tls-cert whatever names they
// bear, for the service is asked by its address. Nil for plain HTTP.
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
		return nil, fmt.Errorf("%s: no certificate in it", f.TLSCert)
	}
	config := &tls.Config{
		InsecureSkipVerify: true, // of the name; the rest is verified here
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

// descends verifies that the service's certificate is one of the trusted ones, or signed by one.
func descends(state tls.ConnectionState, trusted *x509.CertPool) error {
	others := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		others.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trusted, Intermediates: others})
	return err
}
