package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/chart"
	"remit/money"
)

func TestRefreshesKeepWithinTheirShareOfTheProcessor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ took, most time.Duration }{
		"small pages":         {5 * time.Millisecond, 1200*time.Millisecond + refreshBurst + 5*time.Millisecond},
		"pages of many items": {300 * time.Millisecond, 1200*time.Millisecond + refreshBurst + 300*time.Millisecond},
	} {
		var a allowance
		var all time.Duration
		begin := time.Unix(1e9, 0)
		for at := time.Duration(0); at < time.Minute; at += 10 * time.Millisecond { // a minute has 1.2 s
			if a.take(begin.Add(at)) == 0 {
				a.settle(test.took)
				all += test.took
			}
		}
		if all > test.most || all < time.Second {
			t.Errorf("%s: refreshes took %v of a minute", name, all)
		}
		left, usual := a.left, a.usual
		a.settle(time.Second) // of a refresh that no telling asked for
		wantEqual(t, name+": what is left, and what a refresh costs", [2]time.Duration{a.left, a.usual}, [2]time.Duration{left, usual})
	}
}

func TestSumsAreKeptByAgentsAsTheyAreSpelledOnce(t *testing.T) {
	t.Parallel()
	agent := uuid.New()
	for asked, want := range map[string]*spentOf{
		"":                                       {},
		agent.String():                           {agent: agent.String()},
		strings.ToUpper(agent.String()):          {agent: agent.String()},
		strings.Repeat("x", 14000):               nil,
		"urn:uuid:" + agent.String() + "-and-on": nil,
	} {
		v := &visit{query: new(fasthttp.Args)}
		v.query.Set("spent", "0")
		v.query.Set("agent", asked)
		wantEqual(t, fmt.Sprintf("the sum for %.40q", asked), newRefreshing(v, true).sums, want)
	}
}

func TestAQuietTimeLetsAllViewersRefreshAtOnce(t *testing.T) {
	t.Parallel()
	var a allowance
	now := time.Unix(1e9, 0)
	told := 0
	for range mostViewers {
		if a.take(now) == 0 {
			told++
		}
	}
	if told < 20 || told == mostViewers {
		t.Errorf("%d of %d are told at once", told, mostViewers)
	}
	if wait := a.take(now); wait <= 0 || wait > time.Second {
		t.Errorf("the others wait for %v", wait)
	}
}

func TestAPageIsReadAnewSoonerForEventsThanForSums(t *testing.T) {
	t.Parallel()
	for asked, want := range map[urgency]time.Duration{calm: calmPause, summed: sumPause, urgent: eventPause} {
		now := time.Unix(1e9, 0)
		r := refreshing{at: now}
		r.ask(asked)
		if r.isDue(&allowance{}, now.Add(want-time.Millisecond)) || !r.nextLook(now.Add(time.Hour)).Equal(now.Add(want)) {
			t.Errorf("%d: it is due before %v", asked, want)
		}
		if !r.isDue(&allowance{}, now.Add(want)) || r.isDue(&allowance{}, now.Add(want+eventPause)) {
			t.Errorf("%d: it is not due once after %v", asked, want)
		}
		again := []bool{r.isDue(&allowance{}, now.Add(want+sumPause)), r.isDue(&allowance{}, now.Add(want+2*sumPause))}
		wantEqual(t, fmt.Sprint(asked, ": it is due for the figures that follow an event, and after that"), again, []bool{asked == urgent, false})
	}
	off := refreshing{isOff: true}
	off.ask(urgent)
	wantEqual(t, "a page that shows nothing that changes is read anew", off.isDue(&allowance{}, time.Now()), false)
}

func TestReadingsDifferByTheirAmounts(t *testing.T) {
	t.Parallel()
	reading := func(total money.MicroUSD, agent byte, kind string) *spent {
		return &spent{At: time.Now(), Total: spending{Today: total}, agents: []agentSpending{{id: uuid.UUID{agent}}}, types: []chart.Entry{{Name: kind}}}
	}
	first := reading(1, 1, "a")
	for name, other := range map[string]*spent{"its sum": reading(2, 1, "a"), "an agent": reading(1, 2, "a"), "a type": reading(1, 1, "b")} {
		wantEqual(t, "a reading equals one that differs by "+name, first.equals(other), false)
	}
	wantEqual(t, "a reading equals one that differs by its time alone", first.equals(reading(1, 1, "a")), true)
}

func TestTheOverviewIsReadAnewForItsEventsItsFirstSumAndLaterOnes(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	w.caughtUp(b)
	isStale := func(m message) bool { return m.Stale }
	address := b.get(Prefix).liveOf()
	b.watch(liveAt(nil, "about", aboutAll, "reading", flagged(true))).until("the events", isStale) // of a page that was made before they were read
	b.watch(liveAt(nil, "about", aboutAll, "spent", "0")).until("the first sum", isStale)
	live := b.watch(address)
	w.asAdmin("POST", "/v1/sessions/"+ids["session"]+"/actions", map[string]any{"value_usd": 0.5})
	live.until("what was charged", isStale)
}

// A charge is no event, and the first look at a session has nothing to compare with but what the page says.
func TestASessionsPageIsReadAnewForWhatItsTreeUsedBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	child := w.newSession(ids["agent"], map[string]any{"parent_session_id": ids["session"], "max_actions": 3, "max_value_usd": 1})
	address := must(url.Parse(b.get(ids.path(session)).liveOf()))(t)
	for _, want := range []urgency{calm, summed} {
		if want != calm {
			w.asAdmin("POST", "/v1/sessions/"+child+"/actions", map[string]any{})
		}
		v := &visit{console: w.console, signIn: newSignIn(w.keys[viewer], time.Now()), api: api{host: w.console.host, key: w.keys[viewer]}, now: time.Now(),
			query: new(fasthttp.Args)}
		v.query.Parse(address.RawQuery)
		v.query.Del("after")                                                                    // what happened since the page was made asks for a refresh itself
		of, f := newViewing(v), &follower{console: w.console, viewers: map[*viewing]struct{}{}} // which tells of no event
		wantEqual(t, "there is a place", f.join(of), true)
		must(of.update(f, v.now))(t)
		wantEqual(t, "how soon it is read anew", of.refresh.wanted, want)
	}
}

func TestARefreshLeavesTheMessageForTheNextPage(t *testing.T) {
	t.Parallel()
	w, b := visited(t, admin)
	fields := b.get(agents).form(agents)
	fields.Set("name", "scout")
	to := b.ask("POST", agents, fields).want(303).header.Get("Location")
	b.headers[refreshHeader] = "1"
	b.get(to).want(200).saysNot("It is shown only now")
	delete(b.headers, refreshHeader)
	page := b.get(to).want(200).says("It is shown only now")
	w.exchange(strings.TrimPrefix(to, agents+"/"), page.secret("rms_"))
}
