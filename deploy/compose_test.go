package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/suite"
	"sigs.k8s.io/yaml"
)

// compose parses a file with the parser of docker compose, and returns the result as JSON. What go says of its downloads is kept apart.
func compose(file string) ([]byte, error) {
	parser := exec.Command("go", "run", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2", "-format", "json", file)
	var said strings.Builder
	parser.Stderr = &said
	output, err := parser.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, output, &said)
	}
	return output, err
}

// composed is what the tests read of the file, beside what they read by its path.
type composed struct {
	Services map[string]struct {
		Command     []string
		Environment map[string]string
		Healthcheck struct{ Test []string }
		StopGrace   string `json:"stop_grace_period"`
		Configs     []struct{ Source, Target string }
		Secrets     []struct{ Source, Target string }
	}
	Configs, Secrets map[string]struct{ File string }
}

// composeFile writes a copy of the file in which variables have values, because the parser's program takes none, and this text has another
// in its place.
func composeFile(t *testing.T, old, replaced string) string {
	t.Helper()
	text := must(os.ReadFile("../docker-compose.yml"))(t)
	valued := regexp.MustCompile(`\$\{REDIS_PASSWORD:\?[^}]*\}`).ReplaceAllString(string(text), "0123456789abcdef")
	valued = strings.NewReplacer("${REDIS_OPERATOR_PASSWORD:-}", "fedcba9876543210", "${REMIT_TRUSTED_PROXIES:+,$REMIT_TRUSTED_PROXIES}", ",192.0.2.1/32").Replace(valued)
	file := filepath.Join(t.TempDir(), "docker-compose.yml")
	noError(t, os.WriteFile(file, []byte(strings.Replace(valued, old, replaced, 1)), 0o600))
	return file
}

func readCompose[T any](t *testing.T) (project T) {
	t.Helper()
	output, err := compose(composeFile(t, "    profiles: [gateway]\n", "")) // the parser leaves out what no profile starts
	if err != nil {
		t.Fatal(err)
	}
	noError(t, json.Unmarshal(output, &project))
	return project
}

func TestTheComposeFileIsValidAndKeepsItsPromises(t *testing.T) {
	t.Parallel()
	project := readCompose[manifest](t)
	project.requireAll(t, map[string]any{
		// Only Remit and the gateway are published, on this machine, and Redis is in a network of its own.
		"services.redis.ports": nil, "services.remit.ports.1": nil, "services.gateway.ports.1": nil,
		"services.remit.ports.0.host_ip": "127.0.0.1", "services.gateway.ports.0.host_ip": "127.0.0.1",
		"services.redis.networks": map[string]any{"data": nil}, "services.remit.networks": map[string]any{"data": nil, "default": nil},
		"services.remit.depends_on.redis.condition": "service_healthy", "services.gateway.depends_on.remit.condition": "service_healthy",
		"services.remit.read_only": true, "services.remit.cap_drop": []any{"ALL"}, "services.remit.security_opt": []any{"no-new-privileges:true"},
	})
	for _, same := range []string{"read_only", "mem_limit", "cap_drop", "security_opt", "environment.REMIT_REDIS_URL", "environment.REMIT_ISSUER"} {
		project.requireAll(t, map[string]any{"services.gateway." + same: project.at("services.remit." + same)})
	}
	if project.at("services.redis.mem_limit") == nil || project.at("services.remit.mem_limit") == nil {
		t.Error("there is no memory limit")
	}
}

// The gateway finds each file where its config looks for it, and has the time that its config allows for a stop.
func TestTheComposeFilesGatewayHasItsFilesAndItsTime(t *testing.T) {
	t.Parallel()
	project, config := readCompose[composed](t), manifest{}
	gateway := project.Services["gateway"]
	noError(t, yaml.Unmarshal(must(os.ReadFile("gateway/gateway.yaml"))(t), &config))
	mounted := map[string]string{}
	for _, one := range gateway.Configs {
		mounted[one.Target] = project.Configs[one.Source].File
	}
	for _, one := range gateway.Secrets {
		mounted[cmp.Or(one.Target, "/run/secrets/"+one.Source)] = project.Secrets[one.Source].File
	}
	for _, file := range []string{gateway.Command[2], config.text("prices"), config.text("upstreams.0.key_file")} {
		if mounted[file] == "" {
			t.Errorf("%s is not mounted: %v", file, mounted)
		}
	}
	if file := mounted[gateway.Command[2]]; !strings.HasSuffix(file, "/deploy/gateway/gateway.yaml") {
		t.Errorf("its config is %s", file)
	}
	stops, err := time.ParseDuration(gateway.StopGrace)
	if err != nil || stops.Seconds() <= config.number("stop_seconds")+12 { // as in TestPodsHaveTimeToDrain
		t.Errorf("it is killed after %s, %v", gateway.StopGrace, err)
	}
}

// consoleURL matches where a service logs that its console is.
var consoleURL = regexp.MustCompile(`msg=console url=(http://\S+)/console\n`)

func consoleOf(t *testing.T, service *serviceproc.Service) *url.URL {
	t.Helper()
	noError(t, service.Await(func() bool { return consoleURL.MatchString(service.Output()) }))
	return must(url.Parse(consoleURL.FindStringSubmatch(service.Output())[1]))(t)
}

// signInBehindTLS signs in to a service's console through a proxy that ends TLS, as people do.
func signInBehindTLS(t *testing.T, service *serviceproc.Service, key string) {
	t.Helper()
	console := consoleOf(t, service)
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(console)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}})
	defer proxy.Close()
	person := proxy.Client()
	person.Jar, _ = cookiejar.New(nil)
	signedIn := must(person.PostForm(proxy.URL+"/console", url.Values{"api_key": {key}}))(t)
	defer signedIn.Body.Close()
	page, _ := io.ReadAll(signedIn.Body)
	if signedIn.StatusCode != http.StatusOK || !strings.Contains(string(page), "composed") {
		t.Errorf("signed in, the console answers %s\n%s", signedIn.Status, page)
	}
}

// The test runs the command of the file's Redis outside a container, and the service with the settings of the file's Remit.
func TestTheComposeFilesRedisServesItsRemit(t *testing.T) {
	t.Parallel()
	project, dir := readCompose[composed](t), t.TempDir()
	remit, redis := project.Services["remit"], project.Services["redis"]
	acl := must(filepath.Abs("redis/users.acl"))(t)
	socket := filepath.Join(dir, "redis.sock")
	entrypoint := "#!/bin/sh\nexec \"$@\" --port 0 --unixsocket " + socket + " --dir " + dir + "\n"
	noError(t, os.WriteFile(filepath.Join(dir, "docker-entrypoint.sh"), []byte(entrypoint), 0o700))
	environment := []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	for name, value := range redis.Environment {
		environment = append(environment, name+"="+value)
	}
	script := strings.NewReplacer("/etc/redis/users.acl", acl, "/tmp/users.acl", filepath.Join(dir, "users.acl")).Replace(redis.Command[2])
	server := exec.Command(redis.Command[0], redis.Command[1], script)
	process := must(serviceproc.StartProcess(server, environment...))(t)
	t.Cleanup(func() { _ = process.Stop() })
	asked := func(command ...string) string {
		cmd := exec.Command("redis-cli", append([]string{"-s", socket}, command...)...)
		cmd.Env = environment
		output, _ := cmd.CombinedOutput()
		return strings.TrimSpace(string(output))
	}
	if err := process.Await(func() bool { return asked(redis.Healthcheck.Test[2:]...) == "PONG" }); err != nil {
		t.Fatalf("its health check prints %q: %v", asked(redis.Healthcheck.Test[2:]...), err)
	}
	if refused := asked("config", "get", "*"); !strings.Contains(refused, "NOAUTH") && !strings.Contains(refused, "WRONGPASS") {
		t.Errorf("without a user it answers %q", refused)
	}

	at := func(user, password string) string { return "unix://" + user + ":" + password + "@" + socket }
	if want := "redis://remit:" + redis.Environment["REDIS_PASSWORD"] + "@redis:6379"; remit.Environment["REMIT_REDIS_URL"] != want {
		t.Fatalf("Remit uses %s, want %s", remit.Environment["REMIT_REDIS_URL"], want)
	}
	service := must(serviceproc.LaunchWith(dir, []string{
		"REMIT_LISTEN=127.0.0.1:0", "REMIT_REDIS_URL=" + at("remit", redis.Environment["REDIS_PASSWORD"]),
		"REMIT_ISSUER=" + remit.Environment["REMIT_ISSUER"],
		"REMIT_CONSOLE_LISTEN=" + strings.Replace(remit.Environment["REMIT_CONSOLE_LISTEN"], "0.0.0.0:8081", "127.0.0.1:0", 1),
		"REMIT_TRUSTED_PROXIES=" + strings.Replace(remit.Environment["REMIT_TRUSTED_PROXIES"], "172.31.251.2/32,", "127.0.0.1/32,", 1),
	}))(t)
	t.Cleanup(func() { _ = service.Stop() })
	for _, warning := range []string{"noeviction", "maxmemory", "append"} {
		if strings.Contains(service.Output(), warning) {
			t.Errorf("it warns of its Redis:\n%s", service.Output())
		}
	}
	config := string(must(os.ReadFile("gateway/gateway.yaml"))(t))
	runGateway(t, config, gatewayFile(t, "prices.json"),
		"REMIT_REDIS_URL="+at("remit", redis.Environment["REDIS_PASSWORD"]), "REMIT_ISSUER="+remit.Environment["REMIT_ISSUER"])
	caller := serviceproc.Caller{T: t, URL: service.URL, Kept: map[string]string{}}
	caller.Keep("key", "api_key", "/v1/organizations", nil, `{"name":"composed"}`)
	signInBehindTLS(t, service, caller.Kept["key"])

	binary := must(serviceproc.Program())(t)
	list := exec.Command(binary, "organizations", "list", "--redis-url", at("remit-operator", redis.Environment["REDIS_OPERATOR_PASSWORD"]))
	if output, err := list.CombinedOutput(); err != nil || !strings.Contains(string(output), "composed") {
		t.Errorf("the operator sees %v\n%s", err, output)
	}
}

func TestComposeNeedsAPasswordForRedisAndKnownFields(t *testing.T) {
	t.Parallel()
	for file, wrong := range map[string]string{
		composeFile(t, "cap_drop", "cap_drops"): "cap_drops",
		"../docker-compose.yml":                 "REDIS_PASSWORD is missing a value: docs/operations.md",
	} {
		if output, err := compose(file); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("want %q: %v\n%s", wrong, err, output)
		}
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }

var noError = suite.NoError
