package deploy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"remit/test/serviceproc"
	"sigs.k8s.io/yaml"
)

// manifest is an object of the cluster.
type manifest map[string]any

// at returns what is at a path, such as spec.template.spec.containers.0, or nil.
func (m manifest) at(path string) (found any) {
	found = map[string]any(m)
	for name := range strings.SplitSeq(path, ".") {
		switch node := found.(type) {
		case map[string]any:
			found = node[name]
		case []any:
			found = nil
			if i, err := strconv.Atoi(name); err == nil && i < len(node) {
				found = node[i]
			}
		default:
			return nil
		}
	}
	return found
}

func (m manifest) text(path string) string { return fmt.Sprint(m.at(path)) }

func (m manifest) number(path string) float64 {
	number, _ := m.at(path).(float64)
	return number
}

// The directories of manifests: of the service, and of the gateway beside it.
const (
	ofService = "kubernetes"
	ofGateway = "kubernetes/gateway"
)

// eachDirectory runs a test of the manifests of the service and of the gateway.
func eachDirectory(t *testing.T, test func(t *testing.T, all map[string]manifest)) {
	t.Helper()
	for _, directory := range []string{ofService, ofGateway} {
		t.Run(directory, func(t *testing.T) { test(t, manifests(t, directory)) })
	}
}

// manifests reads a directory by kind. Each kind has one manifest.
func manifests(t *testing.T, directory string) map[string]manifest {
	t.Helper()
	files := must(filepath.Glob(directory + "/*.yaml"))(t)
	if len(files) == 0 {
		t.Fatal("no manifests")
	}
	found := map[string]manifest{}
	for _, file := range files {
		text := must(os.ReadFile(file))(t)
		m := manifest{}
		noError(t, yaml.Unmarshal(text, &m))
		kind := m.text("kind")
		if _, twice := found[kind]; twice || strings.Contains(string(text), "\n---") {
			t.Fatalf("%s: these tests support one document per file, and one of each kind", file)
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); !strings.EqualFold(name, kind) {
			t.Errorf("%s contains a %s", file, kind)
		}
		found[kind] = m
	}
	return found
}

// pod is the path of the pods in the Deployment, and remit that of their container.
const (
	pod   = "spec.template.spec"
	remit = pod + ".containers.0"
)

func (m manifest) requireAll(t *testing.T, wanted map[string]any) {
	t.Helper()
	for path, want := range wanted {
		if got := m.at(path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

func TestKustomizationListsEveryManifest(t *testing.T) {
	t.Parallel()
	namespace := manifests(t, ofService)["Namespace"].text("metadata.name")
	eachDirectory(t, func(t *testing.T, all map[string]manifest) {
		listed, _ := all["Kustomization"].at("resources").([]any)
		for kind, m := range all {
			if kind != "Kustomization" && !slices.Contains(listed, any(strings.ToLower(kind)+".yaml")) {
				t.Errorf("kustomization.yaml lacks the %s", kind)
			}
			if kind != "Kustomization" && kind != "Namespace" && m.text("metadata.namespace") != namespace {
				t.Errorf("the %s is in the namespace %q", kind, m.text("metadata.namespace"))
			}
		}
	})
}

func TestPodsHaveLeastPrivilege(t *testing.T) {
	t.Parallel()
	eachDirectory(t, func(t *testing.T, all map[string]manifest) {
		deployment := all["Deployment"]
		deployment.requireAll(t, map[string]any{
			pod + ".containers.1": nil, pod + ".securityContext.runAsNonRoot": true, pod + ".securityContext.seccompProfile.type": "RuntimeDefault",
			pod + ".automountServiceAccountToken": false, remit + ".securityContext.readOnlyRootFilesystem": true,
			remit + ".securityContext.allowPrivilegeEscalation": false, remit + ".securityContext.capabilities.drop": []any{"ALL"},
		})
		if deployment.number(pod+".securityContext.runAsUser") == 0 {
			t.Error("the user is root")
		}
		if deployment.at(remit+".resources.requests.cpu") == nil { // the autoscaler and the scheduler use it
			t.Error("no CPU is requested")
		}
	})
}

// kubectl port-forward connects within the pod, so the console is asked from its own machine.
func TestAForwardedPortReachesTheConsole(t *testing.T) {
	t.Parallel()
	host, _, err := net.SplitHostPort(manifests(t, ofService)["ConfigMap"].text("data.REMIT_CONSOLE_LISTEN"))
	noError(t, err)
	dir := t.TempDir()
	service := must(serviceproc.LaunchWith(dir, []string{"REMIT_LISTEN=0.0.0.0:0", "REMIT_CONSOLE_LISTEN=" + host + ":0", "REMIT_DATA_DIR=" + dir}))(t)
	t.Cleanup(func() { _ = service.Stop() })
	answered := must(http.Get("http://localhost:" + consoleOf(t, service).Port() + "/console"))(t)
	defer answered.Body.Close()
	if page, _ := io.ReadAll(answered.Body); answered.StatusCode != http.StatusOK || !strings.Contains(string(page), "API key") {
		t.Errorf("the console answers %s\n%s", answered.Status, page)
	}
}

// Readiness by /healthz keeps instances in service while Redis is full or unreachable (docs/operations.md). A gateway begins no call then.
func TestReadinessProbesUseHealthzAndThoseOfTheGatewayReadyz(t *testing.T) {
	t.Parallel()
	for directory, readiness := range map[string]string{ofService: "/healthz", ofGateway: "/readyz"} {
		manifests(t, directory)["Deployment"].requireAll(t, map[string]any{
			remit + ".ports.0.name":                "http",
			remit + ".startupProbe.httpGet.path":   "/readyz",
			remit + ".startupProbe.httpGet.port":   "http",
			remit + ".readinessProbe.httpGet.path": readiness,
			remit + ".readinessProbe.httpGet.port": "http",
			remit + ".livenessProbe.httpGet.path":  "/healthz",
			remit + ".livenessProbe.httpGet.port":  "http",
		})
	}
}

// Metrics need no credential, so they must not be on the port that agents reach.
func TestOnlyPrometheusReachesTheMetrics(t *testing.T) {
	t.Parallel()
	settings, config := manifests(t, ofService)["ConfigMap"], gatewayConfig(t)
	eachDirectory(t, func(t *testing.T, all map[string]manifest) {
		deployment, listens := all["Deployment"], settings.text("data.REMIT_LISTEN")
		if all["Namespace"] == nil {
			listens = config.text("listen")
		}
		deployment.requireAll(t, map[string]any{remit + ".ports.0.name": "http", remit + ".ports.1.name": "metrics", remit + ".ports.2": nil})
		api, metrics := deployment.text(remit+".ports.0.containerPort"), deployment.text(remit+".ports.1.containerPort")
		if listens != "0.0.0.0:"+api || settings.text("data.REMIT_METRICS_LISTEN") != "0.0.0.0:"+metrics {
			t.Errorf("it listens at %s and %s, not at the ports %s and %s", listens, settings.text("data.REMIT_METRICS_LISTEN"), api, metrics)
		}
		annotations, _ := deployment.at("spec.template.metadata.annotations").(map[string]any)
		if annotations["prometheus.io/port"] != metrics {
			t.Errorf("the annotation sends Prometheus to port %v", annotations["prometheus.io/port"])
		}
		allowed := allowedPorts(t, all["NetworkPolicy"])
		if !allowed["http"] || !allowed["metrics"] || len(allowed) != 2 {
			t.Errorf("the policy allows %v", allowed)
		}
	})
}

// allowedPorts returns the ports that a policy lets others reach: the metrics only from somewhere.
func allowedPorts(t *testing.T, policy manifest) map[any]bool {
	t.Helper()
	allowed := map[any]bool{}
	rules, _ := policy.at("spec.ingress").([]any)
	for _, each := range rules {
		rule := manifest(each.(map[string]any))
		ports, _ := rule.at("ports").([]any)
		for i := range ports {
			port := rule.at(fmt.Sprintf("ports.%d.port", i))
			if allowed[port] = true; port == "metrics" && rule.at("from.0") == nil {
				t.Error("the policy allows every client to read the metrics")
			}
		}
	}
	return allowed
}

// An alert above the memory limit would never fire.
func TestTheMemoryAlertIsBelowTheLimit(t *testing.T) {
	t.Parallel()
	rules := must(os.ReadFile("prometheus/alerts.yml"))(t)
	found := regexp.MustCompile(`process_resident_memory_bytes\{job="remit"\} > (\S+)\n`).FindSubmatch(rules)
	if found == nil {
		t.Fatal("no alert uses the memory")
	}
	eachDirectory(t, func(t *testing.T, all map[string]manifest) {
		deployment := all["Deployment"]
		limit := bytesOf(t, deployment.text(remit+".resources.limits.memory"))
		if alert, err := strconv.ParseFloat(string(found[1]), 64); err != nil || alert < limit/2 || alert > limit*0.8 {
			t.Errorf("the alert is at %s of %.0f bytes, %v", found[1], limit, err)
		}
		deployment.requireAll(t, map[string]any{remit + ".env.1.name": "GOMEMLIMIT"})
		value := deployment.text(remit + ".env.1.value")
		if most := bytesOf(t, strings.TrimSuffix(value, "B")); most < limit*0.8 || most > limit*0.95 {
			t.Errorf("GOMEMLIMIT is %s of %.0f bytes", value, limit)
		}
	})
}

// bytesOf parses a Kubernetes quantity in Mi or Gi.
func bytesOf(t *testing.T, quantity string) float64 {
	t.Helper()
	for unit, bytes := range map[string]float64{"Mi": 1 << 20, "Gi": 1 << 30} {
		if number, is := strings.CutSuffix(quantity, unit); is {
			if value, err := strconv.ParseFloat(number, 64); err == nil {
				return value * bytes
			}
		}
	}
	t.Fatalf("%q is not a quantity", quantity)
	return 0
}

func TestPodsHaveTimeToDrain(t *testing.T) {
	t.Parallel()
	for directory, drain := range map[string]float64{
		ofService: 8,                                            // seconds, shutdownGrace in serve.go
		ofGateway: gatewayConfig(t).number("stop_seconds") + 12, // and what Stop and run wait for after that
	} {
		deployment := manifests(t, directory)["Deployment"]
		wait, grace := deployment.number(remit+".lifecycle.preStop.sleep.seconds"), deployment.number(pod+".terminationGracePeriodSeconds")
		if wait == 0 || drain <= 12 && directory == ofGateway || grace <= wait+drain {
			t.Errorf("%s: the grace period of %v seconds must exceed %v seconds of preStop plus %v seconds of drain", directory, grace, wait, drain)
		}
	}
}

func TestEverySelectorMatchesThePods(t *testing.T) {
	t.Parallel()
	service := manifests(t, ofService)
	eachDirectory(t, func(t *testing.T, all map[string]manifest) {
		deployment := all["Deployment"]
		labels, _ := deployment.at("spec.template.metadata.labels").(map[string]any)
		for _, of := range []struct{ kind, path string }{
			{"Deployment", "spec.selector.matchLabels"}, {"Deployment", pod + ".topologySpreadConstraints.0.labelSelector.matchLabels"},
			{"Deployment", pod + ".topologySpreadConstraints.1.labelSelector.matchLabels"}, {"Service", "spec.selector"},
			{"PodDisruptionBudget", "spec.selector.matchLabels"}, {"NetworkPolicy", "spec.podSelector.matchLabels"},
		} {
			selector, _ := all[of.kind].at(of.path).(map[string]any)
			for name, value := range selector {
				if labels[name] != value {
					t.Errorf("the %s selects %v, the pods have %v", of.kind, selector, labels)
				}
			}
			if len(selector) == 0 {
				t.Errorf("the %s has no selector at %s", of.kind, of.path)
			}
		}
		deployment.requireAll(t, map[string]any{
			pod + ".topologySpreadConstraints.2":   nil,
			pod + ".serviceAccountName":            service["ServiceAccount"].at("metadata.name"),
			remit + ".envFrom.0.configMapRef.name": service["ConfigMap"].at("metadata.name"),
		})
	})
}

func TestThereAreAtLeastTwoInstances(t *testing.T) {
	t.Parallel()
	service := manifests(t, ofService)
	deployment, scaler := service["Deployment"], service["HorizontalPodAutoscaler"]
	deployment.requireAll(t, map[string]any{"spec.replicas": nil}) // their number is the autoscaler's
	scaler.requireAll(t, map[string]any{"spec.scaleTargetRef.kind": "Deployment", "spec.scaleTargetRef.name": deployment.at("metadata.name")})
	if scaler.number("spec.minReplicas") < 2 || manifests(t, ofGateway)["Deployment"].number("spec.replicas") < 2 {
		t.Error("want at least two instances")
	}
}
