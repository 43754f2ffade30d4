package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/webhooks"
	"remit/test/redistest"
)

// fill creates one of everything that the service stores, for the tenant.
func (w tenant) fill(t *testing.T, s *Store, n int, state string) {
	t.Helper()
	ctx := t.Context()
	for i := range n {
		agent := must(s.CreateAgent(ctx, w.key, Agent{Name: "scout", Scopes: []string{"read"}}, w.secret, nil))(t)
		one := tenant{key: w.key, agent: agent, secret: w.secret}
		session := one.newSession(t, s, time.Hour)
		grant := one.exchange(t, s)
		idem := &Idempotency{Key: fmt.Sprint("charge", i)}
		must(s.Charge(ctx, one.byKey(), session.ID, Charge{Count: 1, Value: money.USD, Idempotency: idem}))(t)
		idem = &Idempotency{Key: fmt.Sprint("begin", i)}
		begun := NewTransaction{Session: session.ID, ActionType: "x", PreState: state, Value: 1, Lifetime: time.Hour, Idempotency: idem}
		must(s.Begin(ctx, grant.AccessToken, begun))(t)
		must(s.Begin(ctx, grant.AccessToken, NewTransaction{ActionType: "x", PreState: "{}", Lifetime: time.Hour}))(t)
		n := leasing
		n.Agent, n.Lifetime = agent.ID, time.Hour
		leased := one
		leased.session = must(s.CreateSession(ctx, w.key, n))(t)
		leased.lease(t, s, 1, 1)
		leased.settle(t, s, leased.lease(t, s, 1, 1).ID, 1, 1)
		leased.ask(t, s, grant.AccessToken, 1, 1)
		wantError(t, "an assertion", s.CheckAssertion(ctx, one.assertion(1)), nil)
		bound := must(s.ExchangeSecret(ctx, agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t)
		must(s.VerifyProof(ctx, bound.AccessToken, *newProof(2)))(t)
		if i < MostTrustedIssuers {
			rules := []IssuerRule{{agent.ID, map[string]string{"sub": "x"}}}
			settings := TrustedIssuerSettings{Issuer: fmt.Sprint("https://idp.example/", i), JWKSURI: "https://a.example", Rules: rules}
			must(s.CreateTrustedIssuer(ctx, w.key, settings, nil))(t)
		}
		if i < webhooks.MostWebhooks {
			hook := must(s.CreateWebhook(ctx, w.key, NewID(w.key.Organization), webhooks.Settings{URL: "https://example.com/"}, nil))(t)
			must(s.SendTest(ctx, w.key, hook.ID, nil, time.Now()))(t)
		}
		ended := one.newSession(t, s, time.Hour)
		must(s.EndSession(ctx, one.byKey(), ended.ID))(t)
		if i%5 == 0 {
			must(s.RevokeAgent(ctx, w.key, agent.ID))(t)
		}
	}
	mustDo(t, s.ForgetWebhooks(ctx, w.key.Organization, time.Time{})) // as the deliverers do, whose queue is for all organizations
}

// wantNoMore checks that the store has no other keys than these.
func wantNoMore(t *testing.T, s *Store, before ...string) {
	t.Helper()
	for _, key := range keysKept(t, s) {
		if !slices.Contains(before, key) {
			t.Errorf("%s is left", key)
		}
	}
}

// remove deletes an organization without waiting for requests in progress: there are none.
func remove(t *testing.T, s *Store, organization uuid.UUID) error {
	t.Helper()
	return asOperator(t, s).deleteOrganization(t.Context(), organization, 0, func(DeletionProgress) {})
}

func TestDeletingAnOrganizationLeavesNothingOfItAndAllOfOthers(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		other := newTenant(t, s, NewSession{MaxActions: 9})
		other.fill(t, s, 4, `{"a":1}`)
		before := keysKept(t, s)
		w := newTenant(t, s, roomy)
		w.fill(t, s, 12, `{"b":1}`)
		mustDo(t, remove(t, s, w.key.Organization))
		wantNoMore(t, s, before...)
		if after := keysKept(t, s); len(after) < len(before) {
			t.Errorf("of %q of another organization are left %q", before, after)
		}
		wantError(t, "its key", errOf(s.Organization(t.Context(), w.key)), ErrInvalidAPIKey)
		wantError(t, "deleted again", remove(t, s, w.key.Organization), ErrUnknownOrganization)
	})
}

// Their records ended long ago; nothing else names them.
func TestDeletingAnOrganizationRemovesTheUsageOfAgentsThatWereDeleted(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.chargeTyped(t, s, typed("a", 1, 0))
		w.wantReport(t, s, everyDay(), total(1, 0))
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		w.endRecord(t, s)
		w.wantReport(t, s, everyDay(), total(1, 0))
		mustDo(t, remove(t, s, w.key.Organization))
		wantNoMore(t, s)
	})
}

func TestDeletingAnOrganizationRemovesNothingOfANeighbourInItsCells(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		mine := w.exchange(t, s)
		neighbour := inCellOf(t, s, w.agent.ID)
		theirs := must(s.ExchangeSecret(t.Context(), neighbour.agent.ID, [32]byte{5}, GrantRequest{}))(t)
		idem := &Idempotency{Key: "their own"}
		must(s.Charge(t.Context(), byToken(theirs), neighbour.session.ID, Charge{Count: 1, Idempotency: idem}))(t)
		mustDo(t, remove(t, s, w.key.Organization))
		neighbour.refresh(t, s, theirs.Family, 1, 2)
		again := &Idempotency{Key: "their own"}
		must(s.Charge(t.Context(), byToken(theirs), neighbour.session.ID, Charge{Count: 1, Idempotency: again}))(t)
		wantEqual(t, "the outcome of the neighbour's idempotency key is kept", again.Outcome.Replayed, true)
		w.wantNoRefresh(t, s, mine.Family, 1)
	})
}

// inCellOf returns a tenant whose agent shares the cell of another.
func inCellOf(t *testing.T, s *Store, agent uuid.UUID) tenant {
	t.Helper()
	w := tenant{key: newOrganization(t, s)}
	w.agent.ID = putAgent(t, s, w.key, NewID(agent)).Agent
	w.session = w.newSession(t, s, time.Hour)
	return w
}

func TestDeletingAnOrganizationRemovesAllOfItsOwnInASharedCell(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		inCellOf(t, s, w.agent.ID)
		before := keysKept(t, s)
		mine := w.exchange(t, s)
		ofCell := kernel.OfCell(w.agent.ID)
		index := s.keys.Key("af:", kernel.CellOf(w.agent.ID), w.agent.ID)
		mustDo(t, peek(t, s).ZAdd(t.Context(), index, redis.Z{Member: ofCell.Of(mine.Family)}).Err())
		claim := s.keys.Outcome(w.agent.ID, "claim-of-a-later-form")
		mustDo(t, peek(t, s).Set(t.Context(), claim, "a claim "+w.key.Organization.String(), time.Hour).Err())
		must(s.Charge(t.Context(), byToken(mine), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: "k"}}))(t)
		mustDo(t, remove(t, s, w.key.Organization))
		wantNoMore(t, s, before...)
	})
}

func TestAnInterruptedDeletionCanBeRepeated(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.fill(t, s, 6, `{}`)
		operator, other := asOperator(t, s), w.newKey(t, s, Admin, 10)
		for breakAt := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			steps := 0
			err := operator.deleteOrganization(ctx, w.key.Organization, 0, func(DeletionProgress) {
				if steps++; steps > breakAt {
					cancel()
				}
			})
			if cancel(); err == nil {
				t.Fatalf("it was not broken off at step %d", breakAt)
			}
			for _, dead := range []APIKey{w.key, other.key} {
				wantError(t, "a key of a half deleted organization", errOf(s.Organization(t.Context(), dead)), ErrInvalidAPIKey)
			}
			wantError(t, "resuming it", s.Resume(t.Context(), w.key.Organization), ErrBeingDeleted)
		}
		mustDo(t, remove(t, s, w.key.Organization))
		wantNoMore(t, s)
	})
}

// The last step of all forgets the suspension: without it the organization is known by its suspension alone.
func TestADeletionInterruptedAtItsLastStepCanBeRepeated(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		must(s.suspendAs(t.Context(), w.key.Organization, "deleting"))(t)
		mustDo(t, peek(t, s).Del(t.Context(), s.keys.Organization(w.key.Organization)).Err())
		mustDo(t, remove(t, s, w.key.Organization))
		wantNoMore(t, s)
	})
}

// An organization's agents act while it is deleted: nothing that they write stays.
func TestAnOrganizationIsDeletedWhileItsAgentsAct(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000})
		grant := w.exchange(t, s)
		ctx, stop := context.WithCancel(t.Context())
		var acting sync.WaitGroup
		acting.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = s.Charge(ctx, byToken(grant), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: fmt.Sprint(i)}})
				_, _ = s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
				_, _ = s.CreateAgent(ctx, w.key, Agent{Name: "late"}, w.secret, nil)
				_, _ = s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
			}
		})
		err := asOperator(t, s).deleteOrganization(t.Context(), w.key.Organization, 200*time.Millisecond, func(DeletionProgress) {})
		stop()
		acting.Wait()
		mustDo(t, err)
		wantNoMore(t, s)
	})
}

// After a deletion Redis needs as much memory as before it, within 5 %.
func TestDeletingAnOrganizationFreesItsMemory(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	s := openStore(t, Config{}, redistest.StartRedis(t, ofDataAlone).URL(), nil)
	other := newTenant(t, s, NewSession{MaxActions: 9})
	other.fill(t, s, 20, `{}`)
	first := newTenant(t, s, NewSession{MaxActions: 9}) // what the commands of a deletion themselves need, scripts above all
	mustDo(t, s.deleteOrganization(t.Context(), first.key.Organization, 0, func(DeletionProgress) {}))
	before := redistest.Memory(t, s.client.Redis())
	w := newTenant(t, s, NewSession{MaxActions: 9})
	w.fill(t, s, 500, `{"state":"`+strings.Repeat("x", 64<<10-20)+`"}`)
	if full := redistest.Memory(t, s.client.Redis()); full < before+30<<20 {
		t.Fatalf("the organization takes %d bytes, too few to tell anything", full-before)
	}
	mustDo(t, s.deleteOrganization(t.Context(), w.key.Organization, 0, func(DeletionProgress) {}))
	after := int64(0) // Redis frees in the background, and its tables shrink bit by bit
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if after = redistest.Memory(t, s.client.Redis()); after <= before+before/20 {
			return
		}
	}
	t.Errorf("%d bytes before, %d after: %.1f %% more", before, after, 100*float64(after-before)/float64(before))
}

func TestTheOperatorGetsAnErrorForAnUnknownOrganization(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, _ tenant) {
		operator, unknown := asOperator(t, s), NewRootID()
		for name, do := range map[string]func() error{
			"show":    func() error { return errOf(operator.OrganizationUse(t.Context(), unknown)) },
			"suspend": func() error { return errOf(operator.Suspend(t.Context(), unknown)) },
			"resume":  func() error { return operator.Resume(t.Context(), unknown) },
			"delete":  func() error { return remove(t, s, unknown) },
			"new-key": func() error {
				return errOf(operator.ReplaceAPIKey(t.Context(), APIKey{Organization: unknown, Hash: [32]byte{9}}, 0))
			},
		} {
			wantUnchanged(t, s, name, func() { wantError(t, name, do(), ErrUnknownOrganization) })
		}
	})
}

// A hostile organization may have filled Redis: deleting it must not need room.
func TestAFullRedisCanBeFreedOfAnOrganization(t *testing.T) {
	onEachRefusing(t, []refusing{isFull}, func(t *testing.T, s *Store, _ refusing, refuse, accept func()) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.fill(t, s, 4, `{}`)
		refuse()
		defer accept()
		mustDo(t, s.deleteOrganization(t.Context(), w.key.Organization, 0, func(DeletionProgress) {}))
		wantNoMore(t, s)
	})
}
