package console

import (
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
	Transactions []client.TransactionInfo
	Events       []eventRow
}

// IsActive reports whether the session may still be changed.
func (p sessionPage) IsActive() bool { return p.Status == statusActive }

const shownTransactions = "20"

func showSession(v *visit) error {
	id, seen := v.param("session"), v.seen()
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
	v.live = liveAt(idsOf([]sessionRow{page.sessionRow}), "session", page.ID, "after", seen)
	return v.show("session", "Session "+short(page.ID), page)
}

// readRelated reads the session's agent, tree, usage and requests for more.
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
	return v.api.get("/v1/sessions/"+p.ID+"/requests", &p.Requests)
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
	cursor := v.asked("transactions")
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
	if err := v.api.get("/v1/transactions/"+v.param("transaction"), &t); err != nil {
		return err
	}
	return v.show("transaction", "Transaction "+short(t.ID), t)
}
