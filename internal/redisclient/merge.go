package redisclient

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Calls of one script that share a pipeline go as one command, if the script has a variant for several calls: most of what a
// short script costs Redis is its start, and what stands around it. Each call is judged by itself, and has its own reply or
// error. See docs/decisions/0044-merged-scripts.md.

// maxMerged is how many calls go as one command at the most. More would make Redis's other clients wait longer, for little.
const maxMerged = 16

// merger puts calls into a pipeline, those that may share a command together.
type merger struct {
	open map[mergeKey]*mergedCommand // that have room, of the pipeline that is being filled
	all  []*mergedCommand            // of that pipeline
	free []*mergedCommand
}

// mergeKey is what the calls of one command have in common. On a cluster all keys of a command must be in one slot, as those
// with one hash tag are.
type mergeKey struct {
	script *mergedScript
	tag    string
}

func newMerger() *merger { return &merger{open: map[mergeKey]*mergedCommand{}} }

// add queues a command in the pipeline, or keeps it until end to send it with others. The call is nil if it is no script's.
func (m *merger) add(pipeline redis.Pipeliner, own unretriedCmd, call *Command, byTag bool) {
	if call == nil || call.merged == nil || !call.merged.fits(call) {
		_ = pipeline.Process(context.Background(), own) // queues it
		return
	}
	key := mergeKey{script: call.merged}
	if byTag {
		key.tag = hashTag(call.firstKey())
	}
	to := m.open[key]
	if to == nil {
		to = m.begin(key)
	}
	to.calls, to.own = append(to.calls, call), append(to.own, own)
	to.source = to.source || call.unknown
	if len(to.calls) == maxMerged {
		delete(m.open, key)
	}
}

func (m *merger) begin(key mergeKey) *mergedCommand {
	var to *mergedCommand
	if last := len(m.free) - 1; last >= 0 {
		to, m.free = m.free[last], m.free[:last]
	} else {
		to = &mergedCommand{}
	}
	to.script = key.script
	m.open[key], m.all = to, append(m.all, to)
	return to
}

// end queues what add has kept. A call that found no other goes as it is.
func (m *merger) end(pipeline redis.Pipeliner, sizes prometheus.Observer) {
	merged := m.all[:0]
	for _, one := range m.all {
		if len(one.calls) == 1 {
			_ = pipeline.Process(context.Background(), one.own[0]) // queues it
			m.drop(one)
			continue
		}
		one.put()
		_ = pipeline.Process(context.Background(), one.sent) // queues it
		if merged = append(merged, one); sizes != nil {
			sizes.Observe(float64(len(one.calls)))
		}
	}
	m.all = merged
}

// spread gives the calls their answers when the pipeline has ended.
func (m *merger) spread(failed error) {
	for _, one := range m.all {
		one.spread(failed)
	}
}

// separate returns the calls of the commands that did not run as a whole, ready to be sent again: with the merged script's
// source if Redis did not know it, else each by itself.
func (m *merger) separate(byTag *atomic.Bool) (again []*Command) {
	for _, one := range m.all {
		if !one.didNotRun() {
			continue
		}
		if redis.HasErrorPrefix(one.sent.Err(), "CROSSSLOT") { // a cluster, although the URL does not say so
			byTag.Store(true)
		}
		for _, call := range one.calls {
			if call.unknown = one.unknown(); !call.unknown {
				call.merged = nil
			}
			call.script.written.Store(false)
		}
		again = append(again, one.calls...)
	}
	return again
}

// reset makes the merger ready for another pipeline.
func (m *merger) reset() {
	clear(m.open)
	for _, one := range m.all {
		m.drop(one)
	}
	m.all = m.all[:0]
}

func (m *merger) drop(one *mergedCommand) {
	one.clear()
	m.free = append(m.free, one)
}
