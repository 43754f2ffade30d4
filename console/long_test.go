//go:build long

package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisproc"
	"remit/test/tool"
)

// It is about more types than the interpreter of Lua in miniredis reads in the time of a call, with the race detector.
func TestTooManyActionTypesLeaveTheSumsRight(t *testing.T) {
	t.Parallel()
	redis := must(redisproc.Start(t.Context(), redisproc.Config{}))(t)
	t.Cleanup(func() { _ = redis.Stop() })
	w := newWorld(t, settings{server: redis.URL()})
	const agents, types, each = 40, 256, 64 // of an agent, of a session
	for range agents {
		agent := w.newAgent("a")
		for from := 0; from < types; from += each {
			session := w.newSession(agent, map[string]any{"max_actions": 1000, "max_value_usd": 1000})
			var batch []map[string]any
			for n := range each {
				batch = append(batch, map[string]any{"session_id": session, "action_type": fmt.Sprint(agent, " ", from+n), "value_usd": 0.01})
			}
			w.good("POST", "/v1/actions", map[string]any{"actions": batch}, nil, "X-API-Key", w.keys[admin])
		}
	}
	s := w.console.fleets.spendings(spentOf{organization: uuid.MustParse(w.org)}, time.Now())
	got := must(s.reports(api{host: w.console.host, key: w.keys[viewer]}, time.Now()))(t)
	wantEqual(t, "the problem", got.Problem, tooManyTypes)
	wantEqual(t, "the sums", got.Total, spending{102_400_000, 102_400_000})
}

func TestAStopThatIsUnderWayInABrowser(t *testing.T) {
	const browserDir = "../test/browser"
	tool.Install(t, browserDir)
	w := newWorld(t, settings{})
	var job *stopJob
	var end chan struct{}
	// Suspensions and resumptions last as long as the script of the browser wants.
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			close(end)
			<-job.done
			return
		}
		ended := make(chan struct{})
		end = ended
		do := func() (int64, error) { <-ended; return 3, nil }
		job = must(w.console.stops.begin(uuid.MustParse(w.org), r.URL.Path == "/resume", time.Now(), do))(t)
	}))
	defer control.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := tool.Command(ctx, browserDir, tool.Path(t, "node"), "--test", "--test-reporter=spec", "underway.test.mjs")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CHROMIUM=" + tool.Path(t, "chromium"),
		"REMIT_ADDR=" + w.url, "REMIT_KEY=" + w.keys[admin], "REMIT_CONTROL=" + control.URL,
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, tool.Indented(output))
	}
}
