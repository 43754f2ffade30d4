package redisstore

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// world is an organization with one agent in a real store, for the steps that a model does too.
type world struct {
	store *Store
	peek  redis.UniversalClient // may do what the store's user may not
	key   APIKey
	token AccessToken
}

//go:embed testdata/pass_time.lua
var passTimeSource string

var passTime = redis.NewScript(passTimeSource)

// newWorld returns a new agent in the store, and a model of it.
func newWorld(t rapid.TB, s *Store, peek redis.UniversalClient) (*world, *model) {
	t.Helper()
	ctx := context.Background()
	now := time.Now().Round(0)
	w := &world{store: s, peek: peek, key: APIKey{Organization: NewRootID(), Hash: [32]byte{1}}}
	if _, err := s.CreateOrganization(ctx, "", w.key, "acme", "", nil); err != nil {
		t.Fatal(err)
	}
	agent, err := s.CreateAgent(ctx, w.key, Agent{Name: "scout", Scopes: []string{"read", "write"}}, [32]byte{2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := s.ExchangeSecret(ctx, agent.ID, [32]byte{2})
	if err != nil {
		t.Fatal(err)
	}
	w.token = grant.AccessToken
	return w, &model{
		start: now, now: now, agent: agent.ID, scopes: agent.Scopes, outcomes: map[idempotencyKey]*firstOutcome{},
	}
}

// do does a step in the store, through one of its instances.
func (w *world) do(ctx context.Context, s *Store, st step) outcome {
	caller := Caller{Token: &w.token}
	if st.byAPIKey {
		caller = Caller{Key: &w.key}
	}
	var idem *Idempotency
	if st.key != "" {
		idem = &Idempotency{Key: st.key, Fingerprint: sha256.Sum256(strconv.AppendInt(nil, int64(st.request), 10))}
	}
	o := w.perform(ctx, s, caller, st, idem)
	o.replayed = idem != nil && idem.Replayed
	return o
}

func (w *world) perform(ctx context.Context, s *Store, caller Caller, st step, idem *Idempotency) outcome {
	switch asks := st.asks.(type) {
	case NewSession:
		asks.Agent, asks.Idempotency = w.token.Agent, idem
		return came(s.CreateSession(ctx, w.key, asks))
	case readSessionStep:
		return came(s.Session(ctx, caller, st.target))
	case Charge:
		asks.Idempotency = idem
		return came(s.Charge(ctx, caller, st.target, asks))
	case []BatchCharge:
		return came(s.ChargeBatch(ctx, caller, asks, idem))
	case NewLimits:
		asks.Idempotency = idem
		return came(s.ChangeLimits(ctx, w.key, st.target, asks))
	case endStep:
		return came(s.EndSession(ctx, caller, st.target))
	case NewTransaction:
		asks.Idempotency = idem
		return came(s.Begin(ctx, w.token, asks))
	case Commit:
		asks.Idempotency = idem
		return came(s.Commit(ctx, w.token, st.target, asks))
	case NewHold:
		asks.Idempotency = idem
		return came(s.ChangeHold(ctx, w.token, st.target, asks))
	case Rollback:
		asks.Idempotency = idem
		return came(s.Rollback(ctx, caller, st.target, asks))
	case readTransactionStep:
		return came(s.Transaction(ctx, caller, st.target))
	case Query:
		page, err := s.Transactions(ctx, caller, asks)
		return came(transactionPage{page.Items, page.Next != uuid.Nil}, err)
	case time.Duration:
		return outcome{err: w.pass(ctx, asks)}
	}
	panic(fmt.Sprintf("no step asks for %T", st.asks))
}

// pass lets time go by for the agent, at once: nobody waits, all that is stored moves into the past instead, in one script
// and so at one moment for whoever is at work. It moves by hours, where the test takes seconds, so what has expired
// does not depend on how fast the test runs. What Redis itself forgets when its time is up (TTL) stays.
func (w *world) pass(ctx context.Context, d time.Duration) error {
	agent, keys := w.token.Agent, w.store.keys
	beginning := func(key string) string { return strings.TrimSuffix(key, agent.String()) }
	return passTime.Run(ctx, w.peek, []string{keys.agentSessions(agent), keys.agentTransactions(agent)}, d.Milliseconds(),
		beginning(keys.session(agent, agent)), beginning(keys.holds(agent, agent)),
		beginning(keys.transaction(agent, agent))).Err()
}

// wantStored compares all that Redis holds of the agent's sessions and transactions with what the model says: hashes,
// holds and indexes.
func (w *world) wantStored(t rapid.TB, m *model) {
	t.Helper()
	ctx, agent, keys := context.Background(), w.token.Agent, w.store.keys
	p := w.peek.Pipeline()
	var sessions, transactions []*redis.MapStringStringCmd
	var holds []*redis.ZSliceCmd
	indexes := map[string]*redis.StringSliceCmd{}
	for _, key := range []string{keys.agentSessions(agent), keys.agentTransactions(agent),
		keys.organizationOpen(w.key.Organization), keys.organizationClosed(w.key.Organization),
		keys.organizationTransactions(w.key.Organization)} {
		indexes[key] = p.ZRange(ctx, key, 0, -1)
	}
	for _, s := range m.sessions {
		sessions = append(sessions, p.HGetAll(ctx, keys.session(agent, s.ID)))
		holds = append(holds, p.ZRangeWithScores(ctx, keys.holds(agent, s.ID), 0, -1))
		indexes[keys.sessionTransactions(agent, s.ID)] = p.ZRange(ctx, keys.sessionTransactions(agent, s.ID), 0, -1)
	}
	for _, tx := range m.transactions {
		transactions = append(transactions, p.HGetAll(ctx, keys.transaction(agent, tx.ID)))
	}
	if _, err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for i, s := range m.sessions {
		wantHolds(t, m, s, holds[i].Val(), sessions[i].Val())
		stored := sessions[i].Val()
		if sinceDrawn, err := strconv.ParseInt(stored["c"], 10, 64); err == nil {
			stored["c"] = strconv.FormatInt(madeAt(s.ID).UnixMilli()+sinceDrawn, 10)
		}
		wantHash(t, m, "session", stored, m.sessionHash(s, holds[i].Val()), "x", "e", "c")
	}
	for i, tx := range m.transactions {
		stored := transactions[i].Val()
		wantHash(t, m, "transaction", stored, m.transactionHash(*tx, stored["st"] == string(Pending)), "x", "b", "cm", "rb")
	}
	wanted := m.indexes(w, indexes[keys.organizationClosed(w.key.Organization)].Val())
	for key, index := range indexes {
		if !slices.Equal(index.Val(), wanted[key]) {
			t.Errorf("%s holds %q, want %q", key, index.Val(), wanted[key])
		}
	}
}

// wantHash compares a stored hash with what it should hold, its times in the model's time. A number that is 0 may as well
// not be there; hx and w have rules of their own.
func wantHash(t rapid.TB, m *model, what string, stored, want map[string]string, times ...string) {
	t.Helper()
	stored = maps.Clone(stored)
	for _, field := range times {
		if ms, err := strconv.ParseInt(stored[field], 10, 64); err == nil {
			stored[field] = stamp(modelTime(time.UnixMilli(ms), m.start, m.now))
		}
	}
	for _, h := range []map[string]string{stored, want} {
		maps.DeleteFunc(h, func(field, value string) bool {
			return value == "0" || value == "" || field == "hx" || field == "w"
		})
	}
	if !maps.Equal(stored, want) {
		t.Errorf("the %s is stored as %q, want %q", what, stored, want)
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// sessionHash is what should be stored of a session. Holds that are due but that nobody has released yet are in it.
func (m *model) sessionHash(s Session, holds []redis.Z) map[string]string {
	held := int64(0)
	for _, hold := range holds {
		held += holdValue(hold)
	}
	hash := map[string]string{
		"a": string(s.Agent[:]), "n": fmt.Sprint(s.ActionCount), "ma": fmt.Sprint(s.MaxActions), "x": stamp(s.Expires),
		"v": fmt.Sprint(int64(s.ValueUsed)), "mv": fmt.Sprint(int64(s.MaxValue - s.Withheld)), "h": fmt.Sprint(held),
		"gb": fmt.Sprint(int64(s.ValueCommitted - s.ValueUsed)),
		"c":  stamp(s.Created), "e": stamp(s.Ended), "md": s.Metadata,
		"ov": fmt.Sprint(int64(s.ValueOverage)), "q": fmt.Sprint(m.begun(s.ID)),
	}
	if s.MaxCommitted != nil {
		hash["gb"] += fmt.Sprintf(" %d %d", int64(*s.MaxCommitted), int64(s.MaxValue))
	}
	if !slices.Equal(s.Scopes, m.scopes) {
		hash["sc"] = strings.Join(s.Scopes, " ")
		if len(s.Scopes) == 0 {
			hash["sc"] = " "
		}
	}
	return hash
}

// transactionHash is what should be stored of a transaction. One that time or the end of its session has settled may be
// pending still: who reads it derives the rest.
func (m *model) transactionHash(t Transaction, pending bool) map[string]string {
	hash := map[string]string{
		"a": string(t.Agent[:]), "q": fmt.Sprint(t.Sequence), "st": string(t.Status), "ty": t.ActionType,
		"hv": fmt.Sprint(int64(t.Hold)), "v": fmt.Sprint(int64(t.Value)), "ov": fmt.Sprint(int64(t.Overage)),
		"b": stamp(t.Created), "x": stamp(t.Expires), "cm": stamp(t.Committed), "rb": stamp(t.RolledBack),
		"re": t.Reason, "md": t.Metadata, "ps": t.PreState, "po": t.PostState,
	}
	if t.Session != uuid.Nil {
		hash["s"] = string(t.Session[:])
	}
	if !t.Reversible {
		hash["ir"] = "1"
	}
	s := m.session(t.Session)
	endedByItsSession := t.Status == RolledBack && s != nil && t.RolledBack.Equal(s.Ended)
	if pending && (t.Status == Expired || endedByItsSession) {
		hash["st"], hash["rb"] = string(Pending), ""
	}
	return hash
}

// wantHolds checks that a session's open holds are those of its pending transactions, and that it knows when the next is
// due. Holds that are due may still be there.
func wantHolds(t rapid.TB, m *model, s Session, holds []redis.Z, stored map[string]string) {
	t.Helper()
	due, err := strconv.ParseFloat(stored["hx"], 64)
	if known := err == nil; known != (len(holds) > 0) || known && due > holds[0].Score {
		t.Errorf("the next hold is due at %q, of %v", stored["hx"], holds)
	}
	open := map[string]string{}
	for _, tx := range m.transactions {
		if tx.Session == s.ID && tx.Status == Pending {
			open[string(tx.ID[:])+fmt.Sprint(int64(tx.Hold))] = stamp(tx.Expires)
		}
	}
	found := map[string]string{}
	for _, hold := range holds {
		member, _ := hold.Member.(string)
		expires := modelTime(time.UnixMilli(int64(hold.Score)), m.start, m.now)
		id, err := uuid.FromBytes([]byte(member[:16]))
		if tx := m.transaction(id); err == nil && tx != nil && tx.Status == Expired && !expires.After(m.now) {
			continue
		}
		found[member] = stamp(expires)
	}
	if !maps.Equal(found, open) {
		t.Errorf("held are %q, want %q", found, open)
	}
}

func holdValue(hold redis.Z) int64 {
	member, _ := hold.Member.(string)
	value, err := strconv.ParseInt(member[16:], 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

// indexes returns what the agent's, its organization's and its sessions' indexes should hold, when those are closed. Which
// sessions are depends on who has looked; but an active one never is, and each is open or closed.
func (m *model) indexes(w *world, closed []string) map[string][]string {
	agent, organization, keys := w.token.Agent, w.key.Organization, w.store.keys
	wanted := map[string][]string{}
	add := func(id uuid.UUID, indexes ...string) {
		for _, key := range indexes {
			wanted[key] = append(wanted[key], string(membersIn(w.store, key).of(id)))
		}
	}
	for _, s := range m.sessions {
		index := keys.organizationOpen(organization)
		if s.Status != Active && slices.Contains(closed, string(s.ID[:])) {
			index = keys.organizationClosed(organization)
		}
		add(s.ID, keys.agentSessions(agent), index)
	}
	for _, t := range m.transactions {
		add(t.ID, keys.agentTransactions(agent), keys.organizationTransactions(organization))
		if t.Session != uuid.Nil {
			add(t.ID, keys.sessionTransactions(agent, t.Session))
		}
	}
	return wanted
}
