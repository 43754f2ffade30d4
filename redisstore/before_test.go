package redisstore

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
)

//go:embed testdata/before
var beforeFiles embed.FS

// The scripts of the version before, as it sent them.
var (
	beforeBatch    = beforeScript("charge_batch", writes)
	beforeBegin    = beforeScript("begin_session_transaction", writes)
	beforeCharge   = beforeScript("charge_session", writes)
	beforeCheck    = beforeScript("check_token", reads)
	beforeCommit   = beforeScript("commit_transaction", writes)
	beforeCreate   = beforeScript("create_session", writes)
	beforeEnd      = beforeScript("end_session", writes)
	beforeExchange = beforeScript("exchange_secret", writes)
	beforeGet      = beforeScript("get_session", reads)
	beforeKeyed    = beforeScript("charge_session_keyed", writes)
	beforeRefresh  = beforeScript("rotate_refresh", writes)
	beforeRelease  = beforeScript("release_holds", writes)
	beforeRollback = beforeScript("rollback_transaction", writes)
)

func beforeScript(name string, access redisclient.Access) *script {
	text, err := beforeFiles.ReadFile("testdata/before/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return redisclient.NewScript(strings.TrimSuffix(name, "_keyed"), string(text), access)
}

// before is the version before: its scripts, with the keys and arguments that it gave them, and its reading of their replies.
type before struct{ *Store }

// run runs a script as often as holds are due.
func (b before) run(ctx context.Context, t AccessToken, session uuid.UUID, do func() (*reply, error)) (*reply, error) {
	for {
		r, err := do()
		if err != errHoldsDue {
			return r, err
		}
		keys := []string{b.keys.session(t.Agent, session), b.keys.holds(t.Agent, session), b.keys.events(t.Agent), b.keys.agent(t.Agent)}
		if _, err := b.client.Run(ctx, t.flow(), beforeRelease, keys, beforeAudit); err != nil {
			return nil, err
		}
	}
}

const beforeAudit = "10000 agent before"

func (b before) script(ctx context.Context, t AccessToken, session uuid.UUID, sc *script, keys []string, args ...any) (*reply, error) {
	return b.run(ctx, t, session, func() (*reply, error) {
		return b.client.Run(ctx, t.flow(), sc, keys, append([]any{t.Organization, t.Agent, familyField(t.Family)}, args...)...)
	})
}

func (b before) ofSession(t AccessToken, session uuid.UUID) []string {
	return []string{b.keys.agent(t.Agent), b.keys.session(t.Agent, session), b.keys.events(t.Agent)}
}

func (b before) create(ctx context.Context, w tenant, n NewSession) (uuid.UUID, error) {
	id := NewID(w.agent.ID)
	keys := []string{b.keys.agent(w.agent.ID), b.keys.session(w.agent.ID, id), b.keys.agentSessions(w.agent.ID), b.keys.events(w.agent.ID)}
	r, err := b.client.Run(ctx, flow{}, beforeCreate, keys, w.key.Organization, w.agent.ID, id, n.MaxActions, int64(n.MaxValue),
		n.Lifetime.Milliseconds(), b.config.Retention.Milliseconds(), "", "", orEmpty((*int64)(n.MaxCommitted)), "10000 key before")
	if err != nil {
		return uuid.Nil, err
	}
	return r.ID(0), r.Err
}

func (b before) charge(ctx context.Context, t AccessToken, session uuid.UUID, c Charge) (Usage, error) {
	r, err := b.run(ctx, t, session, func() (*reply, error) {
		args := []any{t.Organization, t.Agent, familyField(t.Family), c.Count, int64(c.Value), c.Scope, beforeAudit}
		if c.Idempotency == nil {
			return b.client.Run(ctx, t.flow(), beforeCharge, b.ofSession(t, session), args...)
		}
		keys := append([]string{b.keys.outcome(t.Agent, t.actor().keyDigest(c.Idempotency, ""))}, b.ofSession(t, session)...)
		first := []any{c.Idempotency.Fingerprint, "before", outcomeLifetime.Milliseconds(), familyField(t.Family)}
		r, err := b.client.Run(ctx, t.flow(), beforeKeyed, keys, append(first, args...)...)
		if err != nil {
			return nil, err
		}
		return c.Idempotency.read(r)
	})
	if err != nil {
		return Usage{}, err
	}
	if len(r.Values) != usageBudget && len(r.Values) != usageBudget+1 {
		return Usage{}, fmt.Errorf("the version before cannot read %q", r.Values)
	}
	usage := usageAt(r, 0)
	return usage, r.Err
}

func (b before) batch(ctx context.Context, t AccessToken, session uuid.UUID, charges []Charge) error {
	var lines []byte
	for _, c := range charges {
		lines = fmt.Appendf(lines, "%d %d %s\n", c.Count, int64(c.Value), c.Scope)
	}
	r, err := b.script(ctx, t, session, beforeBatch, b.ofSession(t, session), lines, beforeAudit)
	if err != nil {
		return err
	}
	for i := range charges {
		if _, err := readReply(r.List(0).List(i).Values); err != nil {
			return err
		}
	}
	return nil
}

func (b before) begin(ctx context.Context, t AccessToken, n NewTransaction) (uuid.UUID, error) {
	id := NewID(t.Agent)
	keys := []string{b.keys.agent(t.Agent), b.keys.session(t.Agent, n.Session), b.keys.holds(t.Agent, n.Session),
		b.keys.transaction(t.Agent, id), b.keys.sessionTransactions(t.Agent, n.Session), b.keys.agentTransactions(t.Agent),
		b.keys.agentSessions(t.Agent), b.keys.events(t.Agent)}
	args := append([]any{n.Session, id, int64(n.Value), n.Lifetime.Milliseconds(), b.config.Retention.Milliseconds(), beforeAudit},
		n.storedFields()...)
	_, err := b.script(ctx, t, n.Session, beforeBegin, keys, args...)
	return id, err
}

func (b before) ofTransaction(t AccessToken, session, transaction uuid.UUID) []string {
	return []string{b.keys.agent(t.Agent), b.keys.session(t.Agent, session), b.keys.holds(t.Agent, session),
		b.keys.transaction(t.Agent, transaction), b.keys.sessionTransactions(t.Agent, session), b.keys.agentTransactions(t.Agent),
		b.keys.events(t.Agent)}
}

func (b before) commit(ctx context.Context, t AccessToken, session, transaction uuid.UUID, value money.MicroUSD) error {
	_, err := b.script(ctx, t, session, beforeCommit, b.ofTransaction(t, session, transaction), transaction, int64(value), "",
		outcomeLifetime.Milliseconds(), beforeAudit)
	return err
}

func (b before) rollback(ctx context.Context, t AccessToken, session, transaction uuid.UUID) error {
	_, err := b.script(ctx, t, session, beforeRollback, b.ofTransaction(t, session, transaction), transaction, "",
		outcomeLifetime.Milliseconds(), beforeAudit, "")
	return err
}

func (b before) read(ctx context.Context, t AccessToken, session uuid.UUID) (Usage, error) {
	r, err := b.script(ctx, t, session, beforeGet, b.ofSession(t, session), beforeAudit)
	if err != nil {
		return Usage{}, err
	}
	read, err := sessionFrom(r, session)
	return read.Usage, err
}

func (b before) end(ctx context.Context, t AccessToken, session uuid.UUID) error {
	keys := []string{b.keys.agent(t.Agent), b.keys.session(t.Agent, session), b.keys.holds(t.Agent, session), b.keys.events(t.Agent)}
	_, err := b.script(ctx, t, session, beforeEnd, keys, b.config.Retention.Milliseconds(), beforeAudit)
	return err
}

func (b before) exchange(ctx context.Context, w tenant) (AccessToken, error) {
	family := NewID(w.agent.ID)
	r, err := b.client.Run(ctx, flow{}, beforeExchange, b.familyKeys(w.agent.ID, family), w.secret, b.config.RefreshLifetime.Milliseconds(),
		b.config.FamilyLifetime.Milliseconds(), family, "", beforeAudit)
	if err != nil {
		return AccessToken{}, err
	}
	return AccessToken{Organization: r.ID(0), Agent: w.agent.ID, Family: family}, r.Err
}

func (b before) refresh(ctx context.Context, t AccessToken, generation uint32) (uint32, error) {
	r, err := b.client.Run(ctx, flow{}, beforeRefresh, b.familyKeys(t.Agent, t.Family), generation, b.config.RefreshLifetime.Milliseconds(),
		b.config.RefreshGrace.Milliseconds(), familyField(t.Family), b.revocationLifetime(), b.config.FamilyLifetime.Milliseconds(), "", beforeAudit)
	if err != nil {
		return 0, err
	}
	return generationAt(r, 0), r.Err
}

func (b before) check(ctx context.Context, t AccessToken) error {
	_, err := b.client.Run(ctx, t.flow(), beforeCheck, []string{b.keys.agent(t.Agent)}, t.Organization, familyField(t.Family))
	return err
}

// The version before is only that as long as nobody changes its scripts.
func TestScriptsOfTheVersionBeforeAreAsItSentThem(t *testing.T) {
	t.Parallel()
	sums := string(must(beforeFiles.ReadFile("testdata/before/SHA1SUMS"))(t))
	listed := 0
	for line := range strings.Lines(sums) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sum := sha1.Sum(must(beforeFiles.ReadFile("testdata/before/" + name))(t))
		if hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not what the version before sent", name)
		}
		listed++
	}
	if files := must(beforeFiles.ReadDir("testdata/before"))(t); listed != len(files)-1 {
		t.Errorf("%d sums of %d files", listed, len(files)-1)
	}
}
