package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// TLSFiles are the PEM files that a server speaks TLS with. They are read again when they change.
type TLSFiles struct {
	Certificate string // the chain, its leaf first
	Key         string
	// ClientCA holds the certificates that those of clients must descend from. "" asks clients for none.
	ClientCA string
}

// Config returns the TLS configuration of a server with these files: TLS 1.2 or later, forward secrecy and authenticated
// encryption only, and HTTP/1.1. It returns an error when the files cannot be used now. Later a file that cannot be used
// is logged once, and what was read before stays in use.
func (f TLSFiles) Config(log *slog.Logger) (*tls.Config, error) { return f.config(log, time.Now) }

func (f TLSFiles) config(log *slog.Logger, now func() time.Time) (*tls.Config, error) {
	source := &tlsSource{files: f, log: log, now: now, checked: now(), seen: f.stamps()}
	first, err := f.read()
	if err != nil {
		return nil, err
	}
	source.current.Store(first)
	// The tickets of resumed sessions stay good after a reload: their keys are the outer configuration's.
	outer := first.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		source.refresh()
		return source.current.Load(), nil
	}
	return outer, nil
}

// read returns a configuration of the files as they are now.
func (f TLSFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Certificate, f.Key, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
		CipherSuites: []uint16{ // of TLS 1.2; those of 1.3 are not chosen
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
	if f.ClientCA == "" {
		return config, nil
	}
	authorities, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("client CA %s: no certificate in it", f.ClientCA)
	}
	return config, nil
}

// stamp tells one state of a file from another. The zero stamp is that of a file that is not there.
type stamp struct {
	modified time.Time
	size     int64
}

func (f TLSFiles) stamps() (stamps [3]stamp) {
	for i, file := range []string{f.Certificate, f.Key, f.ClientCA} {
		if info, err := os.Stat(file); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

// tlsPause is how long the files are not looked at again.
const tlsPause = time.Second

// tlsSource keeps a configuration as its files have it.
type tlsSource struct {
	files   TLSFiles
	log     *slog.Logger
	now     func() time.Time
	current atomic.Pointer[tls.Config]

	looking   sync.Mutex // held by the one handshake that looks at the files
	checked   time.Time
	seen      [3]stamp // of the files when they were last read, whether they could be used or not
	complaint string   // what was logged of files that cannot be used; "" when they can
}

// refresh reads the files again if they have changed. A handshake that meets another one here does not wait for it.
func (s *tlsSource) refresh() {
	if !s.looking.TryLock() {
		return
	}
	defer s.looking.Unlock()
	now := s.now()
	if now.Sub(s.checked) < tlsPause {
		return
	}
	s.checked = now
	// The stamps are taken before the files are read: a change between the two is found the next time.
	stamps := s.files.stamps()
	if stamps == s.seen {
		return
	}
	s.seen = stamps
	fresh, err := s.files.read()
	if err != nil {
		s.complain(err)
		return
	}
	s.current.Store(fresh)
	s.complaint = ""
	s.log.Info("TLS: certificates were read again")
}

func (s *tlsSource) complain(err error) {
	if complaint := err.Error(); complaint != s.complaint {
		s.complaint = complaint
		s.log.Warn("TLS: changed files cannot be used; those of before stay in use", "cause", complaint)
	}
}
