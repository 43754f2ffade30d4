package console

import (
	"time"

	"remit/client"
	"remit/internal/chart"
)

const sessionsPerPage = "25"

// sessionRow is a session in a list.
type sessionRow struct {
	client.SessionInfo

	AgentName string // "" where nobody needs it
	Now       time.Time
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

// Ends is when the session has ended or will.
func (s sessionRow) Ends() time.Time {
	if !s.EndedAt.IsZero() && s.EndedAt.Before(s.ExpiresAt) {
		return s.EndedAt
	}
	return s.ExpiresAt
}

// Time is the bar of the session's lifetime.
func (s sessionRow) Time() chart.Lifetime {
	return chart.Lifetime{Label: "Time", Start: s.CreatedAt, End: s.Ends(), Now: s.Now}
}

// nameAgents adds the names of the sessions' agents.
func (a api) nameAgents(rows []sessionRow) error {
	names := map[string]string{}
	for i, row := range rows {
		name, known := names[row.AgentID]
		if !known {
			var of agentRow
			if err := a.get("/v1/agents/"+row.AgentID, &of); err != nil && !isNotFound(err) {
				return err
			}
			name = of.Name
			names[row.AgentID] = name
		}
		rows[i].AgentName = name
	}
	return nil
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
	page := sessionsPage{Status: v.asked("status"), AgentID: v.asked("agent"), Statuses: sessionStatuses}
	if !v.ctx.QueryArgs().Has("status") {
		page.Status = statusActive
	}
	status := page.Status
	if status == "all" {
		status = ""
	}
	cursor, seen := v.asked("cursor"), v.seen()
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
	if cursor == "" && (status == "" || status == statusActive) {
		list = "all" // a new session would be on it
	}
	v.live = liveAt(idsOf(page.Shown), "list", list, "status", status, "of", page.AgentID, "after", seen)
	return v.show("sessions", "Sessions", page)
}

func sessionPath(id string) string { return Prefix + "/sessions/" + id }
