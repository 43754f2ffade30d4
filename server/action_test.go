package server_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
)

// A token with less than its agent's scopes, which this service may sign one day, does not borrow from the session.
func TestAnAccessTokenCannotUseAScopeThatItLacks(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		id := w.newSession(nil)
		of := must(w.on.keyring.ParseRefresh(w.exchange().refresh))(t)
		narrow := must(w.on.keyring.SignAccess(token.Access{
			Agent: of.Agent, Organization: uuid.MustParse(w.org), Family: of.Family, Scopes: []string{"read"}, Issued: time.Now(),
			Client: of.Agent, Audience: []string{w.on.keyring.Issuer()},
		}))(t)
		w.post("/sessions/"+id+"/actions", fields{"scope": "write"}, asAgent(narrow)).refused(403, "insufficient_scope").
			has(fields{"required_scope": "write"})
		if got := w.post("/sessions/"+id+"/actions", fields{"scope": "read"}, asAgent(narrow)).is(200).object()["action_count"]; got != num(1) {
			t.Errorf("action_count %v, want 1", got)
		}
	})
}
