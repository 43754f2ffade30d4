package redisproc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remit/test/suite"
)

func TestFindPrefersRedisToValkey(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for _, name := range []string{"valkey-server", "redis-server"} {
		want := filepath.Join(bin, name)
		must(0, os.WriteFile(want, []byte("#!/bin/sh\n"), 0o700))(t)
		if got, err := Find(); err != nil || got != want {
			t.Errorf("Find() = %q, %v; want %q", got, err, want)
		}
	}
}

func TestFindSaysThatNothingIsInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path, err := Find(); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Find() = %q, %v; want ErrNotInstalled", path, err)
	}
	if _, err := Start(t.Context(), Config{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("Start: %v; want ErrNotInstalled", err)
	}
}

func wantParts(tb testing.TB, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("no %q in %q", part, text)
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }
