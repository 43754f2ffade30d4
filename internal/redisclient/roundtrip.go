package redisclient

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// sendBatch sends one pipeline, and wakes all its callers. Calls of a merged command that did not run go in another one.
func (l *pipeliner) sendBatch(batch []*pendingCall) {
	defer func() {
		for _, p := range batch {
			p.done <- struct{}{}
		}
	}()
	defer RecoverTo(func(err error) {
		for _, p := range batch {
			p.cmd.SetErr(err)
		}
	})
	if again := l.roundTrip(batch); len(again) > 0 {
		l.mu.Lock()
		l.taken = time.Now()
		l.mu.Unlock()
		l.roundTrip(again)
	}
}

// roundTrip sends a pipeline, and gives its calls their answers. It returns those that are to be sent again: Redis did not run
// them because of what they were merged with, or because it did not know the script that merges them.
func (l *pipeliner) roundTrip(batch []*pendingCall) (again []*pendingCall) {
	merges := l.takeMerger()
	defer l.returnMerger(merges)
	pipeline := l.server.Pipeline()
	sent, earliest := l.fill(pipeline, merges, batch)
	if sent == 0 {
		return nil
	}
	if l.sizes != nil {
		l.sizes.Observe(float64(sent))
	}
	failure := l.confirms.end(pipeline, keyOf(batch[0].cmd), earliest)
	trips := beginTrips(l.server, batch, sent)
	_, err := pipeline.Exec(&bounds{context.Background(), earliest})
	unconfirmed := failure()
	l.ended(sent, err)
	merges.spread(err)
	for _, p := range batch {
		p.cmd.explain(err)
		p.cmd.note(unconfirmed)
	}
	endTrips(trips)
	return l.separate(merges, batch)
}

// takeMerger returns the merger of the pipelines before, if none uses it.
func (l *pipeliner) takeMerger() *merger {
	l.mu.Lock()
	defer l.mu.Unlock()
	merges := l.merger
	if l.merger = nil; merges == nil {
		merges = newMerger()
	}
	return merges
}

func (l *pipeliner) returnMerger(merges *merger) {
	merges.reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.merger = merges
}

// fill puts those commands into a pipeline that have enough time left, and returns how many and their earliest deadline.
func (l *pipeliner) fill(pipeline redis.Pipeliner, merges *merger, batch []*pendingCall) (sent int, earliest time.Time) {
	now, byTag := time.Now(), l.byTag.Load()
	for _, p := range batch {
		if p.deadline.Sub(now) < minTimeLeft {
			p.cmd.SetErr(errTooLate)
			continue
		}
		if earliest.IsZero() || p.deadline.Before(earliest) {
			earliest = p.deadline
		}
		merges.add(pipeline, p.cmd, p.call, byTag)
		sent++
	}
	merges.end(pipeline, l.merges)
	return sent, earliest
}

// separate returns the calls that are to be sent again.
func (l *pipeliner) separate(merges *merger, batch []*pendingCall) (again []*pendingCall) {
	separated := merges.separate(&l.byTag)
	for _, p := range batch {
		if len(separated) > 0 && slices.Contains(separated, p.call) {
			p.cmd.SetErr(nil)
			again = append(again, p)
		}
	}
	return again
}
