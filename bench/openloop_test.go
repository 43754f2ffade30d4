package bench

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// offered is the result of an open-loop load.
type offered struct {
	served, shed []time.Duration // latencies since each call was due
	since        []time.Duration // latencies of the served calls since each was sent, of those sent before the last was due
	late         []time.Duration // how long after it was due each call was sent: no connection was free, or no processor time
	span         time.Duration   // from the first due time to the last answer
}

// goodput returns how many calls per second were served.
func (o offered) goodput() float64 { return float64(len(o.served)) / o.span.Seconds() }

// refused returns which part of the calls was shed.
func (o offered) refused() float64 {
	return float64(len(o.shed)) / float64(len(o.served)+len(o.shed))
}

func (o offered) String() string {
	return fmt.Sprintf("%.0f/s served, %.0f %% shed, p50 %s p99 %s since due, p50 %s p99 %s since sent, sent late p50 %s p99 %s",
		o.goodput(), 100*o.refused(), median(o.served), quantile(0.99, o.served), median(o.since), quantile(0.99, o.since),
		median(o.late), quantile(0.99, o.late))
}

// shedOf makes n calls, one at a time on each connection, and returns which part was shed.
func (c clients) shedOf(n int) (float64, error) {
	var shed atomic.Int64
	_, err := spread(len(c), n, func(conn int) error {
		err := c[conn].take()
		if c[conn].shed {
			shed.Add(1)
		}
		return err
	})
	return float64(shed.Load()) / float64(n), err
}

// dispatchEvery is the resolution of the schedule.
const dispatchEvery = time.Millisecond

// offer makes calls at a fixed rate, each on any free connection. A call waits if no connection is free, and its latency counts
// from when it was due.
func (c clients) offer(perSecond float64, span time.Duration) (offered, error) {
	due := make(chan time.Time, int(perSecond*span.Seconds())+1)
	each, failed := make([]offered, len(c)), make([]error, len(c))
	var group sync.WaitGroup
	var ended atomic.Bool
	began := time.Now()
	for i, conn := range c {
		group.Go(func() { each[i], failed[i] = conn.serve(due, began.Add(span), &ended) })
	}
	for sent := 0; ; {
		passed := min(time.Since(began), span)
		for wanted := int(perSecond * passed.Seconds()); sent < wanted; sent++ {
			due <- began.Add(time.Duration(float64(sent) / perSecond * float64(time.Second)))
		}
		if passed == span || ended.Load() {
			break
		}
		time.Sleep(dispatchEvery)
	}
	close(due)
	group.Wait()
	all := offered{span: time.Since(began)}
	for _, own := range each {
		all.served, all.shed = append(all.served, own.served...), append(all.shed, own.shed...)
		all.since, all.late = append(all.since, own.since...), append(all.late, own.late...)
	}
	return all, errors.Join(failed...)
}

// serve makes the due calls until there are no more, or until one fails.
func (c *clientConn) serve(due <-chan time.Time, end time.Time, ended *atomic.Bool) (own offered, err error) {
	for at := range due {
		if ended.Load() {
			continue
		}
		sent := time.Now()
		if err = c.take(); err != nil {
			ended.Store(true)
			return own, err
		}
		answered := time.Now()
		own.late = append(own.late, sent.Sub(at))
		if c.shed {
			own.shed = append(own.shed, answered.Sub(at))
		} else {
			own.served = append(own.served, answered.Sub(at))
			if sent.Before(end) {
				own.since = append(own.since, answered.Sub(sent))
			}
		}
	}
	return own, nil
}
