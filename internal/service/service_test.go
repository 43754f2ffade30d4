package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"remit/internal/redisproc"
	"remit/internal/token"
	"remit/test/serviceproc"
	"remit/test/suite"
)

// The tests of this file run the program itself, as its users do.

// stampedVersion is the version that the tests set, as scripts/release.sh does for a release.
const stampedVersion = "9.8.7-rc.1"

// TestMain runs the program instead of the tests when RUN_REMIT is set, so that the race detector and coverage include it. It
// fails when a goroutine is left after the tests.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_REMIT") != "" {
		limitOpenFiles(os.Getenv("RUN_REMIT_OPEN_FILES"))
		Main(stampedVersion)
		return
	}
	if !suite.Long { // the race detector keeps the processors busy by itself
		suite.RunAtOnce(4)
	}
	goleak.VerifyTestMain(m)
}

// limitOpenFiles is ulimit -n; "" leaves the limit as it is.
func limitOpenFiles(most string) {
	if most == "" {
		return
	}
	n, err := strconv.ParseUint(most, 10, 64)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		panic(err)
	}
}

// program is a running remit.
type program struct {
	*serviceproc.Process
	url string // where it listens
}

// command returns remit with these arguments. This test binary takes its place.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{"RUN_REMIT=1"}
	return cmd
}

// start runs remit in its own directory until the test ends, on a free port unless env or args choose one.
func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	return startWriting(t, nil, env, args...)
}

// startWriting is start with a standard error of the caller's; nil collects it in the program.
func startWriting(t *testing.T, stderr *os.File, env []string, args ...string) *program {
	t.Helper()
	cmd := command(t, args...)
	cmd.Dir = t.TempDir()
	if stderr != nil {
		cmd.Stderr = stderr
	}
	process, err := serviceproc.StartProcess(cmd, append([]string{"RUN_REMIT=1", "REMIT_LISTEN=127.0.0.1:0"}, env...)...)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{Process: process}
	t.Cleanup(func() { p.stop(t) })
	return p
}

// ready waits until the program listens.
func (p *program) ready(t *testing.T) *program {
	t.Helper()
	var err error
	if p.url, err = serviceproc.AwaitURL(p.Process); err != nil {
		t.Fatal(err)
	}
	return p
}

// stop ends the program as a terminal or a supervisor would, and returns how it ended; nil if it had ended before.
func (p *program) stop(t *testing.T) error {
	t.Helper()
	select {
	case <-p.Done():
		return nil
	default:
	}
	err := p.Stop()
	var exit *exec.ExitError
	if errors.As(p.Wait(), &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		t.Errorf("it did not end:\n%s", p.Stderr())
	}
	return err
}

func (p *program) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return p.getAs(t, path, nil)
}

func (p *program) getAs(t *testing.T, path string, header map[string]string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// createOrganization returns the id and API key of a new organization.
func (p *program) createOrganization(t *testing.T) (id, key string) {
	t.Helper()
	response, err := http.Post(p.url+"/v1/organizations", "application/json", strings.NewReader(`{"name":"acme"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	found := regexp.MustCompile(`"id":"([^"]+)".*"api_key":"([^"]+)"`).FindSubmatch(body)
	if found == nil {
		t.Fatalf("no organization: %s %s", response.Status, body)
	}
	return string(found[1]), string(found[2])
}

func (p *program) organizationStatus(t *testing.T, id, key string) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.url+"/v1/organizations/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestOwnRedisServerPersistsData(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	first := start(t, []string{"REMIT_DATA_DIR=" + data}).ready(t)
	if !strings.Contains(first.Stderr(), "store: own redis-server") {
		t.Errorf("it does not say which store it uses:\n%s", first.Stderr())
	}
	id, key := first.createOrganization(t)
	if err := first.stop(t); err != nil {
		t.Errorf("told to stop, it ended with %v:\n%s", err, first.Stderr())
	}
	second := start(t, []string{"REMIT_DATA_DIR=" + data}).ready(t)
	if status := second.organizationStatus(t, id, key); status != http.StatusOK {
		t.Errorf("after a restart the organization answers %d", status)
	}
}

func TestItRefusesADataDirectoryInUse(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	start(t, []string{"REMIT_DATA_DIR=" + data}).ready(t)
	second := start(t, []string{"REMIT_DATA_DIR=" + data})
	if err := second.Wait(); err == nil || !strings.Contains(second.Stderr(), "is using the data directory") {
		t.Errorf("a second one on the same data ended with %v:\n%s", err, second.Stderr())
	}
}

func TestWithoutRedisItServesFromMemoryAndWarns(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"PATH=" + t.TempDir()}).ready(t)
	if !strings.Contains(p.Stderr(), "IN MEMORY") {
		t.Errorf("it does not warn:\n%s", p.Stderr())
	}
	id, key := p.createOrganization(t)
	if status := p.organizationStatus(t, id, key); status != http.StatusOK {
		t.Errorf("the organization answers %d", status)
	}
}

func TestItStartsBelowADirectoryWithAnOddName(t *testing.T) {
	t.Parallel()
	odd := filepath.Join(t.TempDir(), "a b%41@c?d")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"TMPDIR=" + odd, "REMIT_DATA_DIR=" + odd}).ready(t)
	p.createOrganization(t)
	if info, err := os.Stat(odd); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others can read the data: %v, %v", info.Mode(), err)
	}
}

func TestTheQuickstartWorksWhenPasted(t *testing.T) {
	t.Parallel()
	p := start(t, nil).ready(t)
	waitFor(t, func() bool { return strings.Contains(p.Stdout(), "/actions") })
	_, pasted, _ := strings.Cut(p.Stdout(), "Try it:")
	for _, shell := range []string{"sh", "bash"} {
		output, err := exec.Command(shell, "-c", pasted).CombinedOutput()
		if err != nil || !strings.Contains(string(output), `"action_count":1,"max_actions":100,"value_used_usd":0.37,"max_value_usd":5`) {
			t.Errorf("pasted into %s, it prints %s (%v)", shell, output, err)
		}
	}
}

func TestTwoInstancesOnOneRedisShareTheirKeys(t *testing.T) {
	t.Parallel()
	redis, err := redisproc.Start(t.Context(), redisproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	env := []string{"REMIT_REDIS_URL=" + redis.URL()}
	a, b := start(t, env).ready(t), start(t, env).ready(t)
	_, keysOfA := a.get(t, "/.well-known/jwks.json")
	_, keysOfB := b.get(t, "/.well-known/jwks.json")
	if keysOfA != keysOfB || !strings.Contains(keysOfA, "Ed25519") {
		t.Errorf("they publish %s and %s", keysOfA, keysOfB)
	}
	id, key := a.createOrganization(t)
	if status := b.organizationStatus(t, id, key); status != http.StatusOK {
		t.Errorf("the other instance answers %d", status)
	}
}

func TestKeysComeFromFiles(t *testing.T) {
	t.Parallel()
	signing, err := token.GenerateSigningKey(token.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	signingFile, tokenFile := filepath.Join(dir, "signing.pem"), filepath.Join(dir, "token.key")
	for file, text := range map[string][]byte{signingFile: signing, tokenFile: token.GenerateRefreshKey()} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, nil, "--signing-key", signingFile, "--token-key", tokenFile).ready(t)
	if strings.Contains(p.Stderr(), "one trust domain") {
		t.Errorf("it made keys although it was given some:\n%s", p.Stderr())
	}
	given, err := token.ParseSigningKey(signing)
	if err != nil {
		t.Fatal(err)
	}
	_, apiKey := p.createOrganization(t)
	tokens, _ := p.exchange(t, p.createAgent(t, apiKey))
	if kid := kidOf(t, tokens.Access); kid != given.String() {
		t.Errorf("it signs with %s, not with the given %s", kid, given)
	}
}

// Kubernetes secrets made from a file and pasted URLs often end with a newline.
func TestTheURLOfRedisMayEndWithANewline(t *testing.T) {
	t.Parallel()
	url := " " + startRedis(t) + "\n"
	start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	if output, err := runKeys(t, "list", "--redis-url", url); err != nil || !strings.Contains(output, "signs") {
		t.Errorf("keys list: %v: %s", err, output)
	}
}

func TestItServes503UntilRedisCanBeReached(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	listen := freePort(t)
	p := start(t, []string{"REMIT_REDIS_URL=redis://127.0.0.1:" + port, "REMIT_LISTEN=127.0.0.1:" + listen})
	p.url = "http://127.0.0.1:" + listen
	waitFor(t, func() bool {
		response, err := http.Get(p.url + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusServiceUnavailable
	})
	if status, _ := p.get(t, "/healthz"); status != http.StatusOK {
		t.Errorf("without Redis it is not even alive: %d", status)
	}
	redis, err := redisproc.Start(t.Context(), redisproc.Config{Args: []string{"--port", port, "--bind", "127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	if status, body := p.ready(t).get(t, "/readyz"); status != http.StatusOK {
		t.Errorf("with Redis back it answers %d %s", status, body)
	}
}

// The redis-server that the service starts persists its data and has a memory limit. Another Redis may have neither.
func TestStartWarnsOfARedisWithoutPersistenceOrMemoryLimit(t *testing.T) {
	t.Parallel()
	given := start(t, []string{"REMIT_REDIS_URL=" + startRedis(t)}).ready(t)
	own := start(t, nil).ready(t)
	for _, warning := range []string{"Redis has no append-only file", "Redis has no limit on its memory"} {
		if _, body := given.get(t, "/readyz"); !strings.Contains(given.Stderr(), warning) || !strings.Contains(body, warning) {
			t.Errorf("neither the start nor /readyz may keep silent about %q: %s\n%s", warning, body, given.Stderr())
		}
		if _, body := own.get(t, "/readyz"); strings.Contains(own.Stderr(), warning) || strings.Contains(body, warning) {
			t.Errorf("a Redis of our own earns %q: %s\n%s", warning, body, own.Stderr())
		}
	}
	if !strings.Contains(own.Stderr(), "maxmemory_mib=") {
		t.Errorf("the bound is not logged:\n%s", own.Stderr())
	}
}

func TestHealthcheckReportsReadiness(t *testing.T) {
	t.Parallel()
	p := start(t, nil).ready(t)
	address := strings.TrimPrefix(p.url, "http://")
	if err := start(t, []string{"REMIT_LISTEN=" + address}, "healthcheck").Wait(); err != nil {
		t.Errorf("of a ready service: %v", err)
	}
	if err := start(t, []string{"REMIT_LISTEN=127.0.0.1:" + freePort(t)}, "healthcheck").Wait(); err == nil {
		t.Error("of a service that is not there: no error")
	}
}

func TestEventsKeptBoundsTheAuditTrail(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"REMIT_REDIS_URL=" + startRedis(t)}, "--events-kept", "1").ready(t)
	d := &serviceproc.Caller{T: t, URL: p.url, Kept: map[string]string{}}
	d.Keep("API key", "api_key", "/v1/organizations", nil, `{"name":"acme"}`)
	key := map[string]string{"X-API-Key": d.Kept["API key"]}
	agent := d.Keep("agent secret", "secret", "/v1/agents", key, `{"name":"scout","scopes":[]}`)
	for range 250 {
		d.Keep("session", "id", "/sessions", key, fmt.Sprintf(`{"agent_id":%q}`, agent["id"]))
	}
	_, text := p.getAs(t, fmt.Sprint("/v1/agents/", agent["id"], "/events?limit=200"), key)
	var events []struct {
		Session string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(text), &events); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(events) < 1 || len(events) > 101 { // the one, and what Redis keeps with it
		t.Fatalf("%d events of 251 are kept", len(events))
	}
	if last := events[len(events)-1].Session; last != d.Kept["session"] {
		t.Errorf("the last event is of session %s, want the newest, %s", last, d.Kept["session"])
	}
}

func TestBadSettingsEndTheStartWithAReason(t *testing.T) {
	t.Parallel()
	for setting, reason := range map[string]string{
		"REMIT_REDIS_URL=http://127.0.0.1":      "unknown scheme",
		"REMIT_REFRESH_GRACE=31m":               "--refresh-grace",
		"REMIT_DURABILITY=replicated":           "--redis-url",
		"REMIT_DURABILITY=remote":               "--durability",
		"REMIT_ISSUER=remit":                    "--issuer",
		"REMIT_ISSUER=https://remit.example/x":  "--issuer",
		"REMIT_PROOF_HOSTS=api.example":         "--proof-hosts needs --issuer",
		"REMIT_PROOF_HOSTS=https://api.example": `"https://api.example" is no host`,
		"REMIT_PROOF_HOSTS=api.example,*.test":  `"*.test" is no host`,
		"REMIT_LOG_LEVEL=loud":                  "log-level",
		"REMIT_RETENTION=0s":                    "--retention",
		"REMIT_EVENTS_KEPT=0":                   "--events-kept",
		"REMIT_EVENTS_KEPT=1000001":             "--events-kept",
		"REMIT_EVENTS_KEPT=all":                 "events-kept",
		"REMIT_DEFAULT_MAX_ACTIONS=0":           "--default-max-actions",
		"REMIT_DEFAULT_MAX_VALUE_USD=0.0000001": "6 decimals",
		"REMIT_DEFAULT_EXPIRES_IN=721h":         "--default-expires-in",
		"REMIT_SIGNING_KEY=no-such-file":        "no-such-file",
		"REMIT_LISTEN=127.0.0.1:99999":          "cannot listen",
		"REMIT_METRICS_LISTEN=127.0.0.1:99999":  "cannot listen on 127.0.0.1:99999 for metrics",
		"REMIT_TOKEN_KEY=" + os.Args[0]:         "base64 of 32",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			p := start(t, []string{setting})
			if err := p.Wait(); err == nil || !strings.Contains(p.Stderr(), reason) {
				t.Errorf("it ended with %v and does not speak of %q:\n%s", err, reason, p.Stderr())
			}
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := redisproc.FreePort() // outside the ephemeral range, so that no connection of another test takes it
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatal("it did not come to pass in 10 s")
}

func TestReplicatedDurabilityWithoutAReplicaWarnsAndLeavesWritesInDoubt(t *testing.T) {
	t.Parallel()
	redis, err := redisproc.Start(t.Context(), redisproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	start(t, []string{"REMIT_REDIS_URL=" + redis.URL()}).ready(t) // makes keys and an issuer
	p := start(t, []string{"REMIT_REDIS_URL=" + redis.URL(), "REMIT_DURABILITY=replicated"}).ready(t)
	const warning = "a Redis primary has no replica"
	if !strings.Contains(p.Stderr(), warning) {
		t.Errorf("the start does not warn:\n%s", p.Stderr())
	}
	if status, body := p.get(t, "/readyz"); status != http.StatusOK || !strings.Contains(body, warning) {
		t.Errorf("/readyz: %d %s", status, body)
	}
	response, err := http.Post(p.url+"/v1/organizations", "application/json", strings.NewReader(`{"name":"acme"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "outcome_unknown") {
		t.Errorf("a write: %d %s %v", response.StatusCode, body, err)
	}
}
