package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

func TestLimitsOfASessionOfARevokedAgentDoNotChange(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newSessionThatIs(t, s, Revoked)
		wantUnchanged(t, s, "a change", func() {
			for _, to := range []NewLimits{{Lifetime: new(time.Hour)}, {MaxActions: new(int64(0))}} {
				_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, to)
				wantError(t, "ChangeLimits", err, &NotActiveError{Revoked})
			}
		})
	})
}

func TestOnlyTheSessionsOrganizationCanChangeItsLimits(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, foreign := newTenant(t, s, NewSession{MaxActions: 10}), newTenant(t, s, NewSession{MaxActions: 10})
		for name, test := range map[string]struct {
			key     APIKey
			session uuid.UUID
			want    error
		}{
			"another organization's session": {foreign.key, w.session.ID, ErrUnknownSession},
			"no session":                     {w.key, NewID(w.agent.ID), ErrUnknownSession},
			"no session in another cell":     {w.key, otherCell(w.agent.ID), ErrUnknownSession},
			"a wrong key":                    {APIKey{Organization: w.key.Organization, Hash: [32]byte{9}}, w.session.ID, ErrInvalidAPIKey},
			"a key of no organization":       {APIKey{Organization: NewRootID(), Hash: w.key.Hash}, w.session.ID, ErrInvalidAPIKey},
		} {
			wantUnchanged(t, s, name, func() {
				_, err := s.ChangeLimits(t.Context(), test.key, test.session, NewLimits{MaxActions: new(int64(5))})
				wantError(t, name, err, test.want)
			})
		}
	})
}

// A session is kept for its life and the retention, and never for less than before.
func TestALongerLifeKeepsTheSessionForLonger(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{Retention: 2 * time.Hour}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, Lifetime: 3 * time.Hour})
		session, index := s.keys.Session(w.agent.ID, w.session.ID), s.keys.AgentSessions(w.agent.ID)
		w.begin(t, s, w.exchange(t, s).AccessToken, 0)
		transactions := s.keys.SessionTransactions(w.agent.ID, w.session.ID)
		for _, step := range []struct {
			to         NewLimits
			kept, list time.Duration
		}{
			{NewLimits{MaxActions: new(int64(11))}, 5 * time.Hour, 5 * time.Hour},
			{NewLimits{Lifetime: new(6 * time.Hour)}, 8 * time.Hour, 8 * time.Hour},
			{NewLimits{Lifetime: new(time.Hour)}, 8 * time.Hour, 8 * time.Hour},
			{NewLimits{Lifetime: new(7 * time.Hour), MaxValue: new(money.MicroUSD(5))}, 9 * time.Hour, 9 * time.Hour},
		} {
			must(s.ChangeLimits(t.Context(), w.key, w.session.ID, step.to))(t)
			wantTTL(t, s, session, step.kept)
			wantTTL(t, s, index, step.list)
			wantTTL(t, s, transactions, step.list)
		}
	})
}

// Limits that change while charges and holds race for them are never exceeded, and the last ones are filled.
func TestLimitsHoldWhileTheyChange(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000, MaxValue: 100})
		second := must(Open(s.config))(t)
		defer second.Close()
		grant := w.exchange(t, s)
		var ceiling atomic.Int64 // the highest limit that has been asked for
		var spenders, changers sync.WaitGroup
		var done atomic.Bool
		for i := range 32 {
			store := []*Store{s, second}[i%2]
			spenders.Go(func() {
				for !done.Load() {
					_, _ = store.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 3})
					held, err := store.Begin(t.Context(), grant.AccessToken, w.beginning(2))
					if err == nil {
						must(store.Commit(t.Context(), grant.AccessToken, held.ID, Commit{Value: new(money.MicroUSD(1))}))(t)
					}
					if reached := new(LimitError); err != nil && !errors.As(err, &reached) {
						t.Error(err)
					}
				}
			})
		}
		for i := range 2 {
			changers.Go(func() {
				for j := range int64(30) {
					to := 100 + 20*j*int64(1-i) // one raises, one lowers
					ceiling.Store(max(ceiling.Load(), 100+20*j))
					session, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(money.MicroUSD(to))})
					below := new(BelowUsageError)
					if errors.As(err, &below) {
						session.Usage = below.Usage
					} else if err != nil {
						t.Error(err)
					}
					if u := session.Usage; u.ValueUsed+u.ValueHeld > u.MaxValue {
						t.Errorf("beyond the limit: %+v", u)
					}
				}
			})
		}
		changers.Wait()
		done.Store(true)
		spenders.Wait()
		usage := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage
		last := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{MaxValue: new(usage.ValueUsed + 10)}))(t)
		if usage.ValueHeld != 0 || usage.ValueUsed > usage.MaxValue || int64(usage.MaxValue) > ceiling.Load() {
			t.Errorf("%+v", usage)
		}
		for chargeFits(t, s, byToken(grant), w.session.ID, Charge{Count: 1, Value: 1}) {
		}
		if usage = must(s.Session(t.Context(), w.byKey(), w.session.ID))(t).Usage; usage.ValueUsed != last.MaxValue {
			t.Errorf("filled to %+v, want %s", usage, last.MaxValue)
		}
	})
}

func TestALimitThatChangedIsNotedAsUsedAgain(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		notes := func(want ...string) {
			t.Helper()
			w.wantNotes(t, s, want...)
		}
		charge := func(count int64, value money.MicroUSD) {
			_, _ = s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: count, Value: value})
		}
		change := func(to NewLimits) { must(s.ChangeLimits(t.Context(), w.key, w.session.ID, to))(t) }
		charge(10, 100)
		all := []string{"limit_warning max_actions", "limit_reached max_actions", "limit_warning max_value_usd", "limit_reached max_value_usd"}
		notes(all...)
		change(NewLimits{Lifetime: new(2 * time.Hour)}) // which is neither limit
		notes(all...)
		change(NewLimits{MaxActions: new(int64(11))}) // 10 of which are more than 80 % at once
		all = append(all, "limit_warning max_actions")
		notes(all...)
		charge(2, 0) // refused
		charge(1, 0)
		charge(1, 0)
		all = append(all, "limit_reached max_actions")
		notes(all...)
		change(NewLimits{MaxValue: new(money.MicroUSD(1000)), MaxActions: new(int64(100))})
		notes(all...)
		charge(1, 700)
		all = append(all, "limit_warning max_value_usd")
		notes(all...)
		charge(1, 300) // refused, for the first time under this limit
		all = append(all, "limit_reached max_value_usd")
		notes(all...)
		change(NewLimits{MaxValue: new(money.MicroUSD(800))}) // all of which is used
		all = append(all, "limit_warning max_value_usd", "limit_reached max_value_usd")
		notes(all...)
	})
}
