package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/internal/event"
	"remit/redisstore/internal/feed"
)

// A trace is a rule of the store as text. "# " begins one with a title, the behaviour. Each line after it is a step and its outcome:
//
//	session 10 $5       → active 0/10 $0/$5
//	charge 2 $1.50      → 2/10 $1.5/$5
//	charge 9            → limit max_actions
//
// A step is made in the store and in the model. The outcome in the text must be the store's, and all of the outcome and of what is
// stored must be as in the model. The files' first lines, up to the first title, say what they are about. What the model does not
// know is in the folders store and clock: these traces are played on the store alone, so their refusals say how much is used too. Those of
// clock have a Redis whose clock they move: it begins with the last day before a month of 31. tracesteps_test.go and tracestore_test.go have
// the steps, traceoutcomes_test.go the outcomes.
type tracedRule struct {
	title string
	lines []traceLine
}

type traceLine struct{ place, step, outcome string }

func readTraces(t *testing.T, file string) []tracedRule {
	t.Helper()
	var traces []tracedRule
	for i, text := range strings.Split(string(must(os.ReadFile(file))(t)), "\n") {
		place := fmt.Sprintf("%s:%d: %s", filepath.Base(file), i+1, text)
		title, titled := strings.CutPrefix(text, "# ")
		step, want, isStep := strings.Cut(text, "→")
		switch {
		case titled:
			traces = append(traces, tracedRule{title: title})
		case len(traces) == 0 || text == "":
		case !isStep:
			t.Fatalf("%s\nis no title, and no step with an outcome", place)
		default:
			last := &traces[len(traces)-1]
			last.lines = append(last.lines, traceLine{place, strings.TrimSpace(step), strings.TrimSpace(want)})
		}
	}
	return traces
}

func eachTrace(t *testing.T, folder string, play func(t *testing.T, r tracedRule)) {
	t.Helper()
	files := must(filepath.Glob(filepath.Join("testdata/traces", folder, "*.txt")))(t)
	if len(files) == 0 {
		t.Fatal("there are no traces")
	}
	for _, file := range files {
		rules := readTraces(t, file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			for _, rule := range rules {
				t.Run(rule.title, func(t *testing.T) { play(t, rule) })
			}
		})
	}
}

func TestTraces(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		eachTrace(t, "", func(t *testing.T, r tracedRule) {
			p, m := newTracePlayer(t, s)
			p.m = m
			p.playAll(t, r)
			p.w.wantNotedOnce(t, p.m)
			p.readAll(t)
		})
	})
}

func TestTracesOfTheStore(t *testing.T) {
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		eachTrace(t, "store", func(t *testing.T, r tracedRule) {
			p, _ := newTracePlayer(t, s)
			p.playAll(t, r)
			p.readSessions(t)
		})
	})
}

func TestTracesOfTheClock(t *testing.T) {
	t.Parallel()
	var midnight time.Time
	for now, months := time.Now(), time.Month(1); midnight.AddDate(0, 0, 32).Day() != 1; months++ {
		midnight = time.Date(now.Year(), now.Month()+months, 0, 0, 0, 0, 0, time.UTC)
	}
	eachTrace(t, "clock", func(t *testing.T, r tracedRule) {
		t.Parallel()
		mini := miniredis.RunT(t)
		mini.SetTime(midnight)
		p, _ := newTracePlayer(t, openStore(t, Config{}, "redis://"+mini.Addr(), nil))
		p.midnight, p.clock = midnight, func(ahead time.Duration) { mini.SetTime(midnight.Add(ahead)) }
		p.playAll(t, r)
		p.readSessions(t)
	})
}

// tracePlayer plays the lines of a trace in a fixture, and in its model if there is one.
type tracePlayer struct {
	w        *fixture
	m        *model                    // nil in traces of the store alone
	clock    func(ahead time.Duration) // sets Redis's clock; nil where the passing of time moves what is stored
	midnight time.Time                 // when that clock begins
	ahead    time.Duration
	ids      map[string]uuid.UUID // of what the trace gives a name
	latest   map[string]uuid.UUID // the latest of each kind
	made     map[uuid.UUID]any    // what was created
	requests map[string]int       // by their texts, for idempotency keys
	seen     map[uuid.UUID]int    // events of each trail
}

// newTracePlayer returns a player whose agent has the name first, and the model of that.
func newTracePlayer(t *testing.T, s *Store) (*tracePlayer, *model) {
	t.Helper()
	w, m := newFixture(t, s, peek(t, s))
	p := &tracePlayer{
		w: w, ids: map[string]uuid.UUID{"first": w.token.Agent}, latest: map[string]uuid.UUID{"agent": w.token.Agent},
		made: map[uuid.UUID]any{}, requests: map[string]int{}, seen: map[uuid.UUID]int{},
	}
	p.trail(t, "first")
	return p, m
}

func (p *tracePlayer) playAll(t *testing.T, r tracedRule) {
	t.Helper()
	if len(r.lines) == 0 {
		t.Fatal("the trace has no steps")
	}
	for _, line := range r.lines {
		if got := p.play(t, line); got != line.outcome {
			t.Fatalf("%s\n%s is the outcome", line.place, got)
		}
		if p.m == nil {
			continue
		}
		if p.w.wantStored(t, p.m); t.Failed() {
			t.Fatal(line.place)
		}
		if fault := p.m.fault(); fault != "" {
			t.Fatalf("%s\n%s", line.place, fault)
		}
	}
}

// readAll reads all that the trace has created, by each caller, and the lists.
func (p *tracePlayer) readAll(t *testing.T) {
	t.Helper()
	for _, byAPIKey := range []bool{false, true} {
		steps := []step{{op: Query{Limit: 200}}}
		for _, s := range p.m.sessions {
			steps = append(steps, step{op: readSessionStep{}, target: s.ID}, step{op: Query{Limit: 200, Session: s.ID}})
		}
		for _, tx := range p.m.transactions {
			steps = append(steps, step{op: readTransactionStep{}, target: tx.ID})
		}
		for _, l := range p.m.leases {
			steps = append(steps, step{op: readLeaseStep{}, target: l.ID})
		}
		for _, st := range steps {
			st.byAPIKey = byAPIKey
			p.follow(t, "at the end", st)
		}
	}
	agent, keys := p.w.token.Agent, p.w.store.keys
	wantGone(t, p.w.store, keys.Session(agent, uuid.Nil), keys.Holds(agent, uuid.Nil), keys.SessionTransactions(agent, uuid.Nil))
	p.readSessions(t)
}

func (p *tracePlayer) readSessions(t *testing.T) {
	t.Helper()
	caller := Caller{Key: &p.w.key}
	for _, listed := range must(p.w.store.Sessions(t.Context(), caller, Query{Limit: 200}))(t).Items {
		read := summaryOf(must(p.w.store.Session(t.Context(), caller, listed.ID))(t))
		read.keptAbove, read.hasChildren, read.unsettled = listed.keptAbove, listed.hasChildren, listed.unsettled
		wantEqual(t, "what is listed", listed, read)
	}
}

// play executes a line, and returns the text of the outcome.
func (p *tracePlayer) play(t *testing.T, line traceLine) string {
	t.Helper()
	verb, rest, _ := strings.Cut(line.step, " ")
	if verb == "trail" {
		return p.trail(t, strings.TrimSpace(rest))
	}
	if number, again, repeats := strings.Cut(line.step, " times "); repeats {
		for range must(strconv.Atoi(number))(t) - 1 {
			p.play(t, traceLine{place: line.place, step: again})
		}
		return p.play(t, traceLine{place: line.place, step: again})
	}
	st, name := p.step(t, line)
	got := p.follow(t, line.place, st)
	if kind, creates := creations[verb]; creates && got.err == nil && got.id() != uuid.Nil {
		p.latest[kind], p.made[got.id()] = got.id(), got.value
		if name != "" {
			p.ids[name] = got.id()
		}
	}
	return p.textOf(got)
}

// follow executes a step, and returns the store's outcome, which must be the model's.
func (p *tracePlayer) follow(t *testing.T, place string, st step) outcome {
	t.Helper()
	if p.m == nil {
		return p.onStore(t, st)
	}
	want, got := p.m.follow(st, p.w.do(context.Background(), p.w.store, st))
	if !got.is(want) {
		t.Fatalf("%s\n%v:\n%v, want\n%v", place, st, got, want)
	}
	return got
}

func (p *tracePlayer) nameOf(id uuid.UUID) string {
	for name, named := range p.ids {
		if named == id {
			return name
		}
	}
	return "?"
}

// trail returns the text of the events that are new in the audit trail of the agent with a name, the latest for "", or of the
// organization, without their times.
func (p *tracePlayer) trail(t *testing.T, of string) string {
	t.Helper()
	id, organization := p.latest["agent"], p.w.key.Organization
	if of != "" {
		id = p.ids[of]
	}
	var all []Event
	if of == "organization" {
		id = organization
		for _, entry := range must(p.w.peek.XRange(t.Context(), p.w.store.keys.Events(id), "-", "+").Result())(t) {
			e := feed.TrailEvent(entry)
			e.Complete(organization, uuid.Nil)
			all = append(all, e)
		}
	} else {
		all = p.w.trail(t, id)
	}
	var texts []string
	for _, e := range all[p.seen[id]:] {
		texts = append(texts, p.textOfEvent(t, e))
	}
	p.seen[id] = len(all)
	return strings.Join(texts, "; ")
}

// textOfEvent says what happened, and to what unless that is the latest of its kind; who did it, unless it was the agent; and its data.
func (p *tracePlayer) textOfEvent(t *testing.T, e Event) string {
	t.Helper()
	text := e.Type + p.textOfObject("session", e.Session) + p.textOfObject("transaction", e.Transaction) + p.textOfObject("lease", e.Lease) +
		p.textOfObject("request", e.Asked) + p.textOfObject("session", e.Child)
	switch e.Actor {
	case event.Actor{Type: event.ByAgent, ID: e.Agent}:
	case event.Actor{Type: event.ByKey, ID: p.w.key.Organization}:
		text += " by key"
	case event.Actor{Type: event.ByTime}:
		text += " by time"
	case event.Actor{Type: event.ByGateway}:
		text += " by gateway"
	default:
		text += fmt.Sprintf(" by %+v", e.Actor)
	}
	data := map[string]json.RawMessage{}
	must(0, json.Unmarshal(must(json.Marshal(e.Data))(t), &data))(t)
	for _, member := range slices.Sorted(maps.Keys(data)) {
		if !strings.HasSuffix(member, "_at") {
			text += " " + member + "=" + strings.Trim(string(data[member]), `"`)
		}
	}
	return text
}

func (p *tracePlayer) textOfObject(kind string, id uuid.UUID) string {
	name := p.nameOf(id)
	return given(" "+name, id != uuid.Nil && (name != "?" || id != p.latest[kind]))
}
