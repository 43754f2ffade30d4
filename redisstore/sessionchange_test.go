package redisstore

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

func TestChangeLimitsChangesWhatItNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		to   NewLimits
	}{
		{"more actions", NewLimits{MaxActions: new(int64(1_000_000_000))}},
		{"fewer actions, all of which are used", NewLimits{MaxActions: new(int64(3))}},
		{"more value", NewLimits{MaxValue: new(money.Max)}},
		{"less value, all of which is used or held", NewLimits{MaxValue: new(money.MicroUSD(70))}},
		{"the same limits", NewLimits{MaxActions: new(int64(10)), MaxValue: new(money.MicroUSD(100))}},
		{"a longer life", NewLimits{Lifetime: new(30 * 24 * time.Hour)}},
		{"a shorter life", NewLimits{Lifetime: new(time.Second)}},
		{"all of them", NewLimits{MaxActions: new(int64(11)), MaxValue: new(money.MicroUSD(101)), Lifetime: new(2 * time.Hour)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, Scopes: []string{"read"}, Metadata: `{"n":1}`})
				w.begin(t, s, w.exchange(t, s).AccessToken, 40)
				must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 2, Value: 30}))(t)
				want := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				if test.to.MaxActions != nil {
					want.MaxActions = *test.to.MaxActions
				}
				if test.to.MaxValue != nil {
					want.MaxValue = *test.to.MaxValue
				}
				before := time.Now().Add(-time.Millisecond)
				changed := must(s.ChangeLimits(t.Context(), w.key, w.session.ID, test.to))(t)
				if test.to.Lifetime != nil {
					if from := changed.Expires.Add(-*test.to.Lifetime); from.Before(before) || from.After(time.Now()) {
						t.Errorf("it expires %s after %s", *test.to.Lifetime, from)
					}
					want.Expires = changed.Expires
				}
				read := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
				if !reflect.DeepEqual(changed, want) || !reflect.DeepEqual(read, want) {
					t.Errorf("changed to %+v, read %+v, want %+v", changed, read, want)
				}
				_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: want.MaxActions - want.ActionCount + 1})
				wantError(t, "too many actions", err, &LimitError{"max_actions", want.Usage})
				_, err = s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Value: want.MaxValue - 70 + 1})
				wantError(t, "too much value", err, &LimitError{"max_value_usd", want.Usage})
				must(s.Charge(t.Context(), w.byKey(), w.session.ID,
					Charge{Count: want.MaxActions - want.ActionCount, Value: want.MaxValue - 70}))(t)
			})
		})
	}
}

func TestALimitIsNeverSetBelowWhatIsUsedAndHeld(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		w.begin(t, s, w.exchange(t, s).AccessToken, 40)
		usage := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 2, Value: 30}))(t)
		more := new(int64(20))
		for name, test := range map[string]struct {
			to    NewLimits
			limit string
		}{
			"one action too few":                  {NewLimits{MaxActions: new(int64(2))}, "max_actions"},
			"no action":                           {NewLimits{MaxActions: new(int64(0))}, "max_actions"},
			"one too little value":                {NewLimits{MaxValue: new(money.MicroUSD(69))}, "max_value_usd"},
			"value for what is used alone":        {NewLimits{MaxValue: new(money.MicroUSD(30))}, "max_value_usd"},
			"no value":                            {NewLimits{MaxValue: new(money.MicroUSD(0))}, "max_value_usd"},
			"too little of both":                  {NewLimits{MaxActions: new(int64(1)), MaxValue: new(money.MicroUSD(1))}, "max_actions"},
			"too little value, with other wishes": {NewLimits{MaxActions: more, MaxValue: new(money.MicroUSD(1)), Lifetime: new(2 * time.Hour)}, "max_value_usd"},
		} {
			wantUnchanged(t, s, name, func() {
				session, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, test.to)
				wantError(t, name, err, &BelowUsageError{test.limit, usage})
				if !reflect.DeepEqual(session, Session{}) {
					t.Errorf("%s: %+v", name, session)
				}
			})
		}
	})
}

func TestOnlyAnActiveSessionsLimitsChange(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Completed, Expired, Revoked} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
				w := newSessionThatIs(t, s, status)
				wantUnchanged(t, s, string(status), func() {
					for _, to := range []NewLimits{{Lifetime: new(time.Hour)}, {MaxActions: new(int64(0))}} {
						_, err := s.ChangeLimits(t.Context(), w.key, w.session.ID, to)
						wantError(t, "ChangeLimits", err, &NotActiveError{status})
					}
				})
			})
		})
	}
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

func TestASessionWithAShortenedLifetimeExpiresAtItsNewTime(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10})
		must(s.ChangeLimits(t.Context(), w.key, w.session.ID, NewLimits{Lifetime: new(20 * time.Millisecond)}))(t)
		w.waitUntil(t, s, Expired)
		_, err := s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1})
		wantError(t, "Charge", err, &NotActiveError{Expired})
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
