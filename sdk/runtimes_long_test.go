//go:build long

package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/money"
	"remit/remittest"
	"remit/test/fakeprovider"
	"remit/test/tool"
)

const (
	denoVersion = "2.9.6"
	bunVersion  = "1.4.5"
)

// smoke is a session for testdata/runtimes/program.mjs, and where it finds what it needs.
type smoke struct {
	session   *client.Session
	variables []string // as main.mjs reads them
}

func newSmoke(t *testing.T) smoke {
	t.Helper()
	limit := 10 * money.USD
	session, variables := remittest.New(t).Environment(t, client.SessionParams{MaxValue: &limit})
	return smoke{session, append(variables, startFakeProvider(t), "CLOSED="+closedAddress(t))}
}

func closedAddress(t *testing.T) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

// check compares what the program said with the usage: five of its calls are counted, and the one that does not fit is not.
func (s smoke) check(t *testing.T, said, refused string) {
	t.Helper()
	if want := `{"actions":5,"refused":"` + refused + `"}`; strings.TrimSpace(said) != want {
		t.Errorf("it says %s, want %s", said, want)
	}
	info, err := s.session.Get(t.Context())
	if err != nil || info.ActionCount != 5 || info.ValueHeld != 0 || info.ValueUsed == 0 {
		t.Errorf("%d actions, %s used, %s held: %v", info.ActionCount, info.ValueUsed, info.ValueHeld, err)
	}
}

// The SDK's tarball works in each runtime that can be run here. npm has Deno and Bun; their binaries stay in a temporary directory.
func TestTheTypeScriptSDKRunsInNodeDenoAndBun(t *testing.T) {
	t.Parallel()
	project := projectWith(t, typeScriptDir)
	inProject(t, project, "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--no-save",
		"deno@"+denoVersion, "bun@"+bunVersion)
	for _, file := range []string{"program.mjs", "main.mjs"} { // a link would be resolved to where the SDK is not installed
		write(t, project, file, string(must(os.ReadFile(filepath.Join("testdata", "runtimes", file)))(t)))
	}
	for name, command := range map[string][]string{
		"node": {tool.Path(t, "node")},
		"deno": {installed(t, project, "@deno/*/deno"), "run", "--no-prompt", "--cached-only", "--allow-net=127.0.0.1", "--allow-env"},
		"bun":  {installed(t, project, "@oven/*/bin/bun"), "run", "--no-install"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSmoke(t)
			program := nodeCommand(t.Context(), project, append(s.variables, "DENO_DIR="+t.TempDir()), command[0], append(command[1:], "main.mjs")...)
			var problems bytes.Buffer
			program.Stderr = &problems
			said, err := program.Output() // with an error if a rejection is unhandled
			if err != nil {
				t.Fatalf("%v\n%s", err, &problems)
			}
			s.check(t, string(said), "rolled back")
		})
	}
}

// A page's origin must be that of the service, which sends no CORS headers. The provider is below it too.
func TestTheTypeScriptSDKRunsInABrowser(t *testing.T) {
	t.Parallel()
	project := projectWith(t, typeScriptDir)
	s := newSmoke(t)
	settings := map[string]string{}
	for _, variable := range s.variables {
		name, value, _ := strings.Cut(variable, "=")
		settings[name] = value
	}
	said := make(chan string, 1)
	origin := httptest.NewServer(originOf(t, project, settings, said))
	defer origin.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	browser := tool.Command(ctx, t.TempDir(), tool.Path(t, "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", origin.URL+"/page.html")
	noError(t, browser.Start())
	defer func() {
		cancel()
		_ = browser.Wait() // it was killed
	}()
	select {
	case text := <-said:
		s.check(t, text, "committed") // a browser does not tell why a request failed
	case <-ctx.Done():
		t.Fatal("the page says nothing")
	}
}

// originOf serves the page and the SDK, the provider below /provider, and else the service.
func originOf(t *testing.T, project string, settings map[string]string, said chan<- string) http.Handler {
	t.Helper()
	files := http.FileServer(http.Dir(filepath.Join("testdata", "runtimes")))
	mux := http.NewServeMux()
	mux.Handle("/page.html", files)
	mux.Handle("/program.mjs", files)
	mux.Handle("/sdk/", http.StripPrefix("/sdk/", http.FileServer(http.Dir(filepath.Join(project, "node_modules", "@remit", "sdk", "dist")))))
	mux.Handle("/provider/", http.StripPrefix("/provider", new(fakeprovider.Provider)))
	mux.HandleFunc("/settings", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{ // fails only when the page is gone, which then says nothing
			"closed": settings["CLOSED"], "agent": settings["REMIT_AGENT"], "secret": settings["REMIT_SECRET"], "session": settings["REMIT_SESSION"],
		})
	})
	mux.HandleFunc("/said", func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			text = []byte(err.Error())
		}
		select {
		case said <- string(text):
		default: // only the first counts
		}
	})
	mux.Handle("/", httputil.NewSingleHostReverseProxy(must(url.Parse(settings["REMIT_ADDR"]))(t)))
	return mux
}

// installed returns the one file that npm has installed by the name.
func installed(t *testing.T, project, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(project, "node_modules", filepath.FromSlash(name)))
	if err != nil || len(found) != 1 {
		t.Fatalf("npm has installed %q: %v", found, err)
	}
	return found[0]
}
