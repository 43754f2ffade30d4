package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compose parses a file with the parser of docker compose, and returns the result as JSON.
func compose(file string) ([]byte, error) {
	return exec.Command("go", "run", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2", "-format", "json", file).Output()
}

func TestTheComposeFileIsValidAndKeepsItsPromises(t *testing.T) {
	t.Parallel()
	output, err := compose("../docker-compose.yml")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	var project struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
			Ports       []struct {
				HostIP string `json:"host_ip"`
			}
			ReadOnly    bool                                  `json:"read_only"`
			CapDrop     []string                              `json:"cap_drop"`
			SecurityOpt []string                              `json:"security_opt"`
			DependsOn   map[string]struct{ Condition string } `json:"depends_on"`
		}
	}
	if err := json.Unmarshal(output, &project); err != nil {
		t.Fatal(err)
	}
	remit, redis := project.Services["remit"], project.Services["redis"]
	for promise, kept := range map[string]bool{
		"Only Remit is published, on this machine": len(redis.Ports) == 0 && len(remit.Ports) == 1 && remit.Ports[0].HostIP == "127.0.0.1",
		"Redis never evicts":                       strings.Contains(strings.Join(redis.Command, " "), "--maxmemory-policy noeviction"),
		"Redis has a memory limit":                 strings.Contains(strings.Join(redis.Command, " "), "--maxmemory 1gb"),
		"Redis writes before it acknowledges":      strings.Contains(strings.Join(redis.Command, " "), "--appendfsync always"),
		"Remit waits for Redis":                    remit.DependsOn["redis"].Condition == "service_healthy",
		"Remit uses that Redis":                    remit.Environment["REMIT_REDIS_URL"] == "redis://redis:6379",
		"Remit has a read-only file system":        remit.ReadOnly,
		"Remit has no capabilities":                len(remit.CapDrop) == 1 && remit.CapDrop[0] == "ALL" && len(remit.SecurityOpt) == 1,
	} {
		if !kept {
			t.Errorf("not kept: %s\n%s", promise, output)
		}
	}
}

func TestAMisspelledComposeFileIsInvalid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "docker-compose.yml")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), "cap_drop", "cap_drops", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := compose(broken); err == nil {
		t.Errorf("the parser accepts it:\n%s", output)
	}
}
