package redisstore

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// The step of a trace's line is a verb and words: a number of actions, an amount ($1.50), what the operation takes as name=value or as
// a word of its own, "as a" to name what is created, by-key if the organization asks and not the agent of the object, by-gateway if the gateway does, and the name of what
// the step is about. Without one it is about the latest of its kind; "nothing" names none, "elsewhere" none in another cell. "9 times"
// before a step repeats it. Lifetimes end half an hour past, those of leases a quarter, as modelTime requires.

// traceWords are the words of a step. Those that are read are taken out: what is left was not understood.
type traceWords struct {
	t     *testing.T
	place string
	given map[string]string
}

// words reads words, and fails the test unless read reads all of them.
func (p *tracePlayer) words(t *testing.T, place, text string, read func(w traceWords)) {
	t.Helper()
	w := traceWords{t, place, map[string]string{}}
	all := strings.Fields(text)
	for i := 0; i < len(all); i++ {
		kind, value, _ := strings.Cut(all[i], "=")
		_, known := p.ids[all[i]]
		_, notNumber := strconv.ParseInt(all[i], 10, 64)
		_, notTime := time.ParseDuration(all[i])
		switch {
		case known || all[i] == "nothing" || all[i] == "elsewhere":
			kind, value = "name", all[i]
		case notNumber == nil:
			kind, value = "count", all[i]
		case notTime == nil:
			kind, value = "time", all[i]
		case strings.HasPrefix(all[i], "$"):
			kind, value = "amount", all[i]
		case kind == "as" && i+1 < len(all):
			i++
			value = all[i]
		}
		if _, twice := w.given[kind]; twice {
			t.Fatalf("%s\n%s is there twice", place, kind)
		}
		w.given[kind] = value
	}
	read(w)
	if len(w.given) > 0 {
		t.Fatalf("%s\n%q is not understood", place, slices.Sorted(maps.Keys(w.given)))
	}
}

func (w traceWords) has(kind string) bool {
	_, given := w.given[kind]
	return given
}

func (w traceWords) text(kind string) string {
	defer delete(w.given, kind)
	return w.given[kind]
}

func (w traceWords) flag(kind string) bool {
	defer delete(w.given, kind)
	return w.has(kind)
}

// list returns a list with commas, nil if it is not given.
func (w traceWords) list(kind string) []string {
	if !w.has(kind) {
		return nil
	}
	return strings.FieldsFunc(w.text(kind), func(r rune) bool { return r == ',' })
}

// optional returns nil if the word is not given.
func optional[T any](w traceWords, kind string, parse func(string) (T, error)) *T {
	w.t.Helper()
	if !w.has(kind) {
		return nil
	}
	value, err := parse(w.text(kind))
	if err != nil {
		w.t.Fatalf("%s\n%s: %v", w.place, kind, err)
	}
	return &value
}

func orElse[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

func wholeNumber(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func dollars(text string) (money.MicroUSD, error) {
	return money.Parse([]byte(strings.TrimPrefix(text, "$")))
}

func (w traceWords) count() int64 { return orElse(optional(w, "count", wholeNumber), 0) }

func (w traceWords) amount() money.MicroUSD { return orElse(optional(w, "amount", dollars), 0) }

func (w traceWords) lifetime(otherwise time.Duration) time.Duration {
	return orElse(optional(w, "life", time.ParseDuration), otherwise)
}

func (w traceWords) thresholds() *Thresholds {
	thresholds := Thresholds{}
	switch w.given["thresholds"] {
	case "default":
		w.text("thresholds")
		return new(Thresholds)
	case "":
		if !w.flag("thresholds") {
			return nil
		}
	}
	for _, percent := range w.list("thresholds") {
		thresholds = append(thresholds, must(strconv.Atoi(percent))(w.t))
	}
	return &thresholds
}

// long is a lifetime that outlasts every trace.
const long = 10_000*time.Hour + time.Hour/2

// step reads a line, and returns its step with the name of what it creates.
func (p *tracePlayer) step(t *testing.T, line traceLine) (st step, name string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line.step, " ")
	rest, renewal, renews := strings.Cut(rest, "renew")
	items := []string{rest}
	if verb == "batch" {
		items = strings.Split(rest, ",")
	}
	for _, item := range items {
		p.words(t, line.place, item, func(w traceWords) {
			op := p.operation(verb, w)
			if charge, isCharge := op.(Charge); isCharge && verb == "batch" {
				charges, _ := st.op.([]BatchCharge)
				charges = append(charges, BatchCharge{p.target("session", w), charge})
				op = charges
			}
			st.op = op
			st.target = p.target(subjects[verb], w)
			st.agent = p.agentOf(st)
			byKey := w.flag("by-key") || slices.Contains([]string{"session", "child", "limits", "suspend", "resume"}, verb)
			st.byAPIKey = byKey && !w.flag("by-token")
			st.gateway = w.flag("by-gateway")
			st.key, name = w.text("key"), w.text("as")
		})
	}
	if settlement, settles := st.op.(NewSettlement); settles && renews {
		p.words(t, line.place, renewal, func(w traceWords) {
			settlement.Renew = new(newLease(w))
			st.op = settlement
			name = w.text("as")
		})
	}
	if st.key != "" {
		if _, known := p.requests[line.step]; !known {
			p.requests[line.step] = len(p.requests) + 1
		}
		st.request = p.requests[line.step]
	}
	return st, name
}

// subjects says what the steps with a verb are about.
var subjects = map[string]string{
	"charge": "session", "limits": "session", "end": "session", "suspend": "session", "resume": "session", "lease": "session", "read": "session",
	"commit": "transaction", "rollback": "transaction", "hold": "transaction", "transaction": "transaction", "settle": "lease", "leased": "lease",
	"types": "session", "kept": "session", "ask": "session", "requests": "session", "approve": "request", "deny": "request", "request": "request",
	"restrict": "agent", "used": "agent", "revoke": "agent", "stop": "agent", "start": "agent",
}

// agentOf returns the agent that makes a step: that of the object, or the latest.
func (p *tracePlayer) agentOf(st step) uuid.UUID {
	of := st.target
	switch n := st.op.(type) {
	case NewTransaction:
		of = n.Session
	case NewSession:
		of = n.Parent
	}
	switch v := p.made[of].(type) {
	case Session:
		return v.Agent
	case Transaction:
		return v.Agent
	case Lease:
		return v.Agent
	case SessionRequest:
		return v.Agent
	}
	return p.latest["agent"]
}

func (p *tracePlayer) target(kind string, w traceWords) uuid.UUID {
	if kind == "" {
		return uuid.Nil
	}
	switch name := w.text("name"); name {
	case "":
		return p.latest[kind]
	case "nothing":
		return NewID(p.w.token.Agent)
	case "elsewhere":
		return otherCell(p.w.token.Agent)
	default:
		return p.ids[name]
	}
}

// named returns the id of what has the name, none for "".
func (p *tracePlayer) named(w traceWords, name string) uuid.UUID {
	w.t.Helper()
	if _, known := p.ids[name]; !known && name != "" {
		w.t.Fatalf("%s\n%q is not the name of anything", w.place, name)
	}
	return p.ids[name]
}

func (p *tracePlayer) operation(verb string, w traceWords) any {
	w.t.Helper()
	switch verb {
	case "session":
		return p.newSession(w)
	case "child":
		n := p.newSession(w)
		n.Parent, n.FitActions = p.target("session", w), w.flag("fit")
		n.FitValue = n.FitActions
		return n
	case "charge", "batch":
		return Charge{Count: w.count(), Value: w.amount(), Scope: w.text("scope"), ActionType: w.text("type"), DryRun: w.flag("dry")}
	case "limits":
		return NewLimits{
			MaxActions: optional(w, "actions", wholeNumber), AddActions: optional(w, "more-actions", wholeNumber),
			MaxValue: optional(w, "value", dollars), AddValue: optional(w, "more-value", dollars),
			Lifetime: optional(w, "life", time.ParseDuration), MaxLease: optional(w, "lease", time.ParseDuration), Thresholds: w.thresholds(),
			PerAction: w.change("per-action", microDollars), Observes: w.observes(),
		}
	case "end":
		return endStep{}
	case "suspend":
		return suspendStep{w.text("reason")}
	case "resume":
		return resumeStep{}
	case "begin":
		return p.newTransaction(w)
	case "hold":
		return NewHold{Value: optional(w, "amount", dollars), Lifetime: optional(w, "life", time.ParseDuration)}
	case "commit":
		return Commit{Value: optional(w, "amount", dollars), PostState: w.text("post")}
	case "rollback":
		return Rollback{Reason: w.text("reason"), Scopes: w.list("scopes")}
	case "lease":
		return newLease(w)
	case "settle":
		return NewSettlement{ActionCount: w.count(), ValueUsed: w.amount(), Types: w.types()}
	case "read":
		return readSessionStep{}
	case "transaction":
		return readTransactionStep{}
	case "leased":
		return readLeaseStep{}
	case "list":
		return Query{
			Limit: int(orElse(optional(w, "limit", wholeNumber), 200)), Status: Status(w.text("status")), Session: p.named(w, w.text("session")),
			SettledByExpiry: w.flag("settled"),
		}
	case "pass":
		return orElse(optional(w, "time", time.ParseDuration), 0)
	}
	return p.storeOperation(verb, w)
}

func (p *tracePlayer) newSession(w traceWords) NewSession {
	n := NewSession{
		Agent: p.latest["agent"], MaxActions: w.count(), MaxValue: w.amount(), MaxCommitted: optional(w, "committed", dollars), Lifetime: w.lifetime(long),
		MaxLease: orElse(optional(w, "lease", time.ParseDuration), 0), Thresholds: orElse(w.thresholds(), nil), Scopes: w.list("scopes"),
		Metadata: w.text("metadata"), MaxPerAction: optional(w, "per-action", dollars), Observes: orElse(w.observes(), false),
	}
	if w.has("agent") {
		n.Agent = p.named(w, w.text("agent"))
	}
	return n
}

func (p *tracePlayer) newTransaction(w traceWords) NewTransaction {
	n := NewTransaction{
		ActionType: w.text("type"), PreState: w.text("pre"), Metadata: w.text("metadata"), Value: w.amount(), Lifetime: w.lifetime(long),
		Irreversible: w.flag("irreversible"), SpentOnExpiry: w.flag("spent"), HeldByGateway: w.flag("gateway"), DryRun: w.flag("dry"),
	}
	if !w.flag("alone") {
		n.Session = p.target("session", w)
	}
	if n.ActionType == "" {
		n.ActionType = "order.place"
	}
	if n.PreState == "" {
		n.PreState = "{}"
	}
	return n
}

func newLease(w traceWords) NewLease {
	return NewLease{MaxActions: w.count(), MaxValue: w.amount(), Partial: w.flag("partial"), Lifetime: w.lifetime(time.Hour + time.Hour/4)}
}
