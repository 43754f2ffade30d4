package server_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"remit/server"
)

// parentLimits are what the parents of this file's children have. A child with less of each is fitting.
var (
	parentLimits = fields{"max_actions": 40, "max_value_usd": 20, "max_committed_usd": 15, "expires_in_seconds": 1000, "max_lease_seconds": 30,
		"max_value_usd_per_action": 2, "scopes": list("read", "sessions:delegate"), "thresholds": []any{num("50")}}
	fitting = fields{"max_actions": 4, "max_value_usd": 3}
)

// heir is who creates children of a session that it has.
type heir struct {
	name   string
	as     option
	parent string
}

// heirs returns the three kinds of creators, each with a parent of its own that has parentLimits.
func (d delegation) heirs() []heir {
	root := fields{"max_actions": 400, "max_value_usd": 200}
	mine := func(more fields) string { return d.newSession(root.with(more)) }
	own := mine(parentLimits)
	above := mine(fields{"max_lease_seconds": 60})
	handed := d.post("/v1/sessions", parentLimits.with(fields{"agent_id": d.worker.id, "parent_session_id": above}), asKey(d.key)).is(201).text("id")
	token := d.exchangeToken(d.planner.access, handed).is(200).text("access_token")
	return []heir{{"API key", asKey(d.key), mine(parentLimits)}, {"agent's token", asAgent(d.planner.access), own}, {"delegated token", asAgent(token), handed}}
}

// refusal is the status and the members of a refused request.
type refusal struct {
	status int
	has    fields
}

func beyondLimit(limit string) refusal {
	return refusal{403, fields{"code": "session_limit_reached", "limit": limit}}
}

// Every field of a session, for each kind of creator: what goes beyond the parent is refused, or becomes what the parent has. A
// field that is left out is what the parent has at most. A field without a row fails.
func TestNoFieldOfAChildGrowsBeyondItsParent(t *testing.T) {
	t.Parallel()
	stranger := onOneRedis(t).newDelegation()
	rows := map[string]struct {
		beyond  any
		refused refusal // the zero refusal where it is created with at most what the parent has
		shows   any     // where it is not refused, what the child then has
		without any     // what the child has when the field is left out; nil for what is absent or of its own
	}{
		"agent_id":                 {beyond: stranger.worker.id, refused: refusal{404, fields{"code": "not_found"}}},
		"parent_session_id":        {beyond: stranger.other, refused: refusal{404, fields{"code": "not_found"}}},
		"max_actions":              {beyond: 41, refused: beyondLimit("max_actions")},
		"max_value_usd":            {beyond: num("15.000001"), refused: beyondLimit("max_committed_usd")}, // the lower limit of value
		"max_committed_usd":        {beyond: 20, shows: 3, without: 3},                                    // its max_value_usd, which is set aside
		"expires_in_seconds":       {beyond: 1001},                                                        // it expires with its parent
		"max_lease_seconds":        {beyond: 31, refused: beyondLimit("max_lease_seconds"), without: 0},
		"max_value_usd_per_action": {beyond: num("2.000001"), shows: 2, without: 2},
		"scopes":                   {beyond: list("pay"), refused: refusal{403, fields{"code": "insufficient_scope", "required_scope": "pay"}}, without: list("read", "sessions:delegate")},
		"enforcement":              {beyond: "observe", refused: refusal{400, fields{"code": "invalid_request"}}, without: "enforce"},
		"metadata":                 {beyond: fields{"of": "its own"}, shows: fields{"of": "its own"}, without: fields{}},
		"thresholds":               {beyond: []any{num("90")}, shows: []any{num("90")}},
	}
	created, _, _ := server.SessionFields()
	sameNames(t, created, slices.Collect(maps.Keys(rows)))
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDelegation()
		for _, by := range d.heirs() {
			body := fitting.with(fields{"agent_id": d.worker.id, "parent_session_id": by.parent})
			before := d.get("/v1/sessions/"+by.parent, asKey(d.key)).is(200).object()
			for name, row := range rows {
				t.Log(by.name, name)
				if row.refused.status != 0 {
					d.post("/v1/sessions", body.with(fields{name: row.beyond}), by.as).is(row.refused.status).has(row.refused.has)
				}
			}
			d.get("/v1/sessions/"+by.parent, asKey(d.key)).is(200).has(fields{"max_actions": before["max_actions"], "action_count": 0})
			for name, row := range rows {
				t.Log(by.name, name)
				if row.refused.status == 0 {
					child, shows := d.post("/v1/sessions", body.with(fields{name: row.beyond}), by.as).is(201), fields{name: row.shows}
					if name == "expires_in_seconds" {
						shows = fields{"expires_at": before["expires_at"]}
					}
					child.has(shows)
					d.get("/v1/sessions/"+child.text("id"), asKey(d.key)).is(200).has(shows)
					d.post("/v1/sessions/"+child.text("id")+"/end", nil, asKey(d.key)).is(200)
				}
			}
			child := d.get("/v1/sessions/"+d.post("/v1/sessions", body, by.as).is(201).text("id"), asKey(d.key)).is(200)
			for name, row := range rows {
				if row.without != nil {
					child.has(fields{name: row.without})
				}
			}
			if child.text("expires_at") > before["expires_at"].(string) {
				t.Errorf("by %s: the child expires at %s, its parent at %v", by.name, child.text("expires_at"), before["expires_at"])
			}
		}
	})
}

// Every field of a PATCH: a child never gets more than its parent has, and only an API key changes one.
func TestNoChangeOfAChildExceedsItsParent(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		beyond  any
		refused refusal // the zero refusal for what is the child's own
	}{
		"max_actions":              {41, beyondLimit("max_actions")},
		"add_actions":              {37, beyondLimit("max_actions")},
		"max_value_usd":            {num("15.000001"), beyondLimit("max_committed_usd")},
		"add_value_usd":            {num("12.000001"), beyondLimit("max_committed_usd")},
		"expires_in_seconds":       {1001, beyondLimit("expires_at")},
		"max_lease_seconds":        {31, beyondLimit("max_lease_seconds")},
		"max_value_usd_per_action": {nil, beyondLimit("max_value_usd_per_action")},
		"enforcement":              {"observe", refusal{400, fields{"code": "invalid_request"}}},
		"thresholds":               {[]any{num("90")}, refusal{}},
	}
	_, changed, _ := server.SessionFields()
	sameNames(t, changed, slices.Collect(maps.Keys(rows)))
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDelegation()
		for _, by := range d.heirs() {
			path := "/v1/sessions/" + d.post("/v1/sessions", fitting.with(fields{"agent_id": d.worker.id, "parent_session_id": by.parent}),
				by.as).is(201).text("id")
			before := d.get(path, asKey(d.key)).is(200).object()
			for name, row := range rows {
				t.Log(by.name, name)
				if by.name != "API key" {
					d.patch(path, fields{name: row.beyond}, by.as).is(401)
				}
				if row.refused.status != 0 {
					d.patch(path, fields{name: row.beyond}, asKey(d.key)).is(row.refused.status).has(row.refused.has)
				}
			}
			d.get(path, asKey(d.key)).is(200).exactly(before)
			for name, row := range rows {
				if row.refused.status == 0 {
					d.patch(path, fields{name: row.beyond}, asKey(d.key)).is(200).has(fields{name: row.beyond})
				}
			}
		}
	})
}

// Every field of a lease, for each kind of caller: what the session does not have is refused.
func TestNoFieldOfALeaseExceedsItsSession(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		beyond any
		limit  string
	}{
		"max_actions":        {41, "max_actions"},
		"max_value_usd":      {num("15.000001"), "max_committed_usd"},
		"expires_in_seconds": {31, "max_lease_seconds"},
		"partial":            {true, ""}, // as much as there is
	}
	_, _, leased := server.SessionFields()
	sameNames(t, leased, slices.Collect(maps.Keys(rows)))
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDelegation()
		for _, by := range d.heirs() {
			body := fields{"max_actions": 1, "max_value_usd": 1, "expires_in_seconds": 30}
			for name, row := range rows {
				if row.limit != "" {
					d.post("/v1/sessions/"+by.parent+"/leases", body.with(fields{name: row.beyond}), by.as).is(403).has(beyondLimit(row.limit).has)
				}
			}
			d.post("/v1/sessions/"+by.parent+"/leases", fields{"max_actions": 41, "max_value_usd": 21, "expires_in_seconds": 31, "partial": true},
				by.as).is(201).has(fields{"max_actions": 40, "max_value_usd": 15, "expires_at": aboutIn(30 * time.Second)})
		}
	})
}

// sameNames fails the test where a field has no row, or a row no field.
func sameNames(t *testing.T, are, rows []string) {
	t.Helper()
	slices.Sort(are)
	slices.Sort(rows)
	if !slices.Equal(are, rows) {
		t.Errorf("there are %v, and rows for %v: say of each what it may have", are, rows)
	}
}
