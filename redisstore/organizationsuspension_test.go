package redisstore

import (
	"context"
	"testing"
	"time"
)

// suspend suspends the tenant's organization, and the store reads so.
func (w tenant) suspend(t *testing.T, s *Store) {
	t.Helper()
	must(asOperator(t, s).Suspend(t.Context(), w.key.Organization))(t)
	w.readSuspensions(t, s)
}

func (w tenant) readSuspensions(t *testing.T, s *Store) {
	t.Helper()
	mustDo(t, s.ReadSuspensions(t.Context()))
}

func TestASuspendedOrganizationIsRefusedUntilItResumes(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		other := newTenant(t, s, NewSession{MaxActions: 9})
		grant, theirs, of := w.exchange(t, s), other.exchange(t, s), w.furnished(t, s)
		trusted := must(s.TrustedIssuer(t.Context(), w.key, of.issuer))(t)
		w.readSuspensions(t, s)
		ways := map[string]func(context.Context) error{
			"a grant by an issuer": func(ctx context.Context) error {
				return errOf(s.GrantByIssuer(ctx, w.key.Organization, w.agent.ID, trusted, GrantRequest{}))
			},
			"its key": func(ctx context.Context) error { return errOf(s.Organization(ctx, w.key)) },
			"an exchange": func(ctx context.Context) error {
				return errOf(s.ExchangeSecret(ctx, w.agent.ID, w.secret, GrantRequest{}))
			},
			"a secret": func(ctx context.Context) error { return errOf(s.CheckSecret(ctx, w.agent.ID, w.secret)) },
			"a stream": func(ctx context.Context) error { return errOf2(s.Events(ctx, byToken(grant), w.agent.ID, "", 1)) },
			"a refresh": func(ctx context.Context) error {
				return errOf(s.RotateRefresh(ctx, w.agent.ID, grant.Family, 1, GrantRequest{}))
			},
		}
		w.suspend(t, s)
		wantUnchanged(t, s, "a suspended organization", func() {
			for _, operation := range askedByKey(w.key) {
				wantError(t, operation.name, operation.ask(s, t, of), ErrOrganizationSuspended)
			}
			for name, do := range ways {
				wantError(t, name, do(t.Context()), ErrOrganizationSuspended)
			}
		})
		must(s.Organization(t.Context(), other.key))(t)
		must(s.RotateRefresh(t.Context(), other.agent.ID, theirs.Family, 1, GrantRequest{}))(t)
		mustDo(t, asOperator(t, s).Resume(t.Context(), w.key.Organization))
		w.readSuspensions(t, s)
		for name, do := range ways {
			wantError(t, name+" after it resumed", do(t.Context()), nil)
		}
	})
}

// The predecessor of a refresh token within its grace is spent as far as CheckRefresh knows.
func TestASuspendedOrganizationsSpentRefreshTokenGetsNoSuccessor(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t)
		w.suspend(t, s)
		predecessor := errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))
		wantError(t, "the predecessor", predecessor, ErrOrganizationSuspended)
	})
}

// A forged credential gets the usual refusal, which does not reveal that the organization is suspended.
func TestAStrangerLearnsNothingOfASuspension(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.suspend(t, s)
		w.key.Hash[31]++
		wantError(t, "a made-up key", errOf(s.Organization(t.Context(), w.key)), ErrInvalidAPIKey)
		wantError(t, "a wrong secret", errOf(s.ExchangeSecret(t.Context(), w.agent.ID, [32]byte{99}, GrantRequest{})), ErrInvalidCredentials)
	})
}

func TestSuspendingAndResumingTwiceChangesNothing(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		operator := asOperator(t, s)
		first := must(operator.Suspend(t.Context(), w.key.Organization))(t)
		wantUnchanged(t, s, "suspending again", func() {
			wantEqual(t, "suspended again", must(operator.Suspend(t.Context(), w.key.Organization))(t), first)
		})
		mustDo(t, operator.Resume(t.Context(), w.key.Organization))
		wantUnchanged(t, s, "resuming again", func() {
			wantError(t, "again", operator.Resume(t.Context(), w.key.Organization), nil)
		})
	})
}

// What was read last stays in force while Redis cannot be read; before the first reading nothing is certain.
func TestAStoreThatFollowsSuspensionsRefusesKeysUntilItHasReadThem(t *testing.T) {
	onEachRedis(t, Config{FollowsSuspensions: true}, func(t *testing.T, s *Store) {
		key := newOrganization(t, s)
		wantError(t, "before", errOf(s.Organization(t.Context(), key)), ErrUnavailable)
		w := tenant{key: key}
		w.suspend(t, s)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		wantError(t, "a reading that fails", s.ReadSuspensions(canceled), ErrUnavailable)
		wantError(t, "after a reading that failed", errOf(s.Organization(t.Context(), key)), ErrOrganizationSuspended)
	})
}

func TestASuspensionThatCannotBeReadSuspendsAllTheSame(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		other := newTenant(t, s, NewSession{MaxActions: 9})
		id := w.key.Organization
		mustDo(t, peek(t, s).HSet(t.Context(), s.keys.Suspended(), string(id[:]), "?", "version", "x").Err())
		other.suspend(t, s)
		for name, key := range map[string]APIKey{"it": w.key, "the other": other.key} {
			wantError(t, name, errOf(s.Organization(t.Context(), key)), ErrOrganizationSuspended)
		}
		must(asOperator(t, s).Suspend(t.Context(), id))(t)
		if suspension := must(asOperator(t, s).OrganizationUse(t.Context(), id))(t).Suspension; suspension == nil || suspension.Since.IsZero() {
			t.Errorf("suspended again: %+v", suspension)
		}
	})
}

func TestTheOperatorSeesOrganizationsAndWhatTheyHold(t *testing.T) {
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

func TestTheFirstBootstrapTokenStaysUntilAnotherIsSet(t *testing.T) {
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		want := func(what string, hash [32]byte, found bool) {
			t.Helper()
			if got, kept, err := s.BootstrapHash(t.Context()); err != nil || got != hash || kept != found {
				t.Errorf("%s: %x %t %v", what, got, kept, err)
			}
		}
		want("none", [32]byte{}, false)
		for i := range byte(2) {
			mustDo(t, s.KeepFirstBootstrapHash(t.Context(), [32]byte{i + 1}))
			want("the first", [32]byte{1}, true)
		}
		mustDo(t, asOperator(t, s).SetBootstrapHash(t.Context(), [32]byte{3}))
		want("another", [32]byte{3}, true)
	})
}
