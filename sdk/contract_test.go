package sdk

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

const moment = `"2026-11-21T09:19:32.859Z"`

// contractResponses are responses of the API in states that a test cannot create, such as a suspended organization, or would
// have to wait for, such as an expired hold.
var contractResponses = map[string]string{
	"POST /v1/auth/token":               `{"access_token":"a","refresh_token":"b","token_type":"bearer","expires_in":3600}`,
	"GET /v1/agents/a1/families":        `[{"family_id":"f1","created_at":` + moment + `,"expires_at":` + moment + `,"a_field_of_tomorrow":1}]`,
	"DELETE /v1/agents/a1/families/f1":  `{"revoked":true}`,
	"POST /v1/agents/a1/secret/rotate":  `{"secret":"rms_2","previous_expires_at":` + moment + `}`,
	"POST /v1/sessions":                 contractSession,
	"PATCH /v1/sessions/s1":             contractSession,
	"GET /v1/organizations/o1":          `{"id":"o1","name":"acme","metadata":{},"created_at":` + moment + `,"quotas":{"agents":10000},"usage":{"agents":3}}`,
	"PATCH /v1/transactions/t1":         contractTransaction,
	"POST /v1/transactions/t1/commit":   contractTransaction,
	"POST /v1/transactions/t1/rollback": contractTransaction,
}

const (
	contractSession = `{"id":"s1","agent_id":"a1","status":"active","max_actions":15,"action_count":3,"max_value_usd":8.25,` +
		`"value_used_usd":1.5,"value_held_usd":0.25,"value_overage_usd":0,"value_committed_usd":6.5,"max_committed_usd":20,` +
		`"scopes":[],"metadata":{},"expires_at":` + moment + `,"created_at":` + moment + `}`
	contractTransaction = `{"id":"t1","agent_id":"a1","session_id":"s1","sequence_number":4,"status":"committed","action_type":"payment",` +
		`"pre_state":{},"value_usd":2,"value_held_usd":2,"overage_usd":0,"late":true,"reversible":true,"metadata":{},` +
		`"expires_at":` + moment + `,"created_at":` + moment + `}`
)

// contractStatus has the status of each error code. The name of a new agent selects the code.
var contractStatus = map[string]int{
	"quota_exceeded": 403, "organization_suspended": 403, "rate_limited": 429, "unavailable": 503, "outcome_unknown": 503,
}

// serveContract plays the service with contractResponses.
func serveContract(w http.ResponseWriter, r *http.Request) {
	place := r.Method + " " + r.URL.Path
	if answer, known := contractResponses[place]; known {
		io.WriteString(w, answer)
		return
	}
	var agent struct{ Name string }
	if place != "POST /v1/agents" || json.NewDecoder(r.Body).Decode(&agent) != nil || contractStatus[agent.Name] == 0 {
		http.Error(w, "the test has no response for "+place, http.StatusNotImplemented)
		return
	}
	w.WriteHeader(contractStatus[agent.Name])
	fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"words","request_id":"r-1","quota":"agents","used":9,"max":10}`,
		contractStatus[agent.Name], agent.Name)
}
