package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"remit/money"
)

// fakeLease is a lease. Its actions count as used by its session, and its value as held.
type fakeLease struct {
	session *fakeSession
	granted charge
}

// askedLease is the request for a lease. The SDK asks only for what fits.
type askedLease struct {
	MaxActions int64          `json:"max_actions"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	Seconds    int64          `json:"expires_in_seconds"`
}

func (s *fakeService) lease(w http.ResponseWriter, r *http.Request) {
	var asked askedLease
	json.NewDecoder(r.Body).Decode(&asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.sessions[r.PathValue("id")]
	made, limit := s.grant(it, asked)
	if limit != "" {
		s.refuseLimit(w, it, limit)
		return
	}
	answer(w, http.StatusCreated, "%s", made)
}

// grant grants as much of each as fits, and returns the answer, or the limit that refuses it.
func (s *fakeService) grant(it *fakeSession, asked askedLease) (made, limit string) {
	if limit := it.limitAgainst(charge{min(asked.MaxActions, 1), min(asked.MaxValue, 1)}); limit != "" {
		return "", limit
	}
	got := charge{min(asked.MaxActions, it.limits.actions-it.used.count), min(asked.MaxValue, it.limits.value-it.used.value-it.held)}
	it.used.count, it.held = it.used.count+got.count, it.held+got.value
	id, now := s.next(), time.Now().UTC()
	s.leases[id] = &fakeLease{it, got}
	return fmt.Sprintf(`{"id":%q,"session_id":%q,"status":"open","max_actions":%d,"max_value_usd":%s,"created_at":%q,"expires_at":%q}`,
		id, it.id, got.count, got.value, now.Format(time.RFC3339Nano), now.Add(time.Duration(asked.Seconds)*time.Second).Format(time.RFC3339Nano)), ""
}

func (s *fakeService) settle(w http.ResponseWriter, r *http.Request) {
	var spent struct {
		Count int64          `json:"action_count"`
		Value money.MicroUSD `json:"value_used_usd"`
		Renew *askedLease    `json:"renew"`
	}
	json.NewDecoder(r.Body).Decode(&spent)
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	l := s.leases[id]
	delete(s.leases, id)
	used := charge{spent.Count, spent.Value}
	switch s.fault {
	case losesSettlements:
		used = charge{}
	case keepsLeases:
		used = l.granted
	}
	l.session.used.count += used.count - l.granted.count
	l.session.used.value += used.value
	l.session.held -= l.granted.value
	renewed := "null"
	if spent.Renew != nil {
		if made, limit := s.grant(l.session, *spent.Renew); limit == "" {
			renewed = made
		}
	}
	answer(w, http.StatusOK, `{"id":%q,"status":"settled","renewed":%s,"refusal":null}`, id, renewed)
}
