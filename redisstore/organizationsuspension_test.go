package redisstore

import (
	"context"
	"testing"
	"time"

	"remit/money"
)

// suspend suspends the tenant's organization, and the store reads so.
func (w tenant) suspend(t *testing.T, s *Store) {
	t.Helper()
	must(asOperator(t, s).Suspend(t.Context(), w.key.Organization))(t)
	w.readSuspensions(t, s)
}

func (w tenant) readSuspensions(t *testing.T, s *Store) {
	t.Helper()
	if err := s.ReadSuspensions(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestASuspendedOrganizationIsRefusedUntilItResumes(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 9}), newTenant(t, s, NewSession{MaxActions: 9})
		grant, theirs, trusted := w.exchange(t, s), other.exchange(t, s), w.trust(t, s, "https://one.example")
		w.readSuspensions(t, s)
		ways := map[string]func(context.Context) error{
			"a grant by an issuer": func(ctx context.Context) error {
				_, err := s.GrantByIssuer(ctx, w.key.Organization, w.agent.ID, trusted, GrantRequest{})
				return err
			},
			"its key":      func(ctx context.Context) error { _, err := s.Organization(ctx, w.key); return err },
			"a list":       func(ctx context.Context) error { _, err := s.Agents(ctx, w.key, Query{Limit: 1}); return err },
			"all sessions": func(ctx context.Context) error { _, err := s.Sessions(ctx, w.byKey(), Query{Limit: 1}); return err },
			"a charge by key": func(ctx context.Context) error {
				_, err := s.Charge(ctx, w.byKey(), w.session.ID, Charge{Count: 1})
				return err
			},
			"a charge by key, once": func(ctx context.Context) error {
				_, err := s.Charge(ctx, w.byKey(), w.session.ID, Charge{Count: 1, Idempotency: &Idempotency{Key: "k"}})
				return err
			},
			"a new session": func(ctx context.Context) error {
				_, err := s.CreateSession(ctx, w.key, NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Hour})
				return err
			},
			"a new agent": func(ctx context.Context) error {
				_, err := s.CreateAgent(ctx, w.key, Agent{Name: "x"}, w.secret, nil)
				return err
			},
			"a new key": func(ctx context.Context) error {
				_, err := s.RotateAPIKey(ctx, w.key, APIKey{Hash: w.key.Hash}, time.Hour, nil)
				return err
			},
			"an exchange": func(ctx context.Context) error {
				_, err := s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{})
				return err
			},
			"a secret": func(ctx context.Context) error { _, err := s.CheckSecret(ctx, w.agent.ID, w.secret); return err },
			"a stream": func(ctx context.Context) error {
				_, _, err := s.Events(ctx, byToken(grant), w.agent.ID, "", 1)
				return err
			},
			"a refresh": func(ctx context.Context) error {
				_, err := s.RotateRefresh(ctx, w.agent.ID, grant.Family, 1, GrantRequest{})
				return err
			},
		}
		w.suspend(t, s)
		wantUnchanged(t, s, "a suspended organization", func() {
			for name, do := range ways {
				wantError(t, name, do(t.Context()), ErrOrganizationSuspended)
			}
		})
		must(s.Organization(t.Context(), other.key))(t)
		must(s.RotateRefresh(t.Context(), other.agent.ID, theirs.Family, 1, GrantRequest{}))(t)
		if err := asOperator(t, s).Resume(t.Context(), w.key.Organization); err != nil {
			t.Fatal(err)
		}
		w.readSuspensions(t, s)
		for name, do := range ways {
			wantError(t, name+" after it resumed", do(t.Context()), nil)
		}
	})
}

// The predecessor of a refresh token within its grace is spent as far as CheckRefresh knows.
func TestASuspendedOrganizationsSpentRefreshTokenGetsNoSuccessor(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		grant := w.exchange(t, s)
		must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
		w.suspend(t, s)
		_, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{})
		wantError(t, "the predecessor", err, ErrOrganizationSuspended)
	})
}

// A forged credential gets the usual refusal, which does not reveal that the organization is suspended.
func TestAStrangerLearnsNothingOfASuspension(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 9})
		w.suspend(t, s)
		_, err := s.Organization(t.Context(), APIKey{Organization: w.key.Organization, Hash: [32]byte{99}})
		wantError(t, "a made-up key", err, ErrInvalidAPIKey)
		_, err = s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{99}, GrantRequest{})
		wantError(t, "a wrong secret", err, ErrInvalidCredentials)
	})
}

func TestSuspendingAndResumingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, operator := newTenant(t, s, NewSession{MaxActions: 9}), asOperator(t, s)
		first := must(operator.Suspend(t.Context(), w.key.Organization))(t)
		wantUnchanged(t, s, "suspending again", func() {
			if again := must(operator.Suspend(t.Context(), w.key.Organization))(t); !again.Since.Equal(first.Since) {
				t.Errorf("suspended since %s, then since %s", first.Since, again.Since)
			}
		})
		if err := operator.Resume(t.Context(), w.key.Organization); err != nil {
			t.Fatal(err)
		}
		wantUnchanged(t, s, "resuming again", func() {
			wantError(t, "again", operator.Resume(t.Context(), w.key.Organization), nil)
		})
	})
}

// What was read last stays in force while Redis cannot be read; before the first reading nothing is certain.
func TestAStoreThatFollowsSuspensionsRefusesKeysUntilItHasReadThem(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{FollowsSuspensions: true}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		_, err := s.Organization(t.Context(), key)
		wantError(t, "before", err, ErrUnavailable)
		w := tenant{key: key}
		w.suspend(t, s)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, "a reading that fails", s.ReadSuspensions(canceled), ErrUnavailable)
		_, err = s.Organization(t.Context(), key)
		wantError(t, "after a reading that failed", err, ErrOrganizationSuspended)
	})
}

func TestASuspensionThatCannotBeReadSuspendsAllTheSame(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, other := newTenant(t, s, NewSession{MaxActions: 9}), newTenant(t, s, NewSession{MaxActions: 9})
		id := w.key.Organization
		if err := peek(t, s).HSet(t.Context(), s.keys.Suspended(), string(id[:]), "?", "version", "x").Err(); err != nil {
			t.Fatal(err)
		}
		other.suspend(t, s)
		for name, key := range map[string]APIKey{"it": w.key, "the other": other.key} {
			_, err := s.Organization(t.Context(), key)
			wantError(t, name, err, ErrOrganizationSuspended)
		}
		must(asOperator(t, s).Suspend(t.Context(), id))(t)
		if suspension := must(asOperator(t, s).OrganizationUse(t.Context(), id))(t).Suspension; suspension == nil || suspension.Since.IsZero() {
			t.Errorf("suspended again: %+v", suspension)
		}
	})
}

func TestTheOperatorSeesOrganizationsAndWhatTheyHold(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		first, second := newTenant(t, s, NewSession{MaxActions: 9}), newTenant(t, s, NewSession{MaxActions: 9})
		second.newSession(t, s, time.Hour)
		must(s.Begin(t.Context(), second.exchange(t, s).AccessToken, NewTransaction{ActionType: "x", PreState: "{}", Lifetime: time.Hour}))(t)
		operator := asOperator(t, s)
		since := must(operator.Suspend(t.Context(), first.key.Organization))(t).Since
		all := must(operator.Organizations(t.Context()))(t)
		if len(all) != 2 || all[0].ID != first.key.Organization || all[1].ID != second.key.Organization {
			t.Fatalf("%+v", all)
		}
		if got := all[0].Suspension; got == nil || !got.Since.Equal(since) || got.Deleting {
			t.Errorf("the suspended one: %+v", got)
		}
		one := must(operator.OrganizationUse(t.Context(), second.key.Organization))(t)
		if one.Name != "acme" || one.Suspension != nil || one.Agents != 1 || one.OpenSessions != 2 || one.ClosedSessions != 0 || one.Transactions != 1 {
			t.Errorf("%+v", one)
		}
	})
}

func TestTheOperatorsNewKeyEndsTheOthers(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		for name, test := range map[string]struct {
			grace time.Duration
			old   error
		}{"at once": {0, ErrInvalidAPIKey}, "after a grace": {time.Hour, nil}} {
			w := newTenant(t, s, NewSession{MaxActions: 9, MaxValue: money.USD})
			stolen := APIKey{Organization: w.key.Organization, Hash: [32]byte{8}}
			must(s.RotateAPIKey(t.Context(), w.key, APIKey{Hash: stolen.Hash}, time.Hour, nil))(t)
			fresh := APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}
			until := must(asOperator(t, s).ReplaceAPIKey(t.Context(), APIKey{Organization: fresh.Organization, Hash: fresh.Hash}, test.grace))(t)
			again := must(asOperator(t, s).ReplaceAPIKey(t.Context(), APIKey{Organization: fresh.Organization, Hash: fresh.Hash}, test.grace))(t)
			if test.grace > 0 && !again.Equal(until) {
				t.Errorf("%s: sent again, the key before ends at %s, not %s", name, again, until)
			}
			_, err := s.Organization(t.Context(), fresh)
			wantError(t, name+": the new key", err, nil)
			_, err = s.Organization(t.Context(), stolen)
			wantError(t, name+": the current one", err, test.old)
			_, err = s.Organization(t.Context(), w.key)
			wantError(t, name+": the one before it", err, ErrInvalidAPIKey)
		}
	})
}

func TestTheFirstBootstrapTokenStaysUntilAnotherIsSet(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		want := func(what string, hash [32]byte, found bool) {
			t.Helper()
			if got, kept, err := s.BootstrapHash(t.Context()); err != nil || got != hash || kept != found {
				t.Errorf("%s: %x %t %v", what, got, kept, err)
			}
		}
		want("none", [32]byte{}, false)
		for i := range byte(2) {
			if err := s.KeepFirstBootstrapHash(t.Context(), [32]byte{i + 1}); err != nil {
				t.Fatal(err)
			}
			want("the first", [32]byte{1}, true)
		}
		if err := asOperator(t, s).SetBootstrapHash(t.Context(), [32]byte{3}); err != nil {
			t.Fatal(err)
		}
		want("another", [32]byte{3}, true)
	})
}
