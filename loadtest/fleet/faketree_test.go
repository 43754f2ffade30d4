package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"remit/money"
)

// fakeTree is what a session has in a tree.
type fakeTree struct {
	parent    *fakeSession // nil for a root
	children  []*fakeSession
	part      charge // set aside for it above
	suspended bool   // by itself
	delegated charge // set aside for its children that are open
}

// fakeBudget is the budget of the organization. All roots count in it when it is set.
type fakeBudget struct {
	set                 bool
	max, reserved, used money.MicroUSD
}

func (b fakeBudget) String() string {
	return fmt.Sprintf(`{"max_value_usd":%s,"value_reserved_usd":%s,"value_used_usd":%s}`, b.max, b.reserved, b.used)
}

func (s *fakeService) putBudget(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Max money.MicroUSD `json:"max_value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.set, s.budget.max = true, requested.Max
	answer(w, http.StatusOK, "%s", s.budget)
}

func (s *fakeService) getBudget(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, "%s", s.budget)
}

// place sets the part of a session aside, above it, and says whether it did. Otherwise it has answered.
func (s *fakeService) place(w http.ResponseWriter, made *fakeSession, part charge) bool {
	above := made.parent
	switch {
	case above == nil && !s.budget.set:
		return true
	case above == nil && s.budget.reserved+s.budget.used+part.value > s.budget.max && s.fault != forgetsBudget:
		refuse(w, http.StatusForbidden, `"code":"budget_exhausted","remaining_usd":%s`, s.budget.max-s.budget.reserved-s.budget.used)
		return false
	case above == nil:
		s.budget.reserved += part.value
	case above.status != "active":
		refuse(w, http.StatusForbidden, `"code":"session_not_active","session_status":%q`, above.status)
		return false
	case s.isSuspended(above) && made.part == (charge{}): // a creation, no top-up
		refuse(w, http.StatusForbidden, `"code":"session_suspended"`)
		return false
	default:
		if limit := above.limitAgainst(part); limit != "" && s.fault != overdelegates {
			s.refuseLimit(w, above, limit)
			return false
		}
		above.delegated = above.delegated.plus(part)
	}
	made.part = made.part.plus(part)
	return true
}

// topUp raises the limits, and what is set aside for them.
func (s *fakeService) topUp(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Actions int64          `json:"add_actions"`
		Value   money.MicroUSD `json:"add_value_usd"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	it, by := s.sessions[r.PathValue("id")], charge{requested.Actions, requested.Value}
	if it.status != "active" {
		refuse(w, http.StatusForbidden, `"code":"session_not_active","session_status":%q`, it.status)
		return
	}
	if s.fault != topsUpAlone && !s.place(w, it, by) {
		return
	}
	it.limits = limits{it.limits.actions + by.count, it.limits.value + by.value}
	if s.fault == topsUpTooMuch {
		it.limits.value += by.value
	}
	answer(w, http.StatusOK, "%s", it)
}

func (s *fakeService) suspend(suspended bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		it := s.sessions[r.PathValue("id")]
		if it.status != "active" {
			refuse(w, http.StatusConflict, `"code":"session_not_active","session_status":%q`, it.status)
			return
		}
		if s.turns++; suspended || s.fault != staysSuspended || s.turns%4 != 0 {
			it.suspended = suspended
		}
		answer(w, http.StatusOK, "%s", it)
	}
}

func (s *fakeService) isSuspended(it *fakeSession) bool {
	for ; it != nil; it = it.parent {
		if it.suspended || s.fault == suspendsAlone {
			return it.suspended
		}
	}
	return false
}

func (s *fakeService) tree(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, "%s", s.sessions[r.PathValue("id")].nested())
}

func (it *fakeSession) nested() string {
	var children []string
	for _, child := range it.children {
		if child.status == "active" {
			children = append(children, child.nested())
		}
	}
	return strings.TrimSuffix(it.String(), "}") + `,"children":[` + strings.Join(children, ",") + "]}"
}

// endTree ends a session and its descendants, and gives back what is set aside for it.
func (s *fakeService) endTree(it *fakeSession) {
	if it.status != "active" {
		return
	}
	if s.fault != endsAlone {
		for _, child := range it.children {
			s.endTree(child)
		}
	}
	if s.fault != neverEnds {
		it.status = "completed"
	}
	it.rollBackPending(s.fault)
	spent := it.used.count > 0 // else losing it or counting it twice would change nothing
	if spent {
		s.closes++
	}
	switch occasion := spent && s.closes%4 == 1; {
	case s.fault == keepsParts && occasion:
		return
	case it.parent == nil:
		s.budget.reserved -= it.part.value
		s.budget.used += it.used.value
		if s.fault == budgetTakesTwice && occasion {
			s.budget.used += it.used.value
		}
		return
	case s.fault == losesChildren && occasion:
	case s.fault == takesTwice && occasion:
		it.parent.used = it.parent.used.plus(it.used).plus(it.used)
		it.parent.over += it.over
	default:
		it.parent.used = it.parent.used.plus(it.used)
		it.parent.over += it.over
	}
	it.parent.delegated = it.parent.delegated.minus(it.part)
}
