package redisstore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
)

// everyDay selects all days, in these groups.
func everyDay(groups ...records.UsageGroup) records.UsageQuery {
	return records.UsageQuery{To: 1 << 20, Groups: groups}
}

// wantReport fails unless the report has these lines.
func (w tenant) wantReport(t *testing.T, s *Store, q records.UsageQuery, want ...records.UsageLine) {
	t.Helper()
	if got := must(s.UsageReport(t.Context(), w.key, q))(t); !slices.Equal(got, want) {
		t.Errorf("by %v %+v, want %+v", q.Groups, got, want)
	}
}

// total is a line of a report whose groups are all the same.
func total(actions int64, value money.MicroUSD) records.UsageLine {
	return records.UsageLine{ActionCount: actions, Value: value}
}

func TestAReportTellsGroupsApart(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		second := w.another(t, s, NewSession{MaxValue: 100})
		w.chargeTyped(t, s, typed("a", 1, 2), typed("b", 1, 3), typed("", 1, 1))
		second.chargeTyped(t, s, typed("b", 2, 4))
		agent, first, other := w.agent.ID, w.session.ID, second.session.ID
		for _, test := range []struct {
			groups []records.UsageGroup
			want   []records.UsageLine
		}{
			{nil, []records.UsageLine{total(5, 10)}},
			{[]records.UsageGroup{records.ByAgent}, []records.UsageLine{{Agent: agent, ActionCount: 5, Value: 10}}},
			{[]records.UsageGroup{records.BySession}, []records.UsageLine{{Session: first, ActionCount: 3, Value: 6}, {Session: other, ActionCount: 2, Value: 4}}},
			{[]records.UsageGroup{records.ByActionType}, []records.UsageLine{{ActionCount: 1, Value: 1}, {ActionType: "a", ActionCount: 1, Value: 2},
				{ActionType: "b", ActionCount: 3, Value: 7}}},
			{[]records.UsageGroup{records.BySession, records.ByActionType}, []records.UsageLine{{Session: first, ActionCount: 1, Value: 1},
				{Session: first, ActionType: "a", ActionCount: 1, Value: 2}, {Session: first, ActionType: "b", ActionCount: 1, Value: 3},
				{Session: other, ActionType: "b", ActionCount: 2, Value: 4}}},
		} {
			w.wantReport(t, s, everyDay(test.groups...), test.want...)
		}
		w.wantReport(t, s, records.UsageQuery{From: 0, To: 1})
		stranger := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1})
		stranger.wantReport(t, s, everyDay())
	})
}

func TestADayHasWhatHappenedOnIt(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000, Lifetime: 20 * day, MaxLease: time.Hour})
		token := w.exchange(t, s).AccessToken
		first := records.UsageDay(time.Now())
		on := func(days int, actions int64, value money.MicroUSD) records.UsageLine {
			return records.UsageLine{Day: first + days, ActionCount: actions, Value: value}
		}
		w.chargeTyped(t, s, typed("a", 1, 10))
		hold := w.beginning(30)
		hold.Lifetime = 10 * day
		begun := must(s.Begin(t.Context(), token, hold))(t)
		clock(day - time.Millisecond)
		w.chargeTyped(t, s, typed("", 1, 1))
		w.wantReport(t, s, everyDay(records.ByDay), on(0, 3, 11))

		clock(day)
		w.chargeTyped(t, s, typed("a", 1, 100))
		must(s.Commit(t.Context(), token, begun.ID, Commit{}))(t)
		w.wantReport(t, s, everyDay(records.ByDay), on(0, 3, 11), on(1, 1, 130))
		clock(4 * day)
		must(s.Rollback(t.Context(), w.byKey(), begun.ID, Rollback{}))(t)
		w.wantReport(t, s, everyDay(records.ByDay), on(0, 3, 11), on(1, 1, 130), on(4, 0, -30))
		clock(5*day - 30*time.Second)
		l := w.lease(t, s, 5, 50)
		clock(5 * day)
		must(s.SettleLease(t.Context(), w.byKey(), l.ID, NewSettlement{ActionCount: 2, ValueUsed: 7}))(t)
		w.wantReport(t, s, everyDay(records.ByDay), on(0, 3, 11), on(1, 1, 130), on(4, 5, -30), on(5, -3, 7))
		w.wantReport(t, s, records.UsageQuery{From: first + 1, To: first + 4, Groups: []records.UsageGroup{records.ByActionType}},
			total(5, 0), records.UsageLine{ActionType: "a", ActionCount: 1, Value: 100})

		clock(2 * day) // a clock that goes back stays on the later day
		w.chargeTyped(t, s, typed("a", 1, 1))
		w.wantReport(t, s, records.UsageQuery{From: first + 5, To: first + 5, Groups: []records.UsageGroup{records.ByDay}}, on(5, -2, 8))
	})
}

// sessionsSum returns what the tenant's sessions show together.
func sessionsSum(t *testing.T, s *Store, tenants ...tenant) (sum records.UsageLine) {
	t.Helper()
	for _, w := range tenants {
		shown := must(s.Session(t.Context(), w.byKey(), w.session.ID))(t)
		sum.ActionCount += shown.ActionCount
		sum.Value += shown.ValueUsed
	}
	return sum
}

func TestFoldingAgainChangesNothing(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1000, MaxValue: 1000}, func(t *testing.T, s *Store, w tenant) {
		second := w.another(t, s, NewSession{MaxValue: 1000})
		places := []place{{w.session.ID, w.agent.ID}, {second.session.ID, w.agent.ID}}
		for i := range 5 {
			w.chargeTyped(t, s, typed(fmt.Sprint("type ", i%2), 1, 3), typed("", 2, 1))
			second.chargeTyped(t, s, typed("type 1", 1, 5))
			for range 2 {
				mustDo(t, s.foldSessions(t.Context(), flow{}, w.key.Organization, places))
			}
			w.wantReport(t, s, everyDay(), sessionsSum(t, s, w, second))
		}
	})
}

func TestUsageOutlastsItsSessionAndItsAgent(t *testing.T) {
	onTenantWithCluster(t, Config{}, NewSession{MaxActions: 100, MaxValue: 100}, func(t *testing.T, s *Store, w tenant) {
		second := w.another(t, s, NewSession{MaxValue: 100})
		w.chargeTyped(t, s, typed("a", 1, 2))
		second.chargeTyped(t, s, typed("a", 1, 3))
		mustDo(t, s.foldOrganization(t.Context(), w.key.Organization))
		must(peek(t, s).Del(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
		w.wantReport(t, s, everyDay(records.BySession), records.UsageLine{ActionCount: 1, Value: 2},
			records.UsageLine{Session: second.session.ID, ActionCount: 1, Value: 3})
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		s.core.Drop(t.Context(), s.keys.OrganizationAgents(w.key.Organization), kernel.Members{}, w.agent.ID)
		w.wantReport(t, s, everyDay(records.ByAgent, records.ByActionType), records.UsageLine{Agent: w.agent.ID, ActionType: "a", ActionCount: 2, Value: 5})
		w.wantReport(t, s, records.UsageQuery{To: 1 << 20, Agent: w.agent.ID}, total(2, 5))
	})
}

func TestOneInstanceAtATimeFoldsAllSessions(t *testing.T) {
	t.Parallel()
	onMiniredis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100})
		w.chargeTyped(t, s, typed("a", 1, 2))
		must(peek(t, s).ZAdd(t.Context(), s.keys.Holdings(), redis.Z{Score: 1, Member: string(w.key.Organization[:])}).Result())(t)
		usage := s.keys.UsageDays(w.agent.ID)
		must(peek(t, s).Set(t.Context(), s.keys.Folding(), "1", time.Hour).Result())(t)
		for _, folds := range []bool{false, true} {
			mustDo(t, s.FoldUsage(t.Context()))
			wantEqual(t, "whether usage is folded", must(peek(t, s).Exists(t.Context(), usage).Result())(t) == 1, folds)
			must(peek(t, s).Del(t.Context(), s.keys.Folding()).Result())(t)
		}
		if left := must(peek(t, s).TTL(t.Context(), usage).Result())(t); left < 400*day || left > 402*day {
			t.Errorf("the usage of an agent is kept for %v", left)
		}
	})
}

// No reader may ever look at the session again.
func TestALeaseWhoseTimeIsUpIsUsed(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		reads := map[string]func(w tenant){
			"the session's usage": func(w tenant) { w.wantTypes(t, s, TypeUsage{"a", 1, 2}, TypeUsage{"", 3, 40}) },
			"a report":            func(w tenant) { w.wantReport(t, s, everyDay(), total(4, 42)) },
			"folding all": func(w tenant) {
				mustDo(t, s.foldOrganization(t.Context(), w.key.Organization))
				must(peek(t, s).Del(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
				w.wantReport(t, s, everyDay(), total(4, 42))
			},
		}
		for what, read := range reads {
			clock(0)
			w := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 100, MaxLease: time.Minute, Lifetime: time.Hour})
			w.chargeTyped(t, s, typed("a", 1, 2))
			w.lease(t, s, 3, 40)
			w.wantTypes(t, s, TypeUsage{"a", 1, 2}, TypeUsage{"", 3, 0})
			clock(10 * time.Minute)
			if read(w); t.Failed() {
				t.Fatal("by " + what)
			}
		}
	})
}

// What another report folds while this one reads is in both, the agent's days and its session's, or in neither.
func TestAReportTellsSessionsApartWhileTheyAreFolded(t *testing.T) {
	onTenantOf(t, Config{}, NewSession{MaxActions: 1000, MaxValue: 1000}, func(t *testing.T, s *Store, w tenant) {
		for range 9 {
			w.another(t, s, NewSession{MaxValue: 1}).chargeTyped(t, s, typed("a", 1, 1))
		}
		for range 50 {
			var folding sync.WaitGroup
			folding.Go(func() {
				wantError(t, "a charge", errOf(s.Charge(t.Context(), w.byKey(), w.session.ID, Charge{Count: 1, Value: 1})), nil)
				wantError(t, "folding", s.foldOrganization(t.Context(), w.key.Organization), nil)
			})
			for _, line := range must(s.UsageReport(t.Context(), w.key, everyDay(records.BySession)))(t) {
				if line.Session == uuid.Nil {
					t.Errorf("of no session %+v", line)
				}
			}
			folding.Wait()
		}
	})
}

// A session may be older than the days that are kept.
func TestDaysThatAreNotKeptAreInNoReport(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		s.config.UsageKept = 3 * day
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000, Lifetime: 30 * day})
		first := records.UsageDay(time.Now())
		w.chargeTyped(t, s, typed("a", 1, 1))
		clock(8 * day)
		w.chargeTyped(t, s, typed("a", 2, 5))
		for range 2 {
			w.wantReport(t, s, everyDay(records.ByDay, records.BySession), records.UsageLine{Day: first + 8, Session: w.session.ID, ActionCount: 2, Value: 5})
		}
		w.wantTypes(t, s, TypeUsage{"a", 3, 6})
	})
}

// miniredis sorts all of them with each command.
func TestTheOldestOfManyDeletedAgentsAreForgotten(t *testing.T) {
	t.Parallel()
	onRealRedis(t, Config{UsageKept: 100 * 365 * day}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1})
		index, rdb := s.keys.DeletedAgents(w.key.Organization), peek(t, s)
		var before []redis.Z
		for i := range mostDeletedAgents + 50 {
			id := uuid.UUID{1}
			binary.BigEndian.PutUint32(id[4:], uint32(i))
			before = append(before, redis.Z{Score: float64(i) + 1e12, Member: string(id[:])}) // in 2001: but they are not removed by age here
		}
		for chunk := range slices.Chunk(before, 10_000) {
			must(rdb.ZAdd(t.Context(), index, chunk...).Result())(t)
		}
		must(s.DeleteAgent(t.Context(), w.key, w.agent.ID))(t)
		must(rdb.ZScore(t.Context(), index, string(w.agent.ID[:])).Result())(t)
		wantEqual(t, "the oldest left", must(rdb.ZRange(t.Context(), index, 0, 0).Result())(t), []string{before[51].Member.(string)})
		wantEqual(t, "how many deleted agents are remembered", must(rdb.ZCard(t.Context(), index).Result())(t), mostDeletedAgents)
	})
}

// Old entries leave the list when others are deleted, at most 100 at once.
func TestDeletedAgentsAreForgottenWithTheirUsage(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		s.config.UsageKept = 3 * day
		w := newTenant(t, s, NewSession{MaxActions: 1, MaxValue: 1})
		index := s.keys.DeletedAgents(w.key.Organization)
		agents := newAgents(t, s, w.key, 102)
		for _, agent := range agents[:101] {
			must(s.DeleteAgent(t.Context(), w.key, agent.ID))(t)
		}
		for i := range int64(2) {
			clock(time.Duration(5+i) * day)
			must(s.DeleteAgent(t.Context(), w.key, agents[101].ID))(t)
			wantEqual(t, "how many are remembered", must(peek(t, s).ZCard(t.Context(), index).Result())(t), 2-i)
		}
	})
}

func TestDaysAreForgottenOnceTheyAreNotKept(t *testing.T) {
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		s.config.UsageKept = 3 * day
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000, Lifetime: 30 * day})
		for i := range 10 {
			clock(time.Duration(i) * day)
			w.chargeTyped(t, s, typed("a", 1, 1))
			mustDo(t, s.foldOrganization(t.Context(), w.key.Organization))
		}
		var days []string
		for field := range must(peek(t, s).HGetAll(t.Context(), s.keys.UsageDays(w.agent.ID)).Result())(t) {
			if strings.HasPrefix(field, "d:") {
				days = append(days, field)
			}
		}
		slices.Sort(days)
		today := records.UsageDay(time.Now()) + 9
		want := []string{fmt.Sprint("d:", today-3), fmt.Sprint("d:", today-2), fmt.Sprint("d:", today-1), fmt.Sprint("d:", today)}
		wantEqual(t, "the days kept", days, want)
	})
}

func TestAnAgentTells256TypesApart(t *testing.T) {
	t.Parallel()
	onMiniredis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: 1000})
		for i := range 5 { // sessions of 60 types each
			in := w.another(t, s, NewSession{MaxValue: 1000})
			for j := range 60 {
				in.chargeTyped(t, s, typed(fmt.Sprint("type ", 60*i+j), 1, 1))
			}
			mustDo(t, s.foldOrganization(t.Context(), w.key.Organization))
		}
		lines := must(s.UsageReport(t.Context(), w.key, everyDay(records.ByActionType)))(t)
		other := slices.IndexFunc(lines, func(l records.UsageLine) bool { return l.ActionType == kernel.OtherTypes })
		if len(lines) != 257 || other < 0 || lines[other] != (records.UsageLine{ActionType: kernel.OtherTypes, ActionCount: 44, Value: 44}) {
			t.Errorf("%d lines, the others at %d of %v", len(lines), other, lines)
		}
	})
}
