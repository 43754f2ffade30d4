package faults

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"remit/money"
)

// Fixture is what a fleet works with: an organization, its agents and their sessions. The fleet adds sessions,
// transactions and tokens.
type Fixture struct {
	Organization string // id
	APIKey       string
	Agents       []*Agent

	mu           sync.Mutex
	sessions     []string
	transactions []string
	families     map[string][]string // refresh tokens in their order
	revoked      []Request           // calls that must be refused: they use what was revoked or ended
}

// Agent is an agent of the organization.
type Agent struct {
	ID, Secret string
	Access     string // token
	Roomy      string // session whose limits no test reaches
	Tight      string // session whose limits are soon reached
	// Unkeyed is the session of charges without an idempotency key. If such a charge is not answered, its outcome stays
	// unknown and widens the bounds of the session, so the other sessions take none.
	Unkeyed string
}

// The scopes of agents and the limits of sessions.
var scopes = []string{"transactions:rollback"}

const (
	roomyActions = 1_000_000
	roomyValue   = 1_000_000 * money.USD
	tightActions = 40
	tightValue   = money.USD / 10

	longestLease = 3600 // seconds; longer than a scenario takes
)

// NewFixture creates an organization with agents by calls to the instance, which must all succeed.
func NewFixture(t testing.TB, c *Caller, instance string, agents int) *Fixture {
	t.Helper()
	w := &Fixture{families: map[string][]string{}}
	must := func(r Request) []byte {
		t.Helper()
		call, body := c.Do(instance, r)
		if call.Outcome != OK {
			t.Fatalf("%s %s: %d %s %s", r.Method, r.Path, call.Status, call.Err, body)
		}
		return body
	}
	var organization struct {
		ID     string
		APIKey string `json:"api_key"`
	}
	answer := must(Request{Call: Call{Kind: Create}, Method: http.MethodPost, Path: "/v1/organizations", Body: object{"name": "faults"}})
	if err := json.Unmarshal(answer, &organization); err != nil {
		t.Fatal(err)
	}
	w.Organization, w.APIKey = organization.ID, organization.APIKey
	for range agents {
		made := created(must(w.createAgent()))
		a := &Agent{ID: made.ID, Secret: made.Secret}
		a.Access = pairIn(must(exchange(a.ID, a.Secret))).Access
		for _, of := range []struct {
			place   *string
			actions int64
			value   money.MicroUSD
		}{{&a.Roomy, roomyActions, roomyValue}, {&a.Tight, tightActions, tightValue}, {&a.Unkeyed, roomyActions, roomyValue}} {
			*of.place = created(must(w.createSession(a.ID, of.actions, of.value))).ID
			note(w, &w.sessions, *of.place)
		}
		w.Agents = append(w.Agents, a)
	}
	return w
}

type object map[string]any

type tokenPair struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (w *Fixture) createAgent() Request {
	return Request{Call: Call{Kind: Create}, Method: http.MethodPost, Path: "/v1/agents", APIKey: w.APIKey,
		Body: object{"name": "agent", "scopes": scopes}, Note: nothing}
}

func (w *Fixture) createSession(agent string, actions int64, value money.MicroUSD) Request {
	return Request{Call: Call{Kind: Create}, Method: http.MethodPost, Path: "/sessions", APIKey: w.APIKey,
		Body: object{"agent_id": agent, "max_actions": actions, "max_value_usd": value, "expires_in_seconds": 86400,
			"max_lease_seconds": longestLease}}
}

func exchange(agent, secret string) Request {
	return Request{Call: Call{Kind: Exchange}, Method: http.MethodPost, Path: "/v1/auth/token",
		Body: object{"agent_id": agent, "secret": secret}, Note: nothing}
}

func refresh(token string) Request {
	return Request{Call: Call{Kind: Refresh, Subject: nameOf(token)}, Method: http.MethodPost, Path: "/v1/auth/refresh",
		Body: object{"refresh_token": token}, Note: func(body []byte) string { return nameOf(pairIn(body).Refresh) }}
}

// ChargeSession returns a request of the agent to charge the session.
func ChargeSession(a *Agent, session string, actions int64, value money.MicroUSD) Request {
	body := object{"count": actions, "value_usd": value}
	if actions%2 == 0 {
		body["action_type"] = fmt.Sprintf("call %d", value%3)
	}
	return Request{Call: Call{Kind: Charge, Session: session, Effect: Effect{Actions: actions, Used: value}},
		Method: http.MethodPost, Path: "/sessions/" + session + "/actions", Token: a.Access, Body: body}
}

// nothing keeps credentials out of the history, because tests print it.
func nothing([]byte) string { return "" }

// nameOf identifies a token without revealing it.
func nameOf(token string) string {
	if token == "" {
		return "no token"
	}
	sum := sha256.Sum256([]byte(token))
	return "token " + hex.EncodeToString(sum[:6])
}

func pairIn(body []byte) (pair tokenPair) {
	_ = json.Unmarshal(body, &pair) // empty tokens are refused like wrong ones
	return pair
}

// note adds to a list of the fixture.
func note[T any](w *Fixture, list *[]T, more ...T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, more...)
}

func (w *Fixture) addToken(family, token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.families[family], token) {
		w.families[family] = append(w.families[family], token)
	}
}

// UseRevoked repeats every call that must be refused. It returns how many were not answered.
func (w *Fixture) UseRevoked(c *Caller, instance string) (unanswered int) {
	for _, r := range w.revoked {
		if call, _ := c.Do(instance, r); call.Status == 0 || call.Status >= 500 {
			unanswered++
		}
	}
	return unanswered
}

// Stored reads from the instance everything whose creation was acknowledged.
func (w *Fixture) Stored(c *Caller, instance string) (Stored, error) {
	stored := Stored{Sessions: map[string]Session{}, Transactions: map[string]string{}, Live: map[string][]string{},
		Usage: map[string]Used{}, ByType: map[string]Used{}}
	r := reader{caller: c, instance: instance, key: w.APIKey}
	for _, id := range w.sessions {
		var s Session
		if r.get("/sessions/"+id, &s) {
			stored.Sessions[id] = s
		} else if r.err == nil {
			stored.Missing = append(stored.Missing, id)
		}
	}
	r.readUsage(&stored)
	for _, id := range w.transactions {
		var transaction struct{ Status string }
		if r.get("/v1/transactions/"+id, &transaction) {
			stored.Transactions[id] = transaction.Status
		}
	}
	for family, tokens := range w.families {
		for _, token := range tokens[max(0, len(tokens)-lastTokens):] {
			if r.isLive(token) {
				stored.Live[family] = append(stored.Live[family], nameOf(token))
			}
		}
	}
	return stored, r.err
}

// lastTokens is how many of the newest tokens of a family are introspected. Older ones cannot be live unless one of
// these is.
const lastTokens = 4

// reader reads until the first error.
type reader struct {
	caller   *Caller
	instance string
	key      string
	err      error
}

// get says whether the resource exists.
func (r *reader) get(path string, into any) bool {
	return r.do(Request{Call: Call{Kind: Read}, Method: http.MethodGet, Path: path}, into)
}

func (r *reader) isLive(token string) bool {
	var state struct{ Active bool }
	r.do(Request{Call: Call{Kind: Read}, Method: http.MethodPost, Path: "/v1/auth/introspect", Body: object{"token": token}}, &state)
	return state.Active
}

func (r *reader) do(request Request, into any) bool {
	if r.err != nil {
		return false
	}
	request.APIKey, request.Note = r.key, nothing
	call, body := r.caller.Do(r.instance, request)
	switch {
	case call.Status == http.StatusNotFound:
		return false
	case call.Outcome != OK:
		r.err = fmt.Errorf("%s %s: %d %s %s", request.Method, request.Path, call.Status, call.Err, body)
		return false
	}
	r.err = json.Unmarshal(body, into)
	return r.err == nil
}
