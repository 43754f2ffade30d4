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
	cmd := exec.Command(must(os.Executable())(t), args...)
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
	process := must(serviceproc.StartProcess(cmd, append([]string{"RUN_REMIT=1", "REMIT_LISTEN=127.0.0.1:0"}, env...)...))(t)
	p := &program{Process: process}
	t.Cleanup(func() { p.stop(t) })
	return p
}

// ready waits until the program listens.
func (p *program) ready(t *testing.T) *program {
	t.Helper()
	p.url = must(serviceproc.AwaitURL(p.Process))(t)
	return p
}

// stop ends the program as a terminal or a supervisor would, and returns how it ended; nil if it had ended before.
func (p *program) stop(t *testing.T) error {
	t.Helper()
	if !p.Runs() {
		return nil
	}
	err := p.Stop()
	var exit *exec.ExitError
	if errors.As(p.Wait(), &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		t.Errorf("it did not end:\n%s", p.Stderr())
	}
	return err
}

// send sends a request, with a body of JSON unless it is "", and these headers, of which an empty one is left out. Where several
// requests are under way, it fails without ending the test, and returns status 0.
func (p *program) send(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request := must(http.NewRequest(method, p.url+path, strings.NewReader(body)))(t)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response, string(text)
}

func (p *program) get(t *testing.T, path string, headers ...string) (int, string) {
	t.Helper()
	response, text := p.send(t, http.MethodGet, path, "", headers...)
	return response.StatusCode, text
}

func (p *program) create(t *testing.T, headers ...string) (*http.Response, string) {
	t.Helper()
	return p.send(t, http.MethodPost, "/v1/organizations", `{"name":"acme"}`, headers...)
}

func (p *program) createOrganization(t *testing.T) (id, key string) {
	t.Helper()
	response, text := p.create(t)
	found := regexp.MustCompile(`"id":"([^"]+)".*"api_key":"([^"]+)"`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no organization: %s %s", response.Status, text)
	}
	return found[1], found[2]
}

func is(t *testing.T, what string, status, want int) {
	t.Helper()
	if status != want {
		t.Errorf("%s: %d, want %d", what, status, want)
	}
}

func (p *program) organizationStatus(t *testing.T, id, key string) int {
	t.Helper()
	status, _ := p.get(t, "/v1/organizations/"+id, "X-API-Key", key)
	return status
}

// The data is in a directory with an odd name, which others cannot read.
func TestOwnRedisServerPersistsDataInADirectoryOfItsOwn(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "a b%41@c?d")
	must(0, os.Mkdir(data, 0o755))(t)
	env := []string{"TMPDIR=" + data, "REMIT_DATA_DIR=" + data}
	first := start(t, env).ready(t)
	if !strings.Contains(first.Stderr(), "store: own redis-server") {
		t.Errorf("it does not say which store it uses:\n%s", first.Stderr())
	}
	if info := must(os.Stat(data))(t); info.Mode().Perm() != 0o700 {
		t.Errorf("others can read the data: %v", info.Mode())
	}
	id, key := first.createOrganization(t)
	endsSaying(t, "is using the data directory", env...)
	if err := first.stop(t); err != nil {
		t.Errorf("told to stop, it ended with %v:\n%s", err, first.Stderr())
	}
	is(t, "after a restart the organization", start(t, env).ready(t).organizationStatus(t, id, key), http.StatusOK)
}

// docs/gateway.md has readers start a gateway beside make run.
func TestAnotherProcessFindsTheOwnRedis(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"redis-server": nil, "in memory": {"PATH=" + t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			own := start(t, append(env, "REMIT_DATA_DIR="+data)).ready(t)
			id, key := own.createOrganization(t)
			kept := filepath.Join(data, "redis.url")
			beside := start(t, []string{"REMIT_REDIS_URL=" + string(must(os.ReadFile(kept))(t))}).ready(t)
			is(t, "beside it the organization", beside.organizationStatus(t, id, key), http.StatusOK)
			if info := must(os.Stat(kept))(t); info.Mode().Perm() != 0o600 {
				t.Errorf("others can read the URL: %v", info.Mode())
			}
			_ = beside.stop(t)
			_ = own.stop(t)
			if _, err := os.Stat(kept); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the URL outlives its Redis: %v", err)
			}
		})
	}
}

func TestTheQuickstartWorksWhenPasted(t *testing.T) {
	t.Parallel()
	p := start(t, nil).ready(t)
	becomes(t, "the quickstart is printed", func() bool { return strings.Contains(p.Stdout(), "/actions") })
	_, pasted, _ := strings.Cut(p.Stdout(), "Try it:")
	for _, shell := range []string{"sh", "bash"} {
		output, err := exec.Command(shell, "-c", pasted).CombinedOutput()
		if err != nil || !strings.Contains(string(output), `"action_count":1,"max_actions":100,"value_used_usd":0.37,"max_value_usd":5`) {
			t.Errorf("pasted into %s, it prints %s (%v)", shell, output, err)
		}
	}
}

// Kubernetes secrets made from a file and pasted URLs often end with a newline.
func TestTheURLOfRedisMayEndWithANewline(t *testing.T) {
	t.Parallel()
	url := " " + startRedis(t) + "\n"
	start(t, []string{"REMIT_REDIS_URL=" + url}).ready(t)
	runKeys(t, "", "list", "--redis-url", url)
}

func TestItServes503UntilRedisCanBeReached(t *testing.T) {
	t.Parallel()
	port, listen := freePort(t), "127.0.0.1:"+freePort(t)
	p := start(t, []string{"REMIT_REDIS_URL=redis://127.0.0.1:" + port, "REMIT_LISTEN=" + listen})
	p.becomesReadable(t, listen, http.StatusServiceUnavailable)
	if status, _ := p.get(t, "/healthz"); status != http.StatusOK {
		t.Errorf("without Redis it is not even alive: %d", status)
	}
	startRedis(t, "--port", port, "--bind", "127.0.0.1")
	if status, body := p.ready(t).get(t, "/readyz"); status != http.StatusOK {
		t.Errorf("with Redis back it answers %d %s", status, body)
	}
}

// becomesReadable waits until the program, which listens there, answers /readyz with this status.
func (p *program) becomesReadable(t *testing.T, listen string, status int) {
	t.Helper()
	p.url = "http://" + listen
	becomes(t, "/readyz answers", func() bool {
		response, err := http.Get(p.url + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == status
	})
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

func TestEventsKeptBoundsTheAuditTrail(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"REMIT_REDIS_URL=" + startRedis(t)}, "--events-kept", "1").ready(t)
	_, key := p.createOrganization(t)
	agent := p.createAgent(t, key)
	for range 250 {
		p.post(t, "/sessions", key, fmt.Sprintf(`{"agent_id":%q}`, agent.id), nil)
	}
	_, text := p.get(t, "/v1/agents/"+agent.id+"/events?limit=200", "X-API-Key", key)
	var events []json.RawMessage
	must(0, json.Unmarshal([]byte(text), &events))(t)
	if len(events) < 1 || len(events) > 101 { // the one, and what Redis keeps with it
		t.Errorf("%d events of 251 are kept", len(events))
	}
}

// endsSaying starts remit with settings with which it cannot run, and wants it to say why.
func endsSaying(t *testing.T, reason string, env ...string) {
	t.Helper()
	p := start(t, env)
	if err := p.Wait(); err == nil || !strings.Contains(p.Stderr(), reason) {
		t.Errorf("with %q it ended with %v and does not speak of %q:\n%s", env, err, reason, p.Stderr())
	}
}

func TestBadSettingsEndTheStartWithAReason(t *testing.T) {
	t.Parallel()
	own, other, short := newTLSPair(t), newTLSPair(t), "REMIT_BOOTSTRAP_TOKEN="+writeFile(t, "  fifteen chars..  \n")
	words := func(env []string) string { return strings.Join(env, " ") }
	for settings, reason := range map[string]string{ // separated by spaces
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
		"REMIT_OTLP_ENDPOINT=localhost:4317":    "--otlp-endpoint must be an http or https URL",
		"REMIT_OTLP_ENDPOINT=http://":           "--otlp-endpoint must be an http or https URL",
		"REMIT_OTLP_ENDPOINT=:":                 "--otlp-endpoint must be an http or https URL",

		"REMIT_ORGANIZATIONS=opne":                  "--organizations",
		"REMIT_ORGANIZATIONS=open " + short:         "needs --organizations=token",
		short:                                       "at least 16 characters",
		"REMIT_ORGANIZATIONS=token " + short:        "at least 16 characters",
		"REMIT_BOOTSTRAP_TOKEN=no-such-file":        "no-such-file",
		"REMIT_RATE_LIMITS=half":                    "--rate-limits",
		"REMIT_TRUSTED_PROXIES=10.0.0.1":            "--trusted-proxies",
		"REMIT_TRUSTED_PROXIES=::ffff:10.0.0.0/104": "write IPv4 networks as IPv4",

		words(own.env()[:1]):                               "must be set together",
		words(own.env()[1:]):                               "must be set together",
		words(own.withClientCA(other)[2:]):                 "needs --tls-cert",
		words(tlsPair{"no-such-file", own.key}.env()):      "no-such-file",
		words(own.withClientCA(tlsPair{own.key, own.key})): "no certificate in it",
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			endsSaying(t, reason, strings.Fields(settings)...)
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(must(redisproc.FreePort())(t)) // outside the ephemeral range, so that no connection of another test takes it
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }
