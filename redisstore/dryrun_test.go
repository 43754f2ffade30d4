package redisstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// A dry run gives the usage or the refusal that the charge then gives, and changes nothing.
func TestADryChargeAnswersAsTheChargeAndWritesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100, Scopes: []string{"read"}})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		w.begin(t, s, grant.AccessToken, 20)
		ended, expired := w.newSession(t, s, time.Hour), w
		must(s.EndSession(t.Context(), w.byKey(), ended.ID))(t)
		expired.session = w.newSession(t, s, time.Hour)
		expired.letSessionPass(t, s)
		own := w.session.ID
		for _, test := range []struct {
			name    string
			caller  Caller
			session uuid.UUID
			charge  Charge
		}{
			{"fits", w.byKey(), own, Charge{Count: 2, Value: 10, Scope: "read"}},
			{"free", Caller{Token: &grant.AccessToken}, own, Charge{Count: 1}},
			{"reaches 80 %", w.byKey(), own, Charge{Count: 5, Value: 60}},
			{"too many actions", w.byKey(), own, Charge{Count: 2}},
			{"too much value beside what is held", w.byKey(), own, Charge{Count: 1, Value: 11}},
			{"the rest", w.byKey(), own, Charge{Count: 1, Value: 10}},
			{"a scope that the session lacks", w.byKey(), own, Charge{Count: 1, Scope: "write"}},
			{"an ended session", w.byKey(), ended.ID, Charge{Count: 1}},
			{"an expired session", w.byKey(), expired.session.ID, Charge{Count: 1}},
			{"an unknown session", w.byKey(), NewID(w.agent.ID), Charge{Count: 1}},
			{"a revoked family", Caller{Token: &dead.AccessToken}, own, Charge{Count: 1}},
		} {
			dry := test.charge
			dry.DryRun = true
			var would Usage
			var refusal error
			wantUnchanged(t, s, test.name, func() { would, refusal = s.Charge(t.Context(), test.caller, test.session, dry) })
			done, err := s.Charge(t.Context(), test.caller, test.session, test.charge)
			if would != done || !reflect.DeepEqual(refusal, err) {
				t.Errorf("%s: the dry run says %+v, %v; the charge %+v, %v", test.name, would, refusal, done, err)
			}
		}
	})
}

func TestADryBeginAnswersAsTheBeginAndWritesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 3, MaxValue: 100})
		grant, dead := w.exchange(t, s), w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), grant.AccessToken, dead.Family); err != nil {
			t.Fatal(err)
		}
		unknown := w.beginning(1)
		unknown.Session = NewID(w.agent.ID)
		for _, test := range []struct {
			name  string
			token AccessToken
			begin NewTransaction
		}{
			{"fits", grant.AccessToken, w.beginning(60)},
			{"too much value", grant.AccessToken, w.beginning(41)},
			{"the rest", grant.AccessToken, w.beginning(40)},
			{"nothing", grant.AccessToken, w.beginning(0)},
			{"too many actions", grant.AccessToken, w.beginning(0)},
			{"without a session", grant.AccessToken, w.alone(7)},
			{"an unknown session", grant.AccessToken, unknown},
			{"a revoked family", dead.AccessToken, w.alone(7)},
		} {
			dry := test.begin
			dry.DryRun = true
			var would Transaction
			var refusal error
			wantUnchanged(t, s, test.name, func() { would, refusal = s.Begin(t.Context(), test.token, dry) })
			if would.ID != uuid.Nil || refusal == nil && would.Expires.Sub(would.Created) != test.begin.Lifetime {
				t.Errorf("%s: %+v", test.name, would)
			}
			begun, err := s.Begin(t.Context(), test.token, test.begin)
			begun.ID, begun.Created, begun.Expires = would.ID, would.Created, would.Expires
			if !reflect.DeepEqual(would, begun) || !reflect.DeepEqual(refusal, err) {
				t.Errorf("%s: the dry run says %+v, %v; the begin %+v, %v", test.name, would, refusal, begun, err)
			}
		}
	})
}

// A dry run refuses what a quota would refuse, and takes nothing from it.
func TestADryBeginTakesNothingFromAQuota(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: money.USD})
		token := w.exchange(t, s).AccessToken
		if err := s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{"pending_transactions": 2}); err != nil {
			t.Fatal(err)
		}
		must(s.Quotas(t.Context(), w.key.Organization))(t)
		dry := w.beginning(1)
		dry.DryRun = true
		for range 5 {
			must(s.Begin(t.Context(), token, dry))(t)
		}
		w.begin(t, s, token, 1)
		w.begin(t, s, token, 1)
		wantUnchanged(t, s, "at the quota", func() {
			_, err := s.Begin(t.Context(), token, dry)
			wantError(t, "at the quota", err, &QuotaError{Quota: "pending_transactions", Used: 2, Max: 2})
		})
	})
}

// Like a read, a dry run releases holds whose time is up, and counts what they leave.
func TestADryChargeSeesWhatExpiredHoldsLeave(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100})
		grant := w.exchange(t, s)
		w.letPass(t, s, w.begin(t, s, grant.AccessToken, 90))
		would := must(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 100, DryRun: true}))(t)
		if would.ValueUsed != 100 || would.ValueHeld != 0 || would.ActionCount != 2 {
			t.Errorf("%+v", would)
		}
		w.wantUsage(t, s, Usage{MaxActions: 10, ActionCount: 1, MaxValue: 100, Expires: w.session.Expires})
	})
}
