package redisstore

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
)

func TestFamiliesAreListedNewestFirstUntilTheyEnd(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		before := time.Now().Add(-time.Second)
		var want []uuid.UUID
		for range 5 {
			want = append(want, w.exchange(t, s).Family)
		}
		slices.Reverse(want)
		w.wantFamilies(t, s, want...)

		families := must(s.Families(t.Context(), w.key, w.agent.ID, Query{Limit: 10}))(t).Items
		for _, f := range families {
			if f.Created.Before(before) || f.Created.After(time.Now().Add(time.Second)) || !f.LastUsed.Equal(f.Created) ||
				!f.Expires.Equal(f.Created.Add(7*24*time.Hour)) {
				t.Errorf("%+v", f)
			}
		}
		w.refresh(t, s, want[0], 1, 2)
		if again := must(s.Families(t.Context(), w.key, w.agent.ID, Query{Limit: 1}))(t).Items[0]; again.LastUsed.Before(families[0].LastUsed) ||
			!again.Created.Equal(families[0].Created) || again.Expires.Sub(again.LastUsed) != 7*24*time.Hour {
			t.Errorf("refreshed, %+v became %+v", families[0], again)
		}

		byAgent := must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{}))(t)
		mustDo(t, s.RevokeFamily(t.Context(), byAgent.AccessToken, byAgent.Family))
		mustDo(t, peek(t, s).Del(t.Context(), s.keys.Family(w.agent.ID, want[1])).Err()) // as Redis does in the end
		w.letFamilyAge(t, s, want[4], 91*24*time.Hour)
		w.wantFamilies(t, s, want[0], want[2], want[3])

		must(s.RevokeAgent(t.Context(), w.key, w.agent.ID))(t)
		w.wantFamilies(t, s)
	})
}

// Agents of one cell share a slot, so a family's key is found for any of them.
func TestEndFamilyReachesNoOtherAgentsFamily(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		grant := w.exchange(t, s)
		for name, agent := range map[string]uuid.UUID{"of its cell": NewID(w.agent.ID), "of another cell": otherCell(w.agent.ID)} {
			neighbour := putAgent(t, s, w.key, agent)
			wantError(t, "by an agent "+name, s.EndFamily(t.Context(), w.key, neighbour.Agent, grant.Family), ErrUnknownFamily)
		}
		wantError(t, "of none", s.EndFamily(t.Context(), w.key, w.agent.ID, NewID(w.agent.ID)), ErrUnknownFamily)
		w.wantLive(t, s, grant, 1)
	})
}

// revokeFamilies revokes all tokens of an agent by a rotation of its secret, which stays valid for an hour.
func revokeFamilies(ctx context.Context, s *Store, key APIKey, agent uuid.UUID) error {
	return errOf(s.RotateAgentSecret(ctx, key, agent, SecretRotation{Hash: [32]byte{99}, Grace: time.Hour, RevokeFamilies: true}, nil))
}

func TestRevokeFamiliesEndsAllOfThemOnEveryInstanceAndNoLaterOne(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		for round := range 2 {
			var ended []Grant
			for range 3 {
				ended = append(ended, w.exchange(t, s))
			}
			ended[0].AccessToken = bound(must(s.ExchangeSecret(t.Context(), w.agent.ID, w.secret, GrantRequest{Proof: newProof(1)}))(t))
			must(s.Session(t.Context(), byToken(ended[0]), w.session.ID))(t)
			wantError(t, "RevokeFamilies", revokeFamilies(t.Context(), s, w.key, w.agent.ID), nil)
			for _, grant := range ended {
				w.wantRevoked(t, s, grant, 1)
			}
			wantError(t, "a proof", s.UseProof(t.Context(), ended[0].AccessToken, *newProof(1)), ErrInvalidToken)
			w.wantFamilies(t, s)
			w.wantEvents(t, s, "agent.families_revoked", round+1)

			later := w.exchange(t, s)
			w.wantFamilies(t, s, later.Family)
			w.wantLive(t, s, later, 1)
			wantError(t, "CheckRefresh of a later one", errOf2(s.CheckRefresh(t.Context(), w.agent.ID, later.Family, 2)), nil)
		}
	})
}

// More than one script marks; and some have opened one family, or many, meanwhile.
func TestRevokeFamiliesEndsManyFamilies(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		ended := make([]Grant, 2*endFamiliesAtOnce+8)
		concurrently(t, 8, func(part int) {
			for i := part; i < len(ended); i += 8 {
				ended[i] = w.exchange(t, s)
			}
		})
		wantError(t, "RevokeFamilies", revokeFamilies(t.Context(), s, w.key, w.agent.ID), nil)
		for _, grant := range ended {
			wantError(t, "CheckToken", s.CheckToken(t.Context(), grant.AccessToken), ErrInvalidToken)
			wantError(t, "RotateRefresh", errOf(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{})), ErrInvalidRefreshToken)
		}
	})
}

// A family that lost its mark and key, or is in no index, still cannot be refreshed.
func TestRevokeFamiliesEndsARefreshTokenThatNoIndexHas(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		family := w.exchange(t, s).Family
		mustDo(t, peek(t, s).Del(t.Context(), s.keys.AgentFamilies(w.agent.ID)).Err())
		wantError(t, "RevokeFamilies", revokeFamilies(t.Context(), s, w.key, w.agent.ID), nil)
		w.wantNoRefresh(t, s, family, 1)
	})
}

func TestAFamilyEndsForGoodHoweverOftenItIsRefreshed(t *testing.T) {
	const lifetime = 30 * 24 * time.Hour
	onTenant(t, Config{FamilyLifetime: lifetime, RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		family := w.exchange(t, s).Family
		key := s.keys.Family(w.agent.ID, family)
		w.letFamilyAge(t, s, family, lifetime-time.Hour+time.Second)
		w.refresh(t, s, family, 1, 2)
		wantTTL(t, s, key, time.Hour)
		if _, expires := must2(s.CheckRefresh(t.Context(), w.agent.ID, family, 2))(t); time.Until(expires) > time.Hour+time.Minute {
			t.Errorf("its token expires %s", expires)
		}
		if f := must(s.Families(t.Context(), w.key, w.agent.ID, Query{Limit: 1}))(t).Items[0]; time.Until(f.Expires) > time.Hour+time.Minute {
			t.Errorf("%+v", f)
		}

		w.letFamilyAge(t, s, family, lifetime+time.Second)
		w.wantNoRefresh(t, s, family, 2)
		w.wantFamilies(t, s)
	})
}

func TestAFamilyThatIsNeverRefreshedEndsByItsLifetime(t *testing.T) {
	onTenant(t, Config{FamilyLifetime: time.Hour}, func(t *testing.T, s *Store, w tenant) {
		wantTTL(t, s, s.keys.Family(w.agent.ID, w.exchange(t, s).Family), time.Hour)
	})
}

// An index entry says until when a family may live at the latest; a refresh moves it only now and then.
func TestTheIndexNeverForgetsAFamilyThatLives(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		family := w.exchange(t, s).Family
		index := s.keys.AgentFamilies(w.agent.ID)
		until := func() time.Time {
			score := must(peek(t, s).ZScore(t.Context(), index, string(family[:14])).Result())(t)
			return time.Unix(int64(score), 0)
		}
		first := until()
		if life := time.Until(first); life < 7*24*time.Hour || life > 8*24*time.Hour {
			t.Errorf("it is kept for %s", life)
		}
		for generation := uint32(1); generation < 4; generation++ {
			w.refresh(t, s, family, generation, generation+1)
		}
		if got := until(); !got.Equal(first) && got.Sub(first) != 21*time.Hour { // unless a period has just begun
			t.Errorf("the entry moved from %s to %s", first, got)
		}
		// It was refreshed a period ago, and its entry written then.
		ago := time.Now().Add(-21 * time.Hour).UnixMilli()
		must(peek(t, s).HSet(t.Context(), s.keys.Family(w.agent.ID, family), "r", ago).Result())(t)
		must(peek(t, s).ZAdd(t.Context(), index, redis.Z{Score: float64(first.Add(-21 * time.Hour).Unix()), Member: string(family[:14])}).Result())(t)
		w.refresh(t, s, family, 4, 5)
		if got := until(); got.Before(first) {
			t.Errorf("the entry ends at %s, before %s", got, first)
		}
	})
}

func TestExchangesDropEntriesOfFamiliesThatHaveEnded(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		w.putFamilies(t, s, 40, time.Now().Add(-time.Minute))
		w.putFamilies(t, s, 20, time.Now().Add(time.Hour))
		made := int64(0)
		eventually(t, "there are only entries of what lives, and new ones", func() bool {
			w.exchange(t, s)
			made++
			return must(peek(t, s).ZCard(t.Context(), s.keys.AgentFamilies(w.agent.ID)).Result())(t) == 20+made
		})
		if made > 40*8 {
			t.Errorf("it took %d exchanges to drop 40 entries", made)
		}
	})
}

func TestAnExchangeBeyondTenThousandFamiliesEndsThoseUnusedForLongest(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		const most = 10_000
		oldest, used := w.exchange(t, s), w.exchange(t, s)
		w.putFamilies(t, s, most-2, time.Now().Add(30*24*time.Hour))
		index, member := s.keys.AgentFamilies(w.agent.ID), string(used.Family[:14])
		must(peek(t, s).ZIncrBy(t.Context(), index, 60, member).Result())(t) // it was refreshed later than the other
		count := func() int64 { return must(peek(t, s).ZCard(t.Context(), index).Result())(t) }
		wantEqual(t, "entries", count(), most)
		w.exchange(t, s)
		wantEqual(t, "entries after one more", count(), most)
		w.wantRevoked(t, s, oldest, 1)
		w.wantEvents(t, s, "token.revoked", 1)

		w.putFamilies(t, s, 20, time.Now().Add(40*24*time.Hour)) // as if as many came at once
		for range 3 {
			w.exchange(t, s)
		}
		wantEqual(t, "entries after exchanges at once", count(), most)
		w.wantRevoked(t, s, used, 1)
	})
}

// Two holders of the same token present it in turn, and each gets the other's successor.
func TestTwoGenerationsInARowThatAreReplayedLateAreReuse(t *testing.T) {
	t.Parallel()
	const atOnce, late = 5 * time.Second, 11 * time.Second
	for _, test := range []struct {
		name    string
		replays []time.Duration // of each generation in turn: how long after it was spent; 0 for none
		reuse   bool            // the last one is
		noted   int             // events of replays
	}{
		{"an answer is lost", []time.Duration{late}, false, 1},
		{"two answers in a row are lost", []time.Duration{late, late}, true, 1},
		{"processes share a token and refresh at once", []time.Duration{atOnce, atOnce, atOnce, atOnce}, false, 4},
		{"an answer is lost, then at once", []time.Duration{late, atOnce, late}, false, 3},
		{"an answer is lost every other time", []time.Duration{late, 0, late, 0, late}, false, 3},
		{"in turn, after a while", []time.Duration{atOnce, 0, late, late}, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
				grant := w.exchange(t, s)
				for i, after := range test.replays {
					generation := uint32(i + 1)
					w.refresh(t, s, grant.Family, generation, generation+1)
					if after == 0 {
						continue
					}
					w.letSpent(t, s, grant.Family, after)
					if test.reuse && i == len(test.replays)-1 {
						_, err := s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{})
						wantError(t, "the last replay", err, ErrTokenReused)
						w.wantRevoked(t, s, grant, generation+1)
						w.wantFamilies(t, s)
						break
					}
					for range 3 { // more of the same generation is no more
						if again := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, generation, GrantRequest{}))(t); again.Generation != generation+1 || !again.Replayed {
							t.Errorf("replayed, generation %d opened %+v", generation, again)
						}
					}
				}
				w.wantEvents(t, s, "token.replayed", test.noted)
			})
		})
	}
}

// It is one event when a generation is presented again the first time, and one when that is late the first time.
func TestAReplayIsAnEventThatSaysWhenTheTokenWasSpent(t *testing.T) {
	onTenant(t, Config{RefreshGrace: time.Minute}, func(t *testing.T, s *Store, w tenant) {
		family := w.exchange(t, s).Family
		w.refresh(t, s, family, 1, 2)
		w.refresh(t, s, family, 1, 2)
		spent := w.letSpent(t, s, family, 30*time.Second)
		for range 3 {
			w.refresh(t, s, family, 1, 2)
		}
		w.wantEvents(t, s, "token.replayed", 2)
		events := w.eventsOf(t, s, w.agent.ID)
		if last := events[len(events)-1]; last.Type != "token.replayed" || last.Family != family || !time.Time(last.Spent).Equal(spent) {
			t.Errorf("%+v, want a replay of what was spent at %s", last, spent)
		}
	})
}

// putFamilies writes entries into the index of the tenant's agent as if so many families lived until then.
func (w tenant) putFamilies(t *testing.T, s *Store, count int, until time.Time) {
	t.Helper()
	entries := make([]redis.Z, count)
	for i := range entries {
		id := NewID(w.agent.ID)
		entries[i] = redis.Z{Score: float64(until.Unix()), Member: string(id[:14])}
	}
	must(peek(t, s).ZAdd(t.Context(), s.keys.AgentFamilies(w.agent.ID), entries...).Result())(t)
}

// letFamilyAge makes a family that long old.
func (w tenant) letFamilyAge(t *testing.T, s *Store, family uuid.UUID, age time.Duration) {
	t.Helper()
	created := time.Now().Add(-age).Sub(kernel.MadeAt(family)).Milliseconds()
	must(peek(t, s).HSet(t.Context(), s.keys.Family(w.agent.ID, family), "c", created).Result())(t)
}

// letSpent makes the last spent generation of a family spent that long ago, and returns since when it is.
func (w tenant) letSpent(t *testing.T, s *Store, family uuid.UUID, ago time.Duration) time.Time {
	t.Helper()
	spent := must(peek(t, s).Time(t.Context()).Result())(t).Add(-ago).Truncate(time.Millisecond)
	must(peek(t, s).HSet(t.Context(), s.keys.Family(w.agent.ID, family), "r", strconv.FormatInt(spent.UnixMilli(), 10)).Result())(t)
	return spent
}

// wantFamilies checks which families are listed, whatever the size of a page.
func (w tenant) wantFamilies(t *testing.T, s *Store, want ...uuid.UUID) {
	t.Helper()
	for _, limit := range []int{1, 2, 200} {
		var got []uuid.UUID
		read := func(q Query) (Page[Family], error) { return s.Families(t.Context(), w.key, w.agent.ID, q) }
		all, _ := followed(t, Query{Limit: limit}, read, nil)
		for _, f := range all {
			got = append(got, f.ID)
		}
		wantEqual(t, "the families, by "+strconv.Itoa(limit)+" a page", got, want)
	}
}
