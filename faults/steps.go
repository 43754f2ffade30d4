package faults

import (
	"encoding/json"
	"sync"

	"remit/money"
)

// What the workers of a fleet do. Sums of money are small and odd, so that no two charges are easily mistaken.

// aSession draws the session to charge with a key: mostly the one with room.
func (w *worker) aSession() string {
	if w.random.IntN(3) == 0 {
		return w.agent.Tight
	}
	return w.agent.Roomy
}

func (w *worker) aCharge(session string) Request {
	return ChargeSession(w.agent, session, 1+w.random.Int64N(3), money.MicroUSD(w.random.Int64N(5000)))
}

// chargeOnce charges without an idempotency key: an answer that is lost stays unknown.
func (w *worker) chargeOnce() { w.once(w.aCharge(w.agent.Unkeyed)) }

// chargeKeyed charges with a key until it is answered, and at times once more.
func (w *worker) chargeKeyed() {
	r := w.keyed(w.aCharge(w.aSession()))
	w.insist(r)
	if w.random.IntN(4) == 0 {
		w.once(r)
	}
}

// transact begins a transaction and settles it, at times in both ways at once; then it can be settled in one only.
func (w *worker) transact() {
	session, hold := w.aSession(), money.MicroUSD(w.random.Int64N(5000))
	both := w.random.IntN(3) == 0
	begin := w.keyed(w.post(Begin, "/v1/transactions", object{"session_id": session, "action_type": "call",
		"pre_state": object{"n": w.keys}, "value_usd": hold, "reversible": !both, "expires_in_seconds": 86400}))
	begin.Session, begin.Effect = session, Effect{Actions: 1, Held: hold}
	c, body := w.insist(begin)
	if c.Outcome != OK {
		return
	}
	var begun struct{ ID string }
	_ = json.Unmarshal(body, &begun) // without an id its settling is refused, and that is found
	w.world.keepTransaction(begun.ID)

	cost := money.MicroUSD(w.random.Int64N(int64(hold) + 1))
	commit := w.keyed(w.post(Commit, "/v1/transactions/"+begun.ID+"/commit", object{"value_usd": cost}))
	rollback := w.keyed(w.post(Rollback, "/v1/transactions/"+begun.ID+"/rollback", object{}))
	commit.Subject, commit.Session, commit.Effect = begun.ID, session, Effect{Used: cost, Held: -hold}
	rollback.Subject, rollback.Session, rollback.Effect = begun.ID, session, Effect{Held: -hold}
	switch {
	case both:
		w.together(commit, rollback)
	case w.random.IntN(3) == 0:
		w.insist(rollback)
	default:
		w.insist(commit)
	}
}

// together insists on several calls at once, and returns the bodies of the answers.
func (w *worker) together(requests ...Request) [][]byte {
	bodies := make([][]byte, len(requests))
	var all sync.WaitGroup
	for n, r := range requests {
		turn := w.next + n
		all.Go(func() {
			instance := func() string { turn++; return w.instances[turn%len(w.instances)] }
			_, bodies[n] = w.insistFrom(instance, r)
		})
	}
	all.Wait()
	return bodies
}

// refreshTogether presents one refresh token three times at once. All get the same successor.
func (w *worker) refreshTogether() {
	if w.refresh == "" {
		c, body := w.insist(exchange(w.agent.ID, w.agent.Secret))
		if c.Outcome != OK {
			return
		}
		w.refresh = pairIn(body).Refresh
		w.family = "family of " + nameOf(w.refresh)
		w.world.keepToken(w.family, w.refresh)
	}
	r := refresh(w.refresh)
	w.refresh = "" // refused, it is found out, and the next time another family is opened
	for _, body := range w.together(r, r, r) {
		if successor := pairIn(body).Refresh; successor != "" {
			w.world.keepToken(w.family, successor)
			w.refresh = successor
		}
	}
}

// revokeFamily opens a family, uses it, revokes it, and tries to use it again.
func (w *worker) revokeFamily() {
	c, body := w.insist(exchange(w.agent.ID, w.agent.Secret))
	if c.Outcome != OK {
		return
	}
	pair := pairIn(body)
	subject := "family of " + nameOf(pair.Refresh)
	ofFamily := &Agent{Access: pair.Access}
	w.insist(w.keyed(ChargeSession(ofFamily, w.agent.Roomy, 1, 1))) // it is of use until then
	revoke := w.post(Revoke, "/v1/auth/revoke", object{"refresh_token": pair.Refresh})
	revoke.Subject = subject
	if c, _ := w.insist(revoke); c.Outcome != OK {
		return
	}
	w.useDead(subject, refresh(pair.Refresh), ChargeSession(ofFamily, w.agent.Unkeyed, 1, 1))
}

// revokeAgent makes an agent with a session, revokes the agent, and tries to use what it had.
func (w *worker) revokeAgent() {
	c, body := w.insist(w.world.createAgent())
	var created struct{ ID, Secret string }
	if c.Outcome != OK || json.Unmarshal(body, &created) != nil {
		return
	}
	c, body = w.insist(exchange(created.ID, created.Secret))
	if c.Outcome != OK {
		return
	}
	pair := pairIn(body)
	session, ok := w.openSession(created.ID)
	if !ok {
		return
	}
	mortal := &Agent{Access: pair.Access}
	w.insist(w.keyed(ChargeSession(mortal, session, 1, 1)))
	revoke := w.post(Revoke, "/v1/agents/"+created.ID+"/revoke", nil)
	revoke.Token, revoke.APIKey, revoke.Subject = "", w.world.APIKey, "agent "+created.ID
	if c, _ := w.insist(revoke); c.Outcome != OK {
		return
	}
	byKey := ChargeSession(&Agent{}, session, 1, 1)
	byKey.APIKey = w.world.APIKey
	w.useDead(revoke.Subject, exchange(created.ID, created.Secret), refresh(pair.Refresh), ChargeSession(mortal, session, 1, 1), byKey)
}

// endSession opens a session, charges it, ends it, and tries to charge it again.
func (w *worker) endSession() {
	session, ok := w.openSession(w.agent.ID)
	if !ok {
		return
	}
	for range w.random.IntN(4) {
		w.insist(w.keyed(w.aCharge(session)))
	}
	end := w.post(End, "/sessions/"+session+"/end", nil)
	end.Subject = "session " + session
	if c, _ := w.insist(end); c.Outcome != OK {
		return
	}
	w.useDead(end.Subject, w.aCharge(session))
}

func (w *worker) openSession(agent string) (id string, ok bool) {
	r := w.keyed(w.world.createSession(agent, 1000, 10*money.USD))
	c, body := w.insist(r)
	var session struct{ ID string }
	if c.Outcome != OK || json.Unmarshal(body, &session) != nil {
		return "", false
	}
	w.world.keepSession(session.ID)
	return session.ID, true
}

// useDead uses once what must not be of use any more, now and, by World.UseDead, when all is over.
func (w *worker) useDead(subject string, uses ...Request) {
	for i := range uses {
		uses[i].Kind, uses[i].Subject, uses[i].Note = Use, subject, nothing
		w.once(uses[i])
	}
	w.world.keepDead(uses)
}

// UseDead uses once more all that was revoked or ended. It returns how many uses were not answered.
func (w *World) UseDead(c *Caller, instance string) (unanswered int) {
	for _, r := range w.dead {
		if call, _ := c.Do(instance, r); call.Status == 0 || call.Status >= 500 {
			unanswered++
		}
	}
	return unanswered
}
