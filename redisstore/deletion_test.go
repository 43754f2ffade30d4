package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/internal/redisproc"
	"remit/money"
	"remit/redisstore/internal/kernel"
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
			must(s.CreateTrustedIssuer(ctx, w.key, TrustedIssuerSettings{Issuer: fmt.Sprint("https://idp.example/", i), JWKSURI: "https://a.example", Rules: rules}, nil))(t)
		}
		ended := one.newSession(t, s, time.Hour)
		must(s.EndSession(ctx, one.byKey(), ended.ID))(t)
		if i%5 == 0 {
			must(s.RevokeAgent(ctx, w.key, agent.ID))(t)
		}
	}
}

// remove deletes an organization without waiting for requests in progress: there are none.
func remove(t *testing.T, s *Store, organization uuid.UUID) error {
	t.Helper()
	return asOperator(t, s).deleteOrganization(t.Context(), organization, 0, func(DeletionProgress) {})
}

func TestDeletingAnOrganizationLeavesNothingOfItAndAllOfOthers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		other := newTenant(t, s, NewSession{MaxActions: 9})
		other.fill(t, s, 4, `{"a":1}`)
		before := contents(t, s, keysKept(t, s)...)
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.fill(t, s, 12, `{"b":1}`)
		if err := remove(t, s, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		after := keysKept(t, s)
		for _, key := range after {
			if _, kept := before[key]; !kept {
				t.Errorf("%s is left", key)
			}
		}
		for key := range before {
			if !slices.Contains(after, key) {
				t.Errorf("%s of another organization is gone", key)
			}
		}
		_, err := s.Organization(t.Context(), w.key)
		wantError(t, "its key", err, ErrInvalidAPIKey)
		wantError(t, "deleted again", remove(t, s, w.key.Organization), ErrUnknownOrganization)
	})
}

// Their records ended long ago; nothing else names them.
func TestDeletingAnOrganizationRemovesTheUsageOfAgentsThatWereDeleted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		before := contents(t, s, keysKept(t, s)...)
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.chargeTyped(t, s, typed("a", 1, 0))
		w.wantReport(t, s, everyDay(), total(1, 0))
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		w.endRecord(t, s)
		w.wantReport(t, s, everyDay(), total(1, 0))
		if err := remove(t, s, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		for _, key := range keysKept(t, s) {
			if _, kept := before[key]; !kept {
				t.Errorf("%s is left", key)
			}
		}
	})
}

func TestDeletingAnOrganizationRemovesNothingOfANeighbourInItsCells(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		mine := w.exchange(t, s)
		neighbour := inCellOf(t, s, w.agent.ID)
		theirs := neighbour.exchange(t, s)
		idem := &Idempotency{Key: "their own"}
		must(s.Charge(t.Context(), byToken(theirs), neighbour.session.ID, Charge{Count: 1, Idempotency: idem}))(t)
		if err := remove(t, s, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RotateRefresh(t.Context(), neighbour.agent.ID, theirs.Family, 1, GrantRequest{}); err != nil {
			t.Errorf("the neighbour's family: %v", err)
		}
		again := &Idempotency{Key: "their own"}
		must(s.Charge(t.Context(), byToken(theirs), neighbour.session.ID, Charge{Count: 1, Idempotency: again}))(t)
		if !again.Outcome.Replayed {
			t.Error("the outcome of the neighbour's idempotency key is gone")
		}
		_, err := s.RotateRefresh(t.Context(), w.agent.ID, mine.Family, 1, GrantRequest{})
		wantError(t, "a family that is left of the deleted one", err, ErrInvalidRefreshToken)
	})
}

// inCellOf returns a tenant whose agent shares the cell of another.
func inCellOf(t *testing.T, s *Store, agent uuid.UUID) tenant {
	t.Helper()
	ctx := t.Context()
	w := tenant{key: newOrganization(t, s), secret: [32]byte{7}}
	w.agent = Agent{ID: NewID(agent), Organization: w.key.Organization}
	must(s.client.Run(ctx, kernel.OwnFlow, createAgent.Script, []string{s.keys.Agent(w.agent.ID), s.keys.Events(w.agent.ID), s.keys.AgentOpen(w.agent.ID)},
		w.key.Organization, "scout", "read", "", "", w.secret, s.core.AuditAs(ctx, kernel.ActorKey), ""))(t)
	w.session = w.newSession(t, s, time.Hour)
	return w
}

func TestDeletingAnOrganizationRemovesAllOfItsOwnInASharedCell(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		inCellOf(t, s, w.agent.ID)
		before := keysKept(t, s)
		mine := w.exchange(t, s)
		ofCell := kernel.OfCell(w.agent.ID)
		index := s.keys.Key("af:", kernel.CellOf(w.agent.ID), w.agent.ID)
		if err := peek(t, s).ZAdd(t.Context(), index, redis.Z{Member: ofCell.Of(mine.Family)}).Err(); err != nil {
			t.Fatal(err)
		}
		claim := s.keys.Outcome(w.agent.ID, "claim-of-a-later-form")
		if err := peek(t, s).Set(t.Context(), claim, "a claim "+w.key.Organization.String(), time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		must(s.Charge(t.Context(), byToken(mine), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: "k"}}))(t)
		if err := remove(t, s, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		for _, key := range keysKept(t, s) {
			if !slices.Contains(before, key) {
				t.Errorf("%s is left", key)
			}
		}
	})
}

func TestAnInterruptedDeletionCanBeRepeated(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		before := keysKept(t, s)
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.fill(t, s, 6, `{}`)
		operator := asOperator(t, s)
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
			_, err = s.Organization(t.Context(), w.key)
			wantError(t, "the key of a half deleted organization", err, ErrInvalidAPIKey)
			wantError(t, "resuming it", s.Resume(t.Context(), w.key.Organization), ErrBeingDeleted)
		}
		if err := remove(t, s, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		if after := keysKept(t, s); !slices.Equal(after, before) {
			t.Errorf("left are %q", after)
		}
	})
}

// The last step of all forgets the suspension: without it the organization is known by its suspension alone.
func TestADeletionInterruptedAtItsLastStepCanBeRepeated(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		must(s.suspendAs(t.Context(), w.key.Organization, "deleting"))(t)
		if err := peek(t, s).Del(t.Context(), s.keys.Organization(w.key.Organization)).Err(); err != nil {
			t.Fatal(err)
		}
		if err := remove(t, s, w.key.Organization); err != nil {
			t.Fatal(err)
		}
		if kept := keysKept(t, s); len(kept) != 0 {
			t.Errorf("left are %q", kept)
		}
	})
}

// An organization's agents act while it is deleted: nothing that they write stays.
func TestAnOrganizationIsDeletedWhileItsAgentsAct(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000})
		grant := w.exchange(t, s)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = s.Charge(ctx, byToken(grant), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: fmt.Sprint(i)}})
				_, _ = s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
				_, _ = s.CreateAgent(ctx, w.key, Agent{Name: "late"}, w.secret, nil)
				_, _ = s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
			}
		}()
		err := asOperator(t, s).deleteOrganization(t.Context(), w.key.Organization, 200*time.Millisecond, func(DeletionProgress) {})
		stop()
		<-done
		if err != nil {
			t.Fatal(err)
		}
		if kept := keysKept(t, s); len(kept) != 0 {
			t.Errorf("left are %d keys: %q", len(kept), kept)
		}
	})
}

// The measure: after a deletion Redis needs as much memory as before, within 5 %.
func TestDeletingAnOrganizationFreesItsMemory(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	other := newTenant(t, s, NewSession{MaxActions: 9})
	other.fill(t, s, 20, `{}`)
	first := newTenant(t, s, NewSession{MaxActions: 9}) // what the commands of a deletion themselves need, scripts above all
	if err := s.deleteOrganization(t.Context(), first.key.Organization, 0, func(DeletionProgress) {}); err != nil {
		t.Fatal(err)
	}
	before := memoryOf(t, s)
	w := newTenant(t, s, NewSession{MaxActions: 9})
	w.fill(t, s, 500, `{"state":"`+strings.Repeat("x", 64<<10-20)+`"}`)
	if full := memoryOf(t, s); full < before+30<<20 {
		t.Fatalf("the organization takes %d bytes, too few to tell anything", full-before)
	}
	if err := s.deleteOrganization(t.Context(), w.key.Organization, 0, func(DeletionProgress) {}); err != nil {
		t.Fatal(err)
	}
	after := int64(0) // Redis frees in the background, and its tables shrink bit by bit
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if after = memoryOf(t, s); after <= before+before/20 {
			return
		}
	}
	t.Errorf("%d bytes before, %d after: %.1f %% more", before, after, 100*float64(after-before)/float64(before))
}

func memoryOf(t *testing.T, s *Store) int64 {
	t.Helper()
	var used int64
	if _, err := fmt.Sscan(redisclient.Info(t.Context(), s.client.Redis(), "memory")["used_memory"], &used); err != nil {
		t.Fatal(err)
	}
	return used
}

func TestTheOperatorGetsAnErrorForAnUnknownOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		newTenant(t, s, NewSession{MaxActions: 9})
		operator, unknown := asOperator(t, s), NewRootID()
		for name, do := range map[string]func() error{
			"show":    func() error { _, err := operator.OrganizationUse(t.Context(), unknown); return err },
			"suspend": func() error { _, err := operator.Suspend(t.Context(), unknown); return err },
			"resume":  func() error { return operator.Resume(t.Context(), unknown) },
			"delete":  func() error { return remove(t, s, unknown) },
			"new-key": func() error {
				_, err := operator.ReplaceAPIKey(t.Context(), APIKey{Organization: unknown, Hash: [32]byte{9}}, 0)
				return err
			},
		} {
			wantUnchanged(t, s, name, func() {
				if err := do(); !errors.Is(err, ErrUnknownOrganization) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	})
}

// A hostile organization may have filled Redis: deleting it must not need room.
func TestAFullRedisCanBeFreedOfAnOrganization(t *testing.T) {
	t.Parallel()
	onEachRefusing(t, []refusing{isFull}, func(t *testing.T, s *Store, _ refusing, refuse, accept func()) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.fill(t, s, 4, `{}`)
		refuse()
		defer accept()
		if err := s.deleteOrganization(t.Context(), w.key.Organization, 0, func(DeletionProgress) {}); err != nil {
			t.Fatal(err)
		}
		if kept := keysKept(t, s); len(kept) != 0 {
			t.Errorf("left are %q", kept)
		}
	})
}
