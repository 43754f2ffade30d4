package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"remit/internal/redisproc"
	"remit/test/redistest"
)

func TestWithoutRedisEverythingIsUnavailableAtOnce(t *testing.T) {
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
