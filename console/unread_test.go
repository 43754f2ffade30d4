package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// spoil makes keys unreadable, and returns what mends them.
func (w *world) spoil(prefix string) (mend func()) {
	w.t.Helper()
	direct := redis.NewClient(&redis.Options{Addr: w.mini.Addr()})
	w.t.Cleanup(func() { _ = direct.Close() })
	var spoiled []string
	for _, key := range w.mini.Keys() {
		if strings.Contains(key, prefix+"{") {
			must(direct.Rename(w.t.Context(), key, key+".away").Result())(w.t)
			must(direct.Set(w.t.Context(), key, "not what it was", 0).Result())(w.t)
			spoiled = append(spoiled, key)
		}
	}
	if len(spoiled) == 0 {
		w.t.Fatalf("there is no key %s", prefix)
	}
	return func() {
		for _, key := range spoiled {
			must(direct.Rename(w.t.Context(), key+".away", key).Result())(w.t)
		}
	}
}

func TestTheRestIsShownWhenAPartCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys, path string
		says       []string
	}{
		"the agents, at the switch": {"oa:", stopPath, []string{"How many agents are suspended cannot be read now", "Stop all agents"}},
		"the agents":                {"oa:", Prefix, []string{"The agents cannot be read now", "Held", "$2.00", "–"}},
		"the budget":                {"ob:", Prefix, []string{"The budget cannot be read now", "more is needed"}},
		"the webhooks":              {"ow:", Prefix, []string{"Webhooks that fail cannot be read now", "soon over", "more is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, b, _ := sampled(t, operator)
			w.asAdmin("PUT", "/v1/budget", map[string]any{"max_value_usd": 240, "period": "day"})
			w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "soon over", "role": "viewer", "expires_in_seconds": 3600})
			mend := w.spoil(test.keys)
			page := b.once(test.path, func(a *answer) bool { // events tell of some a moment later
				return !slices.ContainsFunc(test.says, func(text string) bool { return !strings.Contains(a.want(http.StatusOK).words(), text) })
			})
			wantEqual(t, "the page has a switch", page.hasForm(stopPath), test.path == stopPath)
			if test.keys == "ob:" {
				page.saysNot("Budget left")
			}
			mend()
			b.once(test.path, func(a *answer) bool { return !strings.Contains(a.want(http.StatusOK).words(), "cannot be read now") })
		})
	}
}

func TestAnAgentsPageDoesNotWaitForItsReport(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, operator)
	s := w.console.fleets.spendings(spentOf{uuid.MustParse(w.org), ids["agent"]}, time.Now())
	end := make(chan error)
	s.report = func(api, time.Time) (*spent, error) { return nil, <-end }
	path := agents + "/" + ids["agent"]
	page := b.get(path).want(http.StatusOK).says("It is being added up", "Spent today (UTC) –")
	wantEqual(t, "the page has a switch", page.hasForm(path+"/suspend"), true)
	end <- &problem{Status: http.StatusTooManyRequests, Code: "rate_limited", Detail: "too many reports are made now"}
	b.once(path, func(a *answer) bool {
		return strings.Contains(a.want(http.StatusOK).words(), "Too many reports are made now")
	})
}

func TestWhatIsNotKnownIsNotShownAsZero(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	w.caughtUp(b)
	s := w.console.fleets.spendings(spentOf{organization: uuid.MustParse(w.org)}, time.Now())
	await(t, "nothing is read any more", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.next = time.Now().Add(time.Hour) // again each time: a reading that ends sets it
		return s.reading == nil
	})
	s.last.Store(&spent{At: time.Now(), Total: spending{5_000_000, 6_000_000}, NoTypes: true, NoAgents: true, Problem: tooManyTypes})
	b.get(Prefix).says("Spent today (UTC) $5.00", tooManyTypes).saysNot("No agent spent anything", "Spent by")
	b.get(agents).says(tooManyTypes, "– –").saysNot("$0.00")
}

func TestEventsThatCannotBeReadAreReadLater(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	w.overviewSays(b, "more is needed") // the feed has the event
	f := &follower{console: w.console, key: w.keys[viewer], used: time.Now(), stats: newStats()}
	f.begin(must(f.head())(t))
	w.mini.SetError(loading)
	go f.catchUp()
	w.failAndMend(f)
}

func TestOlderEventsThanAreKeptAreNotPromised(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	w.happen(ids["agent"], eventsShown)
	a := api{host: w.console.host, key: w.keys[viewer]}
	head := func() int64 { return must(a.checkpoint())(t).Sequence }
	await(t, "the feed has the events", func() bool { return head() > 2*eventsShown })
	last := head()
	direct := redis.NewClient(&redis.Options{Addr: w.mini.Addr()})
	defer direct.Close()
	for _, key := range w.mini.Keys() {
		if strings.Contains(key, "oe:{") {
			must(direct.XTrimMinID(t.Context(), key, fmt.Sprint(last-1, "-0")).Result())(t)
		}
	}
	for path, says := range map[string]string{
		eventsPath: "The feed keeps no older events", fmt.Sprint(eventsPath, "?before=", last-2): "does not keep events that are this old",
		eventsPath + "?type=agent.created": "None of the 1,000 events that this page looks at is of this type. All that are kept",
	} {
		page := b.get(path).says(says)
		for _, to := range page.links() {
			isOther := strings.Contains(to, "before=") && to != fmt.Sprint(eventsPath, "?before=", last-2)
			wantEqual(t, path+" leads on to "+to, isOther, false)
		}
	}
}
