package console

import (
	"time"

	"remit/client"
	"remit/internal/chart"
)

// sessionPage is one session.
type sessionPage struct {
	sessionRow
	paging // of the transactions

	Agent        client.AgentInfo
	Tree         *client.SessionTree // nil for a session that is alone
	Usage        []usageLine
	ByType       chart.Ranked
	Requests     []client.MoreRequest
	Keys         []client.SessionKeyInfo
	Transactions []client.TransactionInfo
	Events       []eventRow
}

// IsActive reports whether the session may still be changed.
func (p sessionPage) IsActive() bool { return p.Status == statusActive }

const shownTransactions = "20"

func showSession(v *visit) error {
	id, seen := v.params["session"], v.seen()
	page := sessionPage{sessionRow: sessionRow{Now: v.now}}
	if err := v.api.get("/v1/sessions/"+id, &page.SessionInfo); err != nil {
		return err
	}
	if err := page.readRelated(v); err != nil {
		return err
	}
	if err := page.readTransactions(v); err != nil {
		return err
	}
	var err error
	if page.Events, err = v.api.latest(page.AgentID, v.now, func(e eventRow) bool { return e.SessionID == page.ID }); err != nil {
		return err
	}
	shown := page.branches()
	v.live = liveAt(idsOf(shown), "session", page.ID, "after", seen, "figures", digestOf(shown))
	return v.show("session", "Session "+short(page.ID), page)
}

// readRelated reads the session's agent, tree, usage, requests for more and keys.
func (p *sessionPage) readRelated(v *visit) error {
	if err := v.api.get("/v1/agents/"+p.AgentID, &p.Agent); err != nil && !isNotFound(err) {
		return err
	}
	var tree client.SessionTree
	if err := v.api.get("/v1/sessions/"+p.ID+"/tree", &tree); err != nil {
		return err
	}
	if len(tree.Children) > 0 {
		cut(&tree, new(int))
		p.Tree = &tree
	}
	if err := v.api.get("/v1/sessions/"+p.ID+"/usage", &p.Usage); err != nil {
		return err
	}
	p.ByType = chart.Ranked{Title: "Usage by action type", Names: "Action type", Value: "Value", Unit: chart.MicroUSD}
	for _, line := range p.Usage {
		p.ByType.Rows = append(p.ByType.Rows, chart.Row{Name: line.typeName(), Value: int64(line.Value)})
	}
	if err := v.api.get("/v1/sessions/"+p.ID+"/requests", &p.Requests); err != nil {
		return err
	}
	return v.api.get("/v1/sessions/"+p.ID+"/keys", &p.Keys)
}

// branches returns the active ones of the session and its descendants, itself first.
func (p *sessionPage) branches() (active []sessionRow) {
	add := func(s sessionRow) {
		if s.Status == statusActive {
			active = append(active, s)
		}
	}
	var walk func(of *client.SessionTree)
	walk = func(of *client.SessionTree) {
		for i := range of.Children {
			add(sessionRow{SessionInfo: of.Children[i].SessionInfo})
			walk(&of.Children[i])
		}
	}
	add(p.sessionRow)
	if p.Tree != nil {
		walk(p.Tree)
	}
	return active
}

// shownInTree is how many descendants a page shows.
const shownInTree = 200

// cut leaves out what a tree has beyond that, and marks where.
func cut(tree *client.SessionTree, shown *int) {
	for i := range tree.Children {
		if *shown >= shownInTree {
			tree.Children, tree.ChildrenTruncated = tree.Children[:i], true
			return
		}
		*shown++
		cut(&tree.Children[i], shown)
	}
}

// readTransactions reads a page of the session's transactions, each with its states.
func (p *sessionPage) readTransactions(v *visit) error {
	cursor := v.queryParam("transactions")
	next, err := v.api.list(query("/v1/transactions", "session_id", p.ID, "limit", shownTransactions, "cursor", cursor), &p.Transactions)
	if err != nil {
		return err
	}
	for i, t := range p.Transactions {
		if err := v.api.get("/v1/transactions/"+t.ID, &p.Transactions[i]); err != nil && !isNotFound(err) {
			return err
		}
	}
	p.paging = v.paged(cursor, next, func(cursor, past string) string {
		return query(sessionPath(p.ID), "transactions", cursor, "past", past)
	})
	return nil
}

// mayRollBack reports whether a transaction can still be undone.
func mayRollBack(t client.TransactionInfo) bool {
	return t.Status == statusPending || t.Status == "committed" && t.Reversible
}

// showTransaction shows one transaction with its whole states.
func showTransaction(v *visit) error {
	var t client.TransactionInfo
	if err := v.api.get(v.at("/v1/transactions/{transaction}"), &t); err != nil {
		return err
	}
	return v.show("transaction", "Transaction "+short(t.ID), t)
}

const sessionsPerPage = "25"

// sessionRow is a session in a list.
type sessionRow struct {
	client.SessionInfo

	AgentName string // "" where it is not needed
	Now       time.Time
}

// State is the status in one word.
func (s sessionRow) State() string { return stateOf(s.Status, !s.SuspendedAt.IsZero()) }

// Actions is the bar of the session's actions.
func (s sessionRow) Actions() chart.Usage {
	return chart.Usage{Label: "Actions", Used: s.ActionCount, Delegated: s.ActionsDelegated, Limit: s.MaxActions}
}

// Value is the bar of the session's money.
func (s sessionRow) Value() chart.Usage {
	return chart.Usage{
		Label: "Value", Unit: chart.MicroUSD, Used: int64(s.ValueUsed), Held: int64(s.ValueHeld), Delegated: int64(s.ValueDelegated), Limit: int64(s.MaxValue),
		Over: int64(s.ValueOverage),
	}
}

// Ends is when the session has ended or will.
func (s sessionRow) Ends() time.Time {
	if !s.EndedAt.IsZero() && s.EndedAt.Before(s.ExpiresAt) {
		return s.EndedAt
	}
	return s.ExpiresAt
}

// Time is the bar of the session's lifetime.
func (s sessionRow) Time() chart.Lifetime {
	return chart.Lifetime{Label: "Time", Start: s.CreatedAt, End: s.Ends(), Now: s.Now, Expires: s.ExpiresAt}
}

// nameAgents adds the names of the sessions' agents.
func (a api) nameAgents(rows []sessionRow) (err error) {
	names := map[string]string{}
	for i, row := range rows {
		if rows[i].AgentName, err = a.agentName(names, row.AgentID); err != nil {
			return err
		}
	}
	return nil
}

// agentName returns the name of an agent, "" for one that is gone. It reads it unless it is in known, and adds it there.
func (a api) agentName(known map[string]string, id string) (string, error) {
	if name, isKnown := known[id]; isKnown {
		return name, nil
	}
	var of agentRow
	if err := a.get("/v1/agents/"+id, &of); err != nil && !isNotFound(err) {
		return "", err
	}
	known[id] = of.Name
	return of.Name, nil
}

// sessions reads a page of sessions. The list has a summary of each; what is held, delegated and when it began is in the session itself.
func (a api) sessions(now time.Time, parameters ...string) (rows []sessionRow, next string, err error) {
	var listed []client.SessionInfo // a summary has the same names
	next, err = a.list(query("/v1/sessions", parameters...), &listed)
	if err != nil {
		return nil, "", err
	}
	for _, s := range listed {
		row := sessionRow{SessionInfo: s, Now: now}
		if err := a.get("/v1/sessions/"+s.ID, &row.SessionInfo); err != nil && !isNotFound(err) {
			return nil, "", err
		}
		rows = append(rows, row)
	}
	return rows, next, nil
}

// sessionsPage is the list of sessions.
type sessionsPage struct {
	paging

	Status, AgentID string
	Statuses        []string
	Shown           []sessionRow
}

var sessionStatuses = []string{statusActive, "completed", "expired", "revoked"}

func showSessions(v *visit) error {
	page := sessionsPage{Status: v.queryParam("status"), AgentID: v.queryParam("agent"), Statuses: sessionStatuses}
	if !v.query.Has("status") {
		page.Status = statusActive
	}
	status := page.Status
	if status == "all" {
		status = ""
	}
	cursor, seen := v.queryParam("cursor"), v.seen()
	shown, next, err := v.api.sessions(v.now, "status", status, "agent_id", page.AgentID, "limit", sessionsPerPage, "cursor", cursor)
	if err == nil {
		err = v.api.nameAgents(shown)
	}
	if err != nil {
		return err
	}
	page.Shown = shown
	page.paging = v.paged(cursor, next, func(cursor, past string) string {
		return query(sessions, "status", page.Status, "agent", page.AgentID, "cursor", cursor, "past", past)
	})
	list := "part"
	if cursor == "" {
		list = "all" // one that begins or ends would be on it
	}
	v.live = liveAt(idsOf(page.Shown), "list", list, "status", status, "of", page.AgentID, "after", seen)
	return v.show("sessions", "Sessions", page)
}

func sessionPath(id string) string { return Prefix + "/sessions/" + id }
