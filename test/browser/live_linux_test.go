//go:build long

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

const (
	changesPerSecond = 1_000
	fewestChanges    = 900 // that must have happened in a second, or the measurement says nothing
	changesAtOnce    = 10
	changedSessions  = 1_000
	overview         = "/console"
	viewers          = 10
	measuredTime     = 10 * time.Second
	mostProcessor    = 0.05 // of a core, for all viewers together
	longestFrame     = 200  // milliseconds; from there on people feel that they wait
	highestP99       = 50   // milliseconds
)

// frames is what frames.mjs measures in a page.
type frames struct {
	Frames, Updates, Nodes int
	Median                 int `json:"median_ms"`
	P99                    int `json:"p99_ms"`
	Longest                int `json:"longest_ms"`
	LongestTask            int `json:"longest_task_ms"`
}

// checkLive watches a page with ten viewers, one of them in a browser, while the fleet changes.
func (f *fleet) checkLive(t *testing.T, path string, change func(context.Context, *testing.T, int)) {
	ctx, cancel := context.WithCancel(t.Context())
	changing := f.everyTick(ctx, t, change)
	defer changing.Wait()
	defer cancel()
	received := f.watch(t, path, viewers-1)
	for attempt := 1; ; attempt++ { // another program may delay a frame, so it takes the best of three
		problem := f.measureLive(t, path, received)
		if problem == "" {
			return
		}
		t.Log(problem)
		if attempt == 3 {
			t.Error("three times: " + problem)
			return
		}
	}
}

// measureLive compares with a time without viewers, and returns what is wrong.
func (f *fleet) measureLive(t *testing.T, path string, w *watchers) string {
	t.Helper()
	alone := f.processor(t, func() { time.Sleep(measuredTime) })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, stream := range w.streams {
		go stream(ctx)
	}
	began, before, refreshed, changed := time.Now(), w.received.Load(), w.refreshed.Load(), f.changes.Load()
	var seen frames
	watched := f.processor(t, func() { seen = f.measureFrames(t, path) })
	messages, perSecond := w.received.Load()-before, float64(f.changes.Load()-changed)/time.Since(began).Seconds()
	refreshed = w.refreshed.Load() - refreshed
	t.Logf("%s: %+v; %.0f changes a second, %d messages, %d refreshes; the service uses %.3f of a core alone, %.3f when watched", path, seen, perSecond, messages, refreshed, alone, watched)
	switch {
	case perSecond < fewestChanges:
		return fmt.Sprintf("only %.0f changes a second happened", perSecond)
	case messages == 0 || refreshed == 0 && path == overview || seen.Updates == 0 && path != overview: // what changes is not on the overview
		return "nothing was updated"
	case seen.Longest > longestFrame || seen.P99 > highestP99:
		return "the page freezes"
	case watched-alone > mostProcessor:
		return fmt.Sprintf("%d viewers cost %.3f of a core, want at most %v", viewers, watched-alone, mostProcessor)
	}
	return ""
}

// everyTick calls change with 0, 10, 20 … until ctx ends: change makes ten changes, a hundred times a second.
func (f *fleet) everyTick(ctx context.Context, t *testing.T, change func(context.Context, *testing.T, int)) *sync.WaitGroup {
	t.Helper()
	const makers = 20 // so that slow responses do not slow the rest
	var running sync.WaitGroup
	for maker := range makers {
		running.Go(func() {
			ticker := time.NewTicker(makers * time.Second * changesAtOnce / changesPerSecond)
			defer ticker.Stop()
			for n := maker * changesAtOnce; ctx.Err() == nil; n += makers * changesAtOnce {
				<-ticker.C
				change(ctx, t, n)
			}
		})
	}
	return &running
}

// changed returns one of the newest sessions, which pages show first.
func (f *fleet) changed(n int) uuid.UUID { return f.sessions[fleetSessions-1-n%changedSessions] }

// charge charges ten sessions, in one request. A charge is no event.
func (f *fleet) charge(ctx context.Context, t *testing.T, n int) {
	var actions []string
	for i := range changesAtOnce {
		actions = append(actions, fmt.Sprintf(`{"session_id":%q,"value_usd":0.000001,"action_type":"live"}`, f.changed(n+i)))
	}
	f.post(ctx, t, changesAtOnce, "/v1/actions", `{"actions":[`+strings.Join(actions, ",")+`]}`)
}

// suspend suspends or resumes ten sessions. Each is an event.
func (f *fleet) suspend(ctx context.Context, t *testing.T, n int) {
	path := "/suspend"
	if n/changedSessions%2 == 1 {
		path = "/resume"
	}
	for i := range changesAtOnce {
		f.post(ctx, t, 1, "/v1/sessions/"+f.changed(n+i).String()+path, "{}")
	}
}

// post sends a request that makes so many changes, and counts them once they are acknowledged.
func (f *fleet) post(ctx context.Context, t *testing.T, changes int64, path, body string) {
	switch text := f.ask(ctx, t, http.MethodPost, path, body); {
	case refusal.Match(text):
		t.Errorf("%s: %s", path, text)
	case text != nil:
		f.changes.Add(changes)
	}
}

// ask sends a request of the API, and returns the answer. It is nil when ctx has ended.
func (f *fleet) ask(ctx context.Context, t *testing.T, method, path, body string) (text []byte) {
	request := must(http.NewRequestWithContext(ctx, method, f.service.URL+path, strings.NewReader(body)))(t)
	request.Header.Set("X-API-Key", f.apiKey)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := f.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil || response.StatusCode != http.StatusOK:
		t.Errorf("%s: %.200s, %v", path, text, err)
		return nil
	}
	return text
}

var refusal = regexp.MustCompile(`"status":[45]\d\d`) // of one charge of many

var liveAddress = regexp.MustCompile(`data-live="([^"]+)"`)

// watchers follow a page's live updates without showing them, and count the messages.
type watchers struct {
	streams   []func(context.Context)
	received  atomic.Int64
	refreshed atomic.Int64
}

// watch returns so many viewers of a page, which have yet to start.
func (f *fleet) watch(t *testing.T, path string, count int) *watchers {
	t.Helper()
	w := &watchers{}
	for range count {
		v := newViewer(t, f.service.URL, f.apiKey)
		page, _ := v.get(t, path)
		found := liveAddress.FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("%s has no live updates", path)
		}
		v.client.Timeout = 0
		w.streams = append(w.streams, func(ctx context.Context) { v.follow(ctx, path, html.UnescapeString(found[1]), w) })
	}
	return w
}

// follow counts the messages of a page's event stream until ctx ends, and gets the page anew when one says so, as a browser does.
func (v *viewer) follow(ctx context.Context, page, stream string, w *watchers) {
	response, err := v.ask(ctx, stream, "Accept", "text/event-stream")
	if err != nil {
		return // no message is counted
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") {
			w.received.Add(1)
		}
		if strings.Contains(lines.Text(), `"stale":true`) && v.refresh(ctx, page) {
			w.refreshed.Add(1)
		}
	}
}

func (v *viewer) refresh(ctx context.Context, page string) bool {
	response, err := v.ask(ctx, page, "Remit-Refresh", "1")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

func (v *viewer) ask(ctx context.Context, path, header, value string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.origin+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(header, value)
	return v.client.Do(request)
}

func (f *fleet) measureFrames(t *testing.T, path string) (seen frames) {
	t.Helper()
	measured := strconv.Itoa(int(measuredTime / time.Second))
	output, err := node(t, 2*time.Minute, f.service, []string{"REMIT_KEY=" + f.apiKey}, "frames.mjs", path, measured).Output()
	if err != nil {
		t.Fatalf("frames.mjs: %v\n%s", err, output)
	}
	must(0, json.Unmarshal(output, &seen))(t)
	return seen
}

// processor returns how much of a core the service uses while do runs.
func (f *fleet) processor(t *testing.T, do func()) float64 {
	t.Helper()
	began, before := time.Now(), f.processorTime(t)
	do()
	return (f.processorTime(t) - before).Seconds() / time.Since(began).Seconds()
}

// processorTime reads the clock of the process, whose id is that of clock_getcpuclockid(3).
func (f *fleet) processorTime(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	must(0, unix.ClockGettime(int32(^f.service.PID()<<3|2), &now))(t)
	return time.Duration(now.Nano())
}
