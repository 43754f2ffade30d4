//go:build long

package browser

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/test/redistest"
)

const (
	largestPage = 200_000 // bytes, before compression

	keptTime = 11 * time.Second // for which the service may keep what it has read for a page
)

// longestPage is what the service may take for a page: the time in which a 15th of the fleet was made.
func (f *fleet) longestPage() time.Duration { return f.fillTime / 15 }

// No other test of the package runs beside it, because it measures frames.
func TestALargeFleet(t *testing.T) {
	f := newFleet(t)
	t.Run("an agent's page does not wait for reports", f.checkPagesBesideReports)
	session, agent := f.changed(0), f.agents[(fleetSessions-1)%fleetAgents]
	for _, live := range []struct {
		name, path string
		change     func(context.Context, *testing.T, int)
	}{
		{"charges, on a session", "/console/sessions/" + session.String(), f.charge},
		{"charges, on the list of sessions", "/console/sessions", f.charge},
		{"suspensions, on the list of sessions", "/console/sessions", f.suspend},
		{"suspensions, on an agent", "/console/agents/" + agent.String(), f.suspend},
		{"suspensions, on the overview", overview, f.suspend},
	} {
		t.Run("a thousand changes a second freeze nothing: "+live.name, func(t *testing.T) { f.checkLive(t, live.path, live.change) })
	}
	t.Run("a stop shows how far it is", f.checkStop)
}

// checkPagesBesideReports asks for reports of what all agents used, one after the other, and meanwhile for pages of agents that
// no viewer has looked at.
func (f *fleet) checkPagesBesideReports(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v, reports, ended := newViewer(t, f.service.URL, f.apiKey), 0, make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; reports++ {
			f.ask(ctx, t, http.MethodGet, "/v1/usage?group_by=agent", "") // what each agent used
		}
	}()
	const tries = 5
	quickest := time.Minute
	for i := range tries {
		time.Sleep(time.Second) // so that a report is under way
		page, took := v.get(t, "/console/agents/"+f.agents[i].String())
		t.Logf("%7.1f ms, %d bytes", milliseconds(took), len(page))
		quickest = min(quickest, took)
	}
	cancel()
	<-ended
	t.Logf("%d reports", reports)
	if quickest > f.longestPage() {
		t.Errorf("the quickest of %d pages took %v", tries, quickest)
	}
}

// stopReason is in each command that stops an agent, and in no other.
const stopReason = "incident 2041"

// checkStop stops and resumes the fleet in a browser, by an instance that is far from Redis when it stops agents.
func (f *fleet) checkStop(t *testing.T) {
	far := redistest.NewProxy(t, redistest.SocketOf(f.redis))
	far.Delay(stopReason, 600*time.Millisecond)
	service := launch(t, "redis://"+far.Address)
	runScript(t, service, "stop.test.mjs", "REMIT_KEY="+f.apiKey, "REMIT_AGENTS="+strconv.Itoa(fleetAgents), "REMIT_REASON="+stopReason)
}

func TestPagesOfALargeFleetAreQuickAndSmall(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	v := newViewer(t, f.service.URL, f.apiKey)
	before := f.processorTime(t)
	v.get(t, "/console")
	f.awaitQuiet(t)
	t.Logf("the first view of the overview, with all that it reads in the background, costs %v of processor", f.processorTime(t)-before)
	for _, path := range v.pages(t) {
		page, cold := v.cold(t, path, f.longestPage())
		_, again := v.get(t, path)
		t.Logf("%7.1f ms, then %7.1f ms, %7d bytes  %s", milliseconds(cold), milliseconds(again), len(page), path)
		if cold > f.longestPage() {
			t.Errorf("%s took %v", path, cold)
		}
		if len(page) > largestPage {
			t.Errorf("%s has %d bytes", path, len(page))
		}
		if path == "/console" && !(strings.Contains(page, "<b>10,000</b>") && strings.Contains(page, "<b>100,000</b>")) {
			t.Errorf("the overview does not show all agents and sessions:\n%s", page)
		}
	}
}

// cold gets a page when the service keeps nothing of it any more. Another program may delay a request, so it takes the best of
// up to three.
func (v *viewer) cold(t *testing.T, path string, longest time.Duration) (page string, took time.Duration) {
	t.Helper()
	for range 3 {
		time.Sleep(keptTime)
		shown, once := v.get(t, path)
		if page == "" || once < took {
			page, took = shown, once
		}
		if took <= longest {
			break
		}
	}
	return page, took
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
