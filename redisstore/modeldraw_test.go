package redisstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
	"remit/money"
)

// Random steps. Rapid draws small numbers and early elements more often than the rest, and the largest more often than its
// neighbours.

// stepKinds are the kinds of steps, repeated by frequency. Rapid prefers early elements, so the usual kinds come first in
// turn, and those that close a session last.
var stepKinds = slices.Concat(
	slices.Repeat([]string{"charge", "begin", "commit", "charge", "rollback", "charge", "begin", "read", "charge", "commit", "batch"}, 8),
	slices.Repeat([]string{"again", "time", "again", "change limits", "create", "again", "change hold", "time"}, 5),
	slices.Repeat([]string{"lease", "settle", "settle"}, 8),
	[]string{"resume", "suspend", "charge", "resume", "suspend", "settle", "resume"},
	[]string{"again", "again", "end", "charge", "end"},
)

var draws = map[string]func(*player, *rapid.T) step{
	"create": func(p *player, t *rapid.T) step { return p.maybeKeyed(t, step{op: p.newSession(t), byAPIKey: true}) },
	"charge": func(p *player, t *rapid.T) step {
		return p.maybeKeyed(t, step{op: p.newCharge(t), target: p.session(t), byAPIKey: byAPIKey(t)})
	},
	"resume": func(p *player, t *rapid.T) step { return step{op: resumeStep{}, target: p.session(t), byAPIKey: true} },
	"end": func(p *player, t *rapid.T) step {
		return step{op: endStep{}, target: p.session(t), byAPIKey: byAPIKey(t)}
	},
	"time": func(_ *player, t *rapid.T) step {
		return step{op: time.Duration(rapid.SampledFrom([]int{1, 1, 1, 2, 30}).Draw(t, "hours")) * time.Hour}
	},
	"batch": (*player).batch, "change limits": (*player).changeLimits, "suspend": (*player).suspend, "begin": (*player).begin,
	"change hold": (*player).changeHold, "commit": (*player).commit, "rollback": (*player).rollback, "lease": (*player).grantLease,
	"settle": (*player).settleLease, "read": (*player).read, "again": (*player).again,
}

func (p *player) suspend(t *rapid.T) step {
	reason := rapid.SampledFrom([]string{"", "it loops", "a\\n\nb\\"}).Draw(t, "reason")
	return step{op: suspendStep{reason}, target: p.session(t), byAPIKey: true}
}

func (p *player) newSession(t *rapid.T) NewSession {
	var maxCommitted *money.MicroUSD
	if rapid.IntRange(0, 2).Draw(t, "with max committed") == 2 {
		maxCommitted = new(p.amount(t, 200))
	}
	return NewSession{
		MaxCommitted: maxCommitted,
		MaxActions:   rapid.Int64Range(1, 60).Draw(t, "max actions"), MaxValue: p.amount(t, 150), Lifetime: lifetime(t, 10_000, 3, 10_000, 1, 10),
		MaxLease: longestLease(t), Thresholds: drawThresholds(t),
		Scopes: rapid.SampledFrom([][]string{nil, nil, nil, {"read"}, {}, {"write", "admin"}}).Draw(t, "scopes"),
	}
}

func (p *player) newCharge(t *rapid.T) Charge {
	return Charge{
		Count: rapid.Int64Range(1, 4).Draw(t, "count"), Value: p.amount(t, 12),
		Scope:      rapid.SampledFrom([]string{"", "", "", "", "read", "", "read", "admin"}).Draw(t, "scope"),
		ActionType: rapid.SampledFrom(actionTypes).Draw(t, "action type"),
	}
}

func (p *player) batch(t *rapid.T) step {
	var charges []BatchCharge
	for range rapid.IntRange(1, 6).Draw(t, "charges") {
		charges = append(charges, BatchCharge{p.session(t), p.newCharge(t)})
	}
	if rapid.IntRange(0, 63).Draw(t, "many") == 20 {
		charges = slices.Repeat(charges, 500/len(charges))
	}
	return p.maybeKeyed(t, step{op: charges, byAPIKey: byAPIKey(t)})
}

func (p *player) changeLimits(t *rapid.T) step {
	var n NewLimits
	switch rapid.IntRange(0, 4).Draw(t, "change max actions") {
	case 0, 1:
		n.MaxActions = new(rapid.Int64Range(1, 80).Draw(t, "max actions"))
	case 2:
		n.AddActions = new(rapid.SampledFrom([]int64{1, 2, 7, MostActions}).Draw(t, "add actions"))
	}
	switch rapid.IntRange(0, 5).Draw(t, "change max value") {
	case 0, 1:
		n.MaxValue = new(p.amount(t, 200))
	case 2, 3:
		n.AddValue = new(p.amount(t, 20))
	case 4:
		n.AddValue = new(MostValue)
	}
	if rapid.Bool().Draw(t, "change lifetime") {
		n.Lifetime = new(lifetime(t, 10_000, 3, 1, 10))
	}
	if rapid.IntRange(0, 3).Draw(t, "change max lease") == 3 {
		n.MaxLease = new(longestLease(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "change thresholds") == 3 {
		n.Thresholds = new(drawThresholds(t))
	}
	return p.maybeKeyed(t, step{op: n, target: p.session(t), byAPIKey: true})
}

// longestLease draws hours and adds three quarters, as modelTime requires.
func longestLease(t *rapid.T) time.Duration {
	if hours := rapid.SampledFrom([]int{8, 2, 30, 0, 8, 2, -1}).Draw(t, "longest lease"); hours >= 0 {
		return time.Duration(hours)*time.Hour + 3*time.Hour/4
	}
	return 0
}

func (p *player) begin(t *rapid.T) step {
	n := NewTransaction{
		ActionType: rapid.SampledFrom(actionTypes[1:]).Draw(t, "action type"), PreState: `{"balance":1}`, Value: p.amount(t, 20), Lifetime: lifetime(t, 3, 10_000, 1, 0, 10),
		Irreversible: rapid.IntRange(0, 3).Draw(t, "irreversible") == 3,
	}
	if rapid.IntRange(0, 7).Draw(t, "without session") < 7 {
		n.Session = p.session(t)
		n.SpentOnExpiry = rapid.IntRange(0, 3).Draw(t, "spent on expiry") == 3
		if n.SpentOnExpiry && rapid.Bool().Draw(t, "held by the gateway") {
			n.HeldByGateway, n.Irreversible = true, true
		}
	}
	if rapid.Bool().Draw(t, "with metadata") {
		n.Metadata = `{"a":"b"}`
	}
	return p.maybeKeyed(t, step{op: n})
}

func (p *player) changeHold(t *rapid.T) step {
	var n NewHold
	if rapid.IntRange(0, 3).Draw(t, "change value") > 0 {
		n.Value = new(p.amount(t, 30))
	}
	if rapid.Bool().Draw(t, "change lifetime") {
		n.Lifetime = new(lifetime(t, 3, 10_000, 1, 0, 10))
	}
	st := step{op: n, target: p.transaction(t)}
	if st.gateway = n.Lifetime != nil && p.byGateway(t, st.target); st.gateway {
		st.op = NewHold{Lifetime: n.Lifetime}
		return st
	}
	return p.maybeKeyed(t, st)
}

func (p *player) commit(t *rapid.T) step {
	var c Commit
	if rapid.Bool().Draw(t, "with value") {
		c.Value = new(p.amount(t, 40))
	}
	if rapid.Bool().Draw(t, "with state") {
		c.PostState = `{"balance":0}`
	}
	st := step{op: c, target: p.transaction(t)}
	if st.gateway = p.byGateway(t, st.target); st.gateway {
		st.op = Commit{Value: c.Value}
		return st
	}
	return p.maybeKeyed(t, st)
}

func (p *player) rollback(t *rapid.T) step {
	b := Rollback{
		Reason: rapid.SampledFrom([]string{"", "a mistake"}).Draw(t, "reason"),
		Scopes: rapid.SampledFrom([][]string{{"write"}, {"write", "read"}, {"read"}, nil}).Draw(t, "scopes"),
	}
	st := step{op: b, target: p.transaction(t), byAPIKey: byAPIKey(t)}
	if st.gateway = p.byGateway(t, st.target); st.gateway {
		st.op, st.byAPIKey = Rollback{Reason: b.Reason}, false
		return st
	}
	return p.maybeKeyed(t, st)
}

// byGateway says whether the gateway makes a step: mostly on what it holds, seldom on anything else.
func (p *player) byGateway(t *rapid.T, id uuid.UUID) bool {
	among, tx := rapid.IntRange(0, 31).Draw(t, "by the gateway"), p.m.transaction(id)
	return among == 20 || among < 20 && tx != nil && tx.HeldByGateway
}

func (p *player) read(t *rapid.T) step {
	switch rapid.IntRange(0, 3).Draw(t, "what to read") {
	case 3:
		return step{op: readLeaseStep{}, target: p.lease(t), byAPIKey: byAPIKey(t)}
	case 0:
		return step{op: readSessionStep{}, target: p.session(t), byAPIKey: byAPIKey(t)}
	case 1:
		return step{op: readTransactionStep{}, target: p.transaction(t), byAPIKey: byAPIKey(t)}
	}
	q := Query{
		Limit:  rapid.SampledFrom([]int{1, 5, 200}).Draw(t, "limit"),
		Status: rapid.SampledFrom([]Status{"", Pending, Committed, RolledBack, Expired}).Draw(t, "status"),
	}
	if rapid.Bool().Draw(t, "of one session") {
		q.Session = p.session(t)
	}
	return step{op: q, byAPIKey: byAPIKey(t)}
}

// again repeats a request with its idempotency key, or makes another request with that key.
func (p *player) again(t *rapid.T) step {
	if len(p.keyed) == 0 {
		return p.read(t)
	}
	st := p.keyed[len(p.keyed)-1] // the latest often: what is rare is repeated too
	if rapid.Bool().Draw(t, "of all") {
		st = pick(t, "again", p.keyed)
	}
	if rapid.IntRange(0, 4).Draw(t, "reused") < 4 {
		return st
	}
	other := pick(t, "as another request", p.keyed)
	if other.byAPIKey == st.byAPIKey {
		// The number stands for the fingerprint: two other requests with the same key must not share one.
		st.op, st.target, st.request = other.op, other.target, -(st.request<<16 + other.request)
	}
	return st
}

// maybeKeyed may give a step its own idempotency key. Steps on what does not exist get none, because it is not specified
// whether such a request is bound to its key.
func (p *player) maybeKeyed(t *rapid.T, st step) step {
	if rapid.IntRange(0, 3).Draw(t, "keyed") == 3 && p.findsSomething(st) {
		p.requests++
		st.request = p.requests
		st.key = fmt.Sprint("key-", st.request)
		p.keyed = append(p.keyed, st)
	}
	return st
}

func (p *player) findsSomething(st step) bool {
	if charges, ok := st.op.([]BatchCharge); ok {
		return slices.ContainsFunc(charges, func(c BatchCharge) bool { return p.m.session(c.Session) != nil })
	}
	return st.target == uuid.Nil || p.m.session(st.target) != nil || p.m.transaction(st.target) != nil || p.m.lease(st.target) != nil
}

// session picks a session, mostly an active one.
func (p *player) session(t *rapid.T) uuid.UUID {
	return pickID(t, p, "session", p.m.sessions, func(s Session) (uuid.UUID, bool) { return s.ID, s.Status == Active })
}

// transaction picks a transaction, mostly a pending one.
func (p *player) transaction(t *rapid.T) uuid.UUID {
	return pickID(t, p, "transaction", p.m.transactions, func(tx *Transaction) (uuid.UUID, bool) { return tx.ID, tx.Status == Pending })
}

// pickID picks from what the model has, mostly a usual one, sometimes one that does not exist.
func pickID[T any](t *rapid.T, p *player, what string, objects []T, usually func(T) (id uuid.UUID, usual bool)) uuid.UUID {
	var usual, all []uuid.UUID
	for _, object := range slices.Backward(objects) {
		id, isUsual := usually(object)
		all = append(all, id)
		if isUsual {
			usual = append(usual, id)
		}
	}
	switch among := rapid.IntRange(0, 31).Draw(t, "which "+what); {
	case among == 20 || len(all) == 0:
		return NewID(p.w.token.Agent)
	case among < 20 && len(usual) > 0:
		return pick(t, what, usual)
	default:
		return pick(t, what, all)
	}
}

// pick draws an element by its index, because the elements differ each time that rapid repeats a sequence.
func pick[T any](t *rapid.T, label string, all []T) T {
	return all[rapid.IntRange(0, len(all)-1).Draw(t, label)]
}

func (p *player) amount(t *rapid.T, most int64) money.MicroUSD {
	return money.MicroUSD(rapid.Int64Range(0, most).Draw(t, "amount")) * p.unit
}

// lifetime draws one of these in hours and adds half an hour, as modelTime requires.
func lifetime(t *rapid.T, hours ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(hours).Draw(t, "lifetime"))*time.Hour + time.Hour/2
}

func byAPIKey(t *rapid.T) bool { return rapid.IntRange(0, 7).Draw(t, "by API key") == 7 }
