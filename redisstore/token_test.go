package redisstore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
)

func TestACredentialThatIsNotTheAgentsIsRefusedAlike(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		revoked := newTenant(t, s, roomy)
		must(s.RevokeAgent(t.Context(), revoked.key, revoked.agent.ID))(t)
		defer w.unchanged(t, s)()
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
			organization, err := s.CheckSecret(t.Context(), test.agent, test.secret)
			if err != ErrInvalidCredentials || organization != uuid.Nil {
				t.Errorf("%s, checked: organization %s, %v", test.name, organization, err)
			}
		}
	})
}

func TestARefreshTokenOpensTheNextAndItsReuseEndsItsFamilyAlone(t *testing.T) {
	t.Parallel()
	const brief = 20 * time.Millisecond
	for _, test := range []struct {
		name   string
		grace  time.Duration
		spent  []uint32 // generations that are presented in turn, each of which opens the next
		reused uint32   // one that is presented again then, which is reuse; 0 for none
	}{
		{"in turn", time.Minute, []uint32{1, 2, 3, 4}, 0},
		{"again within the grace, as the answer was lost", time.Minute, []uint32{1, 1, 1, 2, 2}, 0},
		{"ahead of Redis, which has lost that the first was spent", time.Minute, []uint32{2, 2, 3}, 1},
		{"the predecessor, without grace", 0, []uint32{1}, 1},
		{"the predecessor, after the grace", brief, []uint32{1}, 1},
		{"one before the predecessor, within the grace", time.Minute, []uint32{1, 2}, 1},
		{"long before the predecessor, within the grace", time.Minute, []uint32{1, 2, 3, 4, 5}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTenant(t, Config{RefreshGrace: test.grace}, func(t *testing.T, s *Store, w tenant) {
				grant, other, latest := w.exchange(t, s), w.exchange(t, s), uint32(1)
				for _, generation := range test.spent {
					want := grant
					want.Generation, want.Replayed = generation+1, generation < latest
					got := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
					wantEqual(t, "the grant", got, want)
					latest = got.Generation
				}
				if test.reused == 0 {
					w.refresh(t, s, grant.Family, latest, latest+1)
					return
				}
				reuse := func() error {
					return errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, test.reused, GrantRequest{}))
				}
				err := reuse()
				if err == nil && test.grace == brief {
					eventually(t, "the grace is over", func() bool { err = reuse(); return err != nil })
				}
				wantError(t, "reuse", err, ErrTokenReused)
				w.wantRevoked(t, s, grant, latest)
				w.wantLive(t, s, other, 1)
			})
		})
	}
}

func TestRefreshesOfOneTokenAtOnceAllGetTheSameSuccessor(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		family := w.exchange(t, s).Family
		concurrently(t, 32, func(int) { w.refresh(t, s, family, 1, 2) })
		w.refresh(t, s, family, 2, 3)
	})
}

func TestAFamilyLivesForTheRefreshLifetimeFromItsLastUse(t *testing.T) {
	onTenant(t, Config{RefreshLifetime: time.Hour, RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		key := s.keys.Family(w.agent.ID, grant.Family)
		wantTTL(t, s, key, time.Hour)
		mustDo(t, peek(t, s).PExpire(t.Context(), key, time.Minute).Err())
		w.refresh(t, s, grant.Family, 1, 2)
		wantTTL(t, s, key, time.Hour)
		mustDo(t, peek(t, s).Del(t.Context(), key).Err()) // as Redis does then
		w.wantNoRefresh(t, s, grant.Family, 2)
		// Its access token has a lifetime of its own.
		must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1}))(t)
	})
}

// A revocation may be repeated: the first answer may have been lost.
func TestARevocationEndsAllTokensOfAFamilyHoweverItIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(t *testing.T, s *Store, w tenant, by, token AccessToken) error{
		"by its own token": func(t *testing.T, s *Store, _ tenant, _, token AccessToken) error {
			return s.RevokeFamily(t.Context(), token, token.Family)
		},
		"by another family's token": func(t *testing.T, s *Store, _ tenant, by, token AccessToken) error {
			return s.RevokeFamily(t.Context(), by, token.Family)
		},
		"by a key": func(t *testing.T, s *Store, w tenant, _, token AccessToken) error {
			return s.EndFamily(t.Context(), w.key, w.agent.ID, token.Family)
		},
	} {
		for _, bind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, bound: %t", name, bind), func(t *testing.T) {
				onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
					grant, asked := w.exchange(t, s), GrantRequest{}
					if bind {
						asked.Proof = newProof(1)
						grant.AccessToken = bound(must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, asked))(t))
						asked.Proof = newProof(1)
						wantError(t, "a proof", s.UseProof(t.Context(), grant.AccessToken, *newProof(1)), nil)
					}
					must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, asked))(t)
					other, third := w.exchange(t, s), w.exchange(t, s)
					must(s.Session(t.Context(), byToken(grant), w.session.ID))(t)
					for range 3 {
						wantError(t, "the revocation", revoke(t, s, w, other.AccessToken, grant.AccessToken), nil)
					}
					w.wantEvents(t, s, "token.revoked", 1)
					if !bind {
						w.wantFamilies(t, s, third.Family, other.Family)
					}
					w.wantRevoked(t, s, grant, 2)
					wantError(t, "a proof", s.UseProof(t.Context(), grant.AccessToken, *newProof(1)), ErrInvalidToken)
					wantError(t, "a verification", errOf(s.VerifyProof(t.Context(), grant.AccessToken, *newProof(1))), ErrInvalidToken)
					wantError(t, "by a revoked family", s.RevokeFamily(t.Context(), grant.AccessToken, third.Family), ErrInvalidToken)
					w.wantLive(t, s, other, 1)
					w.wantLive(t, s, third, 1)
				})
			})
		}
	}
}

// Within one cell the caller vouches for whose family it is: a refresh token's HMAC says so.
func TestRevokeFamilyDoesNotReachIntoAnotherCell(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		spy := putAgent(t, s, w.key, otherCell(w.agent.ID))
		_ = s.RevokeFamily(t.Context(), spy.AccessToken, grant.Family)
		w.wantLive(t, s, grant, 1)
	})
}

// The mark alone decides, whatever else Redis may have kept or brought back of the family.
func TestAMarkedFamilyIsRevokedThoughItsGenerationIsKept(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		family := w.exchange(t, s).Family
		mark := time.Now().Add(time.Hour).UnixMilli()
		must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), kernel.FamilyField(family), mark).Result())(t)
		w.wantNoRefresh(t, s, family, 1)
	})
}

// Marks stay while an access token of the family may live, and are dropped some time later.
func TestExchangesDropOnlyExpiredMarks(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		key := s.keys.Agent(w.agent.ID)
		before := must(peek(t, s).HGetAll(t.Context(), key).Result())(t)
		before["secret_used"] = "1"
		lapsed := time.Now().Add(-time.Millisecond)
		for range 10 {
			kept, dropped := kernel.FamilyField(NewID(w.agent.ID)), NewID(w.agent.ID)
			before[kept] = "9999999999999"
			must(peek(t, s).HSet(t.Context(), key, kept, before[kept], kernel.FamilyField(dropped), lapsed.UnixMilli(),
				kernel.BoundField(dropped), lapsed.UnixMilli()).Result())(t)
		}
		revoked := w.exchange(t, s)
		mustDo(t, s.RevokeFamily(t.Context(), revoked.AccessToken, revoked.Family))
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
		wantEqual(t, "the agent afterwards", after, before)
	})
}

// refresh spends a generation and checks which one it opens.
func (w tenant) refresh(t *testing.T, s *Store, family uuid.UUID, generation, want uint32) {
	t.Helper()
	grant := must(s.RotateRefresh(t.Context(), w.agent.ID, family, generation, GrantRequest{}))(t)
	wantEqual(t, fmt.Sprintf("what generation %d opened", generation), grant.Generation, want)
}

// wantRevoked checks that no token of the grant's family is good for anything, and that asking changes nothing.
func (w tenant) wantRevoked(t *testing.T, s *Store, grant Grant, latest uint32) {
	t.Helper()
	defer w.unchanged(t, s)()
	wantGone(t, s, s.keys.Family(w.agent.ID, grant.Family))
	w.wantNoRefresh(t, s, grant.Family, latest)
	for _, operation := range slices.Concat(askedByEither(byToken(grant)), askedByAgent(grant.AccessToken)) {
		err := operation.ask(s, t, targetIn(w.agent.ID, w.session.ID))
		wantError(t, operation.name+" with its access token", err, ErrInvalidToken)
	}
}

// wantNoRefresh checks that no refresh token of the family opens another or passes for live, up to the one after the latest.
func (w tenant) wantNoRefresh(t *testing.T, s *Store, family uuid.UUID, latest uint32) {
	t.Helper()
	for generation := range latest + 2 {
		wantError(t, "refresh", errOf(s.RotateRefresh(t.Context(), w.agent.ID, family, generation, GrantRequest{})), ErrInvalidRefreshToken)
		wantError(t, "check", errOf2(s.CheckRefresh(t.Context(), w.agent.ID, family, generation)), ErrInvalidRefreshToken)
	}
}

// wantLive checks that the tokens of the grant's family are good, and spends the generation.
func (w tenant) wantLive(t *testing.T, s *Store, grant Grant, generation uint32) {
	t.Helper()
	wantError(t, "CheckToken", s.CheckToken(t.Context(), grant.AccessToken), nil)
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
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		for _, test := range []struct {
			asked GrantRequest
			want  []string
		}{
			{GrantRequest{}, []string{"c", "g", "r"}},
			{GrantRequest{Scopes: []string{"read"}}, []string{"c", "g", "r", "sc"}},
			{audiences(Self), []string{"c", "g", "r"}},
			{audiences(Self, mail), []string{"au", "c", "g", "r"}},
		} {
			grant := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, test.asked))(t)
			for generation := uint32(1); generation <= 2; generation++ {
				kept := must(peek(t, s).HGetAll(t.Context(), s.keys.Family(w.agent.ID, grant.Family)).Result())(t)
				if fields := slices.Sorted(maps.Keys(kept)); !slices.Equal(fields, test.want) ||
					kept["g"] != strconv.Itoa(int(generation)) || kept["sc"] != strings.Join(test.asked.Scopes, " ") {
					t.Errorf("asked for %+v, at generation %d: %q", test.asked, generation, kept)
				}
				must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t)
			}
		}
	})
}

// wantGone checks that the store has no such key.
func wantGone(t *testing.T, s *Store, keys ...string) {
	t.Helper()
	wantEqual(t, "how many of the keys are left", must(peek(t, s).Exists(t.Context(), keys...).Result())(t), 0)
}
