package openapi

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/tool"
)

// partsOf returns the operations that a program has samples of.
func partsOf(program string) []string {
	var all []string
	for _, part := range samplePart.FindAllStringSubmatch(program, -1) {
		all = append(all, part[1])
	}
	slices.Sort(all)
	return all
}

func TestEverySDKHasSamplesOfTheSameOperations(t *testing.T) {
	t.Parallel()
	want := partsOf(goSamples)
	if len(want) < 40 {
		t.Errorf("the Go SDK has samples of only %d operations", len(want))
	}
	for language, program := range map[string]string{"TypeScript": typeScriptSamples, "Python": pythonSamples} {
		if got := partsOf(program); !slices.Equal(got, want) {
			t.Errorf("%s has samples of %v, want %v", language, got, want)
		}
	}
}

const sampleTimeout = 3 * time.Minute // includes compilation

func TestTheSamplesRun(t *testing.T) {
	t.Parallel()
	tool.Reads(t, "samples", "../sdk/python/src", "../client", "../money")
	url := serviceproc.Run(t).URL
	typeScript := must(filepath.Abs("../sdk/typescript"))(t)
	for language, program := range map[string]func(t *testing.T) []string{
		"Go": func(*testing.T) []string { return []string{"go", "run", "./samples/go"} },
		"Python": func(t *testing.T) []string {
			return []string{tool.Python(t), "-W", "error", "samples/samples.py"}
		},
		"TypeScript": func(t *testing.T) []string {
			return []string{tool.Path(t, "node"), compiled(t, typeScript)}
		},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			words := program(t)
			ctx, cancel := context.WithTimeout(t.Context(), sampleTimeout)
			defer cancel()
			run := tool.Command(ctx, ".", words[0], words[1:]...) // go run starts the program, which must not outlive it
			run.Env = append(os.Environ(), "REMIT_ADDR="+url, "PYTHONPATH=../sdk/python/src", "PYTHONDONTWRITEBYTECODE=1")
			output, err := run.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(output), "\ndone\n") {
				t.Errorf("%v:\n%s", err, output)
			}
		})
	}
}

// compiled compiles the TypeScript samples against the SDK, and returns the JavaScript file. It works on a copy of the SDK,
// because the SDK's own tests rebuild it.
func compiled(t *testing.T, sdk string) string {
	t.Helper()
	tool.Install(t, sdk)
	dir := t.TempDir()
	for _, err := range []error{
		os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(sdk, "src"))),
		os.Symlink(filepath.Join(sdk, "node_modules"), filepath.Join(dir, "node_modules")),
		copyFile(dir, filepath.Join(sdk, "package.json")), copyFile(dir, filepath.Join(sdk, "tsconfig.json")),
		copyFile(dir, "samples/samples.ts"),
	} {
		noError(t, err)
	}
	for _, args := range [][]string{
		{"-p", "tsconfig.json"},
		{"--ignoreConfig", "--target", "es2022", "--module", "nodenext", "--strict", "--types", "node", "--lib", "es2022,dom,dom.iterable,esnext.disposable", "samples.ts"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), sampleTimeout)
		defer cancel()
		compile := tool.Command(ctx, dir, "npx", append([]string{"--no-install", "tsc"}, args...)...)
		if output, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, output)
		}
	}
	return filepath.Join(dir, "samples.js")
}

func copyFile(dir, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600)
}
