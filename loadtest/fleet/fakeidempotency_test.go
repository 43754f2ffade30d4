package fleet

import (
	"net/http"
	"net/http/httptest"
	"strings"
)

// idempotent executes a keyed request once. If the fault is to lose answers, it does so after the change and after storing
// the outcome.
func (s *fakeService) idempotent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outcome, again := s.outcomeOf(next, r)
		if outcome.Code < 300 && !again && s.loses(r) {
			if s.fault == hangsUp {
				panic(http.ErrAbortHandler)
			}
			refuse(w, http.StatusServiceUnavailable, `"code":"outcome_unknown"`)
			return
		}
		for name, values := range outcome.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(outcome.Code)
		w.Write(outcome.Body.Bytes())
	})
}

// outcomeOf returns the first outcome of the request's key, and whether this request repeats it. A settlement needs no key: a
// lease is settled once.
func (s *fakeService) outcomeOf(next http.Handler, r *http.Request) (outcome *httptest.ResponseRecorder, again bool) {
	s.keys.Lock()
	defer s.keys.Unlock()
	key := r.Header.Get("Idempotency-Key")
	if key != "" || strings.HasSuffix(r.URL.Path, "/settle") {
		key += r.URL.Path
	}
	if kept, found := s.outcomes[key]; found && s.fault != ignoresKeys {
		return kept, true
	}
	outcome = httptest.NewRecorder()
	next.ServeHTTP(outcome, r)
	if key != "" {
		s.outcomes[key] = outcome
	}
	return outcome, false
}

// loses reports whether the answer to a change by an agent gets lost, for one change in N.
func (s *fakeService) loses(r *http.Request) bool {
	if s.fault != failsAfterCharge && s.fault != hangsUp && s.fault != ignoresKeys {
		return false
	}
	if r.Method != http.MethodPost || r.Header.Get("Authorization") == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	return s.changes%faultEvery == 0
}
