package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"remit/money"
)

// fakeTransaction is a transaction of a fake session. Its id is the session's id and its position.
type fakeTransaction struct {
	number      int
	status      string
	hold, value money.MicroUSD
	over        money.MicroUSD
}

func (t *fakeTransaction) String() string {
	held := money.MicroUSD(0)
	if t.status == "pending" {
		held = t.hold
	}
	return fmt.Sprintf(`"sequence_number":%d,"status":%q,"value_usd":%s,"value_held_usd":%s,"overage_usd":%s`,
		t.number, t.status, t.value, held, t.over)
}

func (s *fakeService) begin(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Session string         `json:"session_id"`
		Value   money.MicroUSD `json:"value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins++
	it := s.sessions[requested.Session]
	if it.status != "active" {
		refuse(w, http.StatusForbidden, `"code":"session_not_active","session_status":%q`, it.status)
		return
	}
	if s.isSuspended(it) {
		refuse(w, http.StatusForbidden, `"code":"session_suspended"`)
		return
	}
	if limit := it.limitAgainst(charge{1, requested.Value}); limit != "" {
		s.refuseLimit(w, it, limit)
		return
	}
	t := &fakeTransaction{number: len(it.transactions) + 1, status: "pending", hold: requested.Value, value: requested.Value}
	switch {
	case s.fault == skipsNumbers && t.number > 3:
		t.number++
	case s.fault == repeatsNumbers && t.number > 3:
		t.number--
	}
	it.used.count++
	told := *t
	if s.fault == losesHolds {
		t.hold = 0
	}
	it.held += t.hold
	it.transactions = append(it.transactions, t)
	answer(w, http.StatusCreated, `{"id":"%s.%d","session_id":%q,%s}`, it.id, len(it.transactions)-1, it.id, &told)
}

func (s *fakeService) turn() bool { return s.begins%4 == 0 }

func (s *fakeService) find(id string) (*fakeSession, *fakeTransaction) {
	session, place, _ := strings.Cut(id, ".")
	it, i := s.sessions[session], 0
	fmt.Sscan(place, &i)
	return it, it.transactions[i]
}

func (s *fakeService) commit(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Value money.MicroUSD `json:"value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	it, t := s.find(r.PathValue("id"))
	if s.fault == refusesCommits && s.turn() {
		refuse(w, http.StatusConflict, `"code":"transaction_not_pending","transaction_status":"expired"`)
		return
	}
	if t.status != "pending" {
		refuse(w, http.StatusConflict, `"code":"transaction_not_pending","transaction_status":%q`, t.status)
		return
	}
	told := *t
	told.status = "committed"
	told.value = min(requested.Value, it.limits.value-it.used.value-it.held-it.delegated.value+t.hold)
	if s.fault == overspends {
		told.value = requested.Value
	}
	if s.fault == inventsOverage {
		told.value = min(requested.Value, t.hold)
	}
	told.over = requested.Value - told.value
	if s.fault != forgetsCommits || !s.turn() {
		it.held -= t.hold
		it.used.value += told.value
		*t = told
	}
	if s.fault != forgetsOverage {
		it.over += told.over
	}
	answer(w, http.StatusOK, `{"id":%q,"session_id":%q,%s}`, r.PathValue("id"), it.id, &told)
}

func (s *fakeService) rollBack(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, t := s.find(r.PathValue("id"))
	switch {
	case t.status == "rolled_back":
		refuse(w, http.StatusConflict, `"code":"transaction_not_pending","transaction_status":%q`, t.status)
		return
	case t.status == "committed" && s.fault != keepsUndone:
		it.used.value -= t.value
		it.over -= t.over
	case t.status == "committed":
	case s.fault == chargesRollbacks && s.turn():
		it.held -= t.hold
		it.used.value += t.hold
	case s.fault == keepsHolds && s.turn():
	default:
		it.held -= t.hold
	}
	t.status = "rolled_back"
	answer(w, http.StatusOK, `{"id":%q,"session_id":%q,%s}`, r.PathValue("id"), it.id, t)
}

// rollBackPending rolls back the pending transactions at the end of the session.
func (it *fakeSession) rollBackPending(f fault) {
	if f == leavesPending {
		return
	}
	for _, t := range it.transactions {
		if t.status == "pending" {
			t.status = "rolled_back"
			it.held -= t.hold
		}
	}
}

// list returns the transactions of a session in pages of 10.
func (s *fakeService) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, from := s.sessions[r.FormValue("session_id")], 0
	fmt.Sscan(r.FormValue("cursor"), &from)
	var page []string
	for i := from; i < min(from+10, len(it.transactions)); i++ {
		at := len(it.transactions) - 1 - i
		page = append(page, fmt.Sprintf(`{"id":"%s.%d","session_id":%q,%s}`, it.id, at, it.id, it.transactions[at]))
	}
	if next := from + 10; next < len(it.transactions) {
		w.Header().Set("Link", fmt.Sprintf(`</v1/transactions?cursor=%d>; rel="next"`, next))
	}
	answer(w, http.StatusOK, "[%s]", strings.Join(page, ","))
}
