package redisstore

import (
	"context"
	"errors"
	"reflect"
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
		before := w.contents(t, s)
		upstream := p.Upstream()
		p.GoDown()
		ping := operation{name: "Ping", do: func(ctx context.Context, s *Store) error { return s.Ping(ctx) }}
		for _, operation := range append(operations, ping) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			err := operation.do(ctx, s)
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want %v", operation.name, err, ErrUnavailable)
			}
			if ctx.Err() != nil {
				t.Errorf("%s: no answer within two seconds", operation.name)
			}
			cancel()
		}

		p.ComeUp(t, upstream)
		eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
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
	before := w.contents(t, s)

	p.GoDown()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5})
	wantError(t, "Charge while it is down", err, ErrUnavailable)

	p.ComeUp(t, redistest.SocketOf(redistest.StartRedis(t, cfg)))
	eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
	if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
		t.Errorf("%q became %q", before, after)
	}
	usage := must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5}))(t)
	if usage.ActionCount != 2 || usage.ValueUsed != 10 {
		t.Errorf("after the restart: %+v", usage)
	}
	if next := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1, GrantRequest{}))(t); next.Generation != 2 {
		t.Errorf("after the restart: %+v", next)
	}
}

func TestAStoppedRedisHangsNoCall(t *testing.T) {
	t.Parallel()
	server := redistest.StartRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	operations, _ := newOperations(t, s)
	operations = append(operations,
		operation{"Ping", getSession, func(ctx context.Context, s *Store) error { return s.Ping(ctx) }},
		operation{"Ready", getSession, func(ctx context.Context, s *Store) error {
			_, err := s.Ready(ctx)
			return err
		}},
		operation{"KeepIssuer", getSession, func(ctx context.Context, s *Store) error {
			_, err := s.KeepIssuer(ctx, "http://issuer")
			return err
		}})
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
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1})
		token := byToken(w.exchange(t, s))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Charge(t.Context(), token, w.session.ID, Charge{Count: 1})
		wantError(t, "Charge", err, ErrUnavailable)
		_, err = s.Session(t.Context(), token, w.session.ID)
		wantError(t, "Session", err, ErrUnavailable)
	})
}
