package redisstore

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/internal/redisproc"
	"remit/test/redistest"
)

// sizes are what the table of docs/operations.md names, and how one of each is made. Sessions and refresh families are
// measured in bench.
var sizes = []struct {
	name string
	make func(context.Context, *Store, tenant, Grant) error
}{
	{"an agent, with its first event", func(ctx context.Context, s *Store, w tenant, _ Grant) error {
		return errOf(s.CreateAgent(ctx, w.key, Agent{Name: "scout", Scopes: []string{"read", "payments:write"}}, [32]byte{3}, nil))
	}},
	{"an event", func(ctx context.Context, s *Store, w tenant, _ Grant) error {
		return errOf(s.RotateAgentSecret(ctx, w.key, w.agent.ID, SecretRotation{Hash: [32]byte{4}, Grace: time.Hour}, nil))
	}},
	{"a pending transaction with a state of 40 bytes, with its event", beginWithState(40)},
	{"a pending transaction with a state of 100 bytes, with its event", beginWithState(100)},
	{"an idempotency key of an agent's charge", quotaCases[4].create},
	{"an idempotency key of a charge by API key", quotaCases[5].create},
	{"a family revoked by itself, with its event",
		func(ctx context.Context, s *Store, w tenant, g Grant) error {
			g.AccessToken.Family = NewID(w.agent.ID)
			return s.RevokeFamily(ctx, g.AccessToken, g.AccessToken.Family)
		}},
	{"a delegated or workload token revoked by itself, with its event",
		func(ctx context.Context, s *Store, w tenant, _ Grant) error {
			err := s.EndFamily(ctx, w.key, w.agent.ID, w.tokenID(0))
			if err == ErrManyMarks { // the last 40: an agent has 1,000
				return nil
			}
			return err
		}},
}

func beginWithState(bytes int) func(context.Context, *Store, tenant, Grant) error {
	return func(ctx context.Context, s *Store, w tenant, g Grant) error {
		n := w.beginning(1)
		n.PreState = `{"s":"` + strings.Repeat("x", bytes-8) + `"}`
		return errOf(s.Begin(ctx, g.AccessToken, n))
	}
}

var sizeRow = regexp.MustCompile(`(?m)^\| (an? [^|]+?) \| ([\d,]+) B\b`)

// The figures from which docs/operations.md has one work out how much memory is needed are those of this Redis, within a
// quarter: how memory is cut into pieces differs between builds of Redis.
func TestThingsTakeTheMemoryThatTheDocsSay(t *testing.T) {
	t.Parallel()
	const made, tolerance = 1000, 0.25
	page := must(os.ReadFile("../docs/operations.md"))(t)
	told := map[string]float64{}
	for _, row := range sizeRow.FindAllStringSubmatch(string(page), -1) {
		told[row[1]] = must(strconv.ParseFloat(strings.ReplaceAll(row[2], ",", ""), 64))(t)
	}
	for _, size := range sizes {
		t.Run(size.name, func(t *testing.T) {
			t.Parallel()
			_, each := bytesEach(t, Config{EventsKept: 1_000_000}, made, size.make)
			if want := told[size.name]; each < want*(1-tolerance) || each > want*(1+tolerance) {
				t.Errorf("%.0f B, the page says %.0f B", each, want)
			}
		})
	}
}

// ofDataAlone is a Redis whose memory is that of its data: of commands it keeps no latencies, some 25 KB for each from its first call on,
// and no slow ones, up to 220 KB when the machine is slow.
var ofDataAlone = redisproc.Config{Args: []string{"--latency-tracking", "no", "--slowlog-log-slower-than", "-1"}}

// bytesEach creates so many objects in a Redis of their own, and returns how much the organization is said to hold for each, and how much
// Redis needs for one.
func bytesEach(t *testing.T, cfg Config, count int, create func(context.Context, *Store, tenant, Grant) error) (said, real float64) {
	t.Helper()
	server := redistest.StartRedis(t, ofDataAlone)
	setUp := openStore(t, cfg, server.URL(), nil)
	w := newTenant(t, setUp, NewSession{MaxActions: 100_000, MaxValue: 100_000})
	g := w.exchange(t, setUp)
	_ = setUp.Close()
	measure := func(count int) (held, used float64) {
		s := must(Open(setUp.config))(t)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range count / 4 {
					if err := create(context.Background(), s, w, g); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		bytes := usageOf(t, s, w.key.Organization)["bytes"]
		_ = s.Close()
		return float64(bytes), usedMemory(t, redistest.PlainClient(t, server.URL()))
	}
	heldBefore, before := measure(40) // scripts and the like
	held, after := measure(count)
	return (held - heldBefore) / float64(count), (after - before) / float64(count)
}

// usedMemory returns what a server's data takes: there is no other client at that moment.
func usedMemory(t *testing.T, server *redis.Client) float64 {
	t.Helper()
	eventually(t, "the other clients have gone", func() bool {
		return redisclient.Info(t.Context(), server, "clients")["connected_clients"] == "1"
	})
	defer server.Close()
	return float64(redistest.MemoryAtRest(t, server))
}
