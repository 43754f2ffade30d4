package redisstore

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

func TestAnAgentIsReadAsItWasCreated(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		for _, wanted := range []Agent{
			{Name: "bare", Scopes: []string{}},
			{Name: "größe\n", Scopes: []string{"orders:read"}},
			{Name: "full", Scopes: []string{"orders:read", "orders:write", "admin"}, Description: "buys things", Metadata: `{"a":1}`},
			{Name: "with keys", Scopes: []string{}, Audiences: []string{"https://a.example", "urn:b"}, JWKS: `{"keys":[]}`, NoSecret: true},
			{Name: "bound", Scopes: []string{}, Audiences: []string{}, JWKSURI: "https://a.example/keys", DPoPRequired: true,
				Limits: AgentLimits{ActionsPerMinute: new(int64(7))}},
		} {
			before := time.Now().Add(-time.Millisecond)
			agent := must(s.CreateAgent(t.Context(), key, wanted, [32]byte{2}, nil))(t)
			if agent.Created.Before(before) || agent.Created.After(time.Now()) {
				t.Errorf("created at %s", agent.Created)
			}
			wanted.ID, wanted.Organization, wanted.Created = agent.ID, key.Organization, agent.Created
			if !reflect.DeepEqual(agent, wanted) {
				t.Errorf("created %+v, want %+v", agent, wanted)
			}
			read := must(s.Agent(t.Context(), key, agent.ID))(t)
			if !reflect.DeepEqual(read, wanted) || read.Status() != Active {
				t.Errorf("read %+v (%s), want %+v", read, read.Status(), wanted)
			}
		}
	})
}

func TestAnAgentsIDAndTimesAreNotTheCallersToChoose(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		chosen := Agent{ID: NewRootID(), Organization: NewRootID(), Name: "scout"}
		agent := must(s.CreateAgent(t.Context(), key, chosen, [32]byte{2}, nil))(t)
		if agent.ID == chosen.ID || agent.Organization != key.Organization || agent.Created.IsZero() {
			t.Errorf("%+v", agent)
		}
	})
}

func TestAnUnknownAgentIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		_, err := s.Agent(t.Context(), key, NewRootID())
		wantError(t, "Agent", err, ErrUnknownAgent)
		_, err = s.RevokeAgent(t.Context(), key, NewRootID())
		wantError(t, "RevokeAgent", err, ErrUnknownAgent)
		_, err = s.RotateAgentSecret(t.Context(), key, NewRootID(), SecretRotation{Hash: [32]byte{3}}, nil)
		wantError(t, "RotateAgentSecret", err, ErrUnknownAgent)
	})
}

func TestAgentsAreListedInPagesNewestFirst(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		const limit = 3
		for agents, pages := range map[int][]int{
			0:           {0},
			limit - 1:   {limit - 1},
			limit:       {limit},
			limit + 1:   {limit, 1},
			2 * limit:   {limit, limit},
			2*limit + 1: {limit, limit, 1},
		} {
			key := newOrganization(t, s)
			newAgents(t, s, newOrganization(t, s), 1) // another organization's
			created := newAgents(t, s, key, agents)
			q := Query{Limit: limit}
			for i, size := range pages {
				page := must(s.Agents(t.Context(), key, q))(t)
				if len(page.Items) != size {
					t.Fatalf("page %d of %d agents has %d", i+1, agents, len(page.Items))
				}
				for j, agent := range page.Items {
					if want := created[agents-1-i*limit-j]; !reflect.DeepEqual(agent, want) {
						t.Errorf("page %d of %d agents, entry %d: %+v, want %+v", i+1, agents, j+1, agent, want)
					}
				}
				if last := i == len(pages)-1; last != (page.Next == uuid.Nil) {
					t.Fatalf("page %d of %d agents has next %s", i+1, agents, page.Next)
				}
				q.Before = page.Next
			}
		}
	})
}

func TestAgentsAreFilteredByStatus(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		want := map[Status][]uuid.UUID{}
		for i, agent := range newAgents(t, s, key, 8) {
			status := Active
			if i%3 == 0 {
				status = Revoked
				must(s.RevokeAgent(t.Context(), key, agent.ID))(t)
			}
			want[status] = append([]uuid.UUID{agent.ID}, want[status]...)
			want[""] = append([]uuid.UUID{agent.ID}, want[""]...)
		}
		for _, status := range []Status{"", Active, Revoked, Completed} {
			for limit := 1; limit <= 9; limit++ {
				var ids []uuid.UUID
				q := Query{Limit: limit, Status: status}
				for more := true; more; more = q.Before != uuid.Nil {
					page := must(s.Agents(t.Context(), key, q))(t)
					for _, agent := range page.Items {
						ids = append(ids, agent.ID)
					}
					if len(page.Items) > limit {
						t.Fatalf("%d agents on a page of %d", len(page.Items), limit)
					}
					q.Before = page.Next
				}
				if !reflect.DeepEqual(ids, want[status]) {
					t.Errorf("status %q in pages of %d: %v, want %v", status, limit, ids, want[status])
				}
			}
		}
	})
}

func TestRevokingAnAgentAgainReturnsTheFirstTime(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		before := time.Now().Add(-time.Millisecond)
		first := must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		if first.Before(before) || first.After(time.Now()) {
			t.Errorf("revoked at %s", first)
		}
		eventually(t, "a later millisecond", func() bool { return time.Now().After(first.Add(2 * time.Millisecond)) })
		if again := must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t); again != first {
			t.Errorf("again at %s, first at %s", again, first)
		}
		agent := must(s.Agent(t.Context(), w.key, w.agent.ID))(t)
		if agent.Revoked != first || agent.Status() != Revoked {
			t.Errorf("%+v", agent)
		}
	})
}

func TestARevokedAgentHasNothingLeft(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		before := w.contents(t, s)

		_, err := s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{})
		wantError(t, "exchange", err, ErrInvalidCredentials)
		_, err = s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{})
		wantError(t, "refresh", err, ErrInvalidRefreshToken)
		wantError(t, "RevokeFamily", s.RevokeFamily(t.Context(), grant.AccessToken, grant.Family), ErrInvalidToken)
		for _, operation := range askedByEither(byToken(grant)) {
			wantError(t, operation.name, operation.ask(s, t, targetIn(w.agent.ID, w.session.ID)), ErrInvalidToken)
		}
		_, err = s.RotateAgentSecret(t.Context(), w.key, w.agent.ID, SecretRotation{Hash: [32]byte{3}, Grace: time.Minute}, nil)
		wantError(t, "RotateAgentSecret", err, ErrAgentRevoked)
		_, err = s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
		wantError(t, "CreateSession", err, ErrAgentRevoked)

		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestARotatedSecretEndsAtOnceWithoutGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, used := range []bool{true, false} {
			if used {
				w.exchange(t, s)
			}
			old := w.secret
			w.rotateSecret(t, s, 0)
			wantDeadSecret(t, s, w.agent.ID, old)
		}
		w.exchange(t, s)
	})
}

func TestARotatedSecretLivesForItsGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for _, used := range []bool{true, false} {
			w := newTenant(t, s, NewSession{MaxActions: 1})
			if used {
				w.exchange(t, s)
			}
			old := w.secret
			before := time.Now().Add(-time.Millisecond)
			until := w.rotateSecret(t, s, time.Minute)
			if until.Before(before.Add(time.Minute)) || until.After(time.Now().Add(time.Minute)) {
				t.Errorf("the old secret ends at %s, a minute after %s", until, before)
			}
			for _, secret := range [][32]byte{old, w.secret, old} {
				must(s.ExchangeSecret(t.Context(), w.agent.ID, secret, GrantRequest{}))(t)
			}
		}
	})
}

func TestARotatedSecretDiesAfterItsGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		old := w.secret
		w.rotateSecret(t, s, 30*time.Millisecond)
		eventually(t, "the old secret is dead", func() bool {
			_, err := s.ExchangeSecret(t.Context(), w.agent.ID, old, GrantRequest{})
			return err != nil
		})
		wantDeadSecret(t, s, w.agent.ID, old)
		w.exchange(t, s)
	})
}

// The answer to a rotation may get lost: then no agent has the secret it made, and all still use the one before.
func TestAnUnusedSecretIsReplacedAndTheOneInUseStays(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		w.exchange(t, s)
		inUse := w.secret
		for range 3 {
			lost := w.secret
			w.rotateSecret(t, s, time.Minute)
			if lost != inUse {
				wantDeadSecret(t, s, w.agent.ID, lost)
			}
			must(s.ExchangeSecret(t.Context(), w.agent.ID, inUse, GrantRequest{}))(t)
		}
		w.exchange(t, s)
	})
}

func TestAUsedSecretStaysAndTheOneBeforeItEnds(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		first := w.secret
		w.rotateSecret(t, s, time.Minute)
		w.exchange(t, s)
		second := w.secret
		w.rotateSecret(t, s, time.Minute)
		wantDeadSecret(t, s, w.agent.ID, first)
		must(s.ExchangeSecret(t.Context(), w.agent.ID, second, GrantRequest{}))(t)
		w.exchange(t, s)
	})
}

func TestAskingAgainWithoutGraceEndsTheSecretInUse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		inUse := w.secret
		w.rotateSecret(t, s, time.Minute)
		lost := w.secret
		w.rotateSecret(t, s, 0)
		wantDeadSecret(t, s, w.agent.ID, inUse)
		wantDeadSecret(t, s, w.agent.ID, lost)
		w.exchange(t, s)
	})
}

// An unused secret still becomes the current one when the one before it ends.
func TestAnEndedSecretIsNeverKeptInsteadOfAnUnusedOne(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		dead := w.secret
		w.rotateSecret(t, s, 0)
		unused := w.secret
		w.rotateSecret(t, s, time.Minute)
		wantDeadSecret(t, s, w.agent.ID, dead)
		must(s.ExchangeSecret(t.Context(), w.agent.ID, unused, GrantRequest{}))(t)
		w.exchange(t, s)
	})
}

func TestRotatingASecretEndsNoFamily(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		w.rotateSecret(t, s, 0)
		must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1}))(t)
		must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
	})
}

// rotateSecret rotates the agent's secret, and returns when the one in use ends.
func (w *tenant) rotateSecret(t *testing.T, s *Store, grace time.Duration) time.Time {
	t.Helper()
	w.secret[0]++
	return must(s.RotateAgentSecret(t.Context(), w.key, w.agent.ID, SecretRotation{Hash: w.secret, Grace: grace}, nil))(t)
}

func wantDeadSecret(t *testing.T, s *Store, agent uuid.UUID, secret [32]byte) {
	t.Helper()
	_, err := s.ExchangeSecret(t.Context(), agent, secret, GrantRequest{})
	wantError(t, fmt.Sprintf("exchange of secret %d", secret[0]), err, ErrInvalidCredentials)
}

// newAgents creates agents of the organization, and returns them oldest first.
func newAgents(t *testing.T, s *Store, key APIKey, n int) []Agent {
	t.Helper()
	agents := make([]Agent, n)
	for i := range agents {
		agents[i] = must(s.CreateAgent(t.Context(), key,
			Agent{Name: fmt.Sprint("agent ", i), Scopes: []string{"read"}}, [32]byte{2}, nil))(t)
	}
	return agents
}

// TestFlagsOfAnAgentKeepTheirOrder: charges look only at the beginning of the flags for s and n.
func TestFlagsOfAnAgentKeepTheirOrder(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{})
		flags := func() string { return peek(t, s).HGet(t.Context(), s.keys.Agent(w.agent.ID), "restricted").Val() }
		change := func(c AgentChanges) Agent { return must(s.ChangeAgent(t.Context(), w.key, w.agent.ID, c))(t) }
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		change(AgentChanges{DPoPRequired: new(true), Scopes: &[]string{"read"}})
		change(AgentChanges{Limits: NewAgentLimits{OpenSessions: LimitChange{Given: true, Value: new(int64(7))}}})
		if got := flags(); got != "nspo" {
			t.Errorf("flags %q", got)
		}
		if a := change(AgentChanges{DPoPRequired: new(false)}); a.DPoPRequired || flags() != "nso" {
			t.Errorf("%+v, flags %q", a, flags())
		}
		change(AgentChanges{DPoPRequired: new(true)})
		must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		if a := must(s.Agent(t.Context(), w.key, w.agent.ID))(t); !a.DPoPRequired || flags() != "npo" {
			t.Errorf("%+v, flags %q", a, flags())
		}
	})
}
