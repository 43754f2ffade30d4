package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"remit/internal/redisproc"
)

// The floors measure the same machine at the same time without the service. Machines differ and change from minute to
// minute, but ratios within one run are stable.

const (
	compareRounds = 5
	compareRound  = 2 * time.Second // per contender; half of it with one connection
)

// comparison is the measurements of the service and its floors in alternating rounds.
type comparison struct {
	measured []rounds
	ratios   []ratio
	skipped  []string // floors that were not measured, and why
}

// compare measures the service of the fleet and its floors. The floors in Redis need access to the Redis of own, the service
// started for this run. If own is nil, compare starts a service for them.
func compare(ctx context.Context, f *fleet, own *service, round time.Duration, stderr io.Writer) (c *comparison, err error) {
	fmt.Fprintf(stderr, "loadtest: measuring the service and its floors, %d rounds of %s each\n", compareRounds, round)
	charge, size, err := f.repeatedCharge(ctx)
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
			c.skipped = append(c.skipped, "redis-server is not installed: the floors in Redis were skipped")
		} else if err != nil {
			return nil, err
		} else {
			defer func() { err = errors.Join(err, own.stop()) }()
		}
	}
	many := []contender{closedLoop(nameCharge, closedLoopWorkers, charge), closedLoop(nameBare, closedLoopWorkers, bare)}
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
		single = []contender{closedLoop(nameChargeAlone, 1, charge), closedLoop(nameScriptAlone, 1, script.call)}
	}
	if err := c.measure(ctx, round, many, single); err != nil {
		return nil, err
	}
	c.divide()
	return c, nil
}

// measure runs the contenders in turn, so that changes on the machine affect all of them.
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

// divide computes the ratios of the measurements.
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
