package deploy

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"remit/test/serviceproc"
	"sigs.k8s.io/yaml"
)

// manifest has the fields of all kinds that the tests read.
type manifest struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data      map[string]string
	Resources []string // of the kustomization
	Spec      struct {
		Replicas       *int
		Selector       any // {matchLabels: …}, or the labels themselves in a Service
		PodSelector    any
		ScaleTargetRef struct{ Kind, Name string }
		MinReplicas    int
		MaxUnavailable any
		Ingress        []struct {
			From  []any
			Ports []struct{ Port any }
		}
		Template struct {
			Metadata struct{ Labels, Annotations map[string]string }
			Spec     podSpec
		}
	}
}

type podSpec struct {
	TerminationGracePeriodSeconds int
	AutomountServiceAccountToken  *bool
	ServiceAccountName            string
	SecurityContext               struct {
		RunAsNonRoot   bool
		RunAsUser      int
		SeccompProfile struct{ Type string }
	}
	TopologySpreadConstraints []struct{ LabelSelector any }
	Containers                []container
}

type container struct {
	EnvFrom []struct{ ConfigMapRef struct{ Name string } }
	Env     []struct{ Name, Value string }
	Ports   []struct {
		Name          string
		ContainerPort int
	}
	StartupProbe, ReadinessProbe, LivenessProbe probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string }
}

// manifests reads deploy/kubernetes by kind. Each kind has one manifest.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	found := map[string]manifest{}
	for _, file := range files {
		text := must(os.ReadFile(file))(t)
		var m manifest
		if err := yaml.Unmarshal(text, &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, twice := found[m.Kind]; twice || strings.Contains(string(text), "\n---") {
			t.Fatalf("%s: these tests support one document per file, and one of each kind", file)
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); !strings.EqualFold(name, m.Kind) {
			t.Errorf("%s contains a %s", file, m.Kind)
		}
		found[m.Kind] = m
	}
	return found
}

func TestKustomizationListsEveryManifest(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	for kind, m := range all {
		if kind != "Kustomization" && !slices.Contains(all["Kustomization"].Resources, strings.ToLower(kind)+".yaml") {
			t.Errorf("kustomization.yaml lacks the %s", kind)
		}
		if kind != "Kustomization" && kind != "Namespace" && m.Metadata.Namespace != all["Namespace"].Metadata.Name {
			t.Errorf("the %s is in the namespace %q", kind, m.Metadata.Namespace)
		}
	}
}

func TestPodsHaveLeastPrivilege(t *testing.T) {
	t.Parallel()
	pod := manifests(t)["Deployment"].Spec.Template.Spec
	c := pod.Containers[0]
	for promise, kept := range map[string]bool{
		"one container":             len(pod.Containers) == 1,
		"not root":                  pod.SecurityContext.RunAsNonRoot && pod.SecurityContext.RunAsUser > 0,
		"seccomp RuntimeDefault":    pod.SecurityContext.SeccompProfile.Type == "RuntimeDefault",
		"no service account token":  pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken,
		"read-only root filesystem": c.SecurityContext.ReadOnlyRootFilesystem,
		"no privilege escalation":   c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation,
		"no capability":             slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}),
		"bounded memory":            c.Resources.Limits["memory"] != "",
		"requested processor":       c.Resources.Requests["cpu"] != "", // the autoscaler and the scheduler use it
	} {
		if !kept {
			t.Errorf("not kept: %s", promise)
		}
	}
}

// Readiness by /healthz keeps instances in service while Redis is full or unreachable (docs/operations.md).
// kubectl port-forward connects within the pod, so the console is asked from its own machine.
func TestAForwardedPortReachesTheConsole(t *testing.T) {
	t.Parallel()
	host, _, err := net.SplitHostPort(manifests(t)["ConfigMap"].Data["REMIT_CONSOLE_LISTEN"])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	service := must(serviceproc.LaunchWith(dir, []string{"REMIT_LISTEN=0.0.0.0:0", "REMIT_CONSOLE_LISTEN=" + host + ":0", "REMIT_DATA_DIR=" + dir}))(t)
	t.Cleanup(func() { _ = service.Stop() })
	answered := must(http.Get("http://localhost:" + consoleOf(t, service).Port() + "/console"))(t)
	defer answered.Body.Close()
	if page, _ := io.ReadAll(answered.Body); answered.StatusCode != http.StatusOK || !strings.Contains(string(page), "API key") {
		t.Errorf("the console answers %s\n%s", answered.Status, page)
	}
}

func TestReadinessProbesUseHealthz(t *testing.T) {
	t.Parallel()
	c := manifests(t)["Deployment"].Spec.Template.Spec.Containers[0]
	for name, is := range map[string][2]string{
		"startup": {c.StartupProbe.HTTPGet.Path, "/readyz"}, "readiness": {c.ReadinessProbe.HTTPGet.Path, "/healthz"},
		"liveness": {c.LivenessProbe.HTTPGet.Path, "/healthz"},
	} {
		if is[0] != is[1] {
			t.Errorf("the %s probe gets %q, want %q", name, is[0], is[1])
		}
	}
	for _, p := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p.HTTPGet.Port != c.Ports[0].Name {
			t.Errorf("a probe uses port %q", p.HTTPGet.Port)
		}
	}
}

// Metrics need no credential, so they must not be on the port that agents reach.
func TestOnlyPrometheusReachesTheMetrics(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	settings, template := all["ConfigMap"].Data, all["Deployment"].Spec.Template
	ports := map[string]string{}
	for _, port := range template.Spec.Containers[0].Ports {
		ports[port.Name] = strconv.Itoa(port.ContainerPort)
	}
	for name, setting := range map[string]string{"http": "REMIT_LISTEN", "metrics": "REMIT_METRICS_LISTEN"} {
		if ports[name] == "" || settings[setting] != "0.0.0.0:"+ports[name] {
			t.Errorf("the port %s is %q, %s is %q", name, ports[name], setting, settings[setting])
		}
	}
	if port := template.Metadata.Annotations["prometheus.io/port"]; port != ports["metrics"] {
		t.Errorf("the annotation sends Prometheus to port %q", port)
	}
	allowed := map[any]bool{}
	for _, rule := range all["NetworkPolicy"].Spec.Ingress {
		for _, port := range rule.Ports {
			if allowed[port.Port] = true; port.Port == "metrics" && len(rule.From) == 0 {
				t.Error("the policy allows every client to read the metrics")
			}
		}
	}
	if !allowed["http"] || !allowed["metrics"] || len(allowed) != 2 {
		t.Errorf("the policy allows %v", allowed)
	}
}

// An alert above the memory limit would never fire.
func TestTheMemoryAlertIsBelowTheLimit(t *testing.T) {
	t.Parallel()
	c := manifests(t)["Deployment"].Spec.Template.Spec.Containers[0]
	limit := bytesOf(t, c.Resources.Limits["memory"])
	rules := must(os.ReadFile("prometheus/alerts.yml"))(t)
	found := regexp.MustCompile(`process_resident_memory_bytes\{job="remit"\} > (\S+)\n`).FindSubmatch(rules)
	if found == nil {
		t.Fatal("no alert uses the memory")
	}
	if alert, err := strconv.ParseFloat(string(found[1]), 64); err != nil || alert < limit/2 || alert > limit*0.8 {
		t.Errorf("the alert is at %s of %.0f bytes, %v", found[1], limit, err)
	}
	for _, variable := range c.Env {
		if variable.Name != "GOMEMLIMIT" {
			continue
		}
		if most := bytesOf(t, strings.TrimSuffix(variable.Value, "B")); most < limit*0.8 || most > limit*0.95 {
			t.Errorf("GOMEMLIMIT is %s of %.0f bytes", variable.Value, limit)
		}
		return
	}
	t.Error("GOMEMLIMIT is not set")
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
	const drain = 8 // seconds, shutdownGrace in serve.go
	pod := manifests(t)["Deployment"].Spec.Template.Spec
	if wait := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds; wait == 0 || pod.TerminationGracePeriodSeconds <= wait+drain {
		t.Errorf("the grace period of %d seconds must exceed %d seconds of preStop plus %d seconds of drain",
			pod.TerminationGracePeriodSeconds, wait, drain)
	}
}

func TestEverySelectorMatchesThePods(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	deployment := all["Deployment"]
	labels := deployment.Spec.Template.Metadata.Labels
	selects := func(selector any) bool {
		m, _ := selector.(map[string]any)
		if inner, ok := m["matchLabels"].(map[string]any); ok {
			m = inner
		}
		for name, value := range m {
			if labels[name] != value {
				return false
			}
		}
		return len(m) > 0
	}
	spread := deployment.Spec.Template.Spec.TopologySpreadConstraints
	if len(spread) == 0 {
		t.Error("the deployment has no topologySpreadConstraints")
	}
	for i := range spread {
		if !selects(spread[i].LabelSelector) {
			t.Error("a topologySpreadConstraint selects other pods")
		}
	}
	for name, selector := range map[string]any{
		"Deployment": deployment.Spec.Selector, "Service": all["Service"].Spec.Selector,
		"PodDisruptionBudget": all["PodDisruptionBudget"].Spec.Selector, "NetworkPolicy": all["NetworkPolicy"].Spec.PodSelector,
	} {
		if !selects(selector) {
			t.Errorf("the %s selects %v, the pods have %v", name, selector, labels)
		}
	}
	scaled := all["HorizontalPodAutoscaler"].Spec
	if scaled.ScaleTargetRef.Kind != "Deployment" || scaled.ScaleTargetRef.Name != deployment.Metadata.Name {
		t.Errorf("the autoscaler scales %v", scaled.ScaleTargetRef)
	}
	if scaled.MinReplicas < 2 || deployment.Spec.Replicas != nil {
		t.Error("want at least two instances, and their number only in the autoscaler")
	}
	if pod := deployment.Spec.Template.Spec; pod.ServiceAccountName != all["ServiceAccount"].Metadata.Name ||
		pod.Containers[0].EnvFrom[0].ConfigMapRef.Name != all["ConfigMap"].Metadata.Name {
		t.Error("the pods use another service account or another ConfigMap")
	}
}
