package console

import (
	"slices"

	"remit/chart"
	"remit/client"
)

const sessionsPerPage = "25"

// sessionRow is a session in a list.
type sessionRow struct {
	client.SessionInfo
}

// State is the status in one word.
func (s sessionRow) State() string {
	if s.Status == statusActive && !s.SuspendedAt.IsZero() {
		return statusSuspended
	}
	return s.Status
}

// Actions is the bar of the session's actions.
func (s sessionRow) Actions() chart.Usage {
	return chart.Usage{Label: "Actions", Used: s.ActionCount, Delegated: s.ActionsDelegated, Limit: s.MaxActions}
}

// Value is the bar of the session's money.
func (s sessionRow) Value() chart.Usage {
	return chart.Usage{
		Label: "Value", Unit: chart.MicroUSD, Used: int64(s.ValueUsed), Held: int64(s.ValueHeld), Delegated: int64(s.ValueDelegated), Limit: int64(s.MaxValue),
	}
}

// sessions reads a page of sessions. The list has a summary of each; what is live about an active one is in the session itself.
func (a api) sessions(parameters ...string) (rows []sessionRow, next string, err error) {
	var listed []client.SessionInfo // a summary has the same names
	next, err = a.list(query("/v1/sessions", parameters...), &listed)
	if err != nil {
		return nil, "", err
	}
	for _, s := range listed {
		row := sessionRow{s}
		if s.Status == statusActive {
			if err := a.get("/v1/sessions/"+s.ID, &row.SessionInfo); err != nil && !isNotFound(err) {
				return nil, "", err
			}
		}
		rows = append(rows, row)
	}
	return rows, next, nil
}

// sessionsPage is the list of sessions.
type sessionsPage struct {
	Status, AgentID string
	Statuses        []string
	Shown           []sessionRow
	First, Next     string
}

var sessionStatuses = []string{statusActive, "completed", "expired", "revoked"}

func showSessions(v *visit) error {
	page := sessionsPage{Status: v.asked("status"), AgentID: v.asked("agent"), Statuses: sessionStatuses}
	if !v.ctx.QueryArgs().Has("status") {
		page.Status = statusActive
	}
	if page.Status != "all" && !slices.Contains(sessionStatuses, page.Status) {
		return invalid("there is no such status")
	}
	status := page.Status
	if status == "all" {
		status = ""
	}
	var cursor, next = v.asked("cursor"), ""
	var err error
	page.Shown, next, err = v.api.sessions("status", status, "agent_id", page.AgentID, "limit", sessionsPerPage, "cursor", cursor)
	if err != nil {
		return err
	}
	at := func(cursor string) string {
		return query(Prefix+"/sessions", "status", page.Status, "agent", page.AgentID, "cursor", cursor)
	}
	if cursor != "" {
		page.First = at("")
	}
	if next != "" {
		page.Next = at(next)
	}
	v.live = liveAt(idsOf(page.Shown), "lists", "1")
	return v.show("sessions", "Sessions", page)
}

func sessionPath(id string) string { return Prefix + "/sessions/" + id }
