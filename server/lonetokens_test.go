package server_test

import (
	"testing"

	"github.com/google/uuid"
)

// lone are access tokens without a refresh token, and who may use them.
type lone struct {
	delegation
	workload, bystander string // of the worker: by its platform's token
	bound               string // the same, bound to the key of holder
	holder              holder
	chained             string // of a third agent, in a child of the child, by the delegated token
	below               string // that session
	job                 *foreignIssuer
}

func (c *client) newLone() lone {
	c.t.Helper()
	l := lone{delegation: c.newDelegation(), job: newForeignIssuer(c.t, "https://idp.example", "ES256")}
	workers := l.tenant
	workers.agent = l.worker
	workers.trustKey(l.job, object{"sub": "job"})
	l.holder = workers.holding("ES256")
	l.workload, l.bystander = l.present(), l.present()
	l.bound = l.present(withProof(l.holder.key.Prove(l.holder.proof("POST", "/oauth2/token"))))
	_, l.below = l.grandchild()
	l.chained = l.exchangeToken(l.token, l.below).is(200).text("access_token")
	return l
}

// present gets a token of the worker by its platform's token.
func (l lone) present(options ...option) string {
	l.t.Helper()
	return l.postForm("/oauth2/token", byAssertion(l.worker.id, l.job.sign(object{"sub": "job"})), options...).is(200).text("access_token")
}

// use presents a token where it may be used.
func (l lone) use(access string) *response {
	l.t.Helper()
	as := asAgent(access)
	if access == l.bound {
		as = l.holder.proven(access, "GET", "/v1/auth/verify")
	}
	return l.get("/v1/auth/verify", as)
}

// ended fails the test unless no instance takes the tokens, wherever they are presented.
func (l lone) ended(there *client, tokens ...string) {
	l.t.Helper()
	for _, access := range tokens {
		l.use(access).refused(401, "invalid_token")
		if access == l.bound {
			continue
		}
		for _, at := range []*client{l.client, there} {
			for _, path := range []string{"/v1/auth/verify", "/v1/sessions", "/v1/auth/authorize?session_id=" + l.child} {
				at.get(path, asAgent(access)).refused(401, "invalid_token")
			}
			at.post("/v1/sessions/"+l.child+"/actions", fields{}, asAgent(access)).refused(401, "invalid_token")
			at.post("/v1/auth/introspect", fields{"token": access}, asKey(l.key)).is(200).exactly(fields{"active": false})
			at.exchangeToken(access, l.below).refusedOAuth(400, "invalid_request")
		}
	}
}

func (l lone) live(tokens ...string) {
	l.t.Helper()
	for _, access := range tokens {
		l.use(access).is(200)
	}
}

// deleteFamily ends a token of the worker by the family that it names.
func (l lone) deleteFamily(access string) *response {
	l.t.Helper()
	return l.delete("/v1/agents/"+l.worker.id+"/families/"+pair{access, ""}.family(), asKey(l.key))
}
func TestATokenWithoutARefreshTokenEndsByItsFamilyOrWithAllOfItsAgent(t *testing.T) {
	onEach(t, (*client).newLone, func(t *testing.T, l lone) {
		there, worker := l.another(t), l.holder.trail()
		for _, access := range []string{l.workload, l.bound, l.token} {
			l.live(access)
			there.get("/v1/auth/verify", asAgent(access)) // which fills its cache
			for range 2 {                                 // the first answer may be lost
				l.deleteFamily(access).is(200).exactly(fields{"revoked": true})
			}
			l.ended(there, access)
			events := worker.unread()
			if typesOf(events) != "token.revoked" || events[0]["family_id"] != (pair{access, ""}).family() {
				t.Errorf("the trail has %v", events)
			}
		}
		l.ended(there, l.chained) // what came from the delegated token
		old := []string{l.bystander, l.workers.access, l.delegate().is(200).text("access_token")}
		l.live(append(old, l.planner.access)...)

		// A rotation may be repeated, when its answer was lost and the platform's token exchanged meanwhile.
		key := keyed(uuid.NewString())
		revokeAll := func(of string, options ...option) string {
			return l.post("/v1/agents/"+of+"/secret/rotate", fields{"revoke_families": true}, append(options, asKey(l.key))...).is(200).text("secret")
		}
		l.worker.secret = revokeAll(l.worker.id, key)
		later := []string{l.present(), l.delegate().is(200).text("access_token"), l.exchangeFor(l.worker).access}
		worker.unread()
		if again := revokeAll(l.worker.id, key); again != l.worker.secret {
			t.Error("the repetition has another secret")
		}
		worker.gainsNothing("the same rotation again")
		l.ended(there, old...)
		l.live(append(later, l.planner.access)...)
		l.deleteFamily(old[0]).is(200) // which has ended
		revokeAll(l.agent.id)          // of who acts with delegated tokens
		l.ended(there, l.planner.access, later[1])
		l.live(later[0], later[2])
	})
}
