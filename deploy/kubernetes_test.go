package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// manifest is what the tests look at, of any kind.
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

// manifests reads all of deploy/kubernetes, by kind: there is one of each.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	found := map[string]manifest{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m manifest
		if err := yaml.Unmarshal(text, &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, twice := found[m.Kind]; twice || strings.Contains(string(text), "\n---") {
			t.Fatalf("%s: one document in a file, and one of each kind, is what these tests can read", file)
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); !strings.EqualFold(name, m.Kind) {
			t.Errorf("%s has a %s", file, m.Kind)
		}
		found[m.Kind] = m
	}
	return found
}

func TestKustomizationTakesEveryManifest(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	for kind, m := range all {
		if kind != "Kustomization" && !slices.Contains(all["Kustomization"].Resources, strings.ToLower(kind)+".yaml") {
			t.Errorf("kustomization.yaml leaves out the %s", kind)
		}
		if kind != "Kustomization" && kind != "Namespace" && m.Metadata.Namespace != all["Namespace"].Metadata.Name {
			t.Errorf("the %s is in the namespace %q", kind, m.Metadata.Namespace)
		}
	}
}

func TestPodsHaveNoRightsThatTheyDoNotNeed(t *testing.T) {
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
		"requested processor":       c.Resources.Requests["cpu"] != "", // the autoscaler and the scheduler go by it
	} {
		if !kept {
			t.Errorf("not kept: %s", promise)
		}
	}
}

// TestPodsAreRoutedToByHealthz keeps instances in service while Redis is full or away (docs/operations.md).
func TestPodsAreRoutedToByHealthz(t *testing.T) {
	t.Parallel()
	c := manifests(t)["Deployment"].Spec.Template.Spec.Containers[0]
	for name, is := range map[string][2]string{
		"startup": {c.StartupProbe.HTTPGet.Path, "/readyz"}, "readiness": {c.ReadinessProbe.HTTPGet.Path, "/healthz"},
		"liveness": {c.LivenessProbe.HTTPGet.Path, "/healthz"},
	} {
		if is[0] != is[1] {
			t.Errorf("the %s probe asks %q, want %q", name, is[0], is[1])
		}
	}
	for _, p := range []probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p.HTTPGet.Port != c.Ports[0].Name {
			t.Errorf("a probe asks port %q", p.HTTPGet.Port)
		}
	}
}

// TestMetricsAreForPrometheusAlone keeps them off the port that agents reach: they ask for no credential.
func TestMetricsAreForPrometheusAlone(t *testing.T) {
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
		t.Errorf("Prometheus is sent to port %q", port)
	}
	let := map[any]bool{}
	for _, rule := range all["NetworkPolicy"].Spec.Ingress {
		for _, port := range rule.Ports {
			if let[port.Port] = true; port.Port == "metrics" && len(rule.From) == 0 {
				t.Error("everybody is let in to the metrics")
			}
		}
	}
	if !let["http"] || !let["metrics"] || len(let) != 2 {
		t.Errorf("the policy lets in to %v", let)
	}
}

// TestMemoryIsWatchedBelowItsLimit: an alert beyond the limit would never fire.
func TestMemoryIsWatchedBelowItsLimit(t *testing.T) {
	t.Parallel()
	c := manifests(t)["Deployment"].Spec.Template.Spec.Containers[0]
	limit := bytesOf(t, c.Resources.Limits["memory"])
	rules, err := os.ReadFile("prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`process_resident_memory_bytes\{job="remit"\} > (\S+)\n`).FindSubmatch(rules)
	if found == nil {
		t.Fatal("no alert looks at the memory")
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
	t.Error("the garbage collector does not know the limit")
}

// bytesOf reads a quantity as Kubernetes writes it, in Mi or Gi.
func bytesOf(t *testing.T, quantity string) float64 {
	t.Helper()
	for unit, bytes := range map[string]float64{"Mi": 1 << 20, "Gi": 1 << 30} {
		if number, is := strings.CutSuffix(quantity, unit); is {
			if value, err := strconv.ParseFloat(number, 64); err == nil {
				return value * bytes
			}
		}
	}
	t.Fatalf("%q is no quantity", quantity)
	return 0
}

func TestPodsHaveTimeToDrain(t *testing.T) {
	t.Parallel()
	const drain = 8 // seconds, shutdownGrace in serve.go
	pod := manifests(t)["Deployment"].Spec.Template.Spec
	if wait := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds; wait == 0 || pod.TerminationGracePeriodSeconds <= wait+drain {
		t.Errorf("%d seconds until a pod is killed are no more than %d before the signal and %d after it",
			pod.TerminationGracePeriodSeconds, wait, drain)
	}
}

func TestAllThatSelectsSelectsThePods(t *testing.T) {
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
		t.Error("nothing spreads the pods")
	}
	for i := range spread {
		if !selects(spread[i].LabelSelector) {
			t.Error("the spread is over other pods")
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
		t.Error("two instances at the least, and one place that says how many")
	}
	if pod := deployment.Spec.Template.Spec; pod.ServiceAccountName != all["ServiceAccount"].Metadata.Name ||
		pod.Containers[0].EnvFrom[0].ConfigMapRef.Name != all["ConfigMap"].Metadata.Name {
		t.Error("the pods have another account or other settings")
	}
}
