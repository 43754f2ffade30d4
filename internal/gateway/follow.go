package gateway

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// followEvery is how often the files of the config are looked at.
const followEvery = 2 * time.Second

// source has the settings, and reads them again when a file changes. Settings that cannot be read leave the old ones in force.
type source struct {
	path    string
	log     *slog.Logger
	every   time.Duration
	current atomic.Pointer[settings]

	mu    sync.Mutex // of a look
	fault string     // of the last reading; "": none
}

// stamp tells a file from what it was before.
type stamp struct{ fs.FileInfo } // nil: there is none

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info}
}

func (s stamp) equal(other stamp) bool {
	if s.FileInfo == nil || other.FileInfo == nil {
		return s.FileInfo == nil && other.FileInfo == nil
	}
	return s.ModTime().Equal(other.ModTime()) && s.Size() == other.Size() && os.SameFile(s.FileInfo, other.FileInfo)
}

func openSource(path string, log *slog.Logger) (*source, error) {
	s := &source{path: path, log: log, every: followEvery}
	first, err := readSettings(path)
	if err != nil {
		return nil, err
	}
	s.current.Store(first)
	for _, warning := range first.warnings() {
		log.Warn(warning)
	}
	return s, nil
}

// follow reads the settings again when they change, until ctx ends.
func (s *source) follow(ctx context.Context) {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.look()
		}
	}
}

// look reads the settings if a file has changed.
func (s *source) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == "" && !s.current.Load().isStale() {
		return
	}
	next, err := readSettings(s.path)
	if err != nil { // a file that only the new config names may be what is missing: it is read until that is there
		if s.fault != err.Error() {
			s.log.Error("the config cannot be used; the previous one stays in force", "cause", err)
		}
		s.fault = err.Error()
		return
	}
	s.fault = ""
	before := s.current.Load()
	if next.Listen != before.Listen || (next.TLS == nil) != (before.TLS == nil) || next.TLS != nil && *next.TLS != *before.TLS {
		s.log.Warn("listen and tls of the config take effect at the next start")
	}
	s.current.Store(next)
	s.log.Info("the config was read again", "upstreams", len(next.Upstreams))
	for _, warning := range next.warnings() {
		s.log.Warn(warning)
	}
}
