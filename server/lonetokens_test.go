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

// deleteFamily ends a token by the family that it names.
func (l lone) deleteFamily(agent, access string) *response {
	l.t.Helper()
	return l.delete("/v1/agents/"+agent+"/families/"+pair{access, ""}.family(), asKey(l.key))
}

func TestDeletingTheFamilyOfATokenWithoutARefreshTokenEndsIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		l := api.newLone()
		there := api.another(t)
		worker := l.holder.trail()
		for _, access := range []string{l.workload, l.bound, l.token} {
			l.live(access)
			there.get("/v1/auth/verify", asAgent(access)) // which fills its cache
			for range 2 {                                 // the first answer may be lost
				l.deleteFamily(l.worker.id, access).is(200).exactly(fields{"revoked": true})
			}
			l.ended(there, access)
			events := worker.unread()
			if typesOf(events) != "token.revoked" || events[0]["family_id"] != (pair{access, ""}).family() {
				t.Errorf("the trail has %v", events)
			}
		}
		l.ended(there, l.chained) // what came from the delegated token
		l.live(l.bystander, l.planner.access, l.workers.access, l.delegate().is(200).text("access_token"))
	})
}

// Nothing is stored of such a token, so its id must say whose it may be.
func TestAFamilyThatNoTokenOfTheAgentNamesLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		l, stranger := api.newLone(), api.newTenant()
		own := uuid.MustParse(pair{l.workload, ""}.family())
		changed := func(change func(id *uuid.UUID)) string {
			id := own
			change(&id)
			return id.String()
		}
		for name, path := range map[string]string{
			"another agent's":         l.agent.id + "/families/" + own.String(),
			"another organization's":  stranger.agent.id + "/families/" + own.String(),
			"of a later epoch":        l.worker.id + "/families/" + changed(func(id *uuid.UUID) { id[11]++ }),
			"of a family, with no id": l.worker.id + "/families/" + changed(func(id *uuid.UUID) { id[6] = 0x70 }),
			"in another cell":         l.worker.id + "/families/" + changed(func(id *uuid.UUID) { id[15]++ }),
		} {
			r := l.delete("/v1/agents/"+path, asKey(l.key))
			r.what = name
			r.refused(404, "not_found")
		}
		l.live(l.workload)
	})
}

func TestASecretRotationRevokesEveryTokenThatWasIssuedBefore(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		l := api.newLone()
		there := api.another(t)
		old := []string{l.workload, l.bystander, l.bound, l.token, l.chained, l.workers.access}
		l.live(old...)
		for range 3 { // each time all that were issued before, and none that is issued later
			l.worker.secret = l.revokeAll(l.worker.id).is(200).text("secret")
			later := []string{l.present(), l.delegate().is(200).text("access_token"), l.exchangeFor(l.worker).access}
			l.ended(there, old...)
			l.live(append(later, l.planner.access)...)
			l.deleteFamily(l.worker.id, old[0]).is(200) // which has ended
			old = later
		}
		l.agent.secret = l.revokeAll(l.agent.id).is(200).text("secret") // of who acts with delegated tokens
		l.ended(there, l.planner.access, old[1])
		l.live(old[0], old[2])
		l.patch("/v1/agents/"+l.worker.id, fields{"dpop_required": true, "scopes": list("pay")}, asKey(l.key)).is(200)
		l.post("/v1/agents/"+l.worker.id+"/suspend", nil, asKey(l.key)).is(200)
		l.post("/v1/agents/"+l.worker.id+"/resume", nil, asKey(l.key)).is(200)
		l.use(old[0]).refused(401, "invalid_token")
		l.patch("/v1/agents/"+l.worker.id, fields{"dpop_required": false}, asKey(l.key)).is(200)
		l.live(old[0], old[2])
	})
}

// revokeAll rotates an agent's secret and revokes all of its tokens.
func (l lone) revokeAll(agent string, options ...option) *response {
	l.t.Helper()
	return l.post("/v1/agents/"+agent+"/secret/rotate", fields{"revoke_families": true}, append(options, asKey(l.key))...)
}

// The first answer may have been lost, and the platform's token exchanged meanwhile.
func TestARotationThatIsRepeatedRevokesNoLaterToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		l := api.newLone()
		key := header("Idempotency-Key", uuid.NewString())
		first := l.revokeAll(l.worker.id, key).is(200)
		later := []string{l.present(), l.delegate().is(200).text("access_token"), l.exchangeFor(agent{l.worker.id, first.text("secret")}).access}
		trail := l.holder.trail()
		if again := l.revokeAll(l.worker.id, key).is(200); again.text("secret") != first.text("secret") {
			t.Error("the repetition has another secret")
		}
		trail.gainsNothing("the same rotation again")
		l.live(later...)
		l.ended(api.another(t), l.workload, l.token, l.workers.access)
	})
}
