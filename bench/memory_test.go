package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/money"
	"remit/redisproc"
	"remit/redisstore"
	"remit/token"
)

// objects is how many share what a Redis takes for itself, such as a table that has room for more.
//
// Redis's tables double, so how much room they have to spare depends on the number: from none to as much as is used. With
// this one it is about the mean.
const objects = 24_000

// BenchmarkMemory says what a live session and a refresh family take in Redis.
func BenchmarkMemory(b *testing.B) {
	onlyLong(b)
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			each, keys, err := bytesEach(b, kind, objects)
			if err != nil {
				b.Fatal(err)
			}
			if testing.Verbose() {
				b.Log(keys)
			}
			b.ReportMetric(each, "B/"+kind.name)
			b.ReportMetric(0, "ns/op")
		})
	}
}

// kind is something that Redis keeps many of.
type kind struct {
	name   string
	agents int // that they are of, in equal shares: one has at most 10,000 families
	make   func(ctx context.Context, s *service, a agent) error
}

var kinds = []kind{{"session", 1, makeSession}, {"family", 8, makeFamily}}

// makeSession creates a session and charges it once: it is in use.
func makeSession(ctx context.Context, s *service, a agent) error {
	key := redisstore.APIKey{Organization: s.org, Hash: token.Hash(s.key)}
	session, err := s.store.CreateSession(ctx, key, redisstore.NewSession{
		Agent: a.id, MaxActions: 1000, MaxValue: 100 * money.USD, Lifetime: time.Hour,
	})
	if err != nil {
		return err
	}
	_, err = s.store.Charge(ctx, redisstore.Caller{Key: &key}, session.ID, redisstore.Charge{Count: 1, Value: money.USD / 100})
	return err
}

func makeFamily(ctx context.Context, s *service, a agent) error {
	_, err := s.store.ExchangeSecret(ctx, a.id, token.Hash(a.secret))
	return err
}

// trail is how many events fill an agent's audit trail: it is the agent's, and counts before it grows no more.
const trail = 1200

// bytesEach returns what Redis holds more for each object, indexes and tables included, when so many were made.
//
// keys says which keys that is.
func bytesEach(tb testing.TB, k kind, objects int) (each float64, keys keyMemory, err error) {
	tb.Helper()
	s := startServiceOn(tb, redisproc.Config{})
	agents := make([]agent, k.agents)
	for i := range agents {
		agents[i] = s.newAgent(tb)
	}
	makeSome := func(n int) error {
		_, err := spread(8, n, func(i int) error { return k.make(context.Background(), s, agents[i%len(agents)]) })
		return err
	}
	if err := makeSome(trail * k.agents); err != nil {
		return 0, nil, err
	}
	before, err := s.restingMemory()
	if err != nil {
		return 0, nil, err
	}
	if err := makeSome(objects); err != nil {
		return 0, nil, err
	}
	after, err := s.restingMemory()
	if err != nil {
		return 0, nil, err
	}
	keys, err = s.memoryOfKeys()
	return float64(after-before) / float64(objects), keys, err
}

const (
	memoryPause    = 300 * time.Millisecond
	memoryReadings = 20
)

// restingMemory waits until what Redis has allocated stays the same: it moves its tables and shrinks its clients'
// buffers, and counts these, by the way.
func (s *service) restingMemory() (int, error) {
	before, err := s.usedMemory()
	for range memoryReadings {
		time.Sleep(memoryPause)
		now, failed := s.usedMemory()
		if err = failed; err != nil || now == before {
			return now, err
		}
		before = now
	}
	return before, err
}

// usedMemory is what Redis has allocated, but for its clients' buffers.
func (s *service) usedMemory() (int, error) {
	info, err := s.redis.Info(context.Background(), "memory").Result()
	if err != nil {
		return 0, err
	}
	number := func(name string) (int, error) {
		_, rest, _ := strings.Cut(info, "\n"+name+":")
		text, _, found := strings.Cut(rest, "\r\n")
		if !found {
			return 0, fmt.Errorf("INFO memory has no %s", name)
		}
		return strconv.Atoi(text)
	}
	used, err := number("used_memory")
	if err != nil {
		return 0, err
	}
	clients, err := number("mem_clients_normal")
	return used - clients, err
}
