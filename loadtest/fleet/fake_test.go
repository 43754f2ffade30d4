package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/money"
)

// fault is what a fake service does wrong. The zero value is a correct service.
type fault int

const (
	honest               fault = iota
	chargesTwice               // stores each charge twice, and answers with the stored state
	chargesTwiceLie            // stores each charge twice, and answers as if it had stored it once
	losesCharges               // acknowledges without storing, occasionally
	forgetsLimits              // never refuses
	refusesEarly               // refuses requests within the limits
	namesWrongLimit            // names the other limit in refusals
	miscounts                  // remaining_actions is off by one
	refusesTokens              // answers 401 to every access token except the first
	keepsTokens                // a refresh returns the presented pair
	breaksSuccessor            // a refresh works once, its successor does not
	neverEnds                  // ending leaves the session active
	actsAfterEnd               // ending does not stop actions
	refusesTokensOnce          // answers 401 occasionally, but never to a new token
	losesHolds                 // a begin answers with a hold, but stores none
	keepsHolds                 // a rollback does not release what was held, occasionally
	overspends                 // a commit is charged in full, even beyond the limit
	forgetsOverage             // a commit answers with an overage, but does not store it
	inventsOverage             // a commit charges less than would fit
	acceptsInvalidTokens       // accepts an invalid access token
	verifiesOthers             // verifies a token as another agent's
	listsOthers                // lists sessions of another agent
	batchesTwice               // stores each charge of a batch twice
	skipsNumbers               // sequence numbers have gaps
	repeatsNumbers             // two transactions have the same number
	chargesRollbacks           // a rollback is charged as if committed, occasionally
	keepsUndone                // a rollback after a commit releases nothing
	leavesPending              // ending leaves transactions pending
	forgetsCommits             // a commit is acknowledged but not stored, occasionally
	refusesCommits             // commits are refused, occasionally
	ignoresKeys                // a repeated key is charged again
	losesSettlements           // a settlement returns the whole lease
	keepsLeases                // a settlement returns nothing
	losesChildren              // a child's usage is not added to its parent's, occasionally
	takesTwice                 // a child's usage is added twice, occasionally
	keepsParts                 // what is set aside for a session does not come back, occasionally
	overdelegates              // sets more aside for children than there is
	topsUpAlone                // a top-up sets nothing aside
	topsUpTooMuch              // a top-up raises the limit by twice as much
	endsAlone                  // the end of a session ends no descendants
	forgetsBudget              // sets more aside for roots than the budget has
	budgetTakesTwice           // a root's usage is added to the budget twice, occasionally
	suspendsAlone              // a suspension does not reach descendants
	staysSuspended             // a resumption is forgotten, occasionally
	typesLose                  // a session's usage lacks a micro-dollar, occasionally
	reportsLose                // the organization's usage lacks an action

	// The remaining faults break no rule: they only make outcomes unknown, and totals must still reconcile.
	failsAfterCharge // charges, then answers 503, occasionally
	hangsUp          // charges, then closes the connection, occasionally
	startsSlowly     // answers 503 to the first refreshes
)

// faultEvery is how often an occasional fault occurs: at one action in N.
const faultEvery = 20

// fakeService implements the part of the API that the fleet uses, with one fault.
type fakeService struct {
	fault fault

	mu        sync.Mutex
	made      int // number of objects created
	actions   int
	refreshes int
	begins    int
	sessions  map[string]*fakeSession
	leases    map[string]*fakeLease
	budget    fakeBudget
	closes    int // of sessions that were used
	turns     int // suspensions and resumptions
	changes   int // by agents
	reads     int // of usage

	keys     sync.Mutex
	outcomes map[string]*httptest.ResponseRecorder // by idempotency key
}

type fakeSession struct {
	id     string
	status string
	limits limits
	used   charge
	lies   charge // stored, but not in the answers to actions
	held   money.MicroUSD
	over   money.MicroUSD

	kind         string // of the last action
	transactions []*fakeTransaction
	fakeTree
}

func (it *fakeSession) String() string {
	stored := it.used.plus(it.lies)
	return fmt.Sprintf(`{"id":%q,"status":%q,"max_actions":%d,"action_count":%d,"max_value_usd":%s,"value_used_usd":%s,"value_held_usd":%s,"value_overage_usd":%s,"actions_delegated":%d,"value_delegated_usd":%s}`,
		it.id, it.status, it.limits.actions, stored.count, it.limits.value, stored.value, it.held, it.over, it.delegated.count, it.delegated.value)
}

// startFake serves until the test ends, and returns the base URL.
func startFake(t *testing.T, f fault) string {
	t.Helper()
	s := &fakeService{fault: f, sessions: map[string]*fakeSession{}, leases: map[string]*fakeLease{}, outcomes: map[string]*httptest.ResponseRecorder{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/organizations", s.create("api_key"))
	mux.HandleFunc("POST /v1/agents", s.create("secret"))
	mux.HandleFunc("POST /v1/auth/token", s.token)
	mux.HandleFunc("POST /v1/auth/refresh", s.refresh)
	mux.HandleFunc("POST /v1/sessions", s.open)
	mux.HandleFunc("GET /v1/sessions", s.listSessions)
	mux.HandleFunc("GET /v1/auth/verify", s.verify)
	mux.HandleFunc("POST /v1/actions", s.actMany)
	mux.HandleFunc("GET /v1/sessions/{id}", s.read)
	mux.HandleFunc("PATCH /v1/sessions/{id}", s.topUp)
	mux.HandleFunc("GET /v1/sessions/{id}/tree", s.tree)
	mux.HandleFunc("GET /v1/sessions/{id}/usage", s.usageOfSession)
	mux.HandleFunc("GET /v1/usage", s.usageOfAll)
	mux.HandleFunc("PUT /v1/budget", s.putBudget)
	mux.HandleFunc("GET /v1/budget", s.getBudget)
	mux.HandleFunc("POST /v1/sessions/{id}/end", s.end)
	mux.HandleFunc("POST /v1/sessions/{id}/suspend", s.suspend(true))
	mux.HandleFunc("POST /v1/sessions/{id}/resume", s.suspend(false))
	mux.HandleFunc("POST /v1/sessions/{id}/actions", s.act)
	mux.HandleFunc("POST /v1/sessions/{id}/leases", s.lease)
	mux.HandleFunc("POST /v1/leases/{id}/settle", s.settle)
	mux.HandleFunc("POST /v1/transactions", s.begin)
	mux.HandleFunc("GET /v1/transactions", s.list)
	mux.HandleFunc("POST /v1/transactions/{id}/commit", s.commit)
	mux.HandleFunc("POST /v1/transactions/{id}/rollback", s.rollBack)
	server := httptest.NewServer(s.authorize(s.idempotent(mux)))
	t.Cleanup(server.Close)
	return server.URL
}

func (s *fakeService) next() string {
	s.made++
	return fmt.Sprintf("object-%d", s.made)
}

func (s *fakeService) create(credential string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, http.StatusCreated, `{"id":%q,%q:"word"}`, s.next(), credential)
	}
}

func (s *fakeService) token(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Agent string `json:"agent_id"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writePair(w, requested.Agent, 0)
}

// refresh returns tokens that contain the number of their generation.
func (s *fakeService) refresh(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		RefreshToken string `json:"refresh_token"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	var agent string
	var generation int
	fmt.Sscanf(requested.RefreshToken, "refresh %d %s", &generation, &agent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshes++
	switch {
	case s.fault == startsSlowly && s.refreshes <= faultEvery:
		refuse(w, http.StatusServiceUnavailable, `"code":"unavailable"`)
	case s.fault == breaksSuccessor && generation > 0:
		refuse(w, http.StatusUnauthorized, `"code":"invalid_refresh_token"`)
	case s.fault == keepsTokens:
		s.writePair(w, agent, generation)
	default:
		s.writePair(w, agent, generation+1)
	}
}

func (s *fakeService) writePair(w http.ResponseWriter, agent string, generation int) {
	answer(w, http.StatusOK, `{"access_token":"access %d %s","refresh_token":"refresh %d %s","token_type":"bearer","expires_in":3600}`,
		generation, agent, generation, agent)
}

func (s *fakeService) open(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		MaxActions int64          `json:"max_actions"`
		MaxValue   money.MicroUSD `json:"max_value_usd"`
		Parent     string         `json:"parent_session_id"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &fakeSession{id: s.next(), status: "active", limits: limits{requested.MaxActions, requested.MaxValue}}
	made.parent = s.sessions[requested.Parent]
	if !s.place(w, made, charge{requested.MaxActions, requested.MaxValue}) {
		return
	}
	s.sessions[made.id] = made
	if made.parent != nil {
		made.parent.children = append(made.parent.children, made)
	}
	answer(w, http.StatusCreated, `{"id":%q}`, made.id)
}

func (s *fakeService) read(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, "%s", s.sessions[r.PathValue("id")])
}

func (s *fakeService) end(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.sessions[r.PathValue("id")]
	s.endTree(it)
	answer(w, http.StatusOK, `{"id":%q,"status":"completed","ended_at":"2026-01-02T03:04:05.678Z"}`, it.id)
}

func (s *fakeService) act(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Kind  string         `json:"action_type"`
		Count int64          `json:"count"`
		Value money.MicroUSD `json:"value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	first := strings.HasPrefix(r.Header.Get("Authorization"), "Bearer access 0 ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actions++
	it := s.sessions[r.PathValue("id")]
	it.kind = requested.Kind
	switch limit := it.limitAgainst(charge{requested.Count, requested.Value}); { // remaining excludes held value
	case s.fault == refusesTokensOnce && first && s.occasion():
		refuse(w, http.StatusUnauthorized, `"code":"invalid_token"`)
	case s.fault == refusesTokens && !first:
		refuse(w, http.StatusUnauthorized, `"code":"invalid_token"`)
	case it.status != "active" && s.fault != actsAfterEnd:
		refuse(w, http.StatusForbidden, `"code":"session_not_active","session_status":%q`, it.status)
	case s.isSuspended(it):
		refuse(w, http.StatusForbidden, `"code":"session_suspended"`)
	case s.fault == refusesEarly && limit == "" && s.occasion():
		s.refuseLimit(w, it, limitActions)
	case s.fault == namesWrongLimit && limit == limitActions:
		s.refuseLimit(w, it, limitValue)
	case limit != "" && s.fault != forgetsLimits:
		s.refuseLimit(w, it, limit)
	default:
		s.charge(w, it, charge{requested.Count, requested.Value})
	}
}

func (s *fakeService) occasion() bool { return s.actions%faultEvery == 0 }

// limitAgainst returns the limit that c exceeds, if any.
func (it *fakeSession) limitAgainst(c charge) string {
	after := it.used.plus(c).plus(it.delegated)
	switch {
	case after.count > it.limits.actions:
		return limitActions
	case after.value+it.held > it.limits.value:
		return limitValue
	}
	return ""
}

func (s *fakeService) refuseLimit(w http.ResponseWriter, it *fakeSession, limit string) {
	refuse(w, http.StatusForbidden, `"code":"session_limit_reached","limit":%q,%s`, limit, s.usage(it))
}

// charge executes an action, with the fault.
func (s *fakeService) charge(w http.ResponseWriter, it *fakeSession, c charge) {
	it.used = it.used.plus(c)
	switch {
	case s.fault == chargesTwice:
		it.used = it.used.plus(c)
	case s.fault == chargesTwiceLie:
		it.lies = it.lies.plus(c)
	case s.fault == losesCharges && s.occasion():
		it.lies = it.lies.minus(c)
	}
	answer(w, http.StatusOK, `{%s}`, s.usage(it))
}

func (s *fakeService) usage(it *fakeSession) string {
	left := it.limits.actions - it.used.count - it.delegated.count
	if s.fault == miscounts {
		left++
	}
	return fmt.Sprintf(`"action_count":%d,"max_actions":%d,"remaining_actions":%d,"value_used_usd":%s,"max_value_usd":%s,"value_held_usd":%s,"remaining_value_usd":%s`,
		it.used.count, it.limits.actions, left, it.used.value, it.limits.value, it.held, it.limits.value-it.used.value-it.held-it.delegated.value)
}

func answer(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, format, args...)
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	fmt.Fprintf(w, "{"+format+"}", args...)
}

// smallRun is a run long enough for both limits to be reached.
func smallRun(addr string) config {
	return config{agents: 5, sessions: 4, rate: 2000, duration: 400 * time.Millisecond, addr: addr, transactions: 40}
}
