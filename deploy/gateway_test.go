package deploy

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"remit/test/serviceproc"
	"sigs.k8s.io/yaml"
)

// gatewayFile returns a file of the ConfigMap in the gateway's manifests.
func gatewayFile(t *testing.T, name string) string {
	t.Helper()
	files, _ := manifests(t, ofGateway)["ConfigMap"].at("data").(map[string]any)
	text, _ := files[name].(string)
	return text
}

func gatewayConfig(t *testing.T) manifest {
	t.Helper()
	config := manifest{}
	noError(t, yaml.Unmarshal([]byte(gatewayFile(t, "gateway.yaml")), &config))
	return config
}

// runGateway starts a gateway with a config for containers, whose files are in a directory of the test's here, and waits until it is ready.
func runGateway(t *testing.T, config, prices string, settings ...string) {
	t.Helper()
	config = strings.NewReplacer("0.0.0.0:8090", "127.0.0.1:0", "127.0.0.1:8090", "127.0.0.1:0", "/etc/remit/providers/openai.key", "openai.key",
		"/run/secrets/openai", "openai.key", "/etc/remit/prices.json", "prices.json").Replace(config)
	const key = "key-of-the-provider\n"
	gateway := serviceproc.RunGateway(t, map[string]string{
		serviceproc.GatewayConfig: config, "prices.json": prices, "openai.key": key, "anthropic.key": key,
	}, settings...)
	binary := must(serviceproc.Program())(t)
	if output, err := exec.Command(binary, "healthcheck", "--listen", strings.TrimPrefix(gateway.URL, "http://")).CombinedOutput(); err != nil {
		t.Errorf("its health check: %v\n%s\n%s", err, output, gateway.Output())
	}
	answer := must(http.Get(gateway.URL + "/openai/v1/models"))(t)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a credential the upstream answers %s", answer.Status)
	}
}

// The gateway gets the service's settings, and files that are mounted where its config and its settings look for them.
func TestTheManifestsAndThePageRunAGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	service := must(serviceproc.Launch(dir))(t)
	t.Cleanup(func() { noError(t, service.Stop()) })
	settings := []string{"REMIT_REDIS_URL=" + string(must(os.ReadFile(filepath.Join(dir, "data/redis.url")))(t))}
	given, _ := manifests(t, ofService)["ConfigMap"].at("data").(map[string]any)
	for name, value := range given {
		switch text := value.(string); name {
		case "REMIT_SIGNING_KEY", "REMIT_TOKEN_KEY": // here both are in Redis
		default:
			settings = append(settings, name+"="+strings.Replace(text, "0.0.0.0:9090", "127.0.0.1:0", 1))
		}
	}
	runGateway(t, gatewayFile(t, "gateway.yaml"), gatewayFile(t, "prices.json"), settings...)
	page := string(must(os.ReadFile("../docs/gateway.md"))(t))
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)[1]
	shown = strings.ReplaceAll(shown, "ORGANIZATION", "01a22537-f2c0-7384-9211-b0e876d36242")
	runGateway(t, shown, gatewayFile(t, "prices.json"), settings...)

	deployment, mounted := manifests(t, ofGateway)["Deployment"], map[string]bool{}
	mounts, _ := deployment.at(remit + ".volumeMounts").([]any)
	for _, mount := range mounts {
		mounted[manifest(mount.(map[string]any)).text("mountPath")] = true
	}
	for _, file := range []string{
		fmt.Sprint(given["REMIT_SIGNING_KEY"]), fmt.Sprint(given["REMIT_TOKEN_KEY"]), deployment.text(remit + ".args.2"), gatewayConfig(t).text("upstreams.0.key_file"),
	} {
		if !mounted[filepath.Dir(file)] {
			t.Errorf("%s is not mounted", file)
		}
	}
}
