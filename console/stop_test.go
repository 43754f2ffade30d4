package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/test/serviceproc"
)

func TestAPageOfAStopReadsTheAgentsNoMoreOften(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	w := newWorld(t, settings{log: &log})
	w.sample()
	end := make(chan struct{})
	defer close(end)
	must(w.console.stops.begin(uuid.MustParse(w.org), false, time.Now(), func() (int64, error) { <-end; return 0, nil }))(t)
	b := w.as(t, viewer)
	began := time.Now()
	for range 10 {
		b.get(stopPath).says("Suspending all agents")
	}
	if n := strings.Count(log.String(), "method=GET route=/v1/agents "); n == 0 || n > 1+int(time.Since(began)/agentsFresh) {
		t.Errorf("10 pages read the agents %d times", n)
	}
}

func TestAnotherInstanceTellsHowFarAStopIs(t *testing.T) {
	t.Parallel()
	keyring := newKeyring(t)
	w := newWorld(t, settings{keyring: keyring})
	w.sample()
	w.newAgent("other")
	one := w.newAgent("one")
	end := make(chan struct{})
	defer close(end)
	must(w.console.stops.begin(uuid.MustParse(w.org), false, time.Now(), func() (int64, error) { <-end; return 0, nil }))(t)
	w.asAdmin("POST", "/v1/agents/"+one+"/suspend", map[string]any{})
	there := newWorld(t, settings{redis: w.mini, keyring: keyring}).browser(t)
	there.cookies[signInCookie] = w.as(t, operator).cookies[signInCookie]
	there.get(stopPath).says("1 of 3 live agents are suspended", "Another instance of the service may be at work").saysNot("Suspending all agents")
	wantEqual(t, "the progress", there.get(stopPath+"/progress").text, `{"running":false,"live":3,"suspended":1}`)
}
