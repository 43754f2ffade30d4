package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"remit/redisproc"
)

// The floors are what the same machine does at the same time without the service: machines differ and change from minute
// to minute, ratios within one run do not.

const (
	compareRounds = 5
	compareRound  = 2 * time.Second // of each contender; half of it with one connection
)

// contender does the same thing over and over for a while, and says how fast.
type contender struct {
	name  string
	round func(ctx context.Context, d time.Duration) (speed, error)
}

// speed is how fast one round was.
type speed struct {
	perSecond float64
	p50       time.Duration
}

// rounds are a contender's.
type rounds struct {
	name string
	all  []speed
}

// perSecond is the median of the rounds.
func (r rounds) perSecond() float64 {
	return middle(r.all, func(p speed) float64 { return p.perSecond })
}

// p50 is the median of the rounds' own.
func (r rounds) p50() time.Duration {
	return middle(r.all, func(p speed) time.Duration { return p.p50 })
}

func middle[T float64 | time.Duration](of []speed, value func(speed) T) T {
	list := make([]T, len(of))
	for i, p := range of {
		list[i] = value(p)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// ratio is one median over another.
type ratio struct {
	name  string
	value float64
}

// comparison is what the service and its floors did, in alternating rounds.
type comparison struct {
	measured []rounds
	ratios   []ratio
	skipped  []string // floors that were not measured, and why
}

// compare measures the service of the fleet beside its floors. Those below the service need its Redis, so they are
// measured on own, the service that was started for this run; if there is none, one is started for them.
func compare(ctx context.Context, f *fleet, own *service, round time.Duration, stderr io.Writer) (c *comparison, err error) {
	fmt.Fprintf(stderr, "loadtest: measuring the service and its floors, %d rounds of %s each\n", compareRounds, round)
	charge, size, err := f.chargeOverAndOver(ctx)
	if err != nil {
		return nil, err
	}
	bare, stopBare, err := startBare(size)
	if err != nil {
		return nil, err
	}
	defer stopBare()

	c = &comparison{}
	if own == nil {
		if own, err = startService(ctx); errors.Is(err, redisproc.ErrNotInstalled) {
			c.skipped = append(c.skipped, "no redis-server is installed: the floors in Redis were skipped")
		} else if err != nil {
			return nil, err
		} else {
			defer func() { err = errors.Join(err, own.stop()) }()
		}
	}
	many := []contender{inClosedLoop(nameCharge, closedLoopWorkers, charge), inClosedLoop(nameBare, closedLoopWorkers, bare)}
	var single []contender
	if own != nil {
		script, err := prepareScript(ctx, own)
		if err != nil {
			return nil, err
		}
		defer script.close()
		if floor, err := script.benchmark(); err == nil {
			many = append(many, floor)
		} else {
			c.skipped = append(c.skipped, err.Error())
		}
		single = []contender{inClosedLoop(nameChargeAlone, 1, charge), inClosedLoop(nameScriptAlone, 1, script.call)}
	}
	if err := c.measure(ctx, round, many, single); err != nil {
		return nil, err
	}
	c.divide()
	return c, nil
}

// Names of the contenders.
var (
	nameCharge      = fmt.Sprintf("charge, %d connections", closedLoopWorkers)
	nameBare        = fmt.Sprintf("bare fasthttp handler, %d connections", closedLoopWorkers)
	nameBenchmark   = "script by redis-benchmark -c 50 -P 1"
	nameChargeAlone = "charge, 1 connection"
	nameScriptAlone = "script by go-redis, 1 connection"
)

// measure lets the contenders take turns, so that what changes on the machine changes for all.
func (c *comparison) measure(ctx context.Context, d time.Duration, many, single []contender) error {
	c.measured = make([]rounds, len(many)+len(single))
	for range compareRounds {
		for i, one := range slices.Concat(many, single) {
			length := d
			if i >= len(many) {
				length /= 2
			}
			p, err := one.round(ctx, length)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			c.measured[i].name = one.name
			c.measured[i].all = append(c.measured[i].all, p)
		}
	}
	return nil
}

// divide computes the ratios of what was measured.
func (c *comparison) divide() {
	by := map[string]rounds{}
	for _, r := range c.measured {
		by[r.name] = r
	}
	add := func(name string, over, under float64) {
		if under > 0 {
			c.ratios = append(c.ratios, ratio{name, over / under})
		}
	}
	add("throughput: charge / bare handler", by[nameCharge].perSecond(), by[nameBare].perSecond())
	if floor, ok := by[nameBenchmark]; ok {
		add("throughput: charge / redis-benchmark", by[nameCharge].perSecond(), floor.perSecond())
	}
	if floor, ok := by[nameScriptAlone]; ok {
		add("latency p50: charge / go-redis", float64(by[nameChargeAlone].p50()), float64(floor.p50()))
	}
}

// inClosedLoop is a contender of so many at once, by the machinery that drives the fleet.
func inClosedLoop(name string, workers int, do func() error) contender {
	return contender{name, func(ctx context.Context, d time.Duration) (speed, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var mu sync.Mutex
		latencies := newHistogram()
		began := time.Now()
		drive(ctx, workers, newPacer(math.MaxInt64, 0, d), func(_ int64, due time.Time) {
			if err := do(); err != nil {
				cancel(err)
				return
			}
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			recordDuration(latencies, took)
		})
		took := time.Since(began).Seconds()
		return speed{float64(latencies.TotalCount()) / took, quantile(latencies, 50)}, context.Cause(ctx)
	}}
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
	call, err = wire.over("/", "", `{"action_type":"search","value_usd":0.000001}`)
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
