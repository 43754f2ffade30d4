//go:build long

package browser

import (
	"context"
	"testing"
	"time"
)

const (
	longestPage = 300 * time.Millisecond // of the service's time
	largestPage = 200_000                // bytes, before compression

	keptTime = 11 * time.Second // for which the service may keep what it has read for a page
)

func TestALargeFleet(t *testing.T) {
	f := newFleet(t)
	t.Run("pages are quick and small", f.checkPages)
	session, agent := f.changed(0), f.agents[(fleetSessions-1)%fleetAgents]
	for _, live := range []struct {
		name, path string
		change     func(context.Context, *testing.T, int)
	}{
		{"charges, on a session", "/console/sessions/" + session.String(), f.charge},
		{"charges, on the list of sessions", "/console/sessions", f.charge},
		{"suspensions, on the list of sessions", "/console/sessions", f.suspend},
		{"suspensions, on an agent", "/console/agents/" + agent.String(), f.suspend},
	} {
		t.Run("a thousand changes a second freeze nothing: "+live.name, func(t *testing.T) { f.checkLive(t, live.path, live.change) })
	}
}

func (f *fleet) checkPages(t *testing.T) {
	v := newViewer(t, f.service.URL, f.apiKey)
	before := f.processorTime(t)
	v.get(t, "/console")
	f.awaitQuiet(t)
	t.Logf("the first view of the overview, with all that it reads in the background, costs %v of processor", f.processorTime(t)-before)
	for _, path := range v.pages(t) {
		page, cold := v.cold(t, path)
		_, again := v.get(t, path)
		t.Logf("%7.1f ms, then %7.1f ms, %7d bytes  %s", milliseconds(cold), milliseconds(again), len(page), path)
		if cold > longestPage {
			t.Errorf("%s took %v", path, cold)
		}
		if len(page) > largestPage {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
}

// cold gets a page when the service keeps nothing of it any more. Another program may delay a request, so it takes the best of
// up to three.
func (v *viewer) cold(t *testing.T, path string) (page string, took time.Duration) {
	t.Helper()
	for range 3 {
		time.Sleep(keptTime)
		shown, once := v.get(t, path)
		if page == "" || once < took {
			page, took = shown, once
		}
		if took <= longestPage {
			break
		}
	}
	return page, took
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
