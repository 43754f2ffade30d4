package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"remit/money"
)

// finisher ends trees, and asks for what must have come back.
type finisher struct {
	*Trees
	reader
	asked int
}

func (f *finisher) post(kind Kind, path string, body any) Request {
	return Request{Call: Call{Kind: kind}, Method: http.MethodPost, Path: path, Body: body, APIKey: f.apiKey}
}

func (f *finisher) call(r Request) (Call, []byte) { return f.caller.Do(f.instance, r) }

// ends ends a session, and repeats that until it is answered.
func (f *finisher) ends(id string) {
	for first := time.Now(); ; time.Sleep(retryPause) {
		call, body := f.call(f.post(End, "/v1/sessions/"+id+"/end", nil))
		if call.Outcome == OK || call.Code == "session_not_active" {
			return
		}
		if time.Since(first) > comesBack {
			f.report(violationOf(RuleRecovery, "session "+id, "it does not end: %d %s", call.Status, body))
			return
		}
	}
}

// eachTree calls do for the trees whose root lives, all at once.
func (f *finisher) eachTree(do func(f *finisher, t *tree)) {
	var group sync.WaitGroup
	for n, t := range f.trees() {
		if !t.over {
			one := &finisher{Trees: f.Trees, reader: f.reader, asked: n << 16}
			group.Go(func() { do(one, t) })
		}
	}
	group.Wait()
}

func (f *finisher) fell(t *tree) { f.ends(t.nodes[0].id) }

// needAll ends the children of a root that live, and holds all that is free then.
func (f *finisher) needAll(t *tree) {
	root := t.nodes[0]
	var s TreeSession
	if !f.get("/v1/sessions/"+root.id+"/tree", &s) {
		f.report(violationOf(RuleUnread, "the tree of "+root.id, "%v", f.err))
		return
	}
	for _, child := range s.Children { // also those whose creation was not answered
		if child.Status == "active" { // what is below one that is over must end without us
			f.ends(child.ID)
		}
	}
	free := s.MaxValue - s.Held
	for _, n := range t.nodes {
		free -= money.MicroUSD(n.own.used.most)
	}
	if free <= 0 {
		return
	}
	begin := f.post(Begin, "/v1/transactions", object{"session_id": root.id, "action_type": "call", "pre_state": object{}, "value_usd": free,
		"reversible": true, "expires_in_seconds": 86400})
	begin.APIKey, begin.Token = "", root.agent.Access
	if id := created(f.awaitRoom(begin)).ID; id != "" {
		root.own.actions.add(1, true)
		f.call(f.post(Rollback, "/v1/transactions/"+id+"/rollback", object{}))
	}
}

// awaitRoom repeats a request, each time with another key, until it finds the room that must come back. It returns the answer.
func (f *finisher) awaitRoom(r Request) []byte {
	for first := time.Now(); ; time.Sleep(time.Second) {
		f.asked++
		r.Key = fmt.Sprintf("room-%d", f.asked)
		call, answer := f.call(r)
		if call.Outcome == OK {
			f.s.t.Logf("%s %s found the room after %v", r.Method, r.Path, time.Since(first).Round(time.Millisecond))
			return answer
		}
		if time.Since(first) > comesBack {
			f.report(violationOf(RulePart, r.Path, "after %v: %d %s", comesBack, call.Status, answer))
			return nil
		}
	}
}

// needBudget asks the budget for all that must be free when all trees have ended.
func (f *finisher) needBudget() {
	var budget Budget
	f.get("/v1/budget", &budget)
	free := budget.Max
	for _, t := range f.trees() {
		for _, n := range t.nodes {
			free -= money.MicroUSD(n.own.used.most)
		}
	}
	if free <= 0 {
		f.report(violationOf(RuleLimit, "the budget", "%v USD of it are left", free))
		return
	}
	f.asked = 1 << 30
	session := f.awaitRoom(f.createRoot(free))
	if id := created(session).ID; id != "" {
		f.ends(id)
	}
}

func (f *finisher) createRoot(value money.MicroUSD) Request {
	return f.post(Create, "/v1/sessions", object{"agent_id": f.agents[0].ID, "max_actions": 1, "max_value_usd": value, "expires_in_seconds": 3600})
}

// closed reads all sessions, until nothing is set aside any more. What a session has used up whole takes no room from a request, so
// requests of more than there is find it.
func (f *finisher) closed() (nodes []treeNode, budget Budget) {
	for first := time.Now(); ; time.Sleep(time.Second) {
		nodes, budget = f.read()
		stays := slices.ContainsFunc(checkTrees(nodes, budget), func(v Violation) bool { return v.Rule == RulePart })
		if !stays || time.Since(first) > comesBack || f.err != nil {
			return nodes, budget
		}
		f.call(f.createRoot(budget.Max + money.USD))
	}
}

func (f *finisher) read() (nodes []treeNode, budget Budget) {
	f.get("/v1/budget", &budget)
	for _, t := range f.trees() {
		for _, n := range t.nodes {
			node := treeNode{id: n.id, own: n.own}
			if n.parent != nil {
				node.parent = n.parent.id
			}
			node.missing = !f.get("/v1/sessions/"+n.id, &node.stored)
			nodes = append(nodes, node)
		}
	}
	return nodes, budget
}

// made reads the session in the answer to its creation.
func made(body []byte) (s TreeSession) {
	_ = json.Unmarshal(body, &s) // a session without an id is not used
	return s
}
