package sdk

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

const moment = `"2026-11-21T09:19:32.859Z"`

// contractResponses are responses of the API in states that a test cannot create, such as a suspended organization, or would
// have to wait for, such as an expired hold.
var contractResponses = map[string]string{
	"POST /v1/auth/token": `{"access_token":"a","refresh_token":"b","token_type":"bearer","expires_in":3600}`,
	"GET /v1/agents/a1/families": `[{"family_id":"f1","created_at":` + moment + `,"expires_at":` + moment + `,"a_field_of_tomorrow":1},` +
		`{"family_id":"f2","created_at":` + moment + `,"last_used_at":` + moment + `,"expires_at":` + moment + `}]`,
	"DELETE /v1/agents/a1/families/f/1":        `{"revoked":true}`,
	"POST /v1/agents/a1/secret/rotate":         `{"secret":"rms_2","previous_expires_at":` + moment + `}`,
	"POST /v1/organizations/o1/api-key/rotate": `{"api_key":"rmk_2","previous_expires_at":` + moment + `}`,
	"POST /v1/sessions":                        contractSession,
	"PATCH /v1/sessions/s1":                    contractSession,
	"GET /v1/organizations/o1": `{"id":"o1","name":"acme","metadata":{},"created_at":` + moment + `,` +
		`"quotas":{"agents":10000,"of_tomorrow":7,"bytes":null,"odd":"x","half":0.5},"usage":{"agents":3}}`,
	"PATCH /v1/transactions/t1":     contractTransaction,
	"POST /v1/agents/a1/suspend":    contractAgent,
	"POST /v1/agents/a1/resume":     contractAgent,
	"PATCH /v1/agents/a1":           contractAgent,
	"POST /v1/agents/suspend":       `{"suspended":12}`,
	"POST /v1/agents/resume":        `{"resumed":11}`,
	"POST /v1/sessions/s1/suspend":  contractSession,
	"POST /v1/sessions/s1/resume":   contractSession,
	"POST /v1/sessions/s1/actions":  contractUsage,
	"POST /v1/transactions":         `{"dry_run":true,"would_refuse":"max_value_usd"}`,
	"POST /v1/sessions/s1/requests": contractPending,

	"GET /v1/sessions/s1/requests":             "[" + contractApproved + "]",
	"GET /v1/sessions/s1/requests/r1":          contractApproved,
	"GET /v1/sessions/s2/requests/r1":          contractApproved,
	"GET /v1/sessions/s2/requests/r2":          contractDenied,
	"POST /v1/sessions/s1/requests/r1/approve": contractApproved,
	"POST /v1/sessions/s1/requests/r1/deny":    contractDenied,

	"GET /v1/sessions/s1/tree": contractParent + `,"children":[` + contractParent + `,"parent_session_id":"s1","children":[` +
		contractParent + `,"children":[],"children_truncated":true}]}]}`,
	"GET /v1/usage": `[{"day":"2026-11-01","session_id":null,"action_count":-2,"value_usd":-0.000001},` +
		`{"day":"2026-11-02","session_id":"s1","action_count":3,"value_usd":12000000000.5,"a_field_of_tomorrow":1}]`,
	"GET /v1/api-keys": `[{"id":"k1","name":"old","role":"admin","hint":"wxyz","created_at":` + moment + `,"expires_at":null,"last_used_at":` + moment + `}]`,
	"GET /v1/webhooks/w1": `{"id":"w1","url":"https://example.com/","types":[],"description":"","missed_events":7,"confirmed_at":` + moment + `,"failing_since":` + moment +
		`,"created_at":` + moment + `}`,
	"GET /v1/webhooks/w1/deliveries": `[{"id":"d1","webhook_id":"w1","event_seq":42,"type":"session.ended","status":"pending","attempt_count":2,` +
		`"response_status":503,"error":"no","duration_ms":31,"created_at":` + moment + `,"next_attempt_at":` + moment + `}]`,
	"PUT /v1/budget":                    contractBudget,
	"GET /v1/budget":                    contractBudget,
	"POST /v1/transactions/t1/commit":   contractTransaction,
	"POST /v1/transactions/t1/rollback": contractTransaction,
}

const (
	contractSession = `{"id":"s1","agent_id":"a1","status":"active","max_actions":15,"action_count":3,"max_value_usd":8.25,` +
		`"value_used_usd":1.5,"value_held_usd":0.25,"value_overage_usd":0,"value_committed_usd":6.5,"max_committed_usd":20,"max_value_usd_per_action":1,"enforcement":"observe","observed_refusals":3,` +
		`"scopes":[],"metadata":{},"expires_at":` + moment + `,"created_at":` + moment + `}`
	contractParent = `{"id":"s1","agent_id":"a1","status":"active","max_actions":15,"action_count":3,"max_value_usd":8.25,` +
		`"value_used_usd":1.5,"value_held_usd":0.25,"value_overage_usd":0,"value_committed_usd":6.5,"scopes":[],"metadata":{},` +
		`"value_delegated_usd":2.5,"actions_delegated":4,"expires_at":` + moment + `,"created_at":` + moment
	contractAgent = `{"id":"a1","org_id":"o1","name":"spy","scopes":[],"status":"active","metadata":{},"created_at":` + moment +
		`,"suspended_at":` + moment + `,"suspension_reason":"leak","secret":"rms_1","limits":{"max_value_usd_per_day":0.5,` +
		`"max_actions_per_minute":null,"max_open_sessions":7},"usage":{"value_used_usd_today":0.000001,"resets_at":` + moment + `,"open_sessions":2}}`
	contractUsage = `{"action_count":3,"max_actions":10,"value_used_usd":7.75,"max_value_usd":8,"value_held_usd":0,"remaining_actions":7,` +
		`"remaining_value_usd":0.25,"would_refuse":"max_value_usd","expires_at":` + moment + `}`
	contractRequest  = `"session_id":"s1","agent_id":"a1","add_actions":2,"add_value_usd":0.000001,"reason":"more pages","created_at":` + moment
	contractPending  = `{"id":"r1","status":"pending",` + contractRequest + `}`
	contractApproved = `{"id":"r1","status":"approved","granted_actions":2,"granted_value_usd":0.75,"comment":"go on","decided_at":` +
		moment + `,` + contractRequest + `}`
	contractDenied = `{"id":"r1","status":"denied","comment":"too dear","decided_at":` + moment + `,` + contractRequest + `}`
	contractBudget = `{"max_value_usd":100,"period":"month","value_reserved_usd":10.5,"value_used_usd":2,"remaining_usd":87.5,` +
		`"period_started_at":` + moment + `,"resets_at":` + moment + `}`
	contractTransaction = `{"id":"t1","agent_id":"a1","session_id":"s1","sequence_number":4,"status":"committed","action_type":"payment",` +
		`"pre_state":{},"value_usd":2,"value_held_usd":2,"overage_usd":0,"late":true,"reversible":true,"metadata":{},` +
		`"expires_at":` + moment + `,"created_at":` + moment + `}`
)

// contractRefusals are the statuses, codes and members of refusals, whose texts are the same in all SDKs.
var contractRefusals = []struct {
	status        int
	code, members string
}{
	{400, "invalid_request", `,"errors":[{"field":"name","message":"is required"}]`},
	// The service's words are those of the first field.
	{400, "invalid_request", `,"detail":"id must be a UUID","errors":[{"field":"id","message":"must be a UUID"},{"field":"d","message":"must be a UUID"}]`},
	{403, "session_limit_reached", contractLimit},
	{403, "session_limit_reached", contractLimit + contractNeeded},
	{403, "session_limit_reached", `,"parent_session_id":"s0"` + contractLimit},
	{409, "limit_below_usage", contractLimit},
	{403, "agent_limit_reached", `,"limit":"max_value_usd_per_day","resets_at":"2026-11-22T00:00:00Z"`},
	{403, "agent_limit_reached", `,"limit":"max_actions_per_minute"` + contractNeeded},
	{403, "agent_limit_reached", `,"limit":"max_actions_per_minute","needed_actions":3`},
	{403, "agent_limit_reached", `,"limit":"max_open_sessions"`},
	{403, "agent_limit_reached", `,"limit":"max_open_sessions"` + contractNeeded},
	{403, "budget_exhausted", `,"remaining_usd":0.5,"resets_at":null`},
	{403, "budget_exhausted", `,"remaining_usd":0.5` + contractNeeded},
	{403, "quota_exceeded", `,"quota":"agents","used":9,"max":10`},
	{403, "agent_suspended", `,"suspended_at":` + moment},
	{403, "organization_suspended", ""},
	{409, "request_decided", ""},
	{403, "held_by_gateway", ""},
	{418, "of_tomorrow", ""},
}

const (
	contractLimit = `,"limit":"max_value_usd","action_count":3,"max_actions":10,"value_used_usd":1.5,"max_value_usd":8,` +
		`"value_held_usd":0.25,"remaining_actions":7,"remaining_value_usd":6.25,"expires_at":` + moment
	contractNeeded = `,"needed_actions":1,"needed_value_usd":6.5`
)

// serveRefusal plays the service that refuses the reads of refused-0, refused-1 and so on, and answers the one after the last.
func serveRefusal(w http.ResponseWriter, number string) {
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(contractRefusals) {
		io.WriteString(w, contractSession)
		return
	}
	of := contractRefusals[n]
	w.WriteHeader(of.status)
	fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"words","request_id":"r-1"%s}`, of.status, of.code, of.members)
}

// contractStatus has the status of each error code. The name of a new agent selects the code.
var contractStatus = map[string]int{
	"quota_exceeded": 403, "organization_suspended": 403, "rate_limited": 429, "unavailable": 503, "outcome_unknown": 503,
	"agent_limit_reached": 403, "budget_exhausted": 403, "agent_suspended": 403, "session_suspended": 403, "request_decided": 409,
	"held_by_gateway": 403,
}

func serveContract(w http.ResponseWriter, r *http.Request) {
	place := r.Method + " " + r.URL.Path
	if answer, known := contractResponses[place]; known {
		io.WriteString(w, answer)
		return
	}
	if number, is := strings.CutPrefix(place, "GET /v1/sessions/refused-"); is {
		serveRefusal(w, number)
		return
	}
	if r.URL.Path == "/v1/events" || r.URL.Path == "/v1/webhooks/w2" {
		serveTold(w, r)
		return
	}
	if r.URL.Path == "/v1/sessions/s2/actions" || r.URL.Path == "/v1/budget" || r.URL.Path == "/v1/sessions/s2/requests" {
		serveFleet(w, r)
		return
	}
	var agent struct{ Name string }
	if place != "POST /v1/agents" || json.NewDecoder(r.Body).Decode(&agent) != nil || contractStatus[agent.Name] == 0 && agent.Name != "limited" {
		http.Error(w, "the test has no response for "+place, http.StatusNotImplemented)
		return
	}
	if agent.Name == "limited" {
		io.WriteString(w, contractAgent)
		return
	}
	w.WriteHeader(contractStatus[agent.Name])
	fmt.Fprintf(w, `{"status":%d,"code":%q,"detail":"words","request_id":"r-1","quota":"agents","used":9,"max":10,"limit":"max_value_usd_per_day",`+
		`"remaining_usd":0.5,"suspended_at":"2026-11-22T00:00:00Z","resets_at":"2026-11-22T00:00:00Z"}`, contractStatus[agent.Name], agent.Name)
}

// serveFleet plays the parts of the service whose answer is more than a body.
func serveFleet(w http.ResponseWriter, r *http.Request) {
	switch key := r.Header.Get("Idempotency-Key"); {
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case key == "denied-ask-1":
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, strings.Replace(contractPending, "r1", "r2", 1))
	case strings.HasSuffix(r.URL.Path, "/requests"):
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, contractPending)
	case strings.Contains(key, "-charge-"):
		io.WriteString(w, contractUsage)
	default: // the session has too little left
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"status":403,"code":"session_limit_reached","detail":"words","request_id":"r-1","limit":"max_value_usd",`+contractUsage[1:])
	}
}

// deletions counts requests that delete the webhook w2. Each SDK sends two.
var deletions atomic.Int64

// serveTold plays a feed that is read to its end, and a webhook whose deletion is lost on the way back.
func serveTold(w http.ResponseWriter, r *http.Request) {
	event := func(seq int) string {
		return fmt.Sprintf(`{"id":"a1:1-%d","type":"agent.changed","occurred_at":%s,"agent_id":"a1","actor":{"type":"api_key","id":"k1"},`+
			`"request_id":"r","seq":%d,"previous_hash":"5f"}`, seq, moment, seq)
	}
	switch {
	case r.Method == http.MethodDelete && deletions.Add(1)%2 == 1:
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"status":503,"code":"outcome_unknown","detail":"words","request_id":"r-1"}`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"status":404,"code":"not_found","detail":"words","request_id":"r-1"}`)
	case r.URL.Query().Get("after") == "40": // nothing that was asked for, so far
		w.Header().Set("Link", `</v1/events?after=41>; rel="next"`)
		io.WriteString(w, "[]")
	case r.URL.Query().Get("after") == "41":
		io.WriteString(w, "["+event(42)+","+strings.Replace(event(43), `"agent_id":"a1",`, "", 1)+"]")
	default:
		io.WriteString(w, "[]")
	}
}
