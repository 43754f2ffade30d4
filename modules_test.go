package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/test/suite"
)

// Programs that import the SDK get the modules of the SDK and of money amounts, a JSON library that needs no other, and none
// of the service.
func TestUsersOfTheGoSDKInheritOneDependency(t *testing.T) {
	t.Parallel()
	page := suite.Must(os.ReadFile("client/README.md"))(t)
	install := regexp.MustCompile("(?s)```sh\n(.*?)```").FindSubmatch(page)
	if install == nil {
		t.Fatal("client/README.md does not say how the SDK is imported")
	}
	here := suite.Must(filepath.Abs("."))(t)
	dir := t.TempDir()
	const program = `package main

import (
	"fmt"

	"remit/client"
	"remit/money"
)

func main() {
	_, err := client.New("https://remit.example.com", client.Options{})
	fmt.Println(37*money.USD/100, err)
}
`
	suite.Must(0, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))(t)
	inModule(t, dir, nil, "go", "mod", "init", "example.com/agent")
	inModule(t, dir, []string{"REMIT=" + here}, "sh", "-eu", "-c", string(install[1]))
	if printed := inModule(t, dir, nil, "go", "run", "."); printed != "0.37 <nil>\n" {
		t.Errorf("the program prints %s", printed)
	}
	var modules []string
	for line := range strings.Lines(inModule(t, dir, nil, "go", "list", "-m", "all")) {
		modules = append(modules, strings.Fields(line)[0])
	}
	if want := []string{"example.com/agent", "github.com/goccy/go-json", "remit/client", "remit/money"}; !slices.Equal(modules, want) {
		t.Errorf("its modules are %q, want %q", modules, want)
	}
	packages := slices.DeleteFunc(strings.Fields(inModule(t, dir, nil, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")),
		func(path string) bool { return strings.HasPrefix(path, "github.com/goccy/go-json") })
	if want := []string{"remit/money", "remit/client", "example.com/agent"}; !slices.Equal(packages, want) {
		t.Errorf("it is made of %q, want %q", packages, want)
	}
}

// inModule runs a command in a directory, without the network, and returns what it prints.
func inModule(t *testing.T, dir string, settings []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=mod", "GOWORK=off"), settings...)
	var problems strings.Builder
	cmd.Stderr = &problems
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, problems.String())
	}
	return string(output)
}

// The image downloads the modules before it copies the sources, and needs every go.mod of the repository for that.
func TestTheImageHasEveryModuleFileBeforeItDownloads(t *testing.T) {
	t.Parallel()
	text := suite.Must(os.ReadFile("Dockerfile"))(t)
	before, _, found := strings.Cut(string(text), "RUN go mod download")
	if !found {
		t.Fatal("the Dockerfile downloads nothing")
	}
	for _, module := range nestedModules(t) {
		if line := "COPY " + module + "/go.mod " + module + "/\n"; !strings.Contains(before, line) {
			t.Errorf("before the download it lacks %s", line)
		}
	}
}

// ./... leaves out nested modules, so scripts that check or test everything must name them too.
func TestScriptsCoverEveryModule(t *testing.T) {
	t.Parallel()
	output := suite.Must(exec.Command("bash", "-euc", `. ./scripts/modules.sh; go list "${packages[@]}"; printf '%s\n' "${modules[@]}"`).Output())(t)
	listed := strings.Fields(string(output))
	nested := nestedModules(t)
	if want := []string{"client", "client/mcp", "money"}; !slices.Equal(slices.Sorted(slices.Values(nested)), want) {
		t.Errorf("the modules are %q, want %q", nested, want)
	}
	for _, module := range nested {
		if !slices.Contains(listed, "remit/"+module) || !slices.Contains(listed, "./"+module) {
			t.Errorf("scripts/modules.sh leaves out %s: %q", module, listed)
		}
	}
	for _, script := range []string{"test.sh", "lint.sh", "vulnerabilities.sh"} {
		text := suite.Must(os.ReadFile(filepath.Join("scripts", script)))(t)
		if strings.Contains(string(text), "./...") || !regexp.MustCompile(`\$\{(modules|packages)\[@\]\}`).Match(text) {
			t.Errorf("scripts/%s does not go by scripts/modules.sh", script)
		}
	}
}

// nestedModules are the directories of the modules below the top that the service uses.
func nestedModules(t *testing.T) []string {
	t.Helper()
	output := suite.Must(exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*/go.mod").Output())(t)
	used := string(suite.Must(os.ReadFile("go.mod"))(t))
	var dirs []string
	for _, file := range strings.Fields(string(output)) {
		if dir := filepath.Dir(file); strings.Contains(used, " => ./"+dir+"\n") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
