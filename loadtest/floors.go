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

// unreachable are limits that no comparison uses up.
var unreachable = limits{actions: maxSessionActions, value: maxSessionValue}

// repeatedPost is a call that posts the same body again and again, and wants to be answered 200.
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

// repeatedCharge is a charge of a session that an agent of the fleet gets for this, and the size of an answer to it.
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

// script is the charge script of the service, called as the service calls it, without the service.
type script struct {
	redis  *redis.Client
	socket string
	hash   string
	keys   []string
	args   []string
}

// prepareScript makes what the script needs on the Redis of a service, through the service.
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
	if s.hash, err = s.redis.ScriptLoad(ctx, lua.Source("charge_session")).Result(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *script) close() { s.redis.Close() } // nothing is under way, and there is nobody to tell

// populate makes an organization, an agent and a session, and calls that charge it.
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
	return s.redis.HSet(ctx, s.keys[1], "a", s.args[1]).Err()
}

// placeholderID is 16 bytes to go to the script in place of an id, and to be kept where it looks for that: an argument of a process
// cannot hold the byte 0, and of an id the bytes that tell the time have it for hours on end.
func placeholderID() string {
	id := uuid.New()
	for i := range id {
		id[i] = max(id[i], 1)
	}
	return string(id[:])
}

// charged is how many actions the session has.
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
	answer, err := s.redis.EvalSha(context.Background(), s.hash, s.keys, args...).Slice()
	if err == nil && (len(answer) == 0 || answer[0] != "ok") {
		err = fmt.Errorf("the script answered %v", answer)
	}
	return err
}

// benchmark is the script called by redis-benchmark; an error says that this is not installed.
func (s *script) benchmark() (contender, error) {
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return contender{}, errors.New("redis-benchmark is not installed: its floor was skipped")
	}
	const first, most = 2_000, 500_000
	calls := first // it is told a number and not a time, so that of a round is what the one before makes likely
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

// runBenchmark makes so many calls, and sees that each charged the session.
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

// readBenchmark reads the last line of redis-benchmark's CSV: the name of the test, which here has bytes of any kind in
// it, then calls per second and the average, least, p50, p95, p99 and greatest latency in milliseconds.
func readBenchmark(csv string) (speed, error) {
	fields := strings.Split(strings.TrimRight(strings.TrimSpace(csv), `"`), `","`)
	if len(fields) < 8 {
		return speed{}, errors.New("redis-benchmark printed something else than expected")
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

// startBare serves answers of so many bytes, and nothing else, in this process. It returns the call for one.
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
	group.Go(func() { bare.Serve(l) }) // should it fail, so do the calls
	wire := newTransport("http://"+l.Addr().String(), closedLoopWorkers)
	call, err = wire.repeatedPost("/", "", `{"action_type":"search","value_usd":0.000001}`)
	stop = func() {
		wire.host.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		bare.ShutdownWithContext(ctx) // what it returns changes nothing: the rounds are over
		group.Wait()
	}
	if err != nil {
		stop()
	}
	return call, stop, err
}
