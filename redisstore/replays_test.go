package redisstore

import (
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// replayRule is the rule of lua/identity/rotate_refresh.lua for what is presented of one family, as plain code.
type replayRule struct {
	grace  time.Duration
	spent  int // the last generation that was spent
	lateIn int // the last generation that was replayed late
	over   bool
}

const late = 10 * time.Second

// spend is the first use of the next generation.
func (r *replayRule) spend() { r.spent++ }

// replay is a later use of the generation that was spent last, and says whether it is reuse.
func (r *replayRule) replay(after time.Duration) bool {
	switch {
	case after >= r.grace:
		r.over = true
	case after > late && r.lateIn > 0 && r.lateIn == r.spent-1:
		r.over = true
	case after > late:
		r.lateIn = r.spent
	}
	return r.over
}

func TestTheScriptFollowsTheRuleForReplays(t *testing.T) {
	onTenantOf(t, Config{RefreshGrace: time.Minute}, NewSession{MaxActions: 1}, func(t *testing.T, s *Store, w tenant) {
		random := rand.New(rand.NewPCG(1, 2))
		reused := 0
		for range 40 {
			family, rule := w.exchange(t, s).Family, replayRule{grace: time.Minute}
			for generation := uint32(1); generation < 12 && !rule.over; generation++ {
				rule.spend()
				w.refresh(t, s, family, generation, generation+1)
				after := time.Duration(0)
				for range random.IntN(3) {
					after += time.Duration(1+random.IntN(11)) * 3 * time.Second // never 10 s, for time passes
					w.letSpent(t, s, family, after)
					_, err := s.RotateRefresh(t.Context(), w.agent.ID, family, generation, GrantRequest{})
					if rule.replay(after) != errors.Is(err, ErrTokenReused) || err != nil && !rule.over {
						t.Fatalf("generation %d again after %s: %v, want %+v", generation, after, err, rule)
					}
					if rule.over {
						reused++
						break
					}
				}
			}
		}
		if reused == 0 || reused == 40 {
			t.Errorf("%d of 40 families came to reuse: the test proves little", reused)
		}
	})
}

// network is a client on a bad network: each answer is lost with this probability, whatever came before, and the client
// asks again after a while until it has one.
type network struct {
	loss  float64
	retry time.Duration
}

// logouts returns how many refreshes of so many end an honest client's family: because its grace is over, and because two
// answers in a row came late.
func (n network) logouts(refreshes int, random *rand.Rand) (graceOver, twoInARow int) {
	rule := replayRule{grace: time.Minute}
	for range refreshes {
		rule.spend()
		for after := n.retry; random.Float64() < n.loss; after += n.retry {
			if !rule.replay(after) {
				continue
			}
			if after >= rule.grace {
				graceOver++
			} else {
				twoInARow++
			}
			rule = replayRule{grace: time.Minute}
			break
		}
	}
	return graceOver, twoInARow
}

var replayRow = regexp.MustCompile(`(?m)^\| ([\d.]+) % \| (\d+) s \| ([\d.]+) \| ([\d.]+) \|$`)

// docs/security.md says how often an honest client is logged out for its network, in a year of refreshes each hour.
func TestABadNetworkLogsOutAsOftenAsTheDocsSay(t *testing.T) {
	t.Parallel()
	const years, hours = 2000, 365 * 24
	page := must(os.ReadFile("../docs/security.md"))(t)
	rows := replayRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) != 6 {
		t.Fatalf("%d rows are found", len(rows))
	}
	random := rand.New(rand.NewPCG(3, 4))
	for _, row := range rows {
		number := func(i int) float64 { return must(strconv.ParseFloat(row[i], 64))(t) }
		n := network{number(1) / 100, time.Duration(number(2)) * time.Second}
		graceOver, twoInARow := n.logouts(years*hours, random)
		for name, it := range map[string]struct{ said, found float64 }{
			"for its grace":    {number(3), float64(graceOver) / years},
			"for two in a row": {number(4), float64(twoInARow) / years},
		} {
			if it.found > 2*it.said+0.002 || it.said > 2*it.found+0.002 {
				t.Errorf("%+v: logged out %s %.4f times a year, the page says %.4f", n, name, it.found, it.said)
			}
		}
	}
}
