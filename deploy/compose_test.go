package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compose reads a file with the parser of docker compose itself, and returns what it makes of it.
func compose(file string) ([]byte, error) {
	return exec.Command("go", "run", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2", "-format", "json", file).Output()
}

func TestTheComposeFileIsValidAndKeepsWhatItSays(t *testing.T) {
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
		"Remit alone is published, on this machine": len(redis.Ports) == 0 && len(remit.Ports) == 1 && remit.Ports[0].HostIP == "127.0.0.1",
		"Redis never evicts":                        strings.Contains(strings.Join(redis.Command, " "), "--maxmemory-policy noeviction"),
		"Redis has a bound":                         strings.Contains(strings.Join(redis.Command, " "), "--maxmemory 1gb"),
		"Redis writes before it acknowledges":       strings.Contains(strings.Join(redis.Command, " "), "--appendfsync always"),
		"Remit waits for Redis":                     remit.DependsOn["redis"].Condition == "service_healthy",
		"Remit uses that Redis":                     remit.Environment["REMIT_REDIS_URL"] == "redis://redis:6379",
		"Remit writes nothing":                      remit.ReadOnly,
		"Remit has no rights":                       len(remit.CapDrop) == 1 && remit.CapDrop[0] == "ALL" && len(remit.SecurityOpt) == 1,
	} {
		if !kept {
			t.Errorf("not kept: %s\n%s", promise, output)
		}
	}
}

func TestAMisspeltComposeFileIsNotValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	spoilt := filepath.Join(t.TempDir(), "docker-compose.yml")
	if err := os.WriteFile(spoilt, []byte(strings.Replace(string(text), "cap_drop", "cap_drops", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := compose(spoilt); err == nil {
		t.Errorf("it passes:\n%s", output)
	}
}
