package service

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// create sends a request for an organization and returns the response.
func (p *program) create(t *testing.T, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, p.url+"/v1/organizations", strings.NewReader(`{"name":"acme"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// writeFile returns the name of a new file with the text.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
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
		"without the token":  {[]string{"REMIT_ORGANIZATIONS=token", "REMIT_BOOTSTRAP_TOKEN=" + file}, nil, 401, false},
		"by the token":       {[]string{"REMIT_ORGANIZATIONS=token", "REMIT_BOOTSTRAP_TOKEN=" + file}, []string{"Authorization", "Bearer " + secret}, 201, false},
		"by the wrong token": {[]string{"REMIT_ORGANIZATIONS=token", "REMIT_BOOTSTRAP_TOKEN=" + file}, []string{"Authorization", "Bearer x" + secret}, 401, false},
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
			if strings.Contains(p.Stderr(), secret) {
				t.Error("the token is logged")
			}
		})
	}
}

func TestRateLimitsAreOnByDefault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ flag, told string }{
		"nothing said": {"--listen=127.0.0.1:0", `"organizations";q=300;w=60`},
		"on":           {"--rate-limits=on", `"organizations";q=300;w=60`},
		"off":          {"--rate-limits=off", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, body := start(t, []string{"PATH=" + t.TempDir()}, test.flag).ready(t).create(t)
			if got := response.Header.Get("RateLimit-Policy"); got != test.told || response.StatusCode != 201 {
				t.Errorf("answered %s %s with RateLimit-Policy %q, want %q", response.Status, body, got, test.told)
			}
		})
	}
}

// Each client behind a trusted proxy has its own bucket.
func TestForwardedAddressesOfTrustedProxiesCount(t *testing.T) {
	t.Parallel()
	for proxies, left := range map[string]string{
		"127.0.0.0/8,2001:db8::/32": `"organizations";r=299;t=60`,
		"10.0.0.0/8":                `"organizations";r=298;t=60`,
	} {
		t.Run(proxies, func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{"PATH=" + t.TempDir(), "REMIT_TRUSTED_PROXIES=" + proxies}).ready(t)
			p.create(t, "X-Forwarded-For", "203.0.113.1")
			response, _ := p.create(t, "X-Forwarded-For", "203.0.113.2")
			if got := response.Header.Get("RateLimit"); got != left {
				t.Errorf("the second client is told %s, want %s", got, left)
			}
		})
	}
}

func TestBadAccessSettingsEndTheStartWithAReason(t *testing.T) {
	t.Parallel()
	short := writeFile(t, "  fifteen chars..  \n")
	for name, test := range map[string]struct {
		env    []string
		reason string
	}{
		"an unknown mode":          {[]string{"REMIT_ORGANIZATIONS=opne"}, "--organizations"},
		"a token without its mode": {[]string{"REMIT_ORGANIZATIONS=open", "REMIT_BOOTSTRAP_TOKEN=" + short}, "needs --organizations=token"},
		"a short token, by itself": {[]string{"REMIT_BOOTSTRAP_TOKEN=" + short}, "at least 16 characters"},
		"a short token":            {[]string{"REMIT_ORGANIZATIONS=token", "REMIT_BOOTSTRAP_TOKEN=" + short}, "at least 16 characters"},
		"a token file not there":   {[]string{"REMIT_ORGANIZATIONS=token", "REMIT_BOOTSTRAP_TOKEN=no-such-file"}, "no-such-file"},
		"limits by half":           {[]string{"REMIT_RATE_LIMITS=half"}, "--rate-limits"},
		"proxies by name":          {[]string{"REMIT_TRUSTED_PROXIES=proxy.example"}, "--trusted-proxies"},
		"a proxy without a length": {[]string{"REMIT_TRUSTED_PROXIES=10.0.0.1"}, "--trusted-proxies"},
		"IPv4 within IPv6":         {[]string{"REMIT_TRUSTED_PROXIES=::ffff:10.0.0.0/104"}, "write IPv4 networks as IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(test.env, "PATH="+t.TempDir()))
			if err := p.Wait(); err == nil || !strings.Contains(p.Stderr(), test.reason) {
				t.Errorf("it ended with %v and does not speak of %q:\n%s", err, test.reason, p.Stderr())
			}
		})
	}
}
