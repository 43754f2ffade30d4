package console

import (
	"strings"
	"testing"
	"testing/synctest"
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

func TestAllAgentsAreStoppedAndResumed(t *testing.T) {
	t.Parallel()
	w, b := visited(t, operator)
	w.newAgent("one")
	w.newAgent("other")
	b.send(b.get(stopPath).says("0 of 2 live agents are suspended"), stopPath, "confirm", "no").says("Not all agents were suspended. To confirm it, type stop.")
	b.send(b.get(stopPath), stopPath, "confirm", "Stop", "reason", "an incident").says("All agents are suspended: 2 agents", "2 of 2")
	b.send(b.get(stopPath), stopPath+"/resume", "confirm", "resume").says("All agents are resumed: 2 agents", "0 of 2")
}

func TestAStopThatTakesLongIsShownUntilItsEndIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	for _, test := range []struct {
		err  error
		says string
	}{{nil, "All agents are suspended: 1 agent."}, {&problem{Status: 503, Code: "unavailable", Detail: "the store is away"}, "Not all agents were suspended. The store is away."}} {
		end, org := make(chan struct{}), uuid.MustParse(w.org)
		job := must(w.console.stops.begin(org, false, time.Now(), func() (int64, error) { <-end; return 1, test.err }))(t)
		wantEqual(t, "a second stop is the first", must(w.console.stops.begin(org, false, time.Now(), nil))(t) == job, true)
		b := w.as(t, operator)
		page := b.get(stopPath).says("Suspending all agents since")
		wantEqual(t, "while it runs the page has a form for it", page.hasForm(stopPath), false)
		wantEqual(t, "while it runs the page has a form for the way back", page.hasForm(stopPath+"/resume"), false)
		b.follow(b.post(stopPath+"/resume", "csrf", b.csrf(), "confirm", "resume", "back", stopPath)).says("Not all agents were resumed. All agents are still being suspended")
		wantEqual(t, "the progress", b.get(stopPath+"/progress").text, `{"running":true,"live":1,"suspended":0}`)
		close(end)
		<-job.done
		b.get(stopPath).says(test.says).saysNot("Suspending all agents")
	}
}

func TestAStopHasTheLastWordAndAShutdownWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, org, order := Console{stops: stops{known: map[uuid.UUID]*stopJob{}}}, uuid.New(), ""
		begin := func(resume bool, what string) {
			must(c.stops.begin(org, resume, time.Now(), func() (int64, error) {
				if resume { // the stop, which is done at once, has to wait for it
					time.Sleep(time.Minute)
				}
				order += what
				return 1, nil
			}))(t)
		}
		begin(true, "resumed, ")
		begin(false, "suspended")
		c.Wait(t.Context())
		wantEqual(t, "the order", order, "resumed, suspended")
	})
}
