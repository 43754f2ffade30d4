package conn

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

// TLSFiles are the PEM files of a TLS server. It reads them again when they change.
type TLSFiles struct {
	Certificate string // the chain, leaf first
	Key         string
	// ClientCA holds the authorities of client certificates, which are then required. "" requires none.
	ClientCA string
	HTTP2    bool // is offered, beside HTTP/1.1
}

// Config returns the TLS configuration of a server with these files: TLS 1.2 or later, only forward secrecy and
// authenticated encryption, and HTTP/1.1 unless HTTP2 adds that. It returns an error when the files cannot be used now. A file that cannot be used
// later is logged once, and the previous files stay in use.
func (f TLSFiles) Config(log *slog.Logger) (*tls.Config, error) { return f.ConfigAt(log, time.Now) }

// ConfigAt is Config by another clock.
func (f TLSFiles) ConfigAt(log *slog.Logger, now func() time.Time) (*tls.Config, error) {
	source := &tlsSource{files: f, log: log, now: now, checked: now(), known: f.stamps()}
	first, err := f.read()
	if err != nil {
		return nil, err
	}
	source.current.Store(first)
	// Session tickets stay valid after a reload, because their keys belong to the outer configuration.
	outer := first.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		source.refresh()
		return source.current.Load(), nil
	}
	return outer, nil
}

// read returns a configuration from the current files.
func (f TLSFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Certificate, f.Key, err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
		CipherSuites: []uint16{ // for TLS 1.2; those of 1.3 cannot be configured
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	}
	if f.HTTP2 {
		config.NextProtos = []string{"h2", "http/1.1"}
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

// stamp distinguishes versions of a file. The zero stamp means that there is no file.
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

// TLSCheckInterval is the least time between two checks of the files.
const TLSCheckInterval = time.Second

// tlsSource keeps the configuration of the current files.
type tlsSource struct {
	files   TLSFiles
	log     *slog.Logger
	now     func() time.Time
	current atomic.Pointer[tls.Config]

	checking  sync.Mutex // held by the one handshake that checks the files
	checked   time.Time
	known     [3]stamp // of the files when they were last read, usable or not
	complaint string   // the logged error of unusable files; "" when they are usable
}

// refresh reads the files again if they have changed. It does not wait for another handshake that does so.
func (s *tlsSource) refresh() {
	if !s.checking.TryLock() {
		return
	}
	defer s.checking.Unlock()
	now := s.now()
	if now.Sub(s.checked) < TLSCheckInterval {
		return
	}
	s.checked = now
	// The stamps are taken before the files are read, so that a change in between is found next time.
	stamps := s.files.stamps()
	if stamps == s.known {
		return
	}
	s.known = stamps
	fresh, err := s.files.read()
	if err != nil {
		s.logFailure(err)
		return
	}
	s.current.Store(fresh)
	s.complaint = ""
	s.log.Info("TLS: certificates reloaded")
}

func (s *tlsSource) logFailure(err error) {
	if complaint := err.Error(); complaint != s.complaint {
		s.complaint = complaint
		s.log.Warn("TLS: changed files cannot be used; keeping the previous ones", "cause", complaint)
	}
}
