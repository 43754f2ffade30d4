package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

func (w *world) breakKeys(prefix string) {
	w.t.Helper()
	broken := 0
	for _, key := range w.mini.Keys() {
		if strings.Contains(key, prefix+"{") {
			w.mini.Del(key)
			if err := w.mini.Set(key, "not what it was"); err != nil {
				w.t.Fatal(err)
			}
			broken++
		}
	}
	if broken == 0 {
		w.t.Fatalf("there is no key %s", prefix)
	}
}

func (w *world) trimFeed(before int64) {
	w.t.Helper()
	direct := redis.NewClient(&redis.Options{Addr: w.mini.Addr()})
	defer direct.Close()
	for _, key := range w.mini.Keys() {
		if strings.Contains(key, "oe:{") {
			must(direct.XTrimMinID(w.t.Context(), key, fmt.Sprint(before, "-0")).Result())(w.t)
		}
	}
}

func TestAnAgentsPageDoesNotWaitForItsReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.sample()["agent"]
	s := w.console.fleets.spendingsOf(spentOf{uuid.MustParse(w.org), agent}, time.Now())
	end := make(chan error)
	s.report = func(api, time.Time) (*spent, error) { return nil, <-end }
	path := agents + "/" + agent
	b := w.as(t, operator)
	if page := b.get(path).want(http.StatusOK).says("It is being added up", "Spent today (UTC) –"); !page.hasForm(path + "/suspend") {
		t.Error("the page has no switch")
	}
	end <- &problem{Status: http.StatusTooManyRequests, Code: "rate_limited", Detail: "too many reports are made now"}
	for deadline := time.Now().Add(patience); !strings.Contains(b.get(path).want(http.StatusOK).words(), "Too many reports are made now"); {
		if time.Now().After(deadline) {
			t.Fatal("the page does not say why there is none")
		}
	}
}

func TestWhatIsNotKnownIsNotShownAsZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	b := w.as(t, viewer)
	w.caughtUp(b)
	s := w.console.fleets.spendingsOf(spentOf{organization: uuid.MustParse(w.org)}, time.Now())
	s.last.Store(&spent{At: time.Now(), Total: spending{5_000_000, 6_000_000}, NoTypes: true, NoAgents: true, Problem: tooManyTypes})
	b.get(Prefix).says("Spent today (UTC) $5.00", tooManyTypes).saysNot("No agent spent anything", "Spent by")
	b.get(agents).says(tooManyTypes, "– –").saysNot("$0.00")
}

func TestABudgetThatCannotBeReadIsNotEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.asAdmin("PUT", "/v1/budget", map[string]any{"max_value_usd": 240, "period": "day"})
	b := w.as(t, viewer)
	w.caughtUp(b).says("Budget left $240.00")
	w.breakKeys("ob:")
	b.get(Prefix).want(http.StatusOK).says("The budget cannot be read now").saysNot("Budget left")
}

func TestTheRestThatNeedsALookIsShownWhenAPartCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "soon over", "role": "viewer", "expires_in_seconds": 3600})
	b := w.as(t, viewer)
	w.overviewSays(b, "more is needed")
	w.breakKeys("ow:")
	b.get(Prefix).says("Webhooks that fail cannot be read now", "soon over", "more is needed")
}

func TestEventsThatCannotBeReadAreReadLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	b := w.as(t, viewer)
	w.overviewSays(b, "more is needed") // the feed has the event
	f := &follower{console: w.console, key: w.keys[viewer], used: time.Now(), stats: newStats()}
	f.begin(must(f.head())(t))
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	done := make(chan struct{})
	go func() { defer close(done); f.catchUp() }()
	time.Sleep(100 * time.Millisecond) // in which it fails
	w.mini.SetError("")
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		t.Fatal("it does not end")
	}
	if f.mu.Lock(); !f.caught || len(f.stats.asked) != 1 {
		t.Errorf("caught up %t, %d requests", f.caught, len(f.stats.asked))
	}
	f.mu.Unlock()
}

func TestOlderEventsThanAreKeptAreNotPromised(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.sample()["agent"]
	for range eventsShown {
		w.asAdmin("POST", "/v1/agents/"+agent+"/suspend", map[string]any{})
		w.asAdmin("POST", "/v1/agents/"+agent+"/resume", map[string]any{})
	}
	a := api{host: w.console.host, key: w.keys[viewer]}
	head := func() int64 { return must(a.checkpoint())(t).Sequence }
	for deadline := time.Now().Add(patience); head() <= 2*eventsShown; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the feed does not have the events")
		}
	}
	last := head()
	w.trimFeed(last - 1)
	b := w.as(t, viewer)
	for path, says := range map[string]string{
		eventsPath: "The feed keeps no older events", fmt.Sprint(eventsPath, "?before=", last-2): "does not keep events that are this old",
		eventsPath + "?type=agent.created": "None of the 1,000 events that this page looks at is of this type. All that are kept",
	} {
		page := b.get(path).says(says)
		for _, to := range page.links() {
			if strings.Contains(to, "before=") && to != fmt.Sprint(eventsPath, "?before=", last-2) {
				t.Errorf("%s leads on to %s", path, to)
			}
		}
	}
}
