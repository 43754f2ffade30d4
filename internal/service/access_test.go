package service

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(file, []byte(text), 0o600))(t)
	return file
}

func TestOrganizationCreationIsAuthorized(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	file := writeFile(t, " "+secret+"\n")
	for name, test := range map[string]struct {
		env        []string
		headers    []string
		status     int
		quickstart bool
	}{
		"open to all":        {nil, nil, 201, true},
		"on a given Redis":   {[]string{"REMIT_REDIS_URL=" + startRedis(t)}, nil, 201, false},
		"closed":             {[]string{"REMIT_ORGANIZATIONS=closed"}, nil, 403, false},
		"a token alone":      {[]string{"REMIT_BOOTSTRAP_TOKEN=" + file}, nil, 401, false},
		"by the token":       {[]string{"REMIT_ORGANIZATIONS=token", "REMIT_BOOTSTRAP_TOKEN=" + file}, []string{"Authorization", "Bearer " + secret}, 201, false},
		"a token on request": {[]string{"REMIT_ORGANIZATIONS=token"}, nil, 401, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(test.env, "PATH="+t.TempDir())).ready(t)
			if response, body := p.create(t, test.headers...); response.StatusCode != test.status {
				t.Errorf("answered %s %s, want %d", response.Status, body, test.status)
			}
			_ = p.stop(t)
			if printed := strings.Contains(p.Stdout(), "Try it"); printed != test.quickstart {
				t.Errorf("the quickstart is printed: %t, want %t", printed, test.quickstart)
			}
			if test.env == nil && !strings.Contains(p.Stderr(), "IN MEMORY") {
				t.Errorf("it does not warn that it finds no Redis:\n%s", p.Stderr())
			}
			if strings.Contains(p.Stderr(), secret) {
				t.Error("the token is logged")
			}
		})
	}
}

// Each client behind a trusted proxy has its own bucket.
func TestRateLimitsAreOnByDefaultAndCountForwardedAddressesOfTrustedProxies(t *testing.T) {
	t.Parallel()
	for setting, left := range map[string]string{
		"REMIT_TRUSTED_PROXIES=127.0.0.0/8,2001:db8::/32": `"organizations";r=299;t=60`,
		"REMIT_TRUSTED_PROXIES=10.0.0.0/8":                `"organizations";r=298;t=60`,
		"REMIT_RATE_LIMITS=on":                            `"organizations";r=298;t=60`,
		"REMIT_RATE_LIMITS=off":                           "",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{"PATH=" + t.TempDir(), setting}).ready(t)
			p.create(t, "X-Forwarded-For", "203.0.113.1")
			response, body := p.create(t, "X-Forwarded-For", "203.0.113.2")
			if response.Header.Get("RateLimit") != left || response.StatusCode != http.StatusCreated {
				t.Errorf("answered %s %s with %q, want RateLimit %s", response.Status, body, response.Header, left)
			}
		})
	}
}
