//go:build long

package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/test/tool"
)

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
	cmd := tool.Command(ctx, browserDir, tool.Path(t, "node"), "--test", "--test-reporter=tap", "underway.test.mjs")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CHROMIUM=" + tool.Path(t, "chromium"),
		"REMIT_ADDR=" + w.url, "REMIT_KEY=" + w.keys[admin], "REMIT_CONTROL=" + control.URL,
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, tool.Indented(output))
	}
}
