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

// World is what a fleet works with: an organization, its agents, their sessions. It grows while the fleet works.
type World struct {
	APIKey string
	Agents []*Agent

	mu           sync.Mutex
	sessions     []string
	transactions []string
	families     map[string][]string // refresh tokens in their order
	dead         []Request           // what must fail: what was revoked or ended is put to use
}

// Agent is an agent of the world.
type Agent struct {
	ID, Secret string
	Access     string // token
	Roomy      string // session that has room for all that a test does
	Tight      string // session whose limits are reached early
	// Unkeyed is the session of charges without an idempotency key: one that is not answered stays in doubt, and would
	// make every bound of another session wide.
	Unkeyed string
}

// The scopes and limits of the world.
var scopes = []string{"transactions:rollback"}

const (
	roomyActions = 1_000_000
	roomyValue   = 1_000_000 * money.USD
	tightActions = 40
	tightValue   = money.USD / 10
)

// NewWorld makes an organization with so many agents, by calls to the instance, which must all succeed.
func NewWorld(t testing.TB, c *Caller, instance string, agents int) *World {
	t.Helper()
	w := &World{families: map[string][]string{}}
	must := func(r Request, into any) {
		t.Helper()
		call, body := c.Do(instance, r)
		if call.Outcome != OK {
			t.Fatalf("%s %s: %d %s %s", r.Method, r.Path, call.Status, call.Err, body)
		}
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatal(err)
		}
	}
	var organization struct {
		APIKey string `json:"api_key"`
	}
	must(Request{Call: Call{Kind: Create}, Method: http.MethodPost, Path: "/v1/organizations", Body: object{"name": "faults"}}, &organization)
	w.APIKey = organization.APIKey
	for range agents {
		a := &Agent{}
		var created struct{ ID, Secret string }
		must(w.createAgent(), &created)
		a.ID, a.Secret = created.ID, created.Secret
		var pair tokenPair
		must(exchange(a.ID, a.Secret), &pair)
		a.Access = pair.Access
		for _, of := range []struct {
			place   *string
			actions int64
			value   money.MicroUSD
		}{{&a.Roomy, roomyActions, roomyValue}, {&a.Tight, tightActions, tightValue}, {&a.Unkeyed, roomyActions, roomyValue}} {
			var session struct{ ID string }
			must(w.createSession(a.ID, of.actions, of.value), &session)
			*of.place = session.ID
			w.keepSession(session.ID)
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

func (w *World) createAgent() Request {
	return Request{Call: Call{Kind: Create}, Method: http.MethodPost, Path: "/v1/agents", APIKey: w.APIKey,
		Body: object{"name": "agent", "scopes": scopes}, Note: nothing}
}

func (w *World) createSession(agent string, actions int64, value money.MicroUSD) Request {
	return Request{Call: Call{Kind: Create}, Method: http.MethodPost, Path: "/sessions", APIKey: w.APIKey,
		Body: object{"agent_id": agent, "max_actions": actions, "max_value_usd": value, "expires_in_seconds": 86400}}
}

func exchange(agent, secret string) Request {
	return Request{Call: Call{Kind: Exchange}, Method: http.MethodPost, Path: "/v1/auth/token",
		Body: object{"agent_id": agent, "secret": secret}, Note: nothing}
}

func refresh(token string) Request {
	return Request{Call: Call{Kind: Refresh, Subject: nameOf(token)}, Method: http.MethodPost, Path: "/v1/auth/refresh",
		Body: object{"refresh_token": token}, Note: func(body []byte) string { return nameOf(pairIn(body).Refresh) }}
}

// ChargeSession asks for so many actions and so much value of a session, in the name of an agent.
func ChargeSession(a *Agent, session string, actions int64, value money.MicroUSD) Request {
	return Request{Call: Call{Kind: Charge, Session: session, Effect: Effect{Actions: actions, Used: value}},
		Method: http.MethodPost, Path: "/sessions/" + session + "/actions", Token: a.Access,
		Body: object{"count": actions, "value_usd": value}}
}

// nothing keeps credentials out of a history, which is printed.
func nothing([]byte) string { return "" }

// nameOf names a token without giving it away.
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

func (w *World) keepSession(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions = append(w.sessions, id)
}

func (w *World) keepTransaction(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transactions = append(w.transactions, id)
}

func (w *World) keepToken(family, token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.families[family], token) {
		w.families[family] = append(w.families[family], token)
	}
}

func (w *World) keepDead(uses []Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = append(w.dead, uses...)
}

// Stored asks the instance for all that the world has ever been told of.
func (w *World) Stored(c *Caller, instance string) (Stored, error) {
	stored := Stored{Sessions: map[string]Session{}, Transactions: map[string]string{}, Live: map[string][]string{}}
	r := reader{caller: c, instance: instance, key: w.APIKey}
	for _, id := range w.sessions {
		var s Session
		if r.get("/sessions/"+id, &s) {
			stored.Sessions[id] = s
		} else if r.err == nil {
			stored.Missing = append(stored.Missing, id)
		}
	}
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

// lastTokens is how many of a family's tokens are looked at: an older one cannot be live while these are not.
const lastTokens = 4

// reader reads until something cannot be read.
type reader struct {
	caller   *Caller
	instance string
	key      string
	err      error
}

// get returns whether there is such a thing.
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
