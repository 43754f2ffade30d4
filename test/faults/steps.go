package faults

import (
	"slices"
	"time"

	"remit/money"
)

// workerPause is how long a worker rests between two steps, so that it leaves the machine time for the service.
const workerPause = 10 * time.Millisecond

// steps are what workers do, with their relative frequency.
var steps = []struct {
	weight int
	do     func(*worker)
}{
	{40, (*worker).chargeUnkeyed},
	{30, (*worker).chargeKeyed},
	{16, (*worker).transact},
	{8, (*worker).lease},
	{8, (*worker).refreshConcurrently},
	{2, (*worker).revokeFamily},
	{1, (*worker).revokeAgent},
	{3, (*worker).endSession},
}

// deck has each step as often as its weight says.
var deck = func() (all []func(*worker)) {
	for _, step := range steps {
		all = append(all, slices.Repeat([]func(*worker){step.do}, step.weight)...)
	}
	return all
}()

func (w *worker) work() {
	for w.working.Err() == nil {
		deck[w.random.IntN(len(deck))](w)
		w.rest(workerPause)
	}
}

// drawSession draws the session to charge with a key: mostly the one with room.
func (w *worker) drawSession() string {
	if w.random.IntN(3) == 0 {
		return w.agent.Tight
	}
	return w.agent.Roomy
}

// drawCharge draws a charge of a small odd amount, so that different charges are easy to tell apart.
func (w *worker) drawCharge(session string) Request {
	return ChargeSession(w.agent, session, 1+w.random.Int64N(3), money.MicroUSD(w.random.Int64N(5000)))
}

// chargeUnkeyed charges without an idempotency key. If the answer is lost, the outcome stays unknown.
func (w *worker) chargeUnkeyed() { w.call(w.drawCharge(w.agent.Unkeyed)) }

// chargeKeyed charges with a key until it is answered, and sometimes repeats the call after that.
func (w *worker) chargeKeyed() {
	r := w.keyed(w.drawCharge(w.drawSession()))
	w.callUntilAnswered(r)
	if w.random.IntN(4) == 0 {
		w.call(r)
	}
}

// transact begins a transaction and commits it or rolls it back. Sometimes it does both concurrently; only one may succeed.
func (w *worker) transact() {
	session, hold := w.drawSession(), money.MicroUSD(w.random.Int64N(5000))
	both := w.random.IntN(3) == 0
	begin := w.keyed(w.post(Begin, "/v1/transactions", object{"session_id": session, "action_type": "call",
		"pre_state": object{"n": w.keys}, "value_usd": hold, "reversible": !both, "expires_in_seconds": 86400}))
	begin.Session, begin.Effect = session, Effect{Actions: 1, Held: hold}
	c, body := w.callUntilAnswered(begin)
	if c.Outcome != OK {
		return
	}
	begun := created(body)
	note(w.fixture, &w.fixture.transactions, begun.ID)

	cost := money.MicroUSD(w.random.Int64N(int64(hold) + 1))
	commit := w.keyed(w.post(Commit, "/v1/transactions/"+begun.ID+"/commit", object{"value_usd": cost}))
	rollback := w.keyed(w.post(Rollback, "/v1/transactions/"+begun.ID+"/rollback", object{}))
	commit.Subject, commit.Session, commit.Effect = begun.ID, session, Effect{Used: cost, Held: -hold}
	rollback.Subject, rollback.Session, rollback.Effect = begun.ID, session, Effect{Held: -hold}
	switch {
	case both:
		w.concurrently(commit, rollback)
	case w.random.IntN(3) == 0:
		w.callUntilAnswered(rollback)
	default:
		w.callUntilAnswered(commit)
	}
}

// refreshConcurrently presents one refresh token three times at once. All calls must get the same successor.
func (w *worker) refreshConcurrently() {
	if w.refresh == "" {
		c, body := w.callUntilAnswered(exchange(w.agent.ID, w.agent.Secret))
		if c.Outcome != OK {
			return
		}
		w.refresh = pairIn(body).Refresh
		w.family = "family of " + nameOf(w.refresh)
		w.fixture.addToken(w.family, w.refresh)
	}
	r := refresh(w.refresh)
	w.refresh = "" // after a refusal, which Check judges, the next step opens another family
	for _, body := range w.concurrently(r, r, r) {
		if successor := pairIn(body).Refresh; successor != "" {
			w.fixture.addToken(w.family, successor)
			w.refresh = successor
		}
	}
}

// revokeFamily opens a family, uses it, revokes it, and tries to use it again.
func (w *worker) revokeFamily() {
	c, body := w.callUntilAnswered(exchange(w.agent.ID, w.agent.Secret))
	if c.Outcome != OK {
		return
	}
	pair := pairIn(body)
	subject := "family of " + nameOf(pair.Refresh)
	ofFamily := &Agent{Access: pair.Access}
	w.callUntilAnswered(w.keyed(ChargeSession(ofFamily, w.agent.Roomy, 1, 1))) // it works before the revocation
	revoke := w.post(Revoke, "/v1/auth/revoke", object{"refresh_token": pair.Refresh})
	revoke.Subject = subject
	if c, _ := w.callUntilAnswered(revoke); c.Outcome != OK {
		return
	}
	w.useRevoked(subject, refresh(pair.Refresh), ChargeSession(ofFamily, w.agent.Unkeyed, 1, 1))
}

// revokeAgent creates an agent with a session, revokes the agent, and tries to use its credentials and session.
func (w *worker) revokeAgent() {
	c, body := w.callUntilAnswered(w.fixture.createAgent())
	made := created(body)
	if c.Outcome != OK || made.ID == "" {
		return
	}
	c, body = w.callUntilAnswered(exchange(made.ID, made.Secret))
	if c.Outcome != OK {
		return
	}
	pair := pairIn(body)
	session, ok := w.openSession(made.ID)
	if !ok {
		return
	}
	doomed := &Agent{Access: pair.Access}
	w.callUntilAnswered(w.keyed(ChargeSession(doomed, session, 1, 1)))
	revoke := w.post(Revoke, "/v1/agents/"+made.ID+"/revoke", nil)
	revoke.Token, revoke.APIKey, revoke.Subject = "", w.fixture.APIKey, "agent "+made.ID
	if c, _ := w.callUntilAnswered(revoke); c.Outcome != OK {
		return
	}
	byKey := ChargeSession(&Agent{}, session, 1, 1)
	byKey.APIKey = w.fixture.APIKey
	w.useRevoked(revoke.Subject, exchange(made.ID, made.Secret), refresh(pair.Refresh), ChargeSession(doomed, session, 1, 1), byKey)
}

// endSession opens a session, charges it, ends it, and tries to charge it again.
func (w *worker) endSession() {
	session, ok := w.openSession(w.agent.ID)
	if !ok {
		return
	}
	for range w.random.IntN(4) {
		w.callUntilAnswered(w.keyed(w.drawCharge(session)))
	}
	end := w.post(End, "/sessions/"+session+"/end", nil)
	end.Subject = "session " + session
	if c, _ := w.callUntilAnswered(end); c.Outcome != OK {
		return
	}
	w.useRevoked(end.Subject, w.drawCharge(session))
}

func (w *worker) openSession(agent string) (id string, ok bool) {
	r := w.keyed(w.fixture.createSession(agent, 1000, 10*money.USD))
	c, body := w.callUntilAnswered(r)
	if id = created(body).ID; c.Outcome != OK || id == "" {
		return "", false
	}
	note(w.fixture, &w.fixture.sessions, id)
	return id, true
}

// useRevoked makes calls that must be refused, now and, by Fixture.UseRevoked, at the end of the scenario.
func (w *worker) useRevoked(subject string, uses ...Request) {
	for i := range uses {
		uses[i].Kind, uses[i].Subject, uses[i].Note = Use, subject, nothing
		w.call(uses[i])
	}
	note(w.fixture, &w.fixture.revoked, uses...)
}
