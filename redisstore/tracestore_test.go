package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// storeStep is a step that the model does not have: of agents and their limits, requests for more, the organization's budget, usage by
// action type.
type storeStep func(t *testing.T, st step) outcome

func (p *tracePlayer) onStore(t *testing.T, st step) outcome {
	t.Helper()
	switch op := st.op.(type) {
	case storeStep:
		return op(t, st)
	case time.Duration:
		if p.clock != nil {
			p.ahead += op
			p.clock(p.ahead)
			return outcome{}
		}
	case endStep: // again where the end may have run out of the time to settle, as on a busy machine
		for {
			began, ended := time.Now(), p.w.do(t.Context(), p.w.store, st)
			if time.Since(began) < settleTime {
				return ended
			}
		}
	}
	return p.w.do(t.Context(), p.w.store, st)
}

func (p *tracePlayer) storeOperation(verb string, w traceWords) any {
	w.t.Helper()
	s, key := p.w.store, p.w.key
	switch verb {
	case "agent":
		n := Agent{Name: "scout", Scopes: w.list("scopes"), Limits: AgentLimits{ValuePerDay: optional(w, "per-day", dollars),
			ActionsPerMinute: optional(w, "per-minute", wholeNumber), OpenSessions: optional(w, "open", wholeNumber)}}
		if n.Scopes == nil {
			n.Scopes = []string{"read", "write"}
		}
		return storeStep(func(t *testing.T, _ step) outcome {
			return resultOf(s.CreateAgent(t.Context(), key, n, [32]byte{3}, nil))
		})
	case "restrict":
		n := AgentChanges{Limits: NewAgentLimits{w.change("per-day", microDollars), w.change("per-minute", wholeNumber), w.change("open", wholeNumber)}}
		if scopes := w.list("scopes"); scopes != nil {
			n.Scopes = &scopes
		}
		return storeStep(func(t *testing.T, st step) outcome { return resultOf(s.ChangeAgent(t.Context(), key, st.target, n)) })
	case "used":
		return storeStep(func(t *testing.T, st step) outcome { return resultOf(s.Agent(t.Context(), key, st.target)) })
	case "revoke":
		return storeStep(func(t *testing.T, st step) outcome {
			return outcome{err: errOf(s.RevokeAgent(t.Context(), key, st.target))}
		})
	case "stop":
		return storeStep(func(t *testing.T, st step) outcome {
			return outcome{err: errOf(s.SuspendAgent(t.Context(), key, st.target, ""))}
		})
	case "start":
		return storeStep(func(t *testing.T, st step) outcome {
			return outcome{err: errOf(s.ResumeAgent(t.Context(), key, st.target, ""))}
		})
	case "types":
		return storeStep(p.types)
	case "kept":
		return storeStep(p.kept)
	case "budget":
		value, period := optional(w, "amount", dollars), BudgetForever
		for _, of := range []BudgetPeriod{BudgetDay, BudgetMonth} {
			if w.flag(string(of)) {
				period = of
			}
		}
		return storeStep(func(t *testing.T, _ step) outcome {
			if value == nil {
				return resultOf(s.Budget(t.Context(), key))
			}
			return resultOf(s.SetBudget(t.Context(), key, *value, period))
		})
	}
	return p.requestOperation(verb, w)
}

// askedFor is the reason of the requests for more.
const askedFor = "line one\nline two  with spaces 12 "

func (p *tracePlayer) requestOperation(verb string, w traceWords) any {
	w.t.Helper()
	s, key := p.w.store, p.w.key
	session := func(request uuid.UUID) uuid.UUID {
		if r, is := p.made[request].(SessionRequest); is {
			return r.Session
		}
		return p.latest["session"]
	}
	switch verb {
	case "ask":
		return NewSessionRequest{AddActions: w.count(), AddValue: w.amount(), Reason: askedFor}
	case "approve":
		a := Approval{AddActions: optional(w, "actions", wholeNumber), AddValue: optional(w, "value", dollars), Comment: w.text("comment")}
		return storeStep(func(t *testing.T, st step) outcome {
			return resultOf(s.ApproveRequest(t.Context(), key, session(st.target), st.target, a))
		})
	case "deny":
		comment := w.text("comment")
		return storeStep(func(t *testing.T, st step) outcome {
			return resultOf(s.DenyRequest(t.Context(), key, session(st.target), st.target, comment))
		})
	case "request":
		return storeStep(func(t *testing.T, st step) outcome {
			of := tenant{key: key, session: Session{ID: session(st.target)}}
			return resultOf(of.readBoth(t, s, p.w.tokenOf(st), st.target), nil)
		})
	case "requests":
		return storeStep(func(t *testing.T, st step) outcome {
			all, err := s.SessionRequests(t.Context(), Caller{Key: &key}, st.target)
			var texts []string
			for _, r := range all {
				texts = append(texts, p.nameOf(r.ID)+" "+string(r.Status))
			}
			return resultOf(strings.Join(texts, ", "), err)
		})
	}
	w.t.Fatalf("%s\n%q is no step", w.place, verb)
	return nil
}

// kept returns for how long what is stored of a session and with it stays, or of a transaction.
func (p *tracePlayer) kept(t *testing.T, st step) outcome {
	t.Helper()
	type entry struct{ name, key string }
	keys, agent, session := p.w.store.keys, st.agent, st.target
	stored := []entry{
		{"session", keys.Session(agent, session)}, {"holds", keys.Holds(agent, session)}, {"requests", keys.SessionRequests(agent, session)},
		{"transactions", keys.SessionTransactions(agent, session)},
		{"all sessions", keys.AgentSessions(agent)}, {"all transactions", keys.AgentTransactions(agent)},
	}
	if _, is := p.made[st.target].(Transaction); is {
		stored = []entry{{"transaction", keys.Transaction(agent, st.target)}}
	}
	var texts []string
	for _, of := range stored {
		if left := must(p.w.peek.PTTL(t.Context(), of.key).Result())(t); left > 0 {
			texts = append(texts, of.name+" "+strings.TrimSuffix(left.Round(time.Minute).String(), "0m0s"))
		}
	}
	return outcome{value: strings.Join(texts, ", ")}
}

// types returns what a session has used by action type.
func (p *tracePlayer) types(t *testing.T, st step) outcome {
	t.Helper()
	used, err := tenant{key: p.w.key, session: Session{ID: st.target}}.usageByType(t, p.w.store)
	var texts []string
	for _, of := range used {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %d $%s", of.ActionType, of.ActionCount, of.Value)))
	}
	return resultOf(strings.Join(texts, ", "), err)
}

// change reads a limit that is set, or removed with none.
func (w traceWords) change(kind string, parse func(string) (int64, error)) LimitChange {
	w.t.Helper()
	if w.given[kind] == "none" {
		w.text(kind)
		return LimitChange{Given: true}
	}
	return LimitChange{w.has(kind), optional(w, kind, parse)}
}

func microDollars(text string) (int64, error) {
	value, err := dollars(text)
	return int64(value), err
}

// observes returns nil unless the words say so or the contrary.
func (w traceWords) observes() *bool {
	observes, enforces := w.flag("observe"), w.flag("enforce")
	if !observes && !enforces {
		return nil
	}
	return &observes
}

// types reads types=NAME:ACTIONS:VALUE,…
func (w traceWords) types() []TypeUsage {
	w.t.Helper()
	var types []TypeUsage
	for _, one := range w.list("types") {
		parts := strings.Split(one, ":")
		types = append(types, TypeUsage{parts[0], must(wholeNumber(parts[1]))(w.t), must(dollars(parts[2]))(w.t)})
	}
	return types
}
