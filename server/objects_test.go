package server_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/server"
)

// oneOfEach makes an object of each kind that a path names, and returns their ids by the names of openapi.json.
func (w tenant) oneOfEach() map[string]string {
	w.t.Helper()
	key, tokens := asKey(w.key), w.exchange()
	access, session := asAgent(tokens.access), w.leasing(nil)
	webhook := w.post("/v1/webhooks", fields{"url": hookURL}, key).is(201).text("id")
	return map[string]string{
		"OrganizationId": w.org, "ApiKeyId": w.newKey("admin").id, "AgentId": w.agent.id, "FamilyId": tokens.family(),
		"SessionId":        session,
		"SessionRequestId": w.askMore(session, fields{"add_actions": 1}, access).is(201).text("id"),
		"SessionKeyId":     w.post("/v1/sessions/"+session+"/keys", nil, key).is(201).text("id"),
		"TransactionId":    w.beginAs(access, fields{"session_id": session}).is(201).text("id"),
		"LeaseId":          w.lease(session, fields{"max_actions": 1}, key).is(201).text("id"),
		"TrustedIssuerId":  w.post(issuersPath, trustedIssuer(w.agent.id), key).is(201).text("id"),
		"WebhookId":        webhook,
		"DeliveryId":       w.post("/v1/webhooks/"+webhook+"/test", nil, key).is(200).text("id"),
	}
}

// stranger is a caller that may not see an object.
type stranger struct {
	tenant
	name string
	key  bool // by its API key, else by its agent's token
	as   option
}

// learnsNothingOf fails the test unless an object of others is answered as one that does not exist.
func (s stranger) learnsNothingOf(method, path, body, theirs string) {
	s.t.Helper()
	ask := func(id string) *response {
		name := strings.NewReplacer("@", id)
		return s.ask(method, name.Replace(path), raw(name.Replace(body)), s.as, header("Content-Type", "application/json"))
	}
	foreign := ask(theirs)
	foreign.what += " by " + s.name
	wantSameAnswer(s.t, foreign.refused(404, "not_found"), ask(uuid.NewString()))
}

// At every operation that names an object: another organization's, and to an agent another agent's, looks as if it did not exist.
func TestAnObjectOfOthersLooksUnknown(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		other := w.newTenant()
		colleague := w
		colleague.agent = w.newAgent()
		w.objects, other.objects = w.oneOfEach(), other.oneOfEach()
		colleague.objects = map[string]string{"AgentId": colleague.agent.id, "SessionId": colleague.newSession(nil)}
		strangers := []stranger{
			{other, "another organization", true, asKey(other.key)},
			{other, "another organization's agent", false, asAgent(other.exchange().access)},
			{colleague, "another agent", false, asAgent(colleague.exchange().access)},
		}
		before := w.holdings()
		for _, s := range strangers {
			for _, o := range server.Operations() {
				if o.ForProxies || s.key && !o.ByKey || !s.key && !o.ByToken {
					continue
				}
				body := string(mustEncode(s.bodyOf(o, s.objects["SessionId"])))
				for hidden, object := range o.Objects {
					for _, path := range pathsOf(o, func(name, object string) string {
						if name == hidden {
							return "@"
						}
						return s.idOf(object, s.objects["SessionId"], s.objects["SessionId"])
					}) {
						s.learnsNothingOf(o.Method, path, body, w.objects[object])
					}
				}
			}
			for query, object := range map[string]string{
				"/sessions?agent_id=@": "AgentId", "/v1/transactions?agent_id=@": "AgentId", "/v1/transactions?session_id=@": "SessionId",
				"/v1/transactions?agent_id=" + s.agent.id + "&session_id=@": "SessionId",
			} {
				s.learnsNothingOf("GET", query, "", w.objects[object])
			}
			if s.key {
				s.learnsNothingOf("POST", "/sessions", `{"agent_id":"@"}`, w.agent.id)
			} else {
				s.learnsNothingOf("POST", "/v1/transactions", `{"action_type":"a","session_id":"@"}`, w.objects["SessionId"])
			}
		}
		wantEqual(t, "what there is after strangers asked", w.holdings(), before)
		w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).has(fields{"status": "active"})
		for _, path := range []string{"/v1/webhooks/" + w.objects["WebhookId"], issuersPath + "/" + w.objects["TrustedIssuerId"]} {
			w.get(path, asKey(w.key)).is(200)
		}
	})
}
