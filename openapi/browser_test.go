//go:build long

package openapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/test/serviceproc"
	"remit/test/tool"
)

func TestABrowserRendersThePageWithoutConsoleMessages(t *testing.T) {
	t.Parallel()
	browser := tool.Path(t, "chromium")
	dom, messages := load(t, browser, serviceproc.Run(t).URL+"/docs")
	if got, want := shownIn(dom), operationsOf(t); !slices.Equal(got, want) {
		t.Errorf("the browser shows %v, want %v", got, want)
	}
	if len(messages) > 0 {
		t.Errorf("console messages: %q", messages)
	}
}

// The search is in the URL too, so users can link to it.
func TestABrowserSearchesThePageAndShowsCopyButtons(t *testing.T) {
	t.Parallel()
	dom, messages := load(t, tool.Path(t, "chromium"), serviceproc.Run(t).URL+"/docs?q=Idempotency-Key+refund")
	var shown []string
	for _, found := range regexp.MustCompile(`<article id="(\w+)" data-method="[A-Z]+" data-path="[^"]+">`).FindAllStringSubmatch(dom, -1) {
		shown = append(shown, found[1]) // hidden articles have one more attribute
	}
	if !slices.Contains(shown, "beginTransaction") || slices.Contains(shown, "listAgents") || len(messages) > 0 {
		t.Errorf("the search shows %q; console messages: %q", shown, messages)
	}
	if copies, commands := strings.Count(dom, `class="copy"`), strings.Count(dom, `class="sample"`); copies != commands || copies < 30 {
		t.Errorf("%d samples have %d copy buttons", commands, copies)
	}
	if strings.Contains(dom, "URL=http://127.0.0.1:8080") {
		t.Error("the preparation does not use the page's origin")
	}
}

func TestABrowserReportsAViolationOfTheContentSecurityPolicy(t *testing.T) {
	t.Parallel()
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = w.Write(Page().Body)
	}))
	defer strict.Close()
	if _, messages := load(t, tool.Path(t, "chromium"), strict.URL); len(messages) == 0 {
		t.Error("the policy forbids the style, but the browser reported nothing")
	}
}

// load returns the DOM of a page as HTML, and the browser's console messages.
func load(t *testing.T, browser, url string) (dom string, messages []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	show := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--dump-dom", url)
	show.WaitDelay = time.Second
	var diagnostics strings.Builder
	show.Stderr = &diagnostics
	output, err := show.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, diagnostics.String())
	}
	for line := range strings.Lines(diagnostics.String()) {
		if strings.Contains(line, "CONSOLE") {
			messages = append(messages, strings.TrimSpace(line))
		}
	}
	return string(output), messages
}
