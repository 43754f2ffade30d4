package faults

import (
	"encoding/json"
	"net/url"

	"remit/money"
)

// lease takes a lease, spends a part of it, and settles it, sometimes at two instances at once, with the same numbers.
// Sometimes the settlement asks for a renewal, which is spent and settled like the first.
func (w *worker) lease() {
	session := w.drawSession()
	grant := w.keyed(w.post(Grant, "/sessions/"+session+"/leases", w.drawLease()))
	grant.Session, grant.Effect = session, effectOf(grant.Body)
	c, body := w.callUntilAnswered(grant)
	if c.Outcome == OK {
		w.settle(session, created(body).ID, grant.Effect)
	}
}

// drawLease draws what to lease, all or nothing.
func (w *worker) drawLease() object {
	return object{"max_actions": 1 + w.random.Int64N(5), "max_value_usd": money.MicroUSD(1 + w.random.Int64N(5000)), "expires_in_seconds": longestLease}
}

// effectOf is what a lease counts for in its session until it is settled.
func effectOf(body any) Effect {
	asked, _ := body.(object)
	actions, _ := asked["max_actions"].(int64)
	value, _ := asked["max_value_usd"].(money.MicroUSD)
	return Effect{Actions: actions, Held: value}
}

// settle settles a lease that was granted with that effect.
func (w *worker) settle(session, lease string, granted Effect) {
	actions, value := w.random.Int64N(granted.Actions+1), money.MicroUSD(w.random.Int64N(int64(granted.Held)+1))
	body := object{"action_count": actions, "value_used_usd": value}
	if w.random.IntN(2) == 0 {
		body["by_action_type"] = object{"call 1": object{"action_count": actions, "value_usd": value}}
	}
	renews := w.random.IntN(4) == 0
	var renewal object
	if renews {
		renewal = w.drawLease()
		body["renew"] = renewal
	}
	r := w.post(Settle, "/v1/leases/"+url.PathEscape(lease)+"/settle", body)
	r.Subject, r.Session, r.Effect = lease, session, Effect{Actions: actions - granted.Actions, Used: value, Held: -granted.Held}
	r = w.keyed(r)
	if !renews && w.random.IntN(3) == 0 { // only one of two settlements may have an effect, see joinSettlements
		w.concurrently(r, w.keyed(r))
		return
	}
	c, answer := w.callUntilAnswered(r)
	if renews {
		w.settleRenewal(session, c, answer, effectOf(renewal))
	}
}

// settleRenewal notes what became of a renewal, as a call of its own, and settles it. Its outcome is that of the settlement
// as a whole: when the worker gives up, the last call may be refused, and one before it may have happened.
func (w *worker) settleRenewal(session string, settled Call, answer []byte, asked Effect) {
	made := settled
	made.Outcome = w.caller.history.outcomeOf(settled)
	made.Kind, made.Subject, made.Session, made.Key, made.Effect = Grant, "renewal of "+settled.Subject, session, "renewal "+settled.Key, asked
	var renewed struct{ Renewed json.RawMessage }
	_ = json.Unmarshal(answer, &renewed) // without an id, the settlement is refused, and Check reports that
	if made.Outcome == OK && created(renewed.Renewed).ID == "" {
		return // it was refused
	}
	w.caller.history.Add(made)
	if made.Outcome == OK {
		w.settle(session, created(renewed.Renewed).ID, asked)
	}
}
