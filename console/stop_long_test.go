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

// stopper begins and ends suspensions and resumptions that last as long as a script of the browser wants.
type stopper struct {
	t     *testing.T
	world *world
	job   *stopJob
	end   chan struct{}
}

func (s *stopper) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/end" {
		close(s.end)
		<-s.job.done
		return
	}
	s.end = make(chan struct{})
	end := s.end
	s.job = must(s.world.console.stops.begin(uuid.MustParse(s.world.org), r.URL.Path == "/resume", time.Now(), func() (int64, error) { <-end; return 3, nil }))(s.t)
}

func TestAStopThatIsUnderWayInABrowser(t *testing.T) {
	const browserDir = "../test/browser"
	tool.Install(t, browserDir)
	w := newWorld(t, settings{})
	control := httptest.NewServer(&stopper{t: t, world: w})
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
