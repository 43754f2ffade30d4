package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
	// schemas is the module of kubectl-validate, which contains the OpenAPI documents of Kubernetes API servers.
	schemas    = "sigs.k8s.io/kubectl-validate@v0.0.4"
	kubernetes = "1.30"
)

// schemaFiles writes a strict JSON schema for each kind that the manifests use.
func schemaFiles(t *testing.T) string {
	t.Helper()
	output, err := exec.Command("go", "mod", "download", "-json", schemas).Output()
	if err != nil {
		t.Fatalf("download of the schemas: %v\n%s", err, output)
	}
	var module struct{ Dir string }
	noError(t, json.Unmarshal(output, &module))
	builtins, dir := filepath.Join(module.Dir, "pkg/openapiclient/builtins", kubernetes), t.TempDir()
	for source, kinds := range map[string]map[string]string{
		"api/v1.json":                    {"core.v1.": "Namespace ServiceAccount ConfigMap Service"},
		"apis/apps/v1.json":              {"apps.v1.": "Deployment"},
		"apis/policy/v1.json":            {"policy.v1.": "PodDisruptionBudget"},
		"apis/autoscaling/v2.json":       {"autoscaling.v2.": "HorizontalPodAutoscaler"},
		"apis/networking.k8s.io/v1.json": {"networking.v1.": "NetworkPolicy"},
	} {
		text := must(os.ReadFile(filepath.Join(builtins, source)))(t)
		var document map[string]any
		noError(t, json.Unmarshal(text, &document))
		tighten(document)
		delete(document, "paths")
		for group, names := range kinds {
			for kind := range strings.FieldsSeq(names) {
				document["$ref"] = "#/components/schemas/io.k8s.api." + group + kind
				text := must(json.Marshal(document))(t)
				noError(t, os.WriteFile(filepath.Join(dir, strings.ToLower(kind)+".json"), text, 0o600))
			}
		}
	}
	return dir
}

// tighten turns an OpenAPI document into a JSON schema that refuses unknown fields.
func tighten(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["properties"].(map[string]any); ok && node["type"] == "object" && node["additionalProperties"] == nil {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			tighten(child)
		}
	case []any:
		for _, child := range node {
			tighten(child)
		}
	}
}

func runKubeconform(t *testing.T, schemas string, files ...string) (string, error) {
	t.Helper()
	args := append([]string{"run", kubeconform, "-strict", "-summary",
		"-schema-location", filepath.Join(schemas, "{{.ResourceKind}}.json")}, files...)
	output, err := exec.Command("go", args...).CombinedOutput()
	return string(output), err
}

func TestManifestsMatchTheSchemasOfKubernetes(t *testing.T) {
	t.Parallel()
	schemas := schemaFiles(t)
	all := slices.Concat(must(filepath.Glob(ofService+"/*.yaml"))(t), must(filepath.Glob(ofGateway+"/*.yaml"))(t))
	files := slices.DeleteFunc(all, func(file string) bool {
		return filepath.Base(file) == "kustomization.yaml" // not an object of the cluster
	})
	output, err := runKubeconform(t, schemas, files...)
	if err != nil || !strings.Contains(output, "Invalid: 0, Errors: 0, Skipped: 0") {
		t.Fatalf("%v\n%s", err, output)
	}

	// The schemas must refuse a misspelled, ill-typed or missing field.
	text := must(os.ReadFile("kubernetes/deployment.yaml"))(t)
	for right, wrong := range map[string]string{
		"readOnlyRootFilesystem": "readOnlyRootFileSystem", "periodSeconds: 2\n": "periodSeconds: 2s\n", "selector:": "# selector:",
	} {
		broken := filepath.Join(t.TempDir(), "deployment.yaml")
		noError(t, os.WriteFile(broken, []byte(strings.Replace(string(text), right, wrong, 1)), 0o600))
		if output, err := runKubeconform(t, schemas, broken); err == nil {
			t.Errorf("kubeconform accepts %q:\n%s", wrong, output)
		}
	}
}
