package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/money"
	"remit/redisproc"
)

// serverError is an error that Redis answers.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func TestTroubleIsToldByWhetherAWriteMayHaveHappened(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name  string
		cause error
		write error
	}{
		{"a dial that was refused", refused, ErrUnavailable},
		{"a dial that was refused, wrapped", fmt.Errorf("node 1: %w", refused), ErrUnavailable},
		{"a dial that timed out", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, ErrUnavailable},
		{"no connection became free", redis.ErrPoolTimeout, ErrUnavailable},
		{"no connection may be opened", redis.ErrPoolExhausted, ErrUnavailable},
		{"the store is closed", redis.ErrClosed, ErrUnavailable},
		{"LOADING", serverError("LOADING Redis is loading the dataset in memory"), ErrUnavailable},
		{"READONLY", serverError("READONLY You can't write against a read only replica."), ErrUnavailable},
		{"OOM", serverError("OOM command not allowed when used memory > 'maxmemory'."), ErrUnavailable},
		{"MISCONF", serverError("MISCONF Errors writing to the AOF file: No space left on device"), ErrUnavailable},
		{"CLUSTERDOWN", serverError("CLUSTERDOWN Hash slot not served"), ErrUnavailable},
		{"MASTERDOWN", serverError("MASTERDOWN Link with MASTER is down"), ErrUnavailable},
		{"NOREPLICAS", serverError("NOREPLICAS Not enough good replicas to write."), ErrUnavailable},
		{"TRYAGAIN", serverError("TRYAGAIN Multiple keys request during rehashing of slot"), ErrUnavailable},
		{"BUSY", serverError("BUSY Redis is busy running a script."), ErrUnavailable},
		{"NOAUTH", serverError("NOAUTH Authentication required."), ErrUnavailable},
		{"WRONGPASS", serverError("WRONGPASS invalid username-password pair"), ErrUnavailable},
		{"NOPERM", serverError("NOPERM this user has no permissions to run the 'evalsha' command"), ErrOutcomeUnknown}, // it can come after a write
		{"MOVED", serverError("MOVED 3999 127.0.0.1:6381"), ErrUnavailable},
		{"ASK", serverError("ASK 3999 127.0.0.1:6381"), ErrUnavailable},
		{"too many clients", serverError("ERR max number of clients reached"), ErrUnavailable},
		{"LOADING, wrapped", fmt.Errorf("node 1: %w", serverError("LOADING")), ErrUnavailable},

		{"a connection that ended", io.EOF, ErrOutcomeUnknown},
		{"a connection that ended within the reply", io.ErrUnexpectedEOF, ErrOutcomeUnknown},
		{"a connection that was reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, ErrOutcomeUnknown},
		{"a reply that did not come", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, ErrOutcomeUnknown},
		{"a request that was not taken", &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, ErrOutcomeUnknown},
		{"the caller's time is up", context.DeadlineExceeded, ErrOutcomeUnknown},
		{"the caller has gone", context.Canceled, ErrOutcomeUnknown},
		{"an error within a script", serverError("ERR user_script:12: attempt to compare nil with number"), ErrOutcomeUnknown},
		{"WRONGTYPE", serverError("WRONGTYPE Operation against a key holding the wrong kind of value"), ErrOutcomeUnknown},
		{"text that only looks like a refusal", errors.New("LOADING"), ErrOutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for a, want := range map[access]error{writes: test.write, reads: ErrUnavailable} {
				err := classify(test.cause, a)
				if !errors.Is(err, want) || !errors.Is(err, test.cause) {
					t.Errorf("%v, want %v with the cause", err, want)
				}
				if errors.Is(err, ErrUnavailable) && errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("%v is both", err)
				}
			}
		})
	}
	if classify(nil, reads) != nil || classify(nil, writes) != nil {
		t.Error("no trouble is an error")
	}
}

func TestOnlyWhatPassesIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"a dial that was refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		{"a slot that is moving", serverError("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		{"a slot that nobody owns up to", serverError("MOVED 3999 127.0.0.1:6381"), true},
		{"a slot of which all keys have moved", serverError("ASK 3999 127.0.0.1:6381"), true},
		{"a cluster that is down", serverError("CLUSTERDOWN The cluster is down"), false},
		{"READONLY", serverError("READONLY You can't write against a read only replica."), false},
		{"a dial that used up the caller's time", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, false},
		{"no connection became free", redis.ErrPoolTimeout, false},
		{"LOADING", serverError("LOADING Redis is loading the dataset in memory"), false},
		{"OOM", serverError("OOM command not allowed when used memory > 'maxmemory'."), false},
		{"a connection that ended", io.EOF, false},
		{"a reply that did not come", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, false},
	} {
		if got := goesAgain(t.Context(), test.err, 1, time.Now()); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
		if goesAgain(t.Context(), test.err, maxAttempts, time.Now().Add(-movingTime)) {
			t.Errorf("%s: for ever", test.name)
		}
	}
}

func TestWithoutRedisEverythingIsUnavailableAtOnce(t *testing.T) {
	t.Parallel()
	onEachProxy(t, func(t *testing.T, s *Store, p *proxy) {
		operations, tenants := newOperations(t, s)
		w := tenants[0]
		before := w.contents(t, s)
		upstream := p.upstream
		p.goDown()
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

		p.comeUp(t, upstream)
		eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
		if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
			t.Errorf("%q became %q", before, after)
		}
	})
}

func TestAfterARestartOfRedisEverythingGoesOn(t *testing.T) {
	t.Parallel()
	cfg := redisproc.Config{Dir: t.TempDir()}
	server := startRedis(t, cfg)
	p := newProxy(t, socketOf(server))
	s := openStore(t, Config{}, "redis://"+p.address, nil)
	w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
	grant := w.exchange(t, s)
	must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5}))(t)
	before := w.contents(t, s)

	p.goDown()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5})
	wantError(t, "Charge while it is down", err, ErrUnavailable)

	p.comeUp(t, socketOf(startRedis(t, cfg)))
	eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
	if after := w.contents(t, s); !reflect.DeepEqual(after, before) {
		t.Errorf("%q became %q", before, after)
	}
	usage := must(s.Charge(t.Context(), byToken(grant), w.session.ID, Charge{Count: 1, Value: 5}))(t)
	if usage.ActionCount != 2 || usage.ValueUsed != 10 {
		t.Errorf("after the restart: %+v", usage)
	}
	if next := must(s.RotateRefresh(t.Context(), w.agent.ID, grant.Family, 1))(t); next.Generation != 2 {
		t.Errorf("after the restart: %+v", next)
	}
}

func TestAStoppedRedisHangsNoCall(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
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
	resume := suspend(t, server)
	var wg sync.WaitGroup
	wg.Go(func() { // alone, a write is sent at once and may happen yet
		charge := operations[slices.IndexFunc(operations, func(o operation) bool { return o.name == "Charge" })]
		wantError(t, "Charge alone", charge.do(context.Background(), s), ErrOutcomeUnknown)
	})
	waitAtMost(t, 2*callTimeout, &wg)
	for _, operation := range operations { // so many at once that some wait in line, and are shed unsent
		wg.Go(func() {
			err := operation.do(context.Background(), s)
			if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("%s: %v", operation.name, err)
			}
			if operation.script.access == reads {
				wantError(t, operation.name, err, ErrUnavailable)
			}
		})
	}
	waitAtMost(t, 2*callTimeout, &wg)
	resume()
	eventually(t, "it works again", func() bool { return s.Ping(t.Context()) == nil })
}

func TestACallEndsWithItsCallersTime(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: money.USD})
	token := byToken(w.exchange(t, s))
	keepConnections(t, s, 2) // what needs a new one is not sent, and in no doubt
	suspend(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Charge(ctx, token, w.session.ID, Charge{Count: 1})
		wantError(t, "Charge", err, ErrOutcomeUnknown)
	})
	wg.Go(func() {
		_, err := s.Session(ctx, token, w.session.ID)
		wantError(t, "Session", err, ErrUnavailable)
	})
	waitAtMost(t, ioTimeout-100*time.Millisecond, &wg)
}

// When Redis hangs, what waits in line is shed: it was never sent, and is known not to have happened.
func TestCallsThatWaitForAStuckRedisAreShedUnsent(t *testing.T) {
	t.Parallel()
	server := startRedis(t, redisproc.Config{})
	s := openStore(t, Config{}, server.URL(), nil)
	w := newTenant(t, s, NewSession{MaxActions: 1000, MaxValue: money.USD})
	token := byToken(w.exchange(t, s))
	keepConnections(t, s, plainCalls)
	resume := suspend(t, server)
	const calls = plainCalls + 2*laneCommands // the second pipeline never sets out
	outcomes := make([]error, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { _, outcomes[i] = s.Charge(context.Background(), token, w.session.ID, Charge{Count: 1}) })
	}
	waitAtMost(t, 2*callTimeout, &wg)
	resume()
	var shed, unknown int64
	for _, err := range outcomes {
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			unknown++
		case errors.Is(err, ErrUnavailable): // it had waited too long, or its pipeline had no connection yet
			shed++
		default:
			t.Errorf("Charge: %v", err)
		}
	}
	if unknown > plainCalls+laneCommands || shed == 0 || unknown+shed != calls {
		t.Errorf("%d were sent and %d shed, of %d", unknown, shed, calls)
	}
	eventually(t, "it works again", func() bool { // a call of the store's own may be the one that tries
		_, err := s.Session(t.Context(), token, w.session.ID)
		return err == nil
	})
	if n := must(s.Session(t.Context(), token, w.session.ID))(t).ActionCount; n > unknown {
		t.Errorf("%d charges happened, of %d that were sent", n, unknown)
	}
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

// suspend stops the process of a server without ending it, until resume or the end of the test.
func suspend(t *testing.T, server *redisproc.Server) (resume func()) {
	t.Helper()
	if err := syscall.Kill(server.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume = func() { _ = syscall.Kill(server.PID(), syscall.SIGCONT) }
	t.Cleanup(resume)
	return resume
}

// waitAtMost waits for all goroutines of the group, but not for longer.
func waitAtMost(t *testing.T, limit time.Duration, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Errorf("still waiting after %s", limit)
		<-done
	}
}
