package bench

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// offered is the result of an open-loop load.
type offered struct {
	served, shed []time.Duration // latencies since each call was due
	span         time.Duration   // from the first due time to the last answer
}

// goodput returns how many calls per second were served.
func (o offered) goodput() float64 { return float64(len(o.served)) / o.span.Seconds() }

// dispatchEvery is the resolution of the schedule.
const dispatchEvery = time.Millisecond

// offer makes calls at a fixed rate, each on any free connection. A call waits if no connection is free, and its latency counts
// from when it was due.
func (c clients) offer(perSecond float64, span time.Duration) (offered, error) {
	due := make(chan time.Time, int(perSecond*span.Seconds())+1)
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		all    offered
		failed error
		ended  atomic.Bool
	)
	for _, conn := range c {
		group.Go(func() {
			own, err := conn.serve(due, &ended)
			mu.Lock()
			defer mu.Unlock()
			all.served, all.shed = append(all.served, own.served...), append(all.shed, own.shed...)
			failed = errors.Join(failed, err)
		})
	}
	began := time.Now()
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
	all.span = time.Since(began)
	return all, failed
}

// serve makes the due calls until there are no more, or until one fails.
func (c *clientConn) serve(due <-chan time.Time, ended *atomic.Bool) (own offered, err error) {
	for at := range due {
		if ended.Load() {
			continue
		}
		if err = c.take(); err != nil {
			ended.Store(true)
			return own, err
		}
		if c.shed {
			own.shed = append(own.shed, time.Since(at))
		} else {
			own.served = append(own.served, time.Since(at))
		}
	}
	return own, nil
}
