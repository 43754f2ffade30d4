package console

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"remit/redisstore"
)

// samples are the ids that stand for the parameters of paths.
type samples map[string]string

func (s samples) path(of string) string {
	for name, id := range s {
		of = strings.ReplaceAll(of, "{"+name+"}", id)
	}
	if strings.Contains(of, "{") {
		panic("no sample for " + of)
	}
	return of
}

// texts are what strangers choose in the objects of a sample.
type texts struct{ agent, reason, actionType, state, metadata string }

// sample makes one object of each kind.
func (w *world) sample() samples {
	return w.sampleOf(texts{"scout", "more is needed", "llm.call", "before", "m"})
}

func (w *world) sampleOf(x texts) samples {
	w.t.Helper()
	made := w.asAdmin("POST", "/v1/agents", map[string]any{
		"name": x.agent, "scopes": []string{"read", "sessions:delegate"}, "description": x.metadata, "metadata": map[string]any{"note": x.metadata},
	})
	s := samples{"agent": made["id"].(string)}
	s["session"] = w.newSession(s["agent"], map[string]any{"metadata": map[string]any{"note": x.metadata}})
	access := w.exchange(s["agent"], made["secret"].(string))
	w.asAgent(access, "/v1/sessions/"+s["session"]+"/actions", map[string]any{"action_type": x.actionType, "value_usd": 1.25})
	begun := w.asAgent(access, "/v1/transactions", map[string]any{
		"session_id": s["session"], "action_type": x.actionType, "value_usd": 2, "pre_state": map[string]any{"state": x.state},
	})
	s["transaction"] = begun["id"].(string)
	asked := w.asAgent(access, "/v1/sessions/"+s["session"]+"/requests", map[string]any{"add_value_usd": 5, "reason": x.reason})
	s["request"] = asked["id"].(string)
	s["sessionkey"] = w.asAdmin("POST", "/v1/sessions/"+s["session"]+"/keys", map[string]any{"name": x.agent})["id"].(string)
	var families []map[string]any
	w.good("GET", "/v1/agents/"+s["agent"]+"/families", nil, &families, "X-API-Key", w.keys[admin])
	s["family"] = families[0]["family_id"].(string)
	hook := w.asAdmin("POST", "/v1/webhooks", map[string]any{"url": "https://hooks.example.com/" + strings.Repeat("x", 80), "description": x.metadata})
	s["webhook"] = hook["id"].(string)
	s["delivery"] = w.asAdmin("POST", "/v1/webhooks/"+s["webhook"]+"/test", map[string]any{})["id"].(string)
	s["key"] = w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": x.agent, "role": "viewer"})["id"].(string)
	return s
}

// sampled returns a world with a sample, and a browser that is signed in with the key of this role.
func sampled(t *testing.T, role redisstore.Role) (*world, *browser, samples) {
	t.Helper()
	w, b := visited(t, role)
	return w, b, w.sample()
}

// visited returns a world, and a browser that is signed in with the key of this role.
func visited(t *testing.T, role redisstore.Role) (*world, *browser) {
	t.Helper()
	w := newWorld(t, settings{})
	return w, w.as(t, role)
}

func (w *world) newSession(agent string, more map[string]any) string {
	w.t.Helper()
	body := map[string]any{"agent_id": agent, "max_actions": 10, "max_value_usd": 20}
	maps.Copy(body, more)
	return w.asAdmin("POST", "/v1/sessions", body)["id"].(string)
}

func (w *world) exchange(agent, secret string) string {
	w.t.Helper()
	var pair struct {
		AccessToken string `json:"access_token"`
	}
	w.good("POST", "/v1/auth/token", map[string]any{"agent_id": agent, "secret": secret}, &pair)
	return pair.AccessToken
}

func (w *world) asAgent(access, path string, body any) (made map[string]any) {
	w.t.Helper()
	w.good(http.MethodPost, path, body, &made, "Authorization", "Bearer "+access)
	return made
}

// newAgent makes an agent without scopes.
func (w *world) newAgent(name string) (id string) {
	w.t.Helper()
	id, _ = w.newSecretAgent(name)
	return id
}

// newSecretAgent is newAgent for one whose secret is used.
func (w *world) newSecretAgent(name string) (id, secret string) {
	w.t.Helper()
	made := w.asAdmin(http.MethodPost, "/v1/agents", map[string]any{"name": name, "scopes": []string{}})
	return made["id"].(string), made["secret"].(string)
}
