package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fault is what a fake service does wrong. The zero value is an honest service.
type fault int

const (
	honest            fault = iota
	chargesTwice            // stores each charge twice, and says so
	chargesTwiceLie         // stores each charge twice, and answers as if once
	losesCharges            // acknowledges without storing, now and then
	forgetsLimits           // never refuses
	refusesEarly            // refuses what would fit
	namesWrongLimit         // refuses for the other reason
	miscounts               // remaining_actions is off by one
	refusesTokens           // answers 401 to each access token but the first
	keepsTokens             // a refresh returns the pair it was given
	spoilsSuccessor         // a refresh works once, its successor does not
	neverEnds               // ending leaves the session active
	actsAfterEnd            // ending does not stop actions
	refusesTokensOnce       // answers 401 now and then, but to a new token never
	losesHolds              // a begin holds nothing, and says it does
	keepsHolds              // a rollback does not release what was held, now and then
	overspends              // a commit is charged whole, whether it fits or not
	forgetsOverage          // a commit's overage is told, and not kept
	inventsOverage          // a commit charges less than would fit
	acceptsSpoilt           // takes an access token for valid that is not
	verifiesOthers          // says that a token is somebody else's
	listsOthers             // lists sessions of somebody else
	batchesTwice            // stores each charge of a batch twice
	skipsNumbers            // sequence numbers have gaps
	repeatsNumbers          // two transactions have the same number
	chargesRollbacks        // a rollback is charged as if committed, now and then
	keepsUndone             // a rollback after a commit gives nothing back
	leavesPending           // ending leaves transactions pending
	forgetsCommits          // a commit is answered, and not kept, now and then
	refusesSettling         // commits are refused, now and then
	ignoresKeys             // a repeated key is charged again

	// The rest is no fault of the books: the outcome is unknown, and that has to be found consistent.
	failsAfterCharge // charges, then answers 503, now and then
	hangsUp          // charges, then closes the connection, now and then
	startsSlowly     // answers 503 to the first refreshes
)

// nowAndThen is how often an occasional fault shows: at each so-manieth action.
const nowAndThen = 20

// fakeService follows the contract as far as the fleet uses it, but for its fault.
type fakeService struct {
	fault fault

	mu        sync.Mutex
	made      int // objects so far, to number them
	actions   int
	refreshes int
	begins    int
	sessions  map[string]*fakeSession
	changes   int // by agents

	keys     sync.Mutex
	outcomes map[string]*httptest.ResponseRecorder // by idempotency key
}

type fakeSession struct {
	id     string
	status string
	limits limits
	used   charge
	lies   charge // stored, but not told in the answers to actions
	held   micros
	over   micros

	transactions []*fakeTransaction
}

// startFake serves until the test ends and returns its base URL.
func startFake(t *testing.T, f fault) string {
	t.Helper()
	s := &fakeService{fault: f, sessions: map[string]*fakeSession{}, outcomes: map[string]*httptest.ResponseRecorder{}}
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
	mux.HandleFunc("POST /v1/sessions/{id}/end", s.end)
	mux.HandleFunc("POST /v1/sessions/{id}/actions", s.act)
	mux.HandleFunc("POST /v1/transactions", s.begin)
	mux.HandleFunc("GET /v1/transactions", s.list)
	mux.HandleFunc("POST /v1/transactions/{id}/commit", s.commit)
	mux.HandleFunc("POST /v1/transactions/{id}/rollback", s.rollBack)
	server := httptest.NewServer(s.admit(s.once(mux)))
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

// refresh numbers the generations of an agent's tokens in their text.
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
	case s.fault == startsSlowly && s.refreshes <= nowAndThen:
		refuse(w, http.StatusServiceUnavailable, `"code":"unavailable"`)
	case s.fault == spoilsSuccessor && generation > 0:
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
		MaxActions int64  `json:"max_actions"`
		MaxValue   micros `json:"max_value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &fakeSession{id: s.next(), status: "active", limits: limits{requested.MaxActions, requested.MaxValue}}
	s.sessions[made.id] = made
	answer(w, http.StatusCreated, `{"id":%q}`, made.id)
}

func (s *fakeService) read(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.sessions[r.PathValue("id")]
	stored := it.used.plus(it.lies)
	answer(w, http.StatusOK, `{"id":%q,"status":%q,"max_actions":%d,"action_count":%d,"max_value_usd":%s,"value_used_usd":%s,"value_held_usd":%s,"value_overage_usd":%s}`,
		it.id, it.status, it.limits.actions, stored.count, it.limits.value, stored.value, it.held, it.over)
}

func (s *fakeService) end(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.sessions[r.PathValue("id")]
	if s.fault != neverEnds {
		it.status = "completed"
	}
	it.rollBackPending(s.fault)
	answer(w, http.StatusOK, `{"id":%q,"status":"completed","ended_at":"2026-01-02T03:04:05.678Z"}`, it.id)
}

func (s *fakeService) act(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Count int64  `json:"count"`
		Value micros `json:"value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	first := strings.HasPrefix(r.Header.Get("Authorization"), "Bearer access 0 ")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actions++
	it := s.sessions[r.PathValue("id")]
	switch limit := it.limitAgainst(charge{requested.Count, requested.Value}); { // what is held does not remain
	case s.fault == refusesTokensOnce && first && s.occasion():
		refuse(w, http.StatusUnauthorized, `"code":"invalid_token"`)
	case s.fault == refusesTokens && !first:
		refuse(w, http.StatusUnauthorized, `"code":"invalid_token"`)
	case it.status != "active" && s.fault != actsAfterEnd:
		refuse(w, http.StatusForbidden, `"code":"session_not_active","session_status":%q`, it.status)
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

func (s *fakeService) occasion() bool { return s.actions%nowAndThen == 0 }

// limitAgainst is the limit that c does not fit, if any.
func (it *fakeSession) limitAgainst(c charge) string {
	after := it.used.plus(c)
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

// charge does an action, in as far as the fault lets it.
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
	left := it.limits.actions - it.used.count
	if s.fault == miscounts {
		left++
	}
	return fmt.Sprintf(`"action_count":%d,"max_actions":%d,"remaining_actions":%d,"value_used_usd":%s,"max_value_usd":%s,"value_held_usd":%s,"remaining_value_usd":%s`,
		it.used.count, it.limits.actions, left, it.used.value, it.limits.value, it.held, it.limits.value-it.used.value-it.held)
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
