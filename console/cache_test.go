package console

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// idOf returns the id of a number, in the order of numbers.
func idOf(n int) string {
	id := uuid.MustParse("01a205bd-354f-7426-a0a2-000000000000")
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id.String()
}

// listOf returns a list of so many agents with a name, in pages as those of the API, and counts them.
func listOf(agents int, name string, pages *int) listAgents {
	rows := make([]agentRow, agents)
	for n := range rows {
		rows[n] = agentRow{ID: idOf(n), Name: name, Status: statusActive, CreatedAt: time.Unix(1_800_000_000, 0)}
	}
	return func(cursor string, into *[]agentRow) (string, error) {
		*pages++
		from, _ := strconv.Atoi(cursor)
		*into = rows[from:min(from+200, agents)]
		if from+200 >= agents {
			return "", nil
		}
		return strconv.Itoa(from + 200), nil
	}
}

// reportOf returns a reading of an organization with as many agents and types as a report has lines.
func reportOf(name string) func(api, time.Time) (*spent, error) {
	by := map[string]spending{}
	var lines []usageLine
	for n := range 10_000 {
		by[idOf(n)] = spending{1, 2}
		lines = append(lines, usageLine{Day: dayOf(time.Now().AddDate(0, 0, -n%30)), ActionType: new(fmt.Sprint(name, n/30)), Value: 1})
	}
	return func(_ api, now time.Time) (next *spent, err error) {
		next = &spent{At: now, Total: spending{1, 2}, types: typesOf(lines)}
		next.agents, err = agentsOf(by)
		return next, err
	}
}

// look reads the agents of an organization as a page does.
func (f *fleets) look(t *testing.T, organization uuid.UUID, list listAgents) *agentTable {
	t.Helper()
	return must(f.agents(organization, f.of(organization), time.Now(), list))(t)
}

// addUp adds up what an organization spent as a page does, and returns when that is known.
func (f *fleets) addUp(organization uuid.UUID, report func(api, time.Time) (*spent, error)) *spendings {
	s := f.spendings(spentOf{organization: organization}, time.Now())
	s.mu.Lock()
	s.report = report
	s.mu.Unlock()
	for last, _ := s.latest(api{}, time.Now()); last == nil; last, _ = s.latest(api{}, time.Now()) {
	}
	return s
}

// counts returns how many organizations have agents, how many spendings there are, and the bytes reserved.
func (f *fleets) counts() [3]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return [3]int{len(f.known), len(f.spent.known) + len(f.byAgent.known), f.pool.Reserved()}
}

func heap() int64 {
	var m runtime.MemStats
	for range 2 { // what the first one's finalizers free
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// It measures the heap, so it runs before the tests that run at once.
func TestLargeFleetsTakeBoundedMemory(t *testing.T) {
	const most = 64 << 20
	for name, test := range map[string]struct {
		name          string
		organizations int
		atOnce        int // that have their agents at the end, at least
	}{
		"usual names":   {"invoices-of-europe-01", 32, 20},
		"longest names": {strings.Repeat("\U0001F9FE", 200), 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, pages := newFleets(mostCached, func(string) {}), 0
			list, report := listOf(mostAgents, test.name, &pages), reportOf("llm.")
			before := heap()
			for range test.organizations {
				id := uuid.New()
				if all := f.look(t, id, list); all.size != mostAgents || all.crowded {
					t.Fatalf("a page has %d agents, crowded %t", all.size, all.crowded)
				}
				f.addUp(id, report)
			}
			more, kept := heap()-before, 0
			f.mu.Lock() // a timer may drop an idle one meanwhile
			for _, c := range f.known {
				if c.agents.Load() != nil {
					kept++
				}
			}
			f.mu.Unlock()
			t.Logf("%d organizations take %d MiB, %d MiB are reserved, %d have their agents", test.organizations, more>>20, f.pool.Reserved()>>20, kept)
			if more > most || kept < test.atOnce {
				t.Errorf("%d organizations of %d agents take %d bytes of heap, at most %d are wanted; %d have their agents", test.organizations, mostAgents, more, most, kept)
			}
			if f.pool.Reserved() < int(more)*9/10 {
				t.Errorf("%d bytes are reserved for %d", f.pool.Reserved(), more)
			}
			runtime.KeepAlive(f)
			_, _ = list("", new([]agentRow)) // it has lived as long
		})
	}
}

func TestACacheIsDroppedAMinuteAfterItsLastUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, pages, id := newFleets(mostCached, func(string) {}), 0, uuid.New()
		use := func() {
			f.look(t, id, listOf(300, "scout", &pages))
			f.spendings(spentOf{organization: id}, time.Now())
			f.spendings(spentOf{id, idOf(1)}, time.Now())
		}
		f.addUp(id, reportOf("llm."))
		for range 3 {
			use()
			time.Sleep(keptFor - time.Second)
			synctest.Wait()
			if got := f.counts(); got[0] != 1 || got[1] != 2 || got[2] < 400_000 {
				t.Fatalf("before: %d fleets, %d spendings, %d bytes", got[0], got[1], got[2])
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		wantEqual(t, "fleets, spendings and bytes after", f.counts(), [3]int{})
	})
}

func TestSumsStayUntilTheNextReadingIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, id := newFleets(mostCached, func(string) {}), uuid.New()
		read := reportOf("llm.")
		s := f.addUp(id, func(a api, now time.Time) (*spent, error) {
			time.Sleep(10 * time.Second) // so the next one is 200 s later
			return read(a, now)
		})
		time.Sleep(keptFor)
		synctest.Wait()
		last, _ := f.spendings(spentOf{organization: id}, time.Now()).latest(api{}, time.Now())
		if last.Total != (spending{1, 2}) || !last.NoAgents || !last.NoTypes || last.Problem != notKept || f.pool.Reserved() != 0 {
			t.Errorf("a minute later it has %d agents, %q; %d bytes are reserved", len(last.agents), last.Problem, f.pool.Reserved())
		}
		wantEqual(t, "it is known when the next reading is due", f.spendings(spentOf{organization: id}, time.Now()) == s, true)
		time.Sleep(300 * time.Second)
		synctest.Wait()
		wantEqual(t, "what is kept at the end", f.counts(), [3]int{})
	})
}

func TestAFullCacheShowsWhatItCanAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // no time passes, so nothing is displaced for its age
		f, pages := newFleets(1<<20, func(string) {}), 0
		for range 1024 {
			f.pool.Reserve(uuid.New(), 1<<10, func() { t.Error("an organization with less is displaced") })
		}
		id := uuid.New()
		all := f.look(t, id, listOf(1000, "scout", &pages))
		if all.size != 200 || !all.crowded || !all.truncated || f.counts()[0] != 0 {
			t.Errorf("it has %d agents, crowded %t, truncated %t, kept %d", all.size, all.crowded, all.truncated, f.counts()[0])
		}
		if all := f.look(t, uuid.New(), listOf(150, "scout", &pages)); all.size != 150 || all.crowded {
			t.Errorf("a small one has %d agents, crowded %t", all.size, all.crowded)
		}
		if last := f.addUp(id, reportOf("llm.")).last.Load(); last.Total != (spending{1, 2}) || last.Problem != notKept {
			t.Errorf("it spent %+v, %q", last.Total, last.Problem)
		}
	})
}

func TestALargeCacheMakesRoomForASmallOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, pages := newFleets(4<<20, func(string) {}), 0
		for range 3 {
			f.look(t, uuid.New(), listOf(mostAgents, "scout", &pages))
		}
		small := uuid.New()
		for range 10 {
			f.look(t, uuid.New(), listOf(150, "scout", &pages))
		}
		all := f.look(t, small, listOf(150, "scout", &pages))
		pages = 0
		if f.look(t, small, listOf(150, "scout", &pages)); all.size != 150 || all.crowded || pages != 0 {
			t.Errorf("a small one has %d agents, crowded %t, and is read again by %d pages", all.size, all.crowded, pages)
		}
	})
}

func TestSpendingsAreBounded(t *testing.T) {
	t.Parallel()
	f, now := newFleets(mostCached, func(string) {}), time.Now()
	own, other := uuid.New(), spentOf{uuid.New(), uuid.NewString()}
	f.spendings(other, now)
	for i := range 2 * mostOwnSpent {
		f.spendings(spentOf{own, uuid.NewString()}, now.Add(time.Duration(i)))
	}
	if n := len(f.byAgent.known); n != mostOwnSpent+1 || f.byAgent.known[other] == nil {
		t.Errorf("%d are kept of agents, want %d with that of the other organization", n, mostOwnSpent+1)
	}
	first := spentOf{organization: uuid.New()}
	kept := f.spendings(first, now)
	kept.reading = make(chan struct{}) // under way
	for i := range 2 * mostSpent {
		f.spendings(spentOf{organization: uuid.New()}, now.Add(time.Duration(i)))
	}
	if len(f.spent.known) != mostSpent || f.spendings(first, now) != kept {
		t.Errorf("%d are kept", len(f.spent.known))
	}
	for _, s := range f.spent.known {
		s.reading = make(chan struct{})
	}
	last, failed := f.spendings(spentOf{organization: own}, now).latest(api{}, now)
	if last != nil || failed != manySpent || len(f.spent.known) != mostSpent {
		t.Errorf("without room: %v, %q, %d are kept", last, failed, len(f.spent.known))
	}
}

func TestPagesOfOneOrganizationAreSortedOneAtATime(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	cache := w.console.fleets.of(uuid.MustParse(w.org))
	cache.sorting.Lock()
	shown := make(chan struct{})
	go func() { defer close(shown); b.get(agents + "?sort=name") }()
	select {
	case <-shown:
		t.Error("it does not wait for the other page")
	case <-time.After(300 * time.Millisecond):
	}
	cache.sorting.Unlock()
	<-shown
}
