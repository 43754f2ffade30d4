package webhook

import (
	"slices"
	"sync"
	"time"
)

// handClock goes on only when it is moved.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []handTimer
}

type handTimer struct {
	at time.Time
	do func()
}

func newHandClock() *handClock { return &handClock{now: time.Unix(1_800_000_000, 0)} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) AfterFunc(wait time.Duration, do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, handTimer{c.now.Add(wait), do})
}

// advance moves the clock on without running what is due: move(0) does.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// move moves the clock on, and runs what is due, in its order.
func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end := c.now.Add(d); ; {
		slices.SortStableFunc(c.timers, func(a, b handTimer) int { return a.at.Compare(b.at) })
		if len(c.timers) == 0 || c.timers[0].at.After(end) {
			c.now = end
			return
		}
		next := c.timers[0]
		c.timers = c.timers[1:]
		c.now = later(c.now, next.at)
		c.mu.Unlock()
		next.do()
		c.mu.Lock()
	}
}
