package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A trace is a rule of the store as text. "# " begins one with a title, the behaviour. Each line after it is a step and its outcome:
//
//	session 10 $5       → active 0/10 $0/$5
//	charge 2 $1.50      → 2/10 $1.5/$5
//	charge 9            → limit max_actions
//
// A step is made in the store and in the model. The outcome in the text must be the store's, and all of the outcome and of what is
// stored must be as in the model. The files' first lines, up to the first title, say what they are about. tracesteps_test.go has
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

func TestTraces(t *testing.T) {
	t.Parallel()
	files := must(filepath.Glob("testdata/traces/*.txt"))(t)
	if len(files) == 0 {
		t.Fatal("there are no traces")
	}
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, file := range files {
			rules := readTraces(t, file)
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				t.Parallel()
				for _, rule := range rules {
					t.Run(rule.title, func(t *testing.T) { rule.play(t, s) })
				}
			})
		}
	})
}

func (r tracedRule) play(t *testing.T, s *Store) {
	t.Helper()
	if len(r.lines) == 0 {
		t.Fatal("the trace has no steps")
	}
	p := &tracePlayer{ids: map[string]uuid.UUID{}, latest: map[string]uuid.UUID{}, requests: map[string]int{}}
	p.w, p.m = newFixture(t, s, peek(t, s))
	p.trail(t)
	for _, line := range r.lines {
		if got := p.play(t, line); got != line.outcome {
			t.Fatalf("%s\n%s is the outcome", line.place, got)
		}
		if p.w.wantStored(t, p.m); t.Failed() {
			t.Fatal(line.place)
		}
		if fault := p.m.fault(); fault != "" {
			t.Fatalf("%s\n%s", line.place, fault)
		}
	}
	p.w.wantNotedOnce(t, p.m)
	p.readAll(t)
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
	if n := must(p.w.peek.Exists(t.Context(), keys.Session(agent, uuid.Nil), keys.Holds(agent, uuid.Nil), keys.SessionTransactions(agent, uuid.Nil)).Result())(t); n > 0 {
		t.Error("transactions without a session are stored as of one")
	}
	caller := Caller{Key: &p.w.key}
	for _, listed := range must(p.w.store.Sessions(t.Context(), caller, Query{Limit: 200}))(t).Items {
		if read := summaryOf(must(p.w.store.Session(t.Context(), caller, listed.ID))(t)); listed != read {
			t.Errorf("listed %+v, read %+v", listed, read)
		}
	}
}

// tracePlayer plays the lines of a trace in a fixture and its model.
type tracePlayer struct {
	w        *fixture
	m        *model
	ids      map[string]uuid.UUID // of what the trace gives a name
	latest   map[string]uuid.UUID // the latest session, transaction and lease
	requests map[string]int       // by their texts, for idempotency keys
	seen     int                  // events of the trail
}

// play executes a line in both, and returns the text of the outcome.
func (p *tracePlayer) play(t *testing.T, line traceLine) string {
	t.Helper()
	if line.step == "trail" {
		return p.trail(t)
	}
	st, name := p.step(t, line)
	got := p.follow(t, line.place, st)
	if kind, creates := creations[reflect.TypeOf(st.op)]; creates && got.err == nil {
		p.latest[kind] = got.id()
		if name != "" {
			p.ids[name] = got.id()
		}
	}
	return p.textOf(got)
}

// follow executes a step in both, and returns the store's outcome, which must be the model's.
func (p *tracePlayer) follow(t *testing.T, place string, st step) outcome {
	t.Helper()
	want, got := p.m.follow(st, p.w.do(context.Background(), p.w.store, st))
	if !got.is(want) {
		t.Fatalf("%s\n%v:\n%v, want\n%v", place, st, got, want)
	}
	return got
}

// nameOf returns the name that the trace gives an id.
func (p *tracePlayer) nameOf(id uuid.UUID) string {
	for name, named := range p.ids {
		if named == id {
			return name
		}
	}
	return "?"
}

// trail returns the text of the events that are new in the agent's audit trail, without their times.
func (p *tracePlayer) trail(t *testing.T) string {
	t.Helper()
	all := p.w.trail(t)
	var texts []string
	for _, e := range all[p.seen:] {
		texts = append(texts, textOfEvent(t, e))
	}
	p.seen = len(all)
	return strings.Join(texts, "; ")
}

func textOfEvent(t *testing.T, e Event) string {
	t.Helper()
	data := map[string]json.RawMessage{}
	if err := json.Unmarshal(must(json.Marshal(e.Data))(t), &data); err != nil {
		t.Fatal(err)
	}
	text := e.Type
	for _, member := range slices.Sorted(maps.Keys(data)) {
		if !strings.HasSuffix(member, "_at") {
			text += " " + member + "=" + strings.Trim(string(data[member]), `"`)
		}
	}
	return text
}
