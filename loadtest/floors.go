package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"remit/client"
	"remit/lua"
	"remit/money"
)

// unreachable are limits that no comparison reaches.
var unreachable = limits{actions: maxSessionActions, value: maxSessionValue}

// repeatedPost returns a call that posts the same body each time, and expects 200.
func (t *transport) repeatedPost(path, access, body string) (func() error, error) {
	r, err := http.NewRequest(http.MethodPost, t.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if access != "" {
		r.Header.Set("Authorization", bearer+access)
	}
	return func() error {
		if answer := t.call(r, []byte(body)); answer.status != http.StatusOK {
			return fmt.Errorf("answered %s", answer.reply)
		}
		return nil
	}, nil
}

// repeatedCharge creates a session for an agent of the fleet. It returns a call that charges it, and the size of an answer.
func (f *fleet) repeatedCharge(ctx context.Context) (call func() error, size int, err error) {
	a := f.agents[0]
	made, err := f.org.CreateSession(ctx, sessionFor(a.sdk.ID()))
	if err != nil {
		return nil, 0, err
	}
	access, err := a.sdk.Token(ctx)
	if err != nil {
		return nil, 0, err
	}
	recorded, first := withRecorder(ctx, opAction)
	if _, err := a.sdk.Session(made.ID).Charge(recorded, client.Charge{ActionType: actionTypes[0], Value: 1}); err != nil {
		return nil, 0, err
	}
	call, err = f.wire.repeatedPost("/v1/sessions/"+made.ID+"/actions", access, `{"action_type":"search","value_usd":0.000001}`)
	return call, len(first.reply().body), err
}

func sessionFor(agent string) client.SessionParams {
	return client.SessionParams{
		AgentID: agent, MaxActions: unreachable.actions, MaxValue: new(money.MicroUSD(unreachable.value)), ExpiresIn: 24 * time.Hour,
	}
}

// script calls the charge script of the service directly in Redis, as the service does.
type script struct {
	redis  *redis.Client
	socket string
	hash   string
	keys   []string
	args   []string
}

// prepareScript creates what the script needs in the Redis of a service, through the service.
func prepareScript(ctx context.Context, on *service) (*script, error) {
	remit, err := client.New(on.addr, client.Options{HTTPClient: &http.Client{Transport: newTransport(on.addr, 1)}})
	if err != nil {
		return nil, err
	}
	options, err := redis.ParseURL(on.redis.URL())
	if err != nil {
		return nil, err
	}
	socket, err := url.Parse(on.redis.URL())
	if err != nil {
		return nil, err
	}
	s := &script{socket: socket.Path}
	options.Protocol, options.PoolSize, options.MaxRetries = 2, 1, -1
	s.redis = redis.NewClient(options)
	if err := s.populate(ctx, remit); err != nil {
		s.close()
		return nil, err
	}
	if s.hash, err = s.redis.ScriptLoad(ctx, lua.Source("budgets/charge_session")).Result(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *script) close() { s.redis.Close() } // no call is in flight, and an error would have no consequence

// populate creates an organization, an agent and a session, and the keys and arguments to charge it.
func (s *script) populate(ctx context.Context, remit *client.Client) error {
	made, err := remit.CreateOrganization(ctx, client.OrganizationParams{Name: "floors"})
	if err != nil {
		return err
	}
	org := remit.Organization(string(made.APIKey))
	agent, err := org.CreateAgent(ctx, client.AgentParams{Name: "floors", Scopes: []string{"read", "write"}})
	if err != nil {
		return err
	}
	session, err := org.CreateSession(ctx, sessionFor(agent.ID))
	if err != nil {
		return err
	}
	cell := agent.ID[len(agent.ID)-4:]
	s.keys = []string{"remit:a:{" + cell + "}:" + agent.ID, "remit:s:{" + cell + "}:" + session.ID, "remit:ev:{" + cell + "}:" + agent.ID}
	s.args = []string{placeholderID(), placeholderID(), "", "1", "1", "", "1000 agent loadtest"}
	if err := s.redis.HSet(ctx, s.keys[0], "organization", s.args[0]).Err(); err != nil {
		return err
	}
	const untilLong = "9999999999" // the end of the day on which its usage counts, see lua/include/fold_usage.lua
	return s.redis.HSet(ctx, s.keys[1], "a", s.args[1], s.args[1], untilLong).Err()
}

// placeholderID returns 16 bytes without a zero, to replace an id both in the script's arguments and in the stored record:
// redis-benchmark gets them as a process argument, which cannot contain a zero byte, and ids often do.
func placeholderID() string {
	id := uuid.New()
	for i := range id {
		id[i] = max(id[i], 1)
	}
	return string(id[:])
}

// charged returns how many actions the session has.
func (s *script) charged(ctx context.Context) (int64, error) {
	actions, err := s.redis.HGet(ctx, s.keys[1], "n").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return actions, err
}

// call calls the script once, by go-redis.
func (s *script) call() error {
	args := make([]any, len(s.args))
	for i, a := range s.args {
		args[i] = a
	}
	answer, err := s.redis.EvalSha(context.Background(), s.hash, s.keys, args...).Text()
	if err == nil && !strings.HasPrefix(answer, "ok\n") {
		err = fmt.Errorf("the script answered %q", answer)
	}
	return err
}

// benchmark returns a contender that calls the script by redis-benchmark. It is an error if that is not installed.
func (s *script) benchmark() (contender, error) {
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return contender{}, errors.New("redis-benchmark is not installed: its floor was skipped")
	}
	const first, most = 2_000, 500_000
	calls := first // redis-benchmark takes a number of calls, not a duration; the previous round predicts it
	return contender{nameBenchmark, func(ctx context.Context, d time.Duration) (speed, error) {
		if calls == first {
			if _, err := s.runBenchmark(ctx, program, calls); err != nil {
				return speed{}, err
			}
		}
		got, err := s.runBenchmark(ctx, program, calls)
		calls = min(max(int(got.perSecond*d.Seconds()), first+1), most)
		return got, err
	}}, nil
}

// runBenchmark makes so many calls, and checks that each charged the session.
func (s *script) runBenchmark(ctx context.Context, program string, calls int) (speed, error) {
	before, err := s.charged(ctx)
	if err != nil {
		return speed{}, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	args := []string{"-s", s.socket, "-c", "50", "-P", "1", "-n", strconv.Itoa(calls), "--csv", "EVALSHA", s.hash, strconv.Itoa(len(s.keys))}
	args = append(append(args, s.keys...), s.args...)
	output, err := exec.CommandContext(limited, program, args...).Output()
	if err != nil {
		return speed{}, err
	}
	after, err := s.charged(ctx)
	if err != nil {
		return speed{}, err
	}
	if after-before < int64(calls) {
		return speed{}, fmt.Errorf("%d calls charged %d actions", calls, after-before)
	}
	return readBenchmark(string(output))
}

// readBenchmark reads the last line of redis-benchmark's CSV: the name of the test, which here contains arbitrary bytes,
// then calls per second, and the average, minimum, p50, p95, p99 and maximum latency in milliseconds.
func readBenchmark(csv string) (speed, error) {
	fields := strings.Split(strings.TrimRight(strings.TrimSpace(csv), `"`), `","`)
	if len(fields) < 8 {
		return speed{}, errors.New("unexpected output of redis-benchmark")
	}
	fields = fields[len(fields)-7:]
	perSecond, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return speed{}, fmt.Errorf("redis-benchmark: %w", err)
	}
	p50, err := strconv.ParseFloat(fields[3], 64)
	if err != nil {
		return speed{}, fmt.Errorf("redis-benchmark: %w", err)
	}
	return speed{perSecond, time.Duration(p50 * float64(time.Millisecond))}, nil
}

// startBare serves answers of so many bytes in this process, and returns a call that gets one.
func startBare(size int) (call func() error, stop func(), err error) {
	body := make([]byte, size)
	for i := range body {
		body[i] = 'x'
	}
	bare := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Response.Header.SetContentType("application/json")
			ctx.SetBody(body)
		},
		NoDefaultServerHeader: true, CloseOnShutdown: true,
	}
	l, err := listenOnLoopback()
	if err != nil {
		return nil, nil, err
	}
	var group sync.WaitGroup
	group.Go(func() { bare.Serve(l) }) // if it fails, the calls fail
	wire := newTransport("http://"+l.Addr().String(), closedLoopWorkers)
	call, err = wire.repeatedPost("/", "", `{"action_type":"search","value_usd":0.000001}`)
	stop = func() {
		wire.host.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		bare.ShutdownWithContext(ctx) // an error has no consequence: the rounds are over
		group.Wait()
	}
	if err != nil {
		stop()
	}
	return call, stop, err
}
