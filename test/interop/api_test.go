package interop

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

var httpClient = &http.Client{Timeout: 20 * time.Second}

type organization struct {
	service *service
	ID      string `json:"id"`
	Key     string `json:"api_key"`
}

// agent is an OAuth client. Its id is the client id.
type agent struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

type session struct {
	ID          string      `json:"id"`
	ActionCount int         `json:"action_count"`
	ValueUsed   json.Number `json:"value_used_usd"`
}

func newOrganization(t *testing.T, s *service) organization {
	t.Helper()
	o := organization{service: s}
	o.call(t, http.MethodPost, "/v1/organizations", map[string]any{"name": "acme"}, &o)
	return o
}

func (o organization) newAgent(t *testing.T, scopes ...string) agent {
	t.Helper()
	return o.newAgentWith(t, map[string]any{"scopes": scopes})
}

func (o organization) newSession(t *testing.T, of agent, maxActions int, maxValueUSD float64) session {
	t.Helper()
	var s session
	o.call(t, http.MethodPost, "/v1/sessions",
		map[string]any{"agent_id": of.ID, "max_actions": maxActions, "max_value_usd": maxValueUSD}, &s)
	return s
}

func (o organization) revoke(t *testing.T, a agent) {
	t.Helper()
	o.call(t, http.MethodPost, "/v1/agents/"+a.ID+"/revoke", nil, &struct{}{})
}

// wantCharged fails the test unless the session's usage is exactly this.
func (o organization) wantCharged(t *testing.T, charged session, actions int, valueUSD string) {
	t.Helper()
	var now session
	o.call(t, http.MethodGet, "/v1/sessions/"+charged.ID, nil, &now)
	if now.ActionCount != actions || now.ValueUsed.String() != valueUSD {
		t.Errorf("the session has used %d actions and %s USD, want %d and %s", now.ActionCount, now.ValueUsed, actions, valueUSD)
	}
}

// accessToken returns an access token of the agent with all its scopes.
func (o organization) accessToken(t *testing.T, a agent) string {
	t.Helper()
	var pair struct {
		AccessToken string `json:"access_token"`
	}
	o.call(t, http.MethodPost, "/v1/auth/token", map[string]any{"agent_id": a.ID, "secret": a.Secret}, &pair)
	return pair.AccessToken
}

// call calls the API as the organization and decodes the response, which must be a success.
func (o organization) call(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	header := http.Header{}
	if o.Key != "" {
		header.Set("X-API-Key", o.Key)
	}
	o.service.call(t, method, path, header, body, answer)
}

// call calls the API with these headers and decodes the response, which must be a success.
func (s *service) call(t *testing.T, method, path string, header http.Header, body, answer any) {
	t.Helper()
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(must(json.Marshal(body))(t))
	}
	request := must(http.NewRequestWithContext(t.Context(), method, s.URL+path, content))(t)
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	response := must(httpClient.Do(request))(t)
	text := readAll(t, response)
	if response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s", method, path, response.Status, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

func readAll(t *testing.T, response *http.Response) []byte {
	t.Helper()
	defer response.Body.Close()
	return must(io.ReadAll(response.Body))(t)
}
