package redisstore

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore/internal/kernel"
)

// mostTokenMarks is the bound of lua/identity/end_family.lua.
const mostTokenMarks = 1000

// tokenID returns an id as tokens of the agent without a refresh token have it in this epoch.
func (w tenant) tokenID(epoch byte) uuid.UUID {
	id := kernel.NewTokenID(w.agent.ID)
	id[9], id[10], id[11] = 0, 0, epoch
	return id
}

// endToken revokes a token of the agent by its id, and checks that it is refused from then on if that succeeds.
func (w tenant) endToken(t *testing.T, s *Store, id uuid.UUID, want error) {
	t.Helper()
	wantError(t, "EndFamily", s.EndFamily(t.Context(), w.key, w.agent.ID, id), want)
	live := s.CheckToken(t.Context(), AccessToken{Organization: w.key.Organization, Agent: w.agent.ID, Family: id})
	wantError(t, "CheckToken", live, map[bool]error{true: ErrInvalidToken}[want == nil])
}

// putTokenMarks marks tokens of an epoch as end_family.lua does, and returns one of them.
func (w tenant) putTokenMarks(t *testing.T, s *Store, epoch byte, count int, until time.Time) uuid.UUID {
	t.Helper()
	var marks []any
	var entries []redis.Z
	var id uuid.UUID
	for range count {
		id = w.tokenID(epoch)
		marks = append(marks, kernel.FamilyField(id), until.UnixMilli(), kernel.BoundField(id), until.UnixMilli())
		entries = append(entries, redis.Z{Score: float64(int64(epoch)<<33 + until.Unix()), Member: string(id[:14])})
	}
	must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), marks...).Result())(t)
	must(peek(t, s).ZAdd(t.Context(), s.keys.TokenMarks(w.agent.ID), entries...).Result())(t)
	return id
}

// Nothing says which tokens without a refresh token were issued, so marks for ids that were made up must have a bound.
func TestSoManyTokensWithoutAFamilyAreRevokedOneByOne(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		first := w.tokenID(0)
		w.endToken(t, s, first, nil)
		w.putTokenMarks(t, s, 0, mostTokenMarks-8, time.Now().Add(time.Hour))
		var ended atomic.Int64
		instances := []*Store{s, anotherInstance(t, s)}
		concurrently(t, 4, func(i int) {
			for range 8 {
				if err := instances[i%2].EndFamily(t.Context(), w.key, w.agent.ID, w.tokenID(0)); err == nil {
					ended.Add(1)
				} else {
					wantError(t, "EndFamily", err, ErrManyMarks)
				}
			}
		})
		wantEqual(t, "how many were revoked below the bound", ended.Load(), 7)
		w.endToken(t, s, w.tokenID(0), ErrManyMarks)
		w.endToken(t, s, first, nil)
		grant := w.exchange(t, s) // a family has room
		wantError(t, "EndFamily", s.EndFamily(t.Context(), w.key, w.agent.ID, grant.Family), nil)
		w.wantRevoked(t, s, grant, 1)

		wantError(t, "RevokeFamilies", revokeFamilies(t.Context(), s, w.key, w.agent.ID), nil)
		for range 20 {
			w.endToken(t, s, w.tokenID(1), nil)
		}
		w.endToken(t, s, first, nil)
		if n := must(peek(t, s).ZCard(t.Context(), s.keys.TokenMarks(w.agent.ID)).Result())(t); n > mostTokenMarks {
			t.Errorf("%d marks", n)
		}
		wantError(t, "of a later epoch", s.EndFamily(t.Context(), w.key, w.agent.ID, w.tokenID(2)), ErrUnknownFamily)
		elsewhere := w.tokenID(1)
		elsewhere[15]++
		wantError(t, "of another cell", s.EndFamily(t.Context(), w.key, w.agent.ID, elsewhere), ErrUnknownFamily)
	})
}

// An agent, or a thief of its secret, revokes as many of its families as it likes.
func TestMarksOfFamiliesLeaveRoomForThoseOfTokens(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		var marks []any
		for range 20_001 {
			id := NewID(w.agent.ID)
			marks = append(marks, kernel.FamilyField(id), "9999999999999", kernel.BoundField(id), "9999999999999")
		}
		for part := range slices.Chunk(marks, 8000) {
			must(peek(t, s).HSet(t.Context(), s.keys.Agent(w.agent.ID), part...).Result())(t)
		}
		w.endToken(t, s, w.tokenID(0), nil)
	})
}

func TestMarksOfTokensThatHaveLapsedMakeRoom(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		lapsed := w.putTokenMarks(t, s, 0, mostTokenMarks, time.Now().Add(-time.Minute))
		index := s.keys.TokenMarks(w.agent.ID)
		for range 2 * mostTokenMarks / 16 {
			w.endToken(t, s, w.tokenID(0), nil)
		}
		wantEqual(t, "the index has those that live", must(peek(t, s).ZCard(t.Context(), index).Result())(t), 2*mostTokenMarks/16)
		if fields := must(peek(t, s).HLen(t.Context(), s.keys.Agent(w.agent.ID)).Result())(t); fields > 4*mostTokenMarks/16+30 {
			t.Errorf("the agent has %d fields", fields)
		}
		w.endToken(t, s, lapsed, nil)
		wantTTL(t, s, index, time.Duration(s.revocationLifetime())*time.Millisecond)
	})
}

// An id has the time of an instance's clock, which may differ from Redis's by hours.
func TestATokenIsRevokedWhateverTheClockThatDrewItsID(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		for _, high := range []byte{0x00, 0x02} { // of 48 bits of ms: decades ago, and in decades
			id := w.tokenID(0)
			id[0] = high
			w.endToken(t, s, id, nil)
		}
	})
}

// No exchange has counted such a token, so its mark counts while Redis has it; no quota refuses one.
func TestMarksOfTokensCountUntilTheyLapse(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		family := w.exchange(t, s).Family
		bytes := func() int64 { return usageOf(t, s, w.key.Organization)["bytes"] }
		none := bytes()
		mustDo(t, s.SetQuotas(t.Context(), w.key.Organization, map[string]int64{"bytes": 1}))
		token := w.tokenID(0)
		for _, id := range []uuid.UUID{family, token, token, w.tokenID(0)} { // the repeated one counts nothing
			wantError(t, "EndFamily", s.EndFamily(t.Context(), w.key, w.agent.ID, id), nil)
		}
		wantError(t, "EndFamily", s.EndFamily(t.Context(), w.key, w.agent.ID, w.tokenID(1)), ErrUnknownFamily)
		for _, c := range []struct {
			at   time.Duration
			want int64
		}{{0, 2}, {5 * time.Hour, 2}, {8 * time.Hour, 0}} {
			clock(c.at)
			wantEqual(t, fmt.Sprint("bytes of marks after midnight by ", c.at), bytes()-none, c.want*kernel.MarkSize)
		}
	})
}
