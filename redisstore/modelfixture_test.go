package redisstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// fixture is an organization with one agent in a real store. A model makes the same steps.
type fixture struct {
	store *Store
	peek  redis.UniversalClient // has permissions that the store's user lacks
	key   APIKey
	token AccessToken

	granting sync.RWMutex // held for reading until what a call granted is known
	lock     sync.Mutex
	leases   []uuid.UUID // that were granted
}

//go:embed testdata/pass_time.lua
var passTimeSource string

var passTime = redis.NewScript(passTimeSource)

// newFixture creates an agent in the store, and returns it with its model.
func newFixture(t rapid.TB, s *Store, peek redis.UniversalClient) (*fixture, *model) {
	t.Helper()
	ctx := context.Background()
	now := time.Now().Round(0)
	w := &fixture{store: s, peek: peek, key: APIKey{Organization: NewRootID(), Hash: [32]byte{1}}}
	mustIn(s.CreateOrganization(ctx, "", w.key, "acme", "", nil))(t)
	agent := mustIn(s.CreateAgent(ctx, w.key, Agent{Name: "scout", Scopes: []string{"read", "write"}}, [32]byte{2}, nil))(t)
	w.token = mustIn(s.ExchangeSecret(ctx, agent.ID, [32]byte{2}, GrantRequest{}))(t).AccessToken
	return w, &model{
		start: now, now: now, agent: agent.ID, scopes: agent.Scopes, outcomes: map[idempotencyKey]*firstOutcome{},
	}
}

// mustIn is must for tests of rapid too.
func mustIn[T any](value T, err error) func(rapid.TB) T {
	return func(t rapid.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// do executes a step in the store, through one of its instances.
func (w *fixture) do(ctx context.Context, s *Store, st step) outcome {
	token := w.tokenOf(st)
	caller := Caller{Token: &token}
	if st.byAPIKey {
		caller = Caller{Key: &w.key}
	}
	var idempotency *Idempotency
	if st.key != "" {
		idempotency = &Idempotency{Key: st.key, Fingerprint: sha256.Sum256(strconv.AppendInt(nil, int64(st.request), 10))}
	}
	o := w.perform(ctx, s, token, caller, st, idempotency)
	o.replayed = idempotency.IsReplay()
	return o
}

func settleHeld(ctx context.Context, s *Store, held HeldTransaction, st step) outcome {
	switch op := st.op.(type) {
	case Commit:
		return resultOf(s.CommitHeld(ctx, held, op.Value))
	case Rollback:
		return resultOf(s.RollbackHeld(ctx, held, op.Reason))
	case NewHold:
		return resultOf(s.RenewHeld(ctx, held, *op.Lifetime))
	}
	panic(fmt.Sprintf("the gateway makes no step %T", st.op))
}

// tokenOf returns the token that a step is made with. Another agent than the fixture's has one of no refresh family.
func (w *fixture) tokenOf(st step) AccessToken {
	if st.agent == uuid.Nil || st.agent == w.token.Agent {
		return w.token
	}
	return AccessToken{Organization: w.token.Organization, Agent: st.agent, Family: st.agent}
}

func (w *fixture) perform(ctx context.Context, s *Store, token AccessToken, caller Caller, st step, idempotency *Idempotency) outcome {
	if st.gateway {
		return settleHeld(ctx, s, HeldTransaction{Organization: token.Organization, Agent: token.Agent, ID: st.target}, st)
	}
	switch op := st.op.(type) {
	case NewSession:
		op.Agent, op.Idempotency = cmp.Or(op.Agent, token.Agent), idempotency
		if op.Parent != uuid.Nil {
			return resultOf(s.CreateChildSession(ctx, caller, op))
		}
		return resultOf(s.CreateSession(ctx, w.key, op))
	case NewSessionRequest:
		op.Idempotency = idempotency
		return resultOf(s.RequestMore(ctx, token, st.target, op))
	case readSessionStep:
		return resultOf(s.Session(ctx, caller, st.target))
	case Charge:
		op.Idempotency = idempotency
		return resultOf(s.Charge(ctx, caller, st.target, op))
	case []BatchCharge:
		return resultOf(s.ChargeBatch(ctx, caller, op, idempotency))
	case NewLimits:
		op.Idempotency = idempotency
		return resultOf(s.ChangeLimits(ctx, w.key, st.target, op))
	case suspendStep:
		return resultOf(s.SuspendSession(ctx, w.key, st.target, op.Reason))
	case resumeStep:
		return resultOf(s.ResumeSession(ctx, w.key, st.target, ""))
	case endStep:
		return resultOf(s.EndSession(ctx, caller, st.target))
	case NewTransaction:
		op.Idempotency = idempotency
		return resultOf(s.Begin(ctx, token, op))
	case Commit:
		op.Idempotency = idempotency
		return resultOf(s.Commit(ctx, token, st.target, op))
	case NewHold:
		op.Idempotency = idempotency
		return resultOf(s.ChangeHold(ctx, token, st.target, op))
	case Rollback:
		op.Idempotency = idempotency
		return resultOf(s.Rollback(ctx, caller, st.target, op))
	case NewLease:
		op.Idempotency = idempotency
		return w.noteLeases(func() (Lease, error) { return s.GrantLease(ctx, caller, st.target, op) })
	case NewSettlement:
		op.Idempotency = idempotency
		return w.noteLeases(func() (Lease, error) { return s.SettleLease(ctx, caller, st.target, op) })
	case readLeaseStep:
		return w.noteLeases(func() (Lease, error) { return s.Lease(ctx, caller, st.target) })
	case readTransactionStep:
		return resultOf(s.Transaction(ctx, caller, st.target))
	case Query:
		page, err := s.Transactions(ctx, caller, op)
		return resultOf(transactionPage{page.Items, page.Next != uuid.Nil}, err)
	case time.Duration:
		return outcome{err: w.pass(ctx, op)}
	}
	panic(fmt.Sprintf("no step op for %T", st.op))
}

// pass simulates the passing of time for the agent without waiting: one script moves all stored times into the past,
// atomically for concurrent clients. It moves them by hours, while the test takes seconds, so the speed of the test does
// not affect what has expired. Keys that expire in Redis itself (TTL) stay.
func (w *fixture) pass(ctx context.Context, d time.Duration) error {
	agent, keys := w.token.Agent, w.store.keys
	beginning := func(key string) string { return strings.TrimSuffix(key, agent.String()) }
	args := []any{d.Milliseconds(), beginning(keys.Session(agent, agent)), beginning(keys.Holds(agent, agent)),
		beginning(keys.Transaction(agent, agent)), beginning(keys.Leases(agent, agent)), beginning(keys.Lease(agent, agent))}
	// The script finds leases that are open or known. One may be granted, expire and be closed before its client gets the answer.
	w.granting.Lock()
	defer w.granting.Unlock()
	slices.SortFunc(w.leases, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	w.leases = slices.Compact(w.leases)
	for _, id := range w.leases {
		args = append(args, keys.Lease(agent, id))
	}
	return passTime.Run(ctx, w.peek, []string{keys.AgentSessions(agent), keys.AgentTransactions(agent)}, args...).Err()
}

// wantStored compares everything stored for the agent's sessions and transactions with the model: hashes, holds and
// indexes.
func (w *fixture) wantStored(t rapid.TB, m *model) {
	t.Helper()
	w.foldAll(t, m)
	ctx, agent, keys := context.Background(), w.token.Agent, w.store.keys
	p := w.peek.Pipeline()
	var sessions, transactions []*redis.MapStringStringCmd
	var holds, leases []*redis.ZSliceCmd
	indexes := map[string]*redis.StringSliceCmd{}
	for _, key := range []string{keys.AgentSessions(agent), keys.AgentTransactions(agent),
		keys.OrganizationOpen(w.key.Organization), keys.OrganizationClosed(w.key.Organization),
		keys.OrganizationTransactions(w.key.Organization)} {
		indexes[key] = p.ZRange(ctx, key, 0, -1)
	}
	for _, s := range m.sessions {
		sessions = append(sessions, p.HGetAll(ctx, keys.Session(agent, s.ID)))
		holds = append(holds, p.ZRangeWithScores(ctx, keys.Holds(agent, s.ID), 0, -1))
		leases = append(leases, p.ZRangeWithScores(ctx, keys.Leases(agent, s.ID), 0, -1))
		indexes[keys.SessionTransactions(agent, s.ID)] = p.ZRange(ctx, keys.SessionTransactions(agent, s.ID), 0, -1)
	}
	for _, tx := range m.transactions {
		transactions = append(transactions, p.HGetAll(ctx, keys.Transaction(agent, tx.ID)))
	}
	mustIn(p.Exec(ctx))(t)
	var sum kernel.UsedAmounts
	for i, s := range m.sessions {
		wantHolds(t, m, s, holds[i].Val(), leases[i].Val(), sessions[i].Val())
		wantLeases(t, m, s, leases[i].Val(), sessions[i].Val())
		stored := sessions[i].Val()
		if sinceDrawn, err := strconv.ParseInt(stored["c"], 10, 64); err == nil {
			stored["c"] = strconv.FormatInt(kernel.MadeAt(s.ID).UnixMilli()+sinceDrawn, 10)
		}
		wantUsage(t, m, s, stored)
		wantThresholds(t, m, s, stored)
		leased, _ := m.leased(s.ID)
		held := mustIn(kernel.NumbersOf([]string{cmp.Or(stored["lv"], "0")}, 1))(t)[0]
		sum = sum.Plus(kernel.UsedAmounts{Actions: s.ActionCount, Value: s.ValueUsed + leased - money.MicroUSD(held)})
		wantHash(t, m, "session", stored, m.sessionHash(s, holds[i].Val()), "x", "e", "c", "su")
	}
	w.wantDays(t, sum)
	for i, tx := range m.transactions {
		stored := transactions[i].Val()
		wantHash(t, m, "transaction", stored, m.transactionHash(*tx, stored["st"] == string(Pending)), "x", "b", "cm", "rb")
	}
	wanted := m.indexes(w, indexes[keys.OrganizationClosed(w.key.Organization)].Val())
	for key, index := range indexes {
		if !slices.Equal(index.Val(), wanted[key]) {
			t.Errorf("%s holds %q, want %q", key, index.Val(), wanted[key])
		}
	}
}

// wantHash compares a stored hash with the expected one, with its times converted to the model's time. A missing number
// equals 0. Other checks cover hx, lv, lh and w, and what is used by action type and day.
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
			return value == "0" || value == "" || slices.Contains([]string{"hx", "w", "lv", "lh"}, field)
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

var oneLine = strings.NewReplacer("\\", `\\`, "\n", `\n`)

// sessionHash returns the expected hash of a session. It includes holds that are due but not released yet.
func (m *model) sessionHash(s Session, holds []redis.Z) map[string]string {
	held := int64(0)
	leased, _ := m.leased(s.ID)
	for _, hold := range holds {
		held += holdValue(hold)
	}
	hash := map[string]string{
		"a": string(s.Agent[:]), "n": fmt.Sprint(s.ActionCount), "ma": fmt.Sprint(s.MaxActions), "x": stamp(s.Expires),
		"v": fmt.Sprint(int64(s.ValueUsed + leased)), "ml": fmt.Sprint(int64(s.MaxLease / time.Second)), "mv": fmt.Sprint(int64(s.MaxValue - s.Withheld)), "h": fmt.Sprint(held),
		"gb": fmt.Sprint(int64(s.ValueCommitted - s.ValueUsed)),
		"c":  stamp(s.Created), "e": stamp(s.Ended), "md": s.Metadata,
		"ov": fmt.Sprint(int64(s.ValueOverage)), "q": fmt.Sprint(m.begun(s.ID)),
	}
	if s.MaxCommitted != nil {
		hash["gb"] += fmt.Sprintf(" %d %d", int64(*s.MaxCommitted), int64(s.MaxValue))
	}
	if !s.Suspended.IsZero() {
		hash["r"], hash["su"], hash["sr"] = "s", stamp(s.Suspended), oneLine.Replace(s.SuspensionReason)
	}
	if s.MaxCommitted == nil && (!s.Suspended.IsZero() || s.watched()) {
		hash["gb"] += fmt.Sprintf(" %d %d", int64(noMaxCommitted), int64(s.MaxValue))
	}
	if !slices.Equal(s.Scopes, m.scopes) {
		hash["sc"] = strings.Join(s.Scopes, " ")
		if len(s.Scopes) == 0 {
			hash["sc"] = " "
		}
	}
	return hash
}

// transactionHash returns the expected hash of a transaction. After its expiry or the end of its session it may still be
// stored as pending, because readers derive its status.
func (m *model) transactionHash(t Transaction, pending bool) map[string]string {
	hash := map[string]string{
		"a": string(t.Agent[:]), "q": fmt.Sprint(t.Sequence), "st": string(t.Status), "ty": t.ActionType,
		"hv": fmt.Sprint(int64(t.Hold)), "v": fmt.Sprint(int64(t.Value)), "ov": fmt.Sprint(int64(t.Overage)),
		"b": stamp(t.Created), "x": stamp(t.Expires), "cm": stamp(t.Committed), "rb": stamp(t.RolledBack),
		"re": t.Reason, "md": t.Metadata, "ps": t.PreState, "po": t.PostState,
	}
	if t.Session != uuid.Nil {
		hash["s"], hash["ut"] = string(t.Session[:]), "1"
		if !t.Committed.IsZero() {
			hash["ut"] = "1c" // its value counts under its type
		}
	}
	if !t.Reversible {
		hash["ir"] = "1"
	}
	if t.SpentOnExpiry {
		hash["oe"] = "commit"
	}
	if t.HeldByGateway {
		hash["hb"] = "1"
	}
	if t.SettledByExpiry {
		hash["st"], hash["v"], hash["cm"], hash["ut"] = string(Pending), "", "", "1"
	}
	s := m.session(t.Session)
	endedByItsSession := t.Status == RolledBack && s != nil && t.RolledBack.Equal(s.Ended)
	if pending && (t.Status == Expired || endedByItsSession) {
		hash["st"], hash["rb"] = string(Pending), ""
	}
	return hash
}

// wantHolds checks that a session's open holds are those of its pending transactions, and that it stores when the next is
// due. Holds that are due may still be stored.
func wantHolds(t rapid.TB, m *model, s Session, holds, leases []redis.Z, stored map[string]string) {
	t.Helper()
	due, err := strconv.ParseFloat(stored["hx"], 64)
	known, any := err == nil, len(holds)+len(leases) > 0
	if known != any && (any || !m.hadLeases(s.ID)) { // after the last lease hx stays until it is due
		t.Errorf("the next hold or lease is due at %q, of %v and %v", stored["hx"], holds, leases)
	}
	for _, first := range slices.Concat(holds, leases) {
		if due > first.Score {
			t.Errorf("the next hold or lease is due at %q, of %v and %v", stored["hx"], holds, leases)
		}
	}
	open := map[string]string{}
	for _, tx := range m.transactions {
		if tx.Session == s.ID && tx.Status == Pending && !tx.SpentOnExpiry {
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

// indexes returns the expected indexes of the agent, its organization and its sessions, given the closed sessions. Which
// ended sessions are in the closed index depends on earlier reads, but each session is in one of both, and active ones are
// in the open index.
func (m *model) indexes(w *fixture, closed []string) map[string][]string {
	agent, organization, keys := w.token.Agent, w.key.Organization, w.store.keys
	wanted := map[string][]string{}
	add := func(id uuid.UUID, indexes ...string) {
		for _, key := range indexes {
			wanted[key] = append(wanted[key], string(membersIn(w.store, key).Of(id)))
		}
	}
	for _, s := range m.sessions {
		index := keys.OrganizationOpen(organization)
		if s.Status != Active && slices.Contains(closed, string(s.ID[:])) {
			index = keys.OrganizationClosed(organization)
		}
		add(s.ID, keys.AgentSessions(agent), index)
	}
	for _, t := range m.transactions {
		add(t.ID, keys.AgentTransactions(agent), keys.OrganizationTransactions(organization))
		if t.Session != uuid.Nil {
			add(t.ID, keys.SessionTransactions(agent, t.Session))
		}
	}
	return wanted
}
