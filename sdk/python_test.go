package sdk

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/suite"
	"remit/test/tool"
)

// pythonTimeout is many times what a part of the tests of the Python SDK takes.
const pythonTimeout = 10 * time.Minute

// The tests of the Python SDK run against the service itself, over HTTP and HTTPS. They mostly wait, so their parts run at once.
func TestPython(t *testing.T) {
	t.Parallel()
	tool.Reads(t, "python")
	python := tool.Python(t)
	service := serviceproc.Run(t)
	secure, authority := overTLS(t, service.URL)
	binary := must(serviceproc.Program())(t)

	env := append(os.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1", "REMIT_BINARY="+binary,
		"REMIT_ADDR="+service.URL, "REMIT_TLS_URL="+secure, "REMIT_TLS_CA="+authority, startFakeProvider(t))
	if suite.Long {
		env = append(env, "REMIT_LONG=1")
	}
	for _, files := range []string{"test_[a-d]*.py", "test_[e-l]*.py", "test_[m-z]*.py"} {
		t.Run(files, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), pythonTimeout)
			defer cancel()
			cmd := tool.Command(ctx, "python", python, "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-p", files)
			cmd.Env = env
			output, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			// unittest reports skipped tests after OK.
			if !regexp.MustCompile(`(?m)^Ran [1-9]\d+ tests in .*\n\nOK\n\z`).Match(output) {
				t.Errorf("some tests were skipped, or fewer than 10 ran:\n%s", output)
			}
		})
	}
}

// The package, its tests, its examples and those of its page are fully typed.
func TestPythonIsTyped(t *testing.T) {
	t.Parallel()
	tool.Reads(t, "python")
	mypy := tool.Path(t, "mypy")
	ctx, cancel := context.WithTimeout(t.Context(), pythonTimeout)
	defer cancel()
	cmd := tool.Command(ctx, "python", mypy, append([]string{"--cache-dir", t.TempDir(), "src", "tests", "examples"}, pythonPrograms(t)...)...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// pythonPrograms returns files with the programs of the page: that of its blocks, and a test.
func pythonPrograms(t *testing.T) (files []string) {
	t.Helper()
	page := must(os.ReadFile("python/README.md"))(t)
	for _, language := range []string{"python", "py"} {
		var program strings.Builder
		for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1) {
			program.Write(block[1])
		}
		file := filepath.Join(t.TempDir(), "readme_"+language+".py")
		if err := os.WriteFile(file, []byte(program.String()), 0o600); err != nil || program.Len() == 0 {
			t.Fatalf("%d bytes of ```%s: %v", program.Len(), language, err)
		}
		files = append(files, file)
	}
	return files
}

// overTLS runs an HTTPS proxy in front of the service. It returns its URL, and a file with the certificate to trust.
func overTLS(t *testing.T, service string) (secure, authority string) {
	t.Helper()
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(must(url.Parse(service))(t)))
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it abort the handshake
	front.StartTLS()
	t.Cleanup(front.Close)
	authority = filepath.Join(t.TempDir(), "authority.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	noError(t, os.WriteFile(authority, certificate, 0o600))
	return front.URL, authority
}
