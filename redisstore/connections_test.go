package redisstore

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisproc"
)

// When a primary has become a replica and another server stands at its address, the connections that were made before
// still lead to it. The first write that is refused ends them all.
func TestNoWriteAfterTheFirstGoesToAPrimaryThatBecameAReplica(t *testing.T) {
	t.Parallel()
	for name, ways := range map[string]struct {
		charge func(t *testing.T, s *Store, g Grant, w tenant) error
	}{
		"alone": {chargeAlone},
		// go-redis heeds the first reply of a pipeline only, and here that is a read's.
		"after a read in a shared pipeline": {chargeAfterARead},
		"in a batch after what is refused":  {chargeAfterARefusal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := startRedis(t, redisproc.Config{}), startRedis(t, redisproc.Config{})
			p := newProxy(t, socketOf(before))
			s := openStore(t, Config{}, "redis://"+p.address, nil)
			w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
			grant := w.exchange(t, s)
			for range 3 { // pools fill: of commands by themselves, and of pipelines
				wantError(t, "before", ways.charge(t, s, grant, w), nil)
			}
			keepConnections(t, s, 5)
			s.role.stop() // which would notice before the first write

			copyKeys(t, plainClient(t, before.URL()), plainClient(t, after.URL()))
			must(plainClient(t, before.URL()).Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Result())(t)
			p.leadTo(socketOf(after))
			wantError(t, "the first", ways.charge(t, s, grant, w), ErrUnavailable)
			for range 3 {
				wantError(t, "after the first", ways.charge(t, s, grant, w), nil)
			}
			if n := must(s.Session(t.Context(), byToken(grant), w.session.ID))(t).ActionCount; n != 6 {
				t.Errorf("%d actions, want 6", n)
			}
		})
	}
}

func chargeAlone(t *testing.T, s *Store, g Grant, w tenant) error {
	_, err := s.Charge(t.Context(), byToken(g), w.session.ID, Charge{Count: 1})
	return err
}

// chargeAfterARead sends a read and a charge in one pipeline, in this order.
func chargeAfterARead(t *testing.T, s *Store, g Grant, w tenant) error {
	t.Helper()
	l := s.lanes.of(s.client.Redis().(*redis.Client))
	l.underWay.Add(plainCalls)
	defer l.underWay.Add(-plainCalls)
	l.mu.Lock()
	l.pipelines = lanePipelines // all that may be under way: whoever comes waits
	l.mu.Unlock()
	read, charged := make(chan error, 1), make(chan error, 1)
	go func() { read <- s.CheckToken(context.Background(), g.AccessToken) }()
	eventually(t, "the read waits", func() bool { return l.howMany() == 1 })
	go func() {
		_, err := s.Charge(context.Background(), byToken(g), w.session.ID, Charge{Count: 1})
		charged <- err
	}()
	eventually(t, "the charge waits", func() bool { return l.howMany() == 2 })
	l.sendAll()
	wantError(t, "the read", <-read, nil)
	return <-charged
}

// chargeAfterARefusal charges a session that is not there and then one that is, in one pipeline.
func chargeAfterARefusal(t *testing.T, s *Store, g Grant, w tenant) error {
	t.Helper()
	outcomes := must(s.ChargeBatch(t.Context(), byToken(g), []BatchCharge{
		{NewID(w.agent.ID), Charge{Count: 1}}, {w.session.ID, Charge{Count: 1}}}, nil))(t)
	wantError(t, "what is not there", outcomes[0].Err, ErrUnknownSession)
	return outcomes[1].Err
}

// keepConnections leaves at least n connections in the store's pool.
func keepConnections(t *testing.T, s *Store, n int) {
	t.Helper()
	held := make([]*redis.Conn, n)
	for i := range held {
		held[i] = s.client.Redis().(*redis.Client).Conn()
		must(held[i].Ping(t.Context()).Result())(t)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
}

func copyKeys(t *testing.T, from, to *redis.Client) {
	t.Helper()
	for _, key := range must(from.Keys(t.Context(), "*").Result())(t) {
		content := must(from.Dump(t.Context(), key).Result())(t)
		must(to.Restore(t.Context(), key, 0, content).Result())(t)
	}
}

// leadTo passes new connections on to another Redis.
func (p *proxy) leadTo(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// A Redis that stays a replica refuses every write, and each tells it.
func TestConnectionsAreNotMadeAnewForEachRefusedWrite(t *testing.T) {
	t.Parallel()
	c := &connections{}
	for range 100 {
		c.retire()
	}
	if n := c.generation.Load(); n != 1 {
		t.Errorf("they were made anew %d times in a moment", n)
	}
}
