package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/test/fakeprovider"
	"remit/test/serviceproc"
)

// streamLoad is the size of a load of streams.
type streamLoad struct {
	streams, choices, held int
	pace                   time.Duration // between two events of a stream
}

var fullStreams = streamLoad{streams: 200, choices: 8, held: 1000, pace: 50 * time.Millisecond}

// shortConnections is how many clients make short calls at once.
const shortConnections = 64

// BenchmarkGateway measures what the gateway costs beside Go's own reverse proxy, both before one fake provider.
func BenchmarkGateway(b *testing.B) {
	onlyLong(b)
	m := startMetering(b, fullStreams)
	b.Run("first-byte", func(b *testing.B) {
		own, its := compareRounds(b, 400, m.gateway.firstByte(b), m.proxy.firstByte(b))
		b.ReportMetric(float64(own.p50-its[0].p50)/1e6, "extra-p50-ms")
	})
	b.Run("short", func(b *testing.B) { compareRounds(b, 5000, m.gateway.short(b), m.proxy.short(b)) })
	b.Run("streams", func(b *testing.B) {
		own, its := compareRounds(b, 0, m.gateway.streaming(m.provider, fullStreams), m.proxy.streaming(m.provider, fullStreams))
		b.ReportMetric(float64(its[0].p99)/1e3, "reverse-proxy-p99-us")
		b.ReportMetric(100*own.busy(), "processor-%")
		b.ReportMetric(100*its[0].busy(), "reverse-proxy-processor-%")
	})
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(m.gateway.bytesPerStream(b, fullStreams)/1024, "KiB/stream")
		b.ReportMetric(m.proxy.bytesPerStream(b, fullStreams)/1024, "reverse-proxy-KiB/stream")
		b.ReportMetric(0, "ns/op")
	})
}

// busy returns which part of all cores the processes of a round took.
func (r round) busy() float64 {
	return (r.used.client + r.used.server + r.used.redis) * r.rate / 1e6 / float64(runtime.NumCPU())
}

// TestTheGatewayIsMeasured keeps BenchmarkGateway working. How long anything takes is for the benchmark to say.
func TestTheGatewayIsMeasured(t *testing.T) {
	brief := streamLoad{streams: 5, choices: 1, held: 20, pace: time.Millisecond}
	m := startMetering(t, brief)
	for name, kind := range map[string]func(front) contender{
		"first byte": func(f front) contender { return f.firstByte(t) },
		"short":      func(f front) contender { return f.short(t) },
		"streams":    func(f front) contender { return f.streaming(m.provider, brief) },
	} {
		for _, f := range []front{m.gateway, m.proxy} {
			if got := must(kind(f).measure(50))(t); got.operations < 50 || got.p50 <= 0 || got.used.server <= 0 {
				t.Errorf("%s of the %s: %+v", name, f.name, got)
			}
		}
	}
	m.gateway.bytesPerStream(t, brief) // fails when a stream does not begin
}

// metering is the gateway and Go's own reverse proxy, as processes before one fake provider, which is in this process.
type metering struct {
	provider       *provider
	gateway, proxy front
}

// front is what stands before the provider.
type front struct {
	name, addr, path string
	credential       string // a header line
	pid, redisPID    int
}

// provider is the fake provider, which notes when it sends each event of a stream. The calls of streams have X-Call: N.
type provider struct {
	fakeprovider.Provider
	url   string
	began time.Time
	sent  []sentEvents // of each stream
}

// sentEvents are the times of a stream's events, in nanoseconds since the provider began.
type sentEvents struct {
	count int // the provider's
	at    [4096]atomic.Int64
}

// noting is an answer of which each write is an event.
type noting struct {
	http.ResponseWriter
	provider *provider
	stream   *sentEvents
}

func (n *noting) Write(text []byte) (int, error) {
	n.stream.at[n.stream.count].Store(int64(time.Since(n.provider.began)))
	n.stream.count++
	return n.ResponseWriter.Write(text)
}

func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if stream, err := strconv.Atoi(r.Header.Get("X-Call")); err == nil {
		p.sent[stream].count = 0
		w = &noting{w, p, &p.sent[stream]}
	}
	p.Provider.ServeHTTP(w, r)
}

const gatewayConfig = `
listen: 127.0.0.1:0
prices: prices.json
max_streams: 4000
max_streams_per_organization: 4000
drain_seconds: 0
upstreams:
  - {name: openai, protocol: openai, base_url: %q, key_file: key, organizations: ["*"]}
`

func startMetering(tb testing.TB, load streamLoad) metering {
	tb.Helper()
	needFiles(tb, 4*load.held+4*load.streams+200)
	p := &provider{began: time.Now(), sent: make([]sentEvents, load.streams)}
	upstream := httptest.NewServer(p)
	tb.Cleanup(upstream.Close)
	p.url = upstream.URL
	binary := must(serviceproc.Build("remit/bench/proxy"))(tb)
	proxy := must(serviceproc.StartProcess(exec.Command(binary, p.url)))(tb)
	tb.Cleanup(proxy.Kill)
	url := must(serviceproc.AwaitURL(proxy))(tb)
	return metering{
		provider: p, gateway: startGateway(tb, p),
		proxy: front{name: "reverse-proxy", addr: strings.TrimPrefix(url, "http://"), path: "/v1/chat/completions", pid: proxy.PID()},
	}
}

// startGateway runs a gateway before the provider, and a service beside it that makes a session key.
func startGateway(tb testing.TB, p *provider) front {
	tb.Helper()
	s := startProgram(tb)
	_, answer := s.send(tb, http.MethodPost, "/v1/sessions/"+s.newAgent(tb).session.String()+"/keys", "{}")
	key := textField(answer, "key")
	if key == "" {
		tb.Fatalf("no session key: %s", answer)
	}
	gateway := serviceproc.RunGateway(tb, map[string]string{
		serviceproc.GatewayConfig: fmt.Sprintf(gatewayConfig, p.url+"/v1"), "key": "sk-fake",
		"prices.json": `{"plain": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_input_tokens": 100000, "max_output_tokens": 4096}}`,
	}, "REMIT_REDIS_URL="+s.redisURL, "REMIT_RATE_LIMITS=off")
	return front{
		name: "gateway", addr: strings.TrimPrefix(gateway.URL, "http://"), path: "/openai/chat/completions",
		credential: "Authorization: Bearer " + key + "\r\n", pid: gateway.PID(), redisPID: s.redisPID,
	}
}

const shortBody = `{"model":"plain","max_tokens":16,"messages":[{"role":"user","content":"How much is left?"}]}`

// short makes calls that are answered at once and not streamed.
func (f front) short(tb testing.TB) contender {
	tb.Helper()
	calls := connect(tb, f.addr, shortConnections, same(post(f.path, f.credential, shortBody)))
	return timed(f.name, calls.run).beside(f.pid, f.redisPID)
}

// firstByte makes one streamed call after the other, and measures each until the first byte of its body.
func (f front) firstByte(tb testing.TB) contender {
	tb.Helper()
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	c := timed(f.name, func(n int) ([]time.Duration, error) {
		latencies := make([]time.Duration, n)
		for i := range latencies {
			began := time.Now()
			answer, err := transport.RoundTrip(f.request(context.Background(), 1, "", ""))
			if err != nil {
				return nil, err
			}
			_, err = io.ReadFull(answer.Body, make([]byte, 1))
			latencies[i] = time.Since(began)
			_, failed := io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if err = errors.Join(err, failed, statusOf(answer)); err != nil {
				return nil, fmt.Errorf("call %d of %s: %w", i, f.name, err)
			}
		}
		return latencies, nil
	}).beside(f.pid, f.redisPID)
	c.alone = true
	return c
}

func statusOf(answer *http.Response) error {
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// request returns a streamed call that the fake provider answers so. The id is that of a stream whose events it notes.
func (f front) request(ctx context.Context, choices int, fake, id string) *http.Request {
	body := fmt.Sprintf(`{"model":"plain","stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,"n":%d,`+
		`"messages":[{"role":"user","content":"Tell me a story."}]}`, 200, choices)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.addr+f.path, strings.NewReader(body))
	if err != nil {
		panic(err) // its parts are constant
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Fake", fake)
	r.Header.Set("X-Call", id)
	if name, value, has := strings.Cut(strings.TrimSpace(f.credential), ": "); has {
		r.Header.Set(name, value)
	}
	return r
}

// streaming reads streams at once, each from its begin to its end, whatever the number of operations. An operation is an event, and its
// latency the time from when the provider sent it until the client has read it.
func (f front) streaming(p *provider, load streamLoad) contender {
	c := timed(f.name, func(int) ([]time.Duration, error) {
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		each, failed := make([][]time.Duration, load.streams), make([]error, load.streams)
		var group sync.WaitGroup
		for i := range load.streams {
			group.Go(func() {
				time.Sleep(load.pace * time.Duration(i) / time.Duration(load.streams)) // streams do not beat together
				each[i], failed[i] = f.delays(transport, p, i, load)
			})
		}
		group.Wait()
		return slices.Concat(each...), errors.Join(failed...)
	}).beside(f.pid, f.redisPID)
	c.prepare = func(int) { // makes room for what a round adds to the provider's ledger
		p.Provider.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/ledger", nil))
	}
	return c
}

// delays reads a stream, and returns how long each of its events took.
func (f front) delays(transport *http.Transport, p *provider, stream int, load streamLoad) (delays []time.Duration, err error) {
	fake := fmt.Sprintf("seed=%d,pace=%d", stream, load.pace.Milliseconds())
	answer, err := transport.RoundTrip(f.request(context.Background(), load.choices, fake, strconv.Itoa(stream)))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadSlice('\n')
		now := time.Since(p.began)
		switch {
		case err == io.EOF:
			return delays, statusOf(answer)
		case err != nil:
			return nil, err
		case len(line) > 1: // it is no end of an event
			delays = append(delays, now-time.Duration(p.sent[stream].at[len(delays)].Load()))
		}
	}
}

// bytesPerStream returns by how much the resident memory grows for each stream that has begun and goes on.
func (f front) bytesPerStream(tb testing.TB, load streamLoad) float64 {
	tb.Helper()
	transport := &http.Transport{}
	ctx, hangUp := context.WithCancel(tb.Context())
	tb.Cleanup(func() {
		hangUp()
		transport.CloseIdleConnections()
	})
	before := resident(tb, f.pid)
	for range load.held {
		answer := must(transport.RoundTrip(f.request(ctx, 1, "hang=midway,seed=1", "")))(tb)
		noError(tb, statusOf(answer))
		must(io.ReadFull(answer.Body, make([]byte, 1)))(tb)
	}
	time.Sleep(idleTime)
	return (resident(tb, f.pid) - before) * (1 << 20) / float64(load.held)
}
