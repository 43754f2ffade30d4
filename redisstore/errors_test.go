package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/money"
	"remit/test/redistest"
)

func TestWithoutRedisEverythingIsUnavailableAtOnce(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *redistest.Proxy) {
		operations, tenants := newOperations(t, s)
		w := tenants[0]
		defer w.unchanged(t, s)()
		upstream := p.Upstream()
		p.GoDown()
		ping := operation{name: "Ping", do: func(ctx context.Context, s *Store) error { return s.Ping(ctx) }}
		for _, operation := range append(operations, ping) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			err := operation.do(ctx, s)
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want %v", operation.name, err, ErrUnavailable)
			}
			wantError(t, operation.name+" within two seconds", ctx.Err(), nil)
			cancel()
		}

		p.ComeUp(t, upstream)
		eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
	})
}

func TestAfterARestartOfRedisEverythingGoesOn(t *testing.T) {
	t.Parallel()
	cfg := redisproc.Config{Dir: t.TempDir()}
	server := redistest.StartRedis(t, cfg)
	p := redistest.NewProxy(t, redistest.SocketOf(server))
	s := openStore(t, Config{}, "redis://"+p.Address, nil)
	w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
	grant := w.exchange(t, s)
	must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5}))(t)
	unchanged := w.unchanged(t, s)

	p.GoDown()
	mustDo(t, server.Stop())
	_, err := s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5})
	wantError(t, "Charge while it is down", err, ErrUnavailable)

	p.ComeUp(t, redistest.SocketOf(redistest.StartRedis(t, cfg)))
	eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
	unchanged()
	must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5}))(t)
	w.wantUsed(t, s, w.session.ID, 2, 10, Delegated{})
	w.refresh(t, s, grant.Family, 1, 2)
}

func TestAStoppedRedisHangsNoCall(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	operations, _ := newOperations(t, s)
	operations = append(operations,
		operation{"Ping", getSession, func(ctx context.Context, s *Store) error { return s.Ping(ctx) }},
		operation{"Ready", getSession, func(ctx context.Context, s *Store) error { return errOf(s.Ready(ctx)) }},
		operation{"KeepIssuer", getSession, func(ctx context.Context, s *Store) error { return errOf(s.KeepIssuer(ctx, "http://issuer")) }})
	resume := redistest.Suspend(t, server)
	var wg sync.WaitGroup
	wg.Go(func() { // alone, a write is sent at once and may happen yet
		charge := operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == "Charge" })]
		wantError(t, "Charge alone", charge.do(context.Background(), s), ErrOutcomeUnknown)
	})
	redistest.WaitAtMost(t, 2*callTimeout, &wg)
	for _, operation := range operations { // so many at once that some wait in line, and are shed unsent
		wg.Go(func() {
			err := operation.do(context.Background(), s)
			if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s: %v", operation.name, err)
			}
			if operation.script.Access() == reads {
				wantError(t, operation.name, err, ErrUnavailable)
			}
		})
	}
	redistest.WaitAtMost(t, 2*callTimeout, &wg)
	resume()
	eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
}

func TestAClosedStoreIsUnavailable(t *testing.T) {
	onTenant(t, Config{}, func(t *testing.T, s *Store, w tenant) {
		token := byToken(w.exchange(t, s))
		mustDo(t, s.Close())
		wantError(t, "Charge", errOf(s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})), ErrUnavailable)
		wantError(t, "Session", errOf(s.Session(t.Context(), token, w.session.ID)), ErrUnavailable)
	})
}
