package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// authorize refuses access tokens that the fake service has not issued, such as invalidated ones.
func (s *fakeService) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		credential := r.Header.Get("Authorization")
		if credential != "" && !strings.HasPrefix(credential, "Bearer access ") && s.fault != acceptsInvalidTokens {
			refuse(w, http.StatusUnauthorized, `"code":"invalid_token"`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// agentOf returns the agent of the access token.
func agentOf(r *http.Request) string {
	words := strings.Fields(r.Header.Get("Authorization"))
	return words[len(words)-1]
}

func (s *fakeService) verify(w http.ResponseWriter, r *http.Request) {
	named := agentOf(r)
	if s.fault == verifiesOthers {
		named = "another"
	}
	w.Header().Set("X-Agent-Id", named)
	w.WriteHeader(http.StatusOK)
}

func (s *fakeService) listSessions(w http.ResponseWriter, r *http.Request) {
	named := agentOf(r)
	if s.fault == listsOthers {
		named = "another"
	}
	answer(w, http.StatusOK, `[{"id":"some","agent_id":%q,"status":"active"}]`, named)
}

// actMany executes each action of a batch separately.
func (s *fakeService) actMany(w http.ResponseWriter, r *http.Request) {
	var requested struct {
		Actions []json.RawMessage `json:"actions"`
	}
	json.NewDecoder(r.Body).Decode(&requested)
	var answers []string
	for _, one := range requested.Actions {
		var of struct {
			Session string `json:"session_id"`
		}
		json.Unmarshal(one, &of)
		did := httptest.NewRecorder()
		for range map[bool]int{false: 1, true: 2}[s.fault == batchesTwice] {
			did = httptest.NewRecorder()
			single := httptest.NewRequest(http.MethodPost, "/v1/sessions/"+of.Session+"/actions", bytes.NewReader(one))
			single.SetPathValue("id", of.Session)
			single.Header = r.Header
			s.act(did, single)
		}
		answers = append(answers, fmt.Sprintf(`{"status":%d,"body":%s}`, did.Code, did.Body))
	}
	answer(w, http.StatusOK, "[%s]", strings.Join(answers, ","))
}

func (s *fakeService) usageOfSession(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.sessions[r.PathValue("id")]
	used := it.used.plus(it.lies)
	s.reads++
	if s.fault == typesLose && s.reads%faultEvery == 0 {
		used.value--
	}
	answer(w, http.StatusOK, `[{"action_type":%q,"action_count":%d,"value_usd":0},{"action_type":%q,"action_count":0,"value_usd":%s}]`,
		it.kind, used.count, it.kind, used.value)
}

func (s *fakeService) usageOfAll(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var used charge
	for _, it := range s.sessions {
		used = used.plus(it.used).plus(it.lies)
	}
	if s.fault == reportsLose {
		used.count--
	}
	answer(w, http.StatusOK, `[{"day":"2026-01-02","action_type":null,"action_count":%d,"value_usd":%s}]`, used.count, used.value)
}
