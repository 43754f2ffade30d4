package redisstore

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

func TestExchangeGrantsAFamilyAtGeneration1(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		first, second := w.exchange(t, s), w.exchange(t, s)
		for _, grant := range []Grant{first, second} {
			want := Grant{
				AccessToken: AccessToken{Organization: w.key.Organization, Agent: w.agent.ID, Family: grant.Family},
				Scopes:      []string{"read", "write"}, Audience: []string{Self}, Generation: 1,
			}
			if !reflect.DeepEqual(grant, want) {
				t.Errorf("%+v, want %+v", grant, want)
			}
			if kernel.CellOf(grant.Family) != kernel.CellOf(w.agent.ID) {
				t.Errorf("family %s of agent %s", grant.Family, w.agent.ID)
			}
		}
		if first.Family == second.Family {
			t.Error("two exchanges gave one family")
		}
	})
}

func TestExchangeRefusesEverythingAlike(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		revoked := newTenant(t, s, NewSession{MaxActions: 1})
		must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		before := w.contents(t, s)
		for _, test := range []struct {
			name   string
			agent  uuid.UUID
			secret [32]byte
		}{
			{"wrong secret", w.agent.ID, [32]byte{9}},
			{"empty secret", w.agent.ID, [32]byte{}},
			{"unknown agent", NewID(w.agent.ID), w.secret},
			{"unknown agent, empty secret", NewID(w.agent.ID), [32]byte{}},
			{"revoked agent", revoked.agent.ID, revoked.secret},
		} {
			grant, err := s.ExchangeSecret(t.Context(), test.agent, test.secret, GrantRequest{})
			if err != ErrInvalidCredentials || !reflect.DeepEqual(grant, Grant{}) {
				t.Errorf("%s: %+v, %v", test.name, grant, err)
			}
		}
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestRefreshOpensOneGenerationAfterTheOther(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := w.exchange(t, s)
		for generation := uint32(1); generation <= 4; generation++ {
			want := grant
			want.Generation = generation + 1
			got := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	})
}

func TestRefreshReturnsTheSuccessorOfASpentTokenAgainWithinTheGrace(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		family := w.exchange(t, s).Family
		for range 3 {
			w.refresh(t, s, family, 1, 2)
		}
		w.refresh(t, s, family, 2, 3)
		w.refresh(t, s, family, 2, 3)
	})
}

func TestRefreshesOfOneTokenAtOnceAllGetTheSameSuccessor(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		family := w.exchange(t, s).Family
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				grant, err := s.RotateRefresh(t.Context(), w.agent.ID, family, 1, GrantRequest{})
				if err != nil || grant.Generation != 2 {
					t.Errorf("generation %d, %v", grant.Generation, err)
				}
			})
		}
		wg.Wait()
		w.refresh(t, s, family, 2, 3)
	})
}

func TestReuseOfARefreshTokenRevokesItsFamilyAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		grace      time.Duration
		afterGrace bool
		spend      uint32 // generations spent before
		reused     uint32
	}{
		{"the predecessor, without grace", 0, false, 1, 1},
		{"the predecessor, after the grace", 20 * time.Millisecond, true, 1, 1},
		{"one before the predecessor, within the grace", time.Minute, false, 2, 1},
		{"long before the predecessor, within the grace", time.Minute, false, 5, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, Config{RefreshGrace: test.grace}, func(t *testing.T, s *Store) {
				w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
				grant, other := w.exchange(t, s), w.exchange(t, s)
				for generation := uint32(1); generation <= test.spend; generation++ {
					w.refresh(t, s, grant.Family, generation, generation+1)
				}

				reuse := func() error {
					_, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, test.reused, GrantRequest{})
					return err
				}
				err := reuse()
				if err == nil && test.afterGrace {
					eventually(t, "the grace is over", func() bool { err = reuse(); return err != nil })
				}
				wantError(t, "reuse", err, ErrTokenReused)

				w.wantRevoked(t, s, grant, test.spend+1)
				w.wantLive(t, s, other, 1)
			})
		})
	}
}

func TestRefreshFollowsATokenThatIsAheadOfRedis(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		family := w.exchange(t, s).Family
		w.refresh(t, s, family, 2, 3) // Redis has lost that 1 was spent
		w.refresh(t, s, family, 2, 3)
		w.refresh(t, s, family, 3, 4)
		_, err := s.RotateRefresh(t.Context(), w.agent.ID, family, 1, GrantRequest{})
		wantError(t, "one that it left behind", err, ErrTokenReused)
	})
}

func TestRefreshOfAFamilyThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		grant := w.exchange(t, s)
		lost := w.exchange(t, s)
		if err := peek(t, s).Del(t.Context(), s.keys.Family(w.agent.ID, lost.Family)).Err(); err != nil {
			t.Fatal(err)
		}
		for name, token := range map[string]struct{ agent, family uuid.UUID }{
			"unknown family":             {w.agent.ID, NewID(w.agent.ID)},
			"unknown agent":              {NewRootID(), grant.Family},
			"unknown agent of that cell": {NewID(w.agent.ID), grant.Family},
			"a family that Redis lost":   {w.agent.ID, lost.Family},
		} {
			for _, generation := range []uint32{1, 2} {
				_, err := s.RotateRefresh(t.Context(), token.agent, token.family, generation, GrantRequest{})
				wantError(t, name, err, ErrInvalidRefreshToken)
			}
		}
		w.refresh(t, s, grant.Family, 1, 2)
	})
}

func TestAFamilyLivesForTheRefreshLifetimeFromItsLastUse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshLifetime: time.Hour}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		key := s.keys.Family(w.agent.ID, w.exchange(t, s).Family)
		wantTTL(t, s, key, time.Hour)
		if err := peek(t, s).PExpire(t.Context(), key, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		family := must(uuid.Parse(key[len(key)-36:]))(t)
		w.refresh(t, s, family, 1, 2)
		wantTTL(t, s, key, time.Hour)
	})
}

func TestAnExpiredFamilyIsRefused(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{RefreshLifetime: 20 * time.Millisecond, RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		eventually(t, "the family is gone", func() bool {
			return must(peek(t, s).Exists(t.Context(), s.keys.Family(w.agent.ID, grant.Family)).Result())(t) == 0
		})
		_, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{})
		wantError(t, "refresh", err, ErrInvalidRefreshToken)
		// Its access token has a lifetime of its own.
		must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1}))(t)
	})
}

func TestRevokeFamilyEndsThatFamilyAlone(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant, other := w.exchange(t, s), w.exchange(t, s)
		w.refresh(t, s, grant.Family, 1, 2)
		for range 3 { // by its own access token, and again
			if err := s.RevokeFamily(t.Context(), grant.AccessToken, grant.Family); err != nil {
				t.Fatal(err)
			}
		}
		w.wantRevoked(t, s, grant, 2)
		w.wantLive(t, s, other, 1)
	})
}

func TestRevokeFamilyByAnotherFamilyOfTheAgent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant, other, third := w.exchange(t, s), w.exchange(t, s), w.exchange(t, s)
		for range 2 {
			if err := s.RevokeFamily(t.Context(), other.AccessToken, grant.Family); err != nil {
				t.Fatal(err)
			}
		}
		w.wantRevoked(t, s, grant, 1)
		wantError(t, "by a revoked family", s.RevokeFamily(t.Context(), grant.AccessToken, other.Family), ErrInvalidToken)
		w.wantLive(t, s, other, 1)
		w.wantLive(t, s, third, 1)
	})
}

// Within one cell the caller vouches for whose family it is: a refresh token's HMAC says so.
func TestRevokeFamilyDoesNotReachIntoAnotherCell(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
		grant := w.exchange(t, s)
		spy := putAgent(t, s, w.key, otherCell(w.agent.ID))
		_ = s.RevokeFamily(t.Context(), spy.AccessToken, grant.Family)
		w.wantLive(t, s, grant, 1)
	})
}

// The mark alone decides, whatever else Redis may have kept or brought back of the family.
func TestAMarkedFamilyIsRevokedThoughItsGenerationIsKept(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		family := w.exchange(t, s).Family
		mark := time.Now().Add(time.Hour).UnixMilli()
		must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), kernel.FamilyField(family), mark).Result())(t)
		for _, generation := range []uint32{0, 1, 2} {
			_, err := s.RotateRefresh(t.Context(), w.agent.ID, family, generation, GrantRequest{})
			wantError(t, "refresh", err, ErrInvalidRefreshToken)
		}
	})
}

// Marks stay while an access token of the family may live, and are dropped some time later.
func TestExchangesDropOnlyExpiredMarks(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		key := s.keys.Agent(w.agent.ID)
		before := must(peek(t, s).HGetAll(t.Context(), key).Result())(t)
		before["secret_used"] = "1"
		lapsed := time.Now().Add(-time.Millisecond)
		for range 10 {
			kept := kernel.FamilyField(NewID(w.agent.ID))
			before[kept] = "9999999999999"
			must(peek(t, s).HSet(t.Context(), key, kernel.FamilyField(NewID(w.agent.ID)), lapsed.UnixMilli(), kept, before[kept]).Result())(t)
		}
		revoked := w.exchange(t, s)
		if err := s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family); err != nil {
			t.Fatal(err)
		}
		mark := must(peek(t, s).HGet(t.Context(), key, kernel.FamilyField(revoked.Family)).Result())(t)
		before[kernel.FamilyField(revoked.Family)], before[kernel.BoundField(revoked.Family)] = mark, mark
		until := time.UnixMilli(must(strconv.ParseInt(mark, 10, 64))(t))
		if life := time.Until(until); life < defaultAccessLifetime+clockLeeway-time.Minute {
			t.Errorf("a fresh mark lives for %s", life)
		}

		var after map[string]string
		eventually(t, "every mark that has lapsed is dropped", func() bool {
			w.exchange(t, s)
			after = must(peek(t, s).HGetAll(t.Context(), key).Result())(t)
			return len(after) <= len(before)
		})
		if !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

// refresh spends a generation and checks which one it opens.
func (w tenant) refresh(t *testing.T, s *Store, family uuid.UUID, generation, want uint32) {
	t.Helper()
	grant := must(s.RotateRefresh(t.Context(), w.agent.ID, family, generation, GrantRequest{}))(t)
	if grant.Generation != want {
		t.Errorf("generation %d opened %d, want %d", generation, grant.Generation, want)
	}
}

// wantRevoked checks that no token of the grant's family is good for anything, and that asking changes nothing.
func (w tenant) wantRevoked(t *testing.T, s *Store, grant Grant, latest uint32) {
	t.Helper()
	before := w.contents(t, s)
	if n := must(peek(t, s).Exists(t.Context(), s.keys.Family(w.agent.ID, grant.Family)).Result())(t); n != 0 {
		t.Error("the revoked family is still kept")
	}
	for generation := uint32(1); generation <= latest+1; generation++ {
		_, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{})
		wantError(t, "refresh", err, ErrInvalidRefreshToken)
	}
	for _, operation := range askedByEither(byToken(grant)) {
		err := operation.ask(s, t, targetIn(w.agent.ID, w.session.ID))
		wantError(t, operation.name+" with its access token", err, ErrInvalidToken)
	}
	if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
		t.Errorf("%q became %q", before, after)
	}
}

// wantLive checks that the tokens of the grant's family are good, and spends the generation.
func (w tenant) wantLive(t *testing.T, s *Store, grant Grant, generation uint32) {
	t.Helper()
	session := w.newSession(t, s, time.Hour)
	for _, operation := range askedByEither(byToken(grant)) {
		wantError(t, operation.name, operation.ask(s, t, targetIn(w.agent.ID, session.ID)), map[string]error{
			"Charge": &NotActiveError{Completed}, "ChargeBatch": &NotActiveError{Completed}, // for EndSession comes before them
			"CreateChildSession": &NotActiveError{Completed}, "GrantLease": &NotActiveError{Completed}, "SettleLease": ErrUnknownLease,
			"Lease": ErrUnknownLease, "SessionRequest": ErrUnknownRequest, "Authorize": &NotActiveError{Completed},
			"Transaction": ErrUnknownTransaction, "Rollback": ErrUnknownTransaction,
		}[operation.name])
	}
	w.refresh(t, s, grant.Family, generation, generation+1)
}

// wantTTL checks that a key lives for so long from about now.
func wantTTL(t *testing.T, s *Store, key string, want time.Duration) {
	t.Helper()
	ttl := must(peek(t, s).PTTL(t.Context(), key).Result())(t)
	if ttl > want || ttl < want-time.Minute {
		t.Errorf("%s lives for %s, want %s", key, ttl, want)
	}
}

func TestAFamilyIsKeptInFewAndShortFields(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		for _, test := range []struct {
			scopes []string
			want   []string
		}{
			{nil, []string{"c", "g", "r"}},
			{[]string{"read"}, []string{"c", "g", "r", "sc"}},
		} {
			grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Scopes: test.scopes}))(t)
			for generation := uint32(1); generation <= 2; generation++ {
				kept := must(peek(t, s).HGetAll(t.Context(), s.keys.Family(w.agent.ID, grant.Family)).Result())(t)
				if fields := slices.Sorted(maps.Keys(kept)); !slices.Equal(fields, test.want) ||
					kept["g"] != strconv.Itoa(int(generation)) || kept["sc"] != strings.Join(test.scopes, " ") {
					t.Errorf("narrowed to %q, at generation %d: %q", test.scopes, generation, kept)
				}
				must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
			}
		}
	})
}
